/** The frontier on Redis walks the cases that every store must pass, on a real server. */
import { after, before, test } from "node:test";
import { caseConfig, type FrontierBench, frontierCases } from "../../testing/frontier-cases.ts";
import { openRedisBench } from "./bench-for-tests.ts";
import { skipRedis, startServer, type TestServer } from "./server-for-tests.ts";

let server: TestServer;
before(async () => {
  if (skipRedis === false) server = await startServer(["--appendonly", "no"]);
});
after(() => server?.stop());

for (const one of frontierCases) {
  test(`redis frontier, ${one.rule}: ${one.name}`, { skip: skipRedis }, async () => {
    const bench = await openRedisBench(server.url, { ...caseConfig, ...one.config }, { waitMs: one.name.startsWith("when the sinks refuse") ? 300 : 30_000 });
    try {
      const { restart: _, ...shown } = bench;
      await one.run(shown satisfies FrontierBench);
    } finally {
      await bench.close();
    }
  });
}
