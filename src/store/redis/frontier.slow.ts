/** The frontier on Redis walks the cases that every store must pass, on a real server, and leaves no invariant broken; then those of stores that outlive their process. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { restartCases } from "../../testing/frontier/restart-cases.ts";
import { caseConfig, type FrontierBench, frontierCases } from "../../testing/frontier-cases.ts";
import { openRedisBench } from "./bench-for-tests.ts";
import { scanInvariants } from "./doctor.ts";
import { skipRedis, startServer, type TestServer } from "./server-for-tests.ts";

let server: TestServer;
/** Its crashes are felt by the restart cases alone. */
let mortal: TestServer;
before(async () => {
  if (skipRedis !== false) return;
  server = await startServer(["--appendonly", "no"]);
  mortal = await startServer(["--appendfsync", "always"]);
});
after(async () => {
  await server?.stop();
  await mortal?.stop();
});

for (const one of frontierCases) {
  test(`redis frontier, ${one.rule}: ${one.name}`, { skip: skipRedis }, async () => {
    const waitMs = one.name.startsWith("when the sinks refuse") ? 300 : 30_000;
    const bench = await openRedisBench(server.url, { ...caseConfig, ...one.config }, { waitMs });
    try {
      const { restart: _, ...shown } = bench;
      await one.run(shown satisfies FrontierBench);
      assert.deepEqual((await scanInvariants(bench.link, bench.id)).faults, []);
    } finally {
      await bench.close();
    }
  });
}

/** Cases that are about a store whose process is the crawl's. By rule, or by how the name begins. */
const NOT_HERE: readonly (readonly [rule: string, name: string, why: string])[] = [
  ["model", "", "host clocks and the order of what came back outlast every restart here; lives.test.ts kills the server below the other walks"],
  ["I6", "a host rests for its delay after a restart", "the clocks are kept: nobody need wait for a delay anew"],
  ["rate", "", "the rate goes on where it was"],
];

for (const one of restartCases) {
  const exempt = NOT_HERE.find(([rule, name]) => rule === one.rule && one.name.startsWith(name));
  if (exempt?.[0] === "model") continue;
  test(`redis frontier, ${one.rule}: ${one.name}`, { skip: skipRedis !== false ? skipRedis : (exempt?.[2] ?? false) }, async () => {
    const bench = await openRedisBench(mortal.url, { ...caseConfig, ...one.config }, { crash: crashOf(mortal) });
    try {
      await one.run(bench);
      assert.deepEqual((await scanInvariants(bench.link, bench.id)).faults, []);
    } finally {
      await bench.close();
    }
  });
}

const crashOf = (which: TestServer) => async (): Promise<void> => {
  await which.kill();
  await which.start();
};
