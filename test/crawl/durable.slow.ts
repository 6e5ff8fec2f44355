/** Durable crawls by the real command: killed, interrupted, limited, held, changed. Many more kills run in test:long. */
import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test, { after } from "node:test";
import { crawl } from "../../src/crawl.ts";
import { checkKills, faultySite, runCommand } from "./kills.ts";
import { serve, tree } from "./served.ts";

const root = mkdtempSync(join(tmpdir(), "skein-durable-"));
after(() => rmSync(root, { recursive: true, force: true }));
const folder = (name: string) => mkdtempSync(join(root, `${name}-`));
const urls = (file: string) =>
  readFileSync(file, "utf8")
    .split("\n")
    .filter(Boolean)
    .map((line) => JSON.parse(line).url as string);

test("F092 a crawl that is killed and resumed ends as the undisturbed one did", async (t) => {
  const { kills } = await checkKills({ pages: 160, seed: 7, withinMs: 250, kills: 3 });
  assert.ok(kills > 0);
  t.diagnostic(`${kills} kills`);
});

test("Ctrl-C on a crawl in memory keeps it, and the command it prints resumes it", async () => {
  const cwd = folder("rescue");
  await using server = await serve(faultySite(120));
  const whole = await runCommand(["crawl", server.origin, "-o", "calm.jsonl"], cwd, null);
  assert.equal(whole.code, 0, whole.stderr);
  const asked = server.targets().length;
  const cut = await runCommand(["crawl", server.origin, "-o", "out.jsonl"], cwd, () => server.targets().length > asked + 40, "SIGINT");
  assert.equal(cut.code, 130, cut.stderr);
  const line = /^to resume: (?:npx )?skein (crawl .+ --state \.skein\/\S+)$/m.exec(cut.stderr)?.[1];
  assert.ok(line, cut.stderr);
  const before = urls(join(cwd, "out.jsonl")).length;
  const resumed = await runCommand(line.split(" "), cwd, null);
  assert.equal(resumed.code, 0, resumed.stderr);
  assert.match(resumed.stderr, /resuming the unfinished crawl/);
  const all = urls(join(cwd, "out.jsonl"));
  assert.ok(before < all.length);
  assert.deepEqual(all.sort(), urls(join(cwd, "calm.jsonl")).sort());
});

test("an interrupted durable crawl is resumed by the same command; other options are refused by name, --fresh drops it", async () => {
  const cwd = folder("resume");
  await using server = await serve(faultySite(120));
  const args = ["crawl", server.origin, "--state", "state", "-o", "out.jsonl"];
  const cut = await runCommand(args, cwd, () => server.targets().length > 40, "SIGTERM");
  assert.equal(cut.code, 143, cut.stderr);
  const other = await runCommand([...args, "--exclude", "*.pdf", "--depth", "3"], cwd, null);
  assert.equal(other.code, 2);
  assert.match(other.stderr, /--depth: differs from the unfinished run/);
  assert.match(other.stderr, /--exclude: differs .* or --fresh to drop it/);
  const politer = await runCommand([...args, "--per-host", "4", "-c", "10", "--limit", "500"], cwd, null);
  assert.equal(politer.code, 0, politer.stderr);
  const all = urls(join(cwd, "out.jsonl"));
  assert.equal(new Set(all).size, all.length);
  const again = await runCommand([...args, "--depth", "1"], cwd, null);
  assert.equal(again.code, 0, again.stderr);
  assert.match(again.stderr, /is finished .* starting a new run/);
  assert.ok(urls(join(cwd, "out.jsonl")).length < all.length);
  const fresh = await runCommand([...args, "--fresh", "--limit", "5"], cwd, null);
  assert.equal(fresh.code, 0, fresh.stderr);
  assert.equal(urls(join(cwd, "out.jsonl")).length >= 5, true);
});

