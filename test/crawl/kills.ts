/** Crawls of a faulty site by the real command, killed and started again until they are finished, against one that nobody disturbed. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { seededRandom } from "../../src/testing/clock.ts";
import { type Answer, fromPage, gated, html, type Served, serve } from "./served.ts";

const root = resolve(import.meta.dirname, "../..");
const bin = join(root, "bin/skein.js");
/** A start that needs longer is a hang. */
const LONGEST_MS = 150_000;

/** A site of `pages` pages in a tree, with redirects, passing failures, missing pages, private ones and latencies; the same at every start. */
export function faultySite(pages: number): Answer {
  const asked = new Map<string, number>();
  return async (request, response) => {
    const target = request.url ?? "/";
    if (target === "/robots.txt") {
      response.writeHead(200, { "content-type": "text/plain" }).end("User-agent: *\nDisallow: /private/\n");
      return;
    }
    const i = target === "/" ? 0 : Number(/^\/(?:r\/|p)?(\d+)$/.exec(target)?.[1] ?? Number.NaN);
    await new Promise((done) => setTimeout(done, (i * 7) % 12 || 1));
    if (!(i >= 0 && i < pages)) return html(response, "<p>none", 404);
    if (target.startsWith("/r/")) {
      response.writeHead(302, { location: `/p${i}`, "set-cookie": `r${i}=1; Path=/` }).end();
      return;
    }
    const before = asked.get(target) ?? 0;
    asked.set(target, before + 1);
    if (i % 53 === 3 && before === 0) {
      response.writeHead(503, { "retry-after": "0" }).end();
      return;
    }
    const children = [1, 2, 3, 4].map((k) => i * 4 + k).filter((k) => k < pages);
    const links = children.map((k) => `<a href="/${k % 5 === 0 ? "r/" : "p"}${k}">${k}</a>`).join(" ");
    html(
      response,
      `<title>${i}</title>${links}<a href="/private/${i}">x</a><a href="/gone-${i}">g</a><a href="http://elsewhere.invalid/${i}">e</a>${"é".repeat(i % 700)}`,
    );
  };
}

/** Runs the command until it ends or is signalled: after so many ms, or as soon as `kill` says so. Answers its exit status, null when killed. */
export function runCommand(
  args: readonly string[],
  cwd: string,
  kill: number | (() => boolean) | null,
  signal: NodeJS.Signals = "SIGKILL",
): Promise<{ code: number | null; stderr: string }> {
  return new Promise((done, reject) => {
    const child = spawn(process.execPath, [bin, ...args], { cwd, stdio: ["ignore", "ignore", "pipe"] });
    let stderr = "";
    child.stderr.setEncoding("utf8").on("data", (text) => (stderr += text));
    let watch: NodeJS.Timeout | undefined;
    if (typeof kill === "number") watch = setTimeout(() => child.kill(signal), kill);
    else if (kill !== null) {
      watch = setInterval(() => {
        if (!kill()) return;
        clearInterval(watch);
        child.kill(signal);
      }, 5);
    }
    const hang = setTimeout(() => child.kill("SIGKILL"), LONGEST_MS);
    child.on("error", reject);
    child.on("close", (code) => {
      clearTimeout(watch);
      clearTimeout(hang);
      done({ code, stderr });
    });
  });
}

/** What must be equal, without times and what a repeated request changes. */
export function comparable(file: string): string[] {
  const text = readFileSync(file, "utf8");
  assert.ok(text === "" || text.endsWith("\n"), `${file}: the last line is torn`);
  return text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => {
      const { fetchedAt, durationMs, attempts, referrer, depth, redirects, ...rest } = JSON.parse(line);
      return JSON.stringify(rest);
    })
    .sort();
}

export interface KillPlan {
  readonly pages: number;
  readonly seed: number;
  /** Longest time before a kill, ms from the start of the process. */
  readonly withinMs: number;
  /** Starts that are killed at the most; the next is left alone. */
  readonly kills: number;
  /** Of the crawl that is killed; default 1. */
  readonly threads?: number;
}

export async function checkKills(plan: KillPlan): Promise<{ kills: number }> {
  const random = seededRandom(plan.seed);
  const folder = mkdtempSync(join(tmpdir(), "skein-kills-"));
  const files = ["pages.jsonl", "skipped.jsonl", "links.jsonl"];
  const args = (server: Served, ...more: string[]) => [
    "crawl",
    server.origin,
    "-d",
    "30",
    "--per-host",
    "16",
    "-o",
    files[0]!,
    "--skipped",
    files[1]!,
    "--links",
    files[2]!,
    ...more,
  ];
  try {
    // The same port for both, so that the records are equal to the letter: one server after the other.
    // The second half is kept waiting until the first kill: however fast the machine is, it comes in time.
    const gate = gated(faultySite(plan.pages), fromPage(Math.floor(plan.pages / 2)));
    await using server = await serve(gate.answer);
    const calm = mkdtempSync(join(folder, "calm-"));
    const first = await runCommand(args(server), calm, null);
    assert.equal(first.code, 0, first.stderr);
    const wild = mkdtempSync(join(folder, "wild-"));
    let kills = 0;
    if (plan.kills > 0) gate.shut();
    for (;;) {
      const last = kills >= plan.kills;
      // One kill may come at any moment of the start. The others wait until something was settled: a page that dies alone time after time is rightly given up (decision 0011).
      const early = kills === 0 && random() < 0.5;
      const dueAt = performance.now() + 80 + random() * plan.withinMs;
      const asked = server.arrivals.length;
      const due = () => performance.now() >= dueAt && (early || server.arrivals.length >= asked + 3);
      const { code, stderr } = await runCommand(args(server, "--state", "state", "--threads", String(plan.threads ?? 1)), wild, last ? null : due);
      gate.open();
      if (code === 0) break;
      assert.equal(code, null, `seed ${plan.seed}, after ${kills} kills: exit ${code}: ${stderr}`);
      kills++;
    }
    for (const file of files) {
      const lines = comparable(join(wild, file));
      assert.equal(new Set(lines).size, lines.length, `seed ${plan.seed}: ${file} has a line twice after ${kills} kills`);
      assert.deepEqual(lines, comparable(join(calm, file)), `seed ${plan.seed}: ${file} after ${kills} kills`);
    }
    return { kills };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
