/**
 * Two crawls of many hosts by workers whose clocks are wrong, some of them killed on the way, judged by what the hosts' own server read.
 *
 * A gap between two requests is made where they are sent. Where they are read it may be shorter, by as much as the first of them was longer on its way: a
 * server that does not come to run for 50 ms reads late. So what is sent is noted too, by the same clock of the machine: sent, a gap keeps the delay but for
 * SLACK_MS (the store's clock is the machine's wall clock, which may be slewed); read, but for that and the time that the first of the two was on its way.
 */
import assert from "node:assert/strict";
import { fork } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { silentLog } from "../../src/core/log.ts";
import { connectRedis } from "../../src/store/redis/connect.ts";
import { startServer } from "../../src/store/redis/server-for-tests.ts";
import { seededRandom } from "../../src/testing/clock.ts";
import { addressOf, type LogLine } from "./polite-site.ts";
import { type Running, startCommand } from "./processes.ts";

const SLACK_MS = 5;
const WORKERS = 8;
const LEASE_MS = 2_500;
const FIRST = { delayMs: 200, agent: "first/1" } as const;
/** The other crawl of a quarter of the hosts would be faster if it were alone. */
const SECOND = { delayMs: 120, agent: "second/1" } as const;

export interface PoliteRun {
  readonly requests: number;
  readonly killed: number;
  readonly mostTogether: number;
  /** Of two requests of a host, over both crawls. */
  readonly leastSentMs: number;
  readonly leastReadMs: number;
  /** Longest way of a request from its worker to the server's log. */
  readonly longestWayMs: number;
}

type Line = LogLine & { readonly sentAt: number; readonly by: string };

interface Sent {
  /** Number of the process. */
  readonly by: string;
  readonly at: number;
  readonly host: string;
  readonly target: string;
}

function readSent(folder: string): Sent[] {
  return readdirSync(folder)
    .flatMap((by) =>
      readFileSync(join(folder, by), "utf8")
        .split("\n")
        .flatMap((line) => {
          const match = /^(\d+) (\S+) GET (\S+)$/.exec(line);
          return match === null ? [] : [{ by, at: Number(match[1]) / 1e6, host: match[2] ?? "", target: match[3] ?? "" }];
        }),
    )
    .sort((a, b) => a.at - b.at);
}

/** When each line of the log was sent: the last sending of that target to that host before it was read, each taken once. */
function withSending(log: readonly LogLine[], sent: readonly Sent[]): Line[] {
  const left = Map.groupBy(sent, ({ host, target }) => `${host} ${target}`);
  return log.map((line) => {
    const list = left.get(`${line.host} ${line.target}`) ?? [];
    const at = list.findLastIndex((one) => one.at <= line.at);
    const [one] = at < 0 ? [] : list.splice(at, 1);
    assert.ok(one !== undefined, `${line.host}${line.target} was read and never sent`);
    return { ...line, sentAt: one.at, by: one.by };
  });
}

