/** Pause, resume and the ways to stop reach every process within a second, also those that cannot hear the channel; judged by what they send. needs: redis-server */
import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { silentLog } from "../../src/core/log.ts";
import { connectRedis, type Link } from "../../src/store/redis/connect.ts";
import { openRedisFrontier } from "../../src/store/redis/frontier.ts";
import { skipRedis, startServer, type TestServer } from "../../src/store/redis/server-for-tests.ts";
import { caseConfig } from "../../src/testing/frontier-cases.ts";
import { html, serve } from "../crawl/served.ts";
import { lateness } from "../lateness.ts";
import { killAll, type Running, startCommand, until } from "./processes.ts";

/** What is promised, and what a process may need from its decision to the socket; more, where this one too comes late to its work. */
const WITHIN_MS = 1_000;
const SLACK_MS = 600;
const late = lateness();
const mostMs = (): number => WITHIN_MS + SLACK_MS + 10 * late.slackMs();

const root = mkdtempSync(join(tmpdir(), "skein-stops-"));
let redis: TestServer;
let link: Link;
before(async () => {
  if (skipRedis !== false) return;
  redis = await startServer(["--maxmemory-policy", "noeviction"]);
  link = await connectRedis(redis.url, { log: silentLog, waitMs: 30_000 });
  // Whoever comes by this name takes part in everything and is never told anything: the channel is cut.
  await link.command("ACL", "SETUSER", "deaf", "on", ">secret", "~*", "&*", "+@all", "-subscribe");
});
after(async () => {
  late[Symbol.dispose]();
  killAll();
  await link?.close();
  await redis?.stop();
  rmSync(root, { recursive: true, force: true });
});

const now = (): number => Number(process.hrtime.bigint()) / 1e6;
let crawls = 0;

/** An endless site, a crawl of it and two workers. */
async function wild(
  deaf: boolean,
  run: (about: { control(to: "pause" | "run" | "finish" | "drain" | "now"): Promise<void>; sent(): number[]; all: readonly Running[] }) => Promise<void>,
) {
  await using site = await serve(async (request, response) => {
    if (request.url === "/hangs") return;
    await sleep(15);
    const n = Number(request.url?.slice(1));
    html(response, [2 * n + 1, 2 * n + 2].map((to) => `<a href="/${to}">${to}</a>`).join(""));
  });
  const folder = mkdtempSync(join(root, "sent-"));
  let started = 0;
  const start = (...args: string[]): Running =>
    startCommand([...args, "--store", deaf ? `redis://deaf:secret@127.0.0.1:${redis.port}` : redis.url, "-c", "4"], mkdtempSync(join(root, "d-")), {
      NODE_OPTIONS: `--import ${join(import.meta.dirname, "skewed.js")}`,
      SKEIN_TEST_SENT: join(folder, String(started++)),
    });
  const sent = (): number[] =>
    readdirSync(folder)
      .flatMap((name) => readFileSync(join(folder, name), "utf8").split("\n"))
      .filter((line) => line.includes(" GET ") && !line.endsWith("/hangs"))
      .map((line) => Number(line.split(" ")[0]) / 1e6);
  const creator = start("crawl", `${site.origin}/0`, `${site.origin}/hangs`, "--per-host", "64", "-o", "pages.jsonl");
  const workers = [0, 1].map(() => start("work", "--allow-address", "127.0.0.1"));
  const id = ++crawls;
  const all = [creator, ...workers];
  try {
    await until(`crawl ${id} is made`, async () => (await link.command("EXISTS", `{skein}:${id}:m`)) === 1, all);
    await until("60 pages are asked for", () => sent().length >= 60, all);
    await using frontier = await openRedisFrontier(caseConfig, { link, id });
    await run({ control: (to) => frontier.control(to), sent, all });
  } finally {
    await Promise.all(all.map((one) => one.kill()));
  }
}

