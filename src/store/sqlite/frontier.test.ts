/** The durable frontier walks the cases that every store must pass, as it is and across restarts. */
import { test } from "node:test";
import { restartCases } from "../../testing/frontier/restart-cases.ts";
import { caseConfig, frontierCases } from "../../testing/frontier-cases.ts";
import { openSqliteBench } from "./bench-for-tests.ts";

for (const one of frontierCases) {
  test(`sqlite frontier, ${one.rule}: ${one.name}`, async () => {
    const bench = await openSqliteBench({ ...caseConfig, ...one.config });
    try {
      await one.run(bench);
    } finally {
      await bench.close();
    }
  });
}

for (const one of restartCases) {
  test(`sqlite frontier, ${one.rule}: ${one.name}`, async () => {
    const bench = await openSqliteBench({ ...caseConfig, ...one.config });
    try {
      await one.run(bench);
    } finally {
      await bench.close();
    }
  });
}