export async function checkPolite(options: {
  readonly hosts: number;
  readonly perHost: number;
  readonly seed: number;
  readonly kills: number;
}): Promise<PoliteRun> {
  const random = seededRandom(options.seed);
  const root = mkdtempSync(join(tmpdir(), "skein-polite-"));
  const sentFolder = mkdtempSync(join(root, "sent-"));
  const redis = await startServer(["--maxmemory-policy", "noeviction"]);
  const direct = await connectRedis(redis.url, { log: silentLog });
  const site = fork(join(import.meta.dirname, "polite-site.ts"), [String(options.hosts)], { execArgv: [] });
  const [port] = (await once(site, "message")) as [number]; // the first it says
  let started = 0;
  const start = (args: readonly string[]): Running =>
    startCommand([...args, "--store", redis.url], mkdtempSync(join(root, "d-")), {
      NODE_OPTIONS: `--import ${join(import.meta.dirname, "skewed.js")}`,
      SKEIN_TEST_SKEW_MS: String(Math.round((random() * 2 - 1) * 600_000)),
      SKEIN_TEST_SENT: join(sentFolder, String(started++)),
    });
  const startWorker = (): Running => start(["work", "--allow-address", "127.0.0.0/8", "-c", "32"]);
  const startCrawl = ({ delayMs, agent }: { delayMs: number; agent: string }, hosts: number): Running => {
    const seeds = Array.from({ length: hosts }, (_, n) => `http://${addressOf(n)}:${port}/`);
    return start(["crawl", ...seeds, "-A", agent, "--delay", `${delayMs}ms`, "--per-host", String(options.perHost), "-c", "32", "-o", "pages.jsonl"]);
  };
  const crawls = [startCrawl(FIRST, options.hosts), startCrawl(SECOND, Math.ceil(options.hosts / 4))];
  const workers = Array.from({ length: WORKERS - crawls.length }, startWorker);
  let killed = 0;
  try {
    for (const id of [1, 2]) {
      while ((await direct.command("HEXISTS", `{skein}:${id}:m`, "seed")) !== 1) await sleep(10);
      await direct.command("HSET", `{skein}:${id}:m`, "lease", LEASE_MS);
    }
    const over = Promise.all(crawls.map(({ ended }) => ended));
    for (; killed < options.kills && !(await Promise.race([over.then(() => true), sleep(500, false)])); killed++) {
      const at = Math.floor(random() * workers.length);
      await workers[at]?.kill();
      workers[at] = startWorker();
    }
    assert.deepEqual(await over, [0, 0], crawls.map((one) => one.stderr()).join("\n"));
    site.send("log");
    const [log] = (await once(site, "message")) as [LogLine[]]; // what it answers
    return { killed, ...judge(withSending(log, readSent(sentFolder)), options.perHost) };
  } finally {
    await Promise.all([...crawls, ...workers].map((one) => one.kill()));
    site.kill("SIGKILL");
    await direct.close();
    await redis.stop();
    rmSync(root, { recursive: true, force: true });
  }
}

function judge(log: readonly Line[], perHost: number): Omit<PoliteRun, "killed"> {
  let leastSentMs = Infinity;
  let leastReadMs = Infinity;
  for (const [host, lines] of Map.groupBy(log, (line) => line.host)) {
    const targets = new Set(lines.filter(({ agent }) => agent === FIRST.agent).map(({ target }) => target));
    assert.deepEqual([...targets].sort(), ["/", "/a", "/flaky", "/moved", "/robots.txt", "/slow", "/slower", "/target"], host);
    const sent = lines.toSorted((a, b) => a.sentAt - b.sentAt);
    // From its first request on the slower crawl's delay holds for both.
    const slowFrom = sent.findIndex(({ agent }) => agent === FIRST.agent);
    for (let i = 1; i < sent.length; i++) {
      const [before, line] = [sent[i - 1]!, sent[i]!]; // i < length
      const delayMs = i > slowFrom ? FIRST.delayMs : SECOND.delayMs;
      const [sentMs, readMs] = [line.sentAt - before.sentAt, line.at - before.at];
      const way = before.at - before.sentAt;
      const told = sent.map((one) => `${one.sentAt.toFixed(1)} sent by ${one.by}, ${one.at.toFixed(1)} read: ${one.agent} ${one.target}`);
      const what = `${host}: sent ${sentMs} ms, read ${readMs} ms after the one before:\n${told.slice(0, i + 1).join("\n")}`;
      assert.ok(sentMs >= delayMs - SLACK_MS, what);
      assert.ok(readMs >= delayMs - SLACK_MS - way, what);
      if (i > slowFrom) {
        leastSentMs = Math.min(leastSentMs, sentMs);
        leastReadMs = Math.min(leastReadMs, readMs);
      }
    }
  }
  const mostTogether = log.reduce((most, { together }) => Math.max(most, together), 0);
  assert.ok(mostTogether <= perHost, `${mostTogether} in flight at one host`);
  const longestWayMs = log.reduce((most, { at, sentAt }) => Math.max(most, at - sentAt), 0);
  return { requests: log.length, mostTogether, leastSentMs, leastReadMs, longestWayMs };
}