test("a limit is exact over resumes, and a larger one goes on where the smaller ended", async () => {
  const cwd = folder("limit");
  await using server = await serve(tree(600));
  const args = ["crawl", server.origin, "--state", "state", "-o", "out.jsonl"];
  for (const limit of [1, 40, 137, 600, 900]) {
    const { code, stderr } = await runCommand([...args, "--limit", String(limit)], cwd, null);
    assert.equal(code, 0, stderr);
    assert.equal(urls(join(cwd, "out.jsonl")).length, Math.min(limit, 600), stderr);
  }
  const asked = server.targets();
  // 900 found the run finished by 600 pages and nothing left: that was a new run, all others went on.
  assert.equal(asked.length, 600 + (asked.length > 600 ? 600 : 0));
});

test("a state that a living process holds is refused with 7, and free at once when it was killed", async () => {
  const cwd = folder("held");
  // Slow enough that the first one is at work until it is killed.
  await using server = await serve(faultySite(4_000));
  const args = ["crawl", server.origin, "--state", "state", "-q", "--delay", "20ms", "--per-host", "1"];
  let over = false;
  const first = runCommand(args, cwd, () => over);
  while (!existsSync(join(cwd, "state/pages.jsonl"))) await new Promise((resolve) => setTimeout(resolve, 20));
  const second = await runCommand(args, cwd, null);
  assert.equal(second.code, 7, second.stderr);
  assert.match(second.stderr, /state/);
  over = true;
  await first;
  const third = await runCommand([...args, "--limit", "5"], cwd, null);
  assert.equal(third.code, 0, third.stderr);
});

test("a folder with other files is not taken for a state, and nothing in it is touched", async () => {
  const cwd = folder("stranger");
  await using server = await serve(tree(3));
  const made = await runCommand(["crawl", server.origin, "-o", "precious.jsonl"], cwd, null);
  assert.equal(made.code, 0);
  const { code, stderr } = await runCommand(["crawl", server.origin, "--state", "."], cwd, null);
  assert.equal(code, 3, stderr);
  assert.match(stderr, /other files/);
  assert.deepEqual(readdirSync(cwd), ["precious.jsonl"]);
});

test("a killed run that is past its time limit asks for nothing more when it is resumed", async () => {
  const cwd = folder("past");
  await using server = await serve(faultySite(300));
  const args = ["crawl", server.origin, "--state", "state", "-q"];
  await runCommand(args, cwd, () => server.targets().length > 60);
  // What it had sent before it was killed is read.
  let before = -1;
  for (; before !== server.arrivals.length; await new Promise((resolve) => setTimeout(resolve, 200))) before = server.arrivals.length;
  const { code, stderr } = await runCommand([...args, "--time-limit", "1ms"], cwd, null);
  assert.equal(code, 0, stderr);
  assert.equal(server.arrivals.length, before);
});

test("what belongs to a crawl is known when it goes on, however late its seeds come", async () => {
  await using server = await serve(faultySite(160));
  async function run(stateDir: string, until: number): Promise<void> {
    const abort = new AbortController();
    async function* seeds(): AsyncGenerator<string> {
      // When it goes on, the queue of the first part is worked on before they come.
      await new Promise((resolve) => setTimeout(resolve, 150));
      yield `${server.origin}/`;
    }
    let pages = 0;
    for await (const _page of crawl({ seeds: seeds(), stateDir }, { signal: abort.signal })) if (++pages === until) abort.abort("enough");
  }
  const seen = (dir: string) => [...new Set(urls(join(dir, "pages.jsonl")))].sort();
  const calm = join(folder("late-calm"), "state");
  await run(calm, Number.POSITIVE_INFINITY);
  const wild = join(folder("late-wild"), "state");
  await run(wild, 40);
  assert.ok(seen(wild).length < seen(calm).length);
  await run(wild, Number.POSITIVE_INFINITY);
  assert.deepEqual(seen(wild), seen(calm));
});
