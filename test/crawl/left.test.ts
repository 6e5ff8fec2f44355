/** What becomes of the loop of a crawl whose outputs cannot be written any more, where the crawl itself goes on elsewhere. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { realClock } from "../../src/core/clock.ts";
import { crawl } from "../../src/crawl.ts";
import { createMemoryFrontier } from "../../src/store/memory.ts";
import { fakeSite } from "../../src/testing/site.ts";

test("a crawl that fails beside its loop takes no more URLs, and hands back what it holds", async () => {
  await using site = await fakeSite({ "/": `<a href="/a">a</a>`, "/a": { body: "x", delayMs: 60_000 } });
  const broken = Promise.withResolvers<never>();
  let handedOut = 0;
  let handedBack = 0;
  let claims = 0;
  const run = crawl(
    { seeds: [site.url] },
    {
      async opens({ config, siteOf }, hooks, use) {
        use([]);
        const seed = [1, 2, 3, 4] as const;
        const frontier = createMemoryFrontier(config, hooks, { clock: realClock, random: Math.random, seed, siteOf, gate: null });
        const watched: typeof frontier = {
          ...frontier,
          async claim(most) {
            claims++;
            const claim = await frontier.claim(most);
            if (claim.kind === "leases") {
              handedOut += claim.leases.length;
              if (claim.leases.some(({ request }) => request.url.endsWith("/a"))) setImmediate(() => broken.reject(new Error("the disk is gone")));
            }
            return claim;
          },
          async settle(settled, links) {
            handedBack += settled.length;
            return frontier.settle(settled, links);
          },
          // The store outlives this crawl's use of it.
          async [Symbol.asyncDispose]() {},
        };
        const nothing = { sinks: [], gates: [], visits: null, say: null, elapsedBeforeMs: 0, resumed: false } as const;
        return { frontier: watched, seed, ...nothing, broken: broken.promise, finish: async () => null };
      },
    },
  );
  await assert.rejects(run.done, /the disk is gone/);
  while (handedBack < handedOut) await new Promise((next) => setImmediate(next));
  const after = claims;
  for (let round = 0; round < 50; round++) await new Promise((next) => setImmediate(next));
  assert.equal(claims, after);
});
