/** The durable frontier walks the cases that every store must pass, as it is and across restarts. */
import { test } from "node:test";
import { restartCases } from "../../testing/frontier/restart-cases.ts";
import { caseConfig, type FrontierBench, frontierCases } from "../../testing/frontier-cases.ts";
import { openSqliteBench, type SqliteBench } from "./bench-for-tests.ts";

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

/** The bench, with a restart before every call at whose time nothing is leased. */
function restless(bench: SqliteBench): FrontierBench {
  let restarts = 0;
  const around =
    (method: (...args: readonly never[]) => unknown) =>
    async (...args: readonly never[]): Promise<unknown> => {
      const { leased, robotsLeased } = await bench.current.counts();
      if (leased + robotsLeased === 0) await bench.restart(restarts++ % 2 === 0 ? "closed" : "killed");
      return method(...args);
    };
  const calls = Object.entries(bench.frontier).filter(([name]) => !["seed", "remaining", "counts"].includes(name));
  const wrapped = Object.fromEntries(calls.map(([name, method]) => [name, around(method as never)]));
  return { ...bench, outputs: bench.outputs, frontier: { ...bench.frontier, ...wrapped, seed: bench.frontier.seed } };
}

/** Cases that a restart in their midst makes untrue, and why. By rule, or by how the name begins. */
const NOT_ACROSS_RESTARTS: readonly (readonly [rule: string, name: string, why: string])[] = [
  ...["delay", "jitter", "rate", "back-off", "auto", "fair"].map((rule) => [rule, "", "every host rests anew, and pacing is learnt anew"] as const),
  ["model", "", "the model must be told of restarts; restartCases do"],
  ["lease", "where a delay holds", "every host rests anew"],
  ["robots", "http, https and ports", "every host rests anew"],
  ["robots", "a page starts the delay after", "every host rests anew"],
  ["robots", "robots.txt counts in the slots and in the rate", "the rate begins anew"],
  ["robots", "a redirect of robots.txt", "robots.txt is asked for again from its origin"],
  ["robots", "retry and returned bring robots.txt back", "robots.txt is asked for again, as if for the first time"],
  ["control", "finish outlasts a pause", "a restart begins a stopped crawl anew"],
  ["control", "now: all leases are lost", "leases of another process are stale"],
  ["output", "when the sinks refuse", "sinks that tell where they stand are not written to again after a failure"],
];

for (const one of frontierCases) {
  const exempt = NOT_ACROSS_RESTARTS.find(([rule, name]) => rule === one.rule && one.name.startsWith(name));
  if (exempt?.[0] === "model") continue;
  test(`sqlite frontier restarted whenever it is idle, ${one.rule}: ${one.name}`, { skip: exempt?.[2] ?? false }, async () => {
    const bench = await openSqliteBench({ ...caseConfig, ...one.config });
    try {
      await one.run(restless(bench));
    } finally {
      await bench.close();
    }
  });
}
