/** A login with the rules of docs/operations.md: it is enough for all that Skein does with a store, and for nothing else. needs: redis-server */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { work } from "../../src/cluster/work.ts";
import { realClock } from "../../src/core/clock.ts";
import { CrawlError } from "../../src/core/errors.ts";
import { silentLog } from "../../src/core/log.ts";
import { parseSpec } from "../../src/core/spec.ts";
import { crawl } from "../../src/crawl.ts";
import { cacheInStore } from "../../src/inspect/cache.ts";
import { openRedisBench } from "../../src/store/redis/bench-for-tests.ts";
import { connectRedis } from "../../src/store/redis/connect.ts";
import { scanInvariants } from "../../src/store/redis/doctor.ts";
import { openRedisStore } from "../../src/store/redis/open.ts";
import { skipRedis, startServer, type TestServer } from "../../src/store/redis/server-for-tests.ts";
import { caseConfig, frontierCases } from "../../src/testing/frontier-cases.ts";
import { serve, tree } from "../crawl/served.ts";

const guide = readFileSync(join(import.meta.dirname, "../../docs/operations.md"), "utf8");
const rule = /^ACL SETUSER .+$/m.exec(guide)?.[0] ?? "";

let server: TestServer;
let login = "";
before(async () => {
  if (skipRedis !== false) return;
  server = await startServer(["--appendonly", "no"]);
  login = server.url.replace("redis://", "redis://skein:pass-1@");
  const admin = await connectRedis(server.url, { log: silentLog, prefix: "admin" });
  const [, , ...rules] = rule.replace("PASSWORD", "pass-1").split(" ");
  await admin.command("ACL", "SETUSER", ...rules);
  // The shared cases have a prefix each.
  await admin.command("ACL", "SETUSER", "cases", ...rules.slice(1).map((word) => word.replaceAll("{skein}", "{bench*}")));
  await admin.close();
});
after(() => server?.stop());

/** What was refused to anybody: the server remembers. */
async function refusals(): Promise<string[]> {
  const admin = await connectRedis(server.url, { log: silentLog, prefix: "admin" });
  const log = (await admin.command("ACL", "LOG")) as unknown[][]; // ACL LOG: names and values by turns
  await admin.command("ACL", "LOG", "RESET");
  await admin.close();
  return log.map((entry) => entry.slice(0, 10).map(String).join(" "));
}

test("the login is enough for crawls, workers, the cache, status and the doctor", { skip: skipRedis }, async () => {
  await using site = await serve(tree(60));
  const run = crawl({ seeds: [site.origin], store: login, cache: 3_600_000, perHost: { delay: 5 } });
  const { addresses, proxy, insecure, parseWorkers, parseTimeout } = { ...parseSpec({}), parseWorkers: 0 };
  const operator = { addresses: { ...addresses, refusePrivate: false }, proxy, insecure, parseWorkers, parseTimeout };
  const helper = work({ url: login, concurrency: 4, once: false, exitWhenIdleMs: 1_500, scrapersDir: null, operator, log: silentLog, clock: realClock });
  assert.equal((await run.done).finishReason, "finished");
  await helper.done;
  assert.ok((await cacheInStore(login, "stats", silentLog)).responses >= 60);
  await cacheInStore(login, "clear", silentLog);
  await using store = await openRedisStore(login, { log: silentLog });
  await store.health();
  const [id = 0] = await store.crawls.list(1);
  const link = await connectRedis(login, { log: silentLog });
  assert.deepEqual((await scanInvariants(link, id)).faults, []);
  await link.close();
  await store.crawls.delete(id);
  assert.deepEqual(await refusals(), []);
});

test("it is enough for every case that a store must pass", { skip: skipRedis }, async () => {
  const cases = server.url.replace("redis://", "redis://cases:pass-1@");
  for (const one of frontierCases.filter(({ name }) => !name.startsWith("when the sinks refuse"))) {
    const bench = await openRedisBench(cases, { ...caseConfig, ...one.config });
    try {
      const { restart: _, ...shown } = bench;
      await one.run(shown);
    } finally {
      await bench.close();
    }
  }
  assert.deepEqual(await refusals(), []);
});

test("it reaches no other key and no command that harms others, and a prefix that is not its own is refused by its name", { skip: skipRedis }, async () => {
  const link = await connectRedis(login, { log: silentLog });
  const attempts = [
    ["GET", "foreign"],
    ["FLUSHDB"],
    ["KEYS", "*"],
    ["CONFIG", "SET", "maxmemory", "1"],
    ["SHUTDOWN"],
    ["EVAL", "return redis.call('GET', 'x')", "0"],
  ];
  for (const [name = "", ...args] of attempts) {
    await assert.rejects(link.command(name, ...args), (error) => error instanceof CrawlError && /NOPERM|can't/.test(error.message), name);
  }
  await link.close();
  await assert.rejects(
    connectRedis(`${login}?prefix=other`, { log: silentLog }),
    (error) => error instanceof CrawlError && /refused a call: NOPERM .*The prefix in use is other /.test(error.message),
  );
  await refusals();
});
