/** A server whose memory is full at any moment: a step is done whole or not at all, and the crawl goes on when there is room again (F108). */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { seededRandom } from "../../testing/clock.ts";
import { handOf } from "../../testing/frontier/bench.ts";
import { caseConfig, frontierCases } from "../../testing/frontier-cases.ts";
import { openRedisBench } from "./bench-for-tests.ts";
import type { Link } from "./connect.ts";
import { scanInvariants } from "./doctor.ts";
import { skipRedis, startServer, type TestServer } from "./server-for-tests.ts";

let server: TestServer;
before(async () => {
  if (skipRedis === false) server = await startServer(["--appendonly", "no", "--maxmemory-policy", "noeviction"]);
});
after(() => server?.stop());

/** Leaves so many bytes free; 0: all that there are. */
async function leave(link: Link, bytes: number): Promise<void> {
  const used = Number(/used_memory:(\d+)/.exec(String(await link.command("INFO", "memory")))?.[1]);
  await link.command("CONFIG", "SET", "maxmemory", bytes === 0 ? 0 : used + bytes);
}

for (const seed of [3, 8, 20]) {
  const walk = frontierCases.find(({ name }) => name.includes(`(seed ${seed})`));
  test(`the server is full at random steps (seed ${seed}): each is done whole, once there is room`, { skip: skipRedis }, async () => {
    assert.ok(walk !== undefined);
    const random = seededRandom(seed);
    let times = 0;
    let refusals = 0;
    let relief: NodeJS.Timeout | undefined;
    let other: Link | null = null;
    const bench = await openRedisBench(
      server.url,
      { ...caseConfig, ...walk.config },
      {
        wrap(link) {
          other = link;
          return link;
        },
        async before() {
          if (other === null || random() > 0.05) return;
          times++;
          // From nothing at all to what a few steps need: some of them are refused in the middle of a batch of calls.
          await leave(other, random() < 0.5 ? 1 : 1 + Math.floor(random() * 20_000));
          const link: Link = other;
          clearTimeout(relief);
          relief = setTimeout(() => {
            link.command("INFO", "errorstats").then(
              (info) => {
                refusals = Number(/errorstat_OOM:count=(\d+)/.exec(String(info))?.[1] ?? 0);
                return leave(link, 0);
              },
              () => undefined, // closed: the walk is over
            );
          }, 60);
        },
      },
    );
    try {
      const { restart: _, ...shown } = bench;
      await walk.run(shown);
      clearTimeout(relief);
      await leave(bench.link, 0);
      assert.deepEqual((await scanInvariants(bench.link, bench.id)).faults, []);
      assert.ok(times > 0 && refusals > 0, `${times} times full, ${refusals} refusals`);
    } finally {
      clearTimeout(relief);
      await leave(bench.link, 0);
      await bench.close();
    }
  });
}

test("what takes no memory is still answered by a server that is full: claims that find nothing, renewals, counts", { skip: skipRedis }, async () => {
  const bench = await openRedisBench(server.url, caseConfig);
  const hand = handOf(bench);
  try {
    await hand.seed("http://a.test/");
    const lease = await hand.one();
    await leave(bench.link, 1);
    assert.equal(await hand.kind(), "wait");
    assert.equal((await bench.frontier.counts()).leased, 1);
    await leave(bench.link, 0);
    assert.deepEqual(await hand.done(lease), ["applied"]);
  } finally {
    await leave(bench.link, 0);
    await bench.close();
  }
});
