/** A signal ends `crawl --store` and `work` within seconds also where the store is frozen, gone, full or out of reach, and loses nothing; without one they wait. needs: redis-server */
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, type TestContext, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { silentLog } from "../../src/core/log.ts";
import { connectRedis } from "../../src/store/redis/connect.ts";
import { startProxy, type TestProxy } from "../../src/store/redis/proxy-for-tests.ts";
import { skipRedis, startServer, type TestServer } from "../../src/store/redis/server-for-tests.ts";
import { html, serve } from "../crawl/served.ts";
import { type Running, startCommand, until } from "./processes.ts";

/** Ten seconds of waiting, and what a busy machine needs beside. */
const MOST_MS = 40_000;
/** Longer than nobody would wait who does not mean to. */
const WAITS_MS = 3_000;
const PAGES = 40;

const root = mkdtempSync(join(tmpdir(), "skein-left-"));
const folder = (): string => mkdtempSync(join(root, "d-"));
after(() => rmSync(root, { recursive: true, force: true }));

/** The ways in which a store does not answer: what begins it and what ends it. */
const AWAY = ["frozen", "gone", "full", "out of reach"] as const;
type Away = (typeof AWAY)[number];

interface Stage {
  readonly url: string;
  /** A site that gives the first few pages and keeps the others back until it is opened. */
  readonly origin: string;
  /** Requests that it has kept back so far. */
  held(): number;
  open(): void;
  /** A command, ended with the test. */
  start(args: readonly string[], cwd: string): Running;
  /** Who holds the outputs of the first crawl. */
  owner(): Promise<string | null>;
  away(how: Away): Promise<void>;
  back(how: Away): Promise<void>;
}

async function stage(t: TestContext): Promise<Stage> {
  const redis: TestServer = await startServer(["--maxmemory-policy", "noeviction"]);
  const proxy: TestProxy = await startProxy(redis.port);
  let open = false;
  let held = 0;
  const waiting: (() => void)[] = [];
  const site = await serve(async (request, response) => {
    const n = Number(request.url?.slice(1));
    if (n >= 4 && !open) {
      held++;
      await new Promise<void>((go) => waiting.push(go));
    }
    html(response, n === 0 ? Array.from({ length: PAGES - 1 }, (_, i) => `<a href="/${i + 1}">${i + 1}</a>`).join("") : "x");
  });
  const started: Running[] = [];
  t.after(async () => {
    redis.signal("SIGCONT");
    for (const one of started) if (!one.over) await one.kill();
    for (const go of waiting) go();
    await site[Symbol.asyncDispose]();
    await proxy.close();
    await redis.stop();
  });
  /** One command on a connection of its own: the server may have been another one before. */
  const command = async (...words: [string, ...string[]]): Promise<unknown> => {
    const link = await connectRedis(redis.url, { log: silentLog });
    const answer = await link.command(...words);
    await link.close();
    return answer;
  };
  const setMemory = async (to: string): Promise<void> => void (await command("CONFIG", "SET", "maxmemory", to));
  return {
    url: `redis://127.0.0.1:${proxy.port}`,
    origin: site.origin,
    held: () => held,
    open() {
      open = true;
      for (const go of waiting.splice(0)) go();
    },
    start(args, cwd) {
      const one = startCommand(args, cwd);
      started.push(one);
      return one;
    },
    async owner() {
      const token = await command("GET", "{skein}:1:own");
      return token === null ? null : String(token);
    },
    async away(how) {
      if (how === "frozen") redis.signal("SIGSTOP");
      else if (how === "gone") await redis.kill();
      else if (how === "full") await setMemory("1");
      else proxy.swallowAll(true);
    },
    async back(how) {
      if (how === "frozen") redis.signal("SIGCONT");
      else if (how === "gone") await redis.start();
      else if (how === "full") await setMemory("0");
      else proxy.swallowAll(false);
    },
  };
}

/** It goes on waiting until it is told to leave, says so, and ends in time with that status. */
async function leaves(one: Running, signal: "SIGINT" | "SIGTERM", status: number): Promise<void> {
  await sleep(WAITS_MS);
  assert.ok(!one.over, `it ended without a signal: ${one.stderr()}`);
  const from = performance.now();
  one.signal(signal);
  await until("it says how long it waits", () => /the store does not answer: waiting \d+ s more for it/.test(one.stderr()), [one]);
  const code = await Promise.race([one.ended, sleep(MOST_MS, "late" as const)]);
  assert.equal(code, status, `${Math.round(performance.now() - from)} ms after the signal: ${one.stderr()}`);
  assert.match(one.stderr(), /left without the store/);
}