/** Fails when one starts later than it may; `until`: after which moment it may again. */
function checkQuiet(sent: readonly number[], from: number, until = Infinity): void {
  const late = sent.filter((at) => at > from + mostMs() && at < until);
  assert.equal(late.length, 0, `${late.length} requests began later than a second after the call, the last ${Math.max(...late) - from} ms`);
}

for (const deaf of [false, true]) {
  const how = deaf ? ", the channel cut" : "";

  test(`pause and resume reach all processes${how}`, { skip: skipRedis }, async () => {
    await wild(deaf, async ({ control, sent, all }) => {
      await control("pause");
      const from = now();
      await sleep(3_000);
      const resumed = now();
      await control("run");
      const before_ = sent().length;
      await until("30 more pages are asked for", () => sent().length >= before_ + 30, all);
      checkQuiet(sent(), from, resumed);
      await control("now");
    });
  });

  for (const mode of ["drain", "now"] as const) {
    test(`a stop of the kind ${mode} reaches all processes${how}`, { skip: skipRedis }, async () => {
      await wild(deaf, async ({ control, sent, all }) => {
        await control(mode);
        const from = now();
        // What is in flight is finished, or aborted: one page would hang for longer than this test lasts.
        if (mode === "now") await until("the creator ends", () => all[0]!.over, all);
        else await sleep(3_000);
        checkQuiet(sent(), from);
      });
    });
  }
}

test("a stop of the kind finish takes no new links: what is queued is done, and the crawl ends", { skip: skipRedis }, async () => {
  await wild(true, async ({ control, sent, all }) => {
    await control("finish");
    const m = `{skein}:${crawls}:m`;
    // All but the page that hangs.
    const left = async (): Promise<string> => ((await link.command("HMGET", m, "queued", "leased")) as Buffer[]).map(String).join(); // HMGET
    await until("nothing is queued, and only that one is out", async () => (await left()) === "0,1", all);
    const from = now();
    await sleep(1_000);
    assert.equal(await left(), "0,1");
    assert.equal(sent().filter((at) => at > from).length, 0);
  });
});

test("workers keep the limits of a crawl whose creator was killed; the same command tells which it was", { skip: skipRedis }, async () => {
  await using site = await serve(async (request, response) => {
    await sleep(10);
    const n = Number(request.url?.slice(1));
    html(response, [2 * n + 1, 2 * n + 2].map((to) => `<a href="/${to}">${to}</a>`).join(""));
  });
  const cwd = mkdtempSync(join(root, "limits-"));
  const creating = ["crawl", `${site.origin}/0`, "--store", redis.url, "-c", "2", "--delay", "10ms", "--time-limit", "8s", "-o", "pages.jsonl"];
  const id = ++crawls;
  const first = startCommand(creating, cwd);
  const helper = startCommand(["work", "--store", redis.url, "-c", "2", "--allow-address", "127.0.0.1"], cwd);
  const all = [first, helper];
  await until("its seed is there", async () => (await link.command("HEXISTS", `{skein}:${id}:m`, "seed")) === 1, all);
  await link.command("HSET", `{skein}:${id}:m`, "lease", 1_000);
  await until("20 requests", () => site.arrivals.length >= 20, all);
  await first.kill();
  // Its hold of the outputs is over.
  await link.command("DEL", `{skein}:${id}:own`);
  await until("somebody stops it", async () => String(await link.command("HGET", `{skein}:${id}:m`, "ctl")) === "drain", all);
  assert.match(helper.stderr(), /a limit of the crawl is reached/);
  const again = startCommand(creating, cwd);
  assert.equal(await again.ended, 0, again.stderr());
  assert.match(again.stderr(), /ended by --time-limit 8s: (\d+) pages/);
  const pages = Number(/ended by --time-limit 8s: (\d+) pages/.exec(again.stderr())?.[1]);
  assert.equal(readFileSync(join(cwd, "pages.jsonl"), "utf8").split("\n").length - 1, pages);
  await helper.kill();
});