const crawlOf = ({ url, origin, start }: Stage, cwd: string, ...more: string[]): Running =>
  start(["crawl", `${origin}/0`, "--store", url, "-c", "4", "--per-host", "8", "--delay", "0", "-o", "pages.jsonl", ...more], cwd);

/** Waiting is most of it. */
describe("told to leave while the store is away", { concurrency: true, skip: skipRedis }, () => {
  for (const how of AWAY) {
    test(`${how}: crawl and worker end after the first signal, and the same command goes on`, { timeout: 240_000 }, async (t) => {
      const at = await stage(t);
      const cwd = folder();
      const creator = crawlOf(at, cwd);
      await until("the creator has pages in flight", () => at.held() >= 4, [creator]);
      const threads = how === "frozen" ? ["--threads", "2"] : [];
      const helper = at.start(["work", "--store", at.url, "--allow-address", "127.0.0.1", "-c", "4", ...threads], folder());
      await until("the worker has some too", () => at.held() >= 8, [creator, helper]);
      await at.away(how);
      at.open();
      const signal = how === "gone" ? "SIGINT" : "SIGTERM";
      const status = how === "gone" ? 130 : 143;
      await Promise.all([leaves(creator, signal, status), leaves(helper, signal, status)]);
      assert.match(creator.stderr(), /nothing is lost, and the same command goes on/);
      assert.match(helper.stderr(), /what was in flight goes back to it by itself/);
      await at.back(how);
      // The hold of the outputs ends by itself.
      let again = crawlOf(at, cwd);
      for (let tries = 0; (await again.ended) === 7 && tries < 25; tries++) {
        await sleep(1_000);
        again = crawlOf(at, cwd);
      }
      assert.equal(await again.ended, 0, again.stderr());
      const urls = readFileSync(join(cwd, "pages.jsonl"), "utf8")
        .trimEnd()
        .split("\n")
        .map((line) => String(JSON.parse(line).url));
      assert.deepEqual([urls.length, new Set(urls).size], [PAGES, PAGES]);
    });
  }

  test("frozen: a crawl in threads, with a cache there, ends after the first signal", { timeout: 240_000 }, async (t) => {
    const at = await stage(t);
    const one = crawlOf(at, folder(), "--threads", "2", "--cache", "30d");
    await until("pages are in flight", () => at.held() >= 4, [one]);
    await at.away("frozen");
    at.open();
    await leaves(one, "SIGTERM", 143);
  });

  test("gone: who writes the outputs of a crawl whose creator died ends after the first signal", { timeout: 240_000 }, async (t) => {
    const at = await stage(t);
    const creator = crawlOf(at, folder());
    await until("pages are in flight", () => at.held() >= 4, [creator]);
    await creator.kill();
    const writer = at.start(["export", "--store", at.url, "--job", "1", "--follow", "-o", "rest.jsonl"], folder());
    const holds = async () => (await at.owner())?.startsWith("export|") === true;
    await until("it has the outputs", holds, [writer]);
    await at.away("gone");
    await leaves(writer, "SIGTERM", 143);
  });

  test("a crawl that begins on a full store, and a worker that finds none, end after the first signal", { timeout: 240_000 }, async (t) => {
    const at = await stage(t);
    await at.away("full");
    const one = crawlOf(at, folder());
    await until("it waits", () => /does not take calls; waiting/.test(one.stderr()), [one]);
    await leaves(one, "SIGTERM", 143);
    await at.away("gone");
    const helper = at.start(["work", "--store", at.url], folder());
    await until("it waits", () => /does not take calls; waiting/.test(helper.stderr()), [helper]);
    await leaves(helper, "SIGTERM", 143);
  });

  test("a store that has room again while it is waited for is told of the end: nothing is left behind", { timeout: 240_000 }, async (t) => {
    const at = await stage(t);
    const one = crawlOf(at, folder());
    await until("pages are in flight", () => at.held() >= 4, [one]);
    await at.away("full");
    at.open();
    one.signal("SIGTERM");
    await until("it says how long it waits", () => /waiting \d+ s more for it/.test(one.stderr()), [one]);
    await at.back("full");
    assert.equal(await one.ended, 143, one.stderr());
    assert.match(one.stderr(), /to resume:/);
    assert.doesNotMatch(one.stderr(), /left without/);
  });
});
