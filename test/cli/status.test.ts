/** What `skein status` makes of counters; on real directories it is tested in state.slow.ts. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { statusLines } from "../../src/cli/commands/status.ts";
import type { CrawlSpecInput } from "../../src/core/spec.ts";
import type { StateView } from "../../src/inspect/inspect.ts";
import { statusOf } from "../../src/inspect/status.ts";
import type { LiveNote } from "../../src/live.ts";
import { makeRequest } from "../../src/rules/admit.ts";
import { aPage } from "./fake-crawl.ts";
import { fakeState } from "./fake-state.ts";

const COUNTS = { queued: 50, delayed: 2, leased: 8, done: 190, dropped: 10, counted: 150, level: 3, completed: false };
const TALLY = new Map([
  ...([
    ["outcome:fetched", 150],
    ["outcome:failed", 40],
    ["status:200", 149],
    ["status:404", 1],
    ["error:timeout", 40],
    ["skip:robots", 7],
  ] as const),
  ...([
    ["bytes", 2_500_000],
    ["bytesDecoded", 9_000_000],
    ["retries", 4],
    ["duplicates", 1_000],
  ] as const),
]);

function status(spec: CrawlSpecInput, more: Partial<StateView>) {
  using view = fakeState({
    spec,
    queue: [{ url: "http://a.example/1" }, { url: "http://a.example/2" }, { url: "http://b.example/" }, { url: "http://c.example/", standing: "leased" }],
    more: { counts: COUNTS, tally: TALLY, finishReason: null, running: true, ...more },
  });
  const { dir, ...rest } = statusOf(view);
  assert.equal(dir, view.dir);
  return { ...rest, dir: "DIR" };
}

test("the guess is what waits at the rate of what was settled, and no more than --limit allows", () => {
  assert.equal(status({}, {}).etaMs, 3_000);
  assert.deepEqual([status({ limits: { pages: 170 } }, {}).limitLeft, status({ limits: { pages: 170 } }, {}).etaMs], [20, 1_000]);
  assert.equal(status({}, { finishReason: "finished" }).etaMs, null);
  assert.equal(status({}, { elapsedMs: 0 }).etaMs, null);
});

test("running, stopped and finished are told apart", () => {
  assert.equal(status({}, {}).state, "running");
  assert.equal(status({}, { running: false }).state, "stopped");
  assert.equal(status({}, { running: false, finishReason: "limit-time" }).state, "finished");
  // The process writes its last lines.
  assert.equal(status({}, { finishReason: "finished" }).state, "finished");
});

const LIVE: LiveNote = {
  at: Date.UTC(2026, 0, 1),
  pagesPerSecond: 21.4,
  loopCpuShare: 0.4,
  inFlight: 8,
  waitingFor: "delay",
  hosts: [
    ["a.example", 10, 40.2],
    ["b.example", 0, 0],
    ["c.example", 2, 1_900],
  ].map(([host, settled, meanLatencyMs]) => ({
    ...{ queued: 0, inFlight: 0, concurrency: 8, delayMs: 0, dueInMs: 0 },
    ...{ host: String(host), settled: Number(settled), meanLatencyMs: Number(meanLatencyMs) },
  })),
};

test("slowest hosts are told of any crawl, what limits the speed and the recent rate of one that runs", () => {
  const running = statusLines(status({}, { live: LIVE }));
  assert.ok(running.includes("pages    150, 15/s (21/s of late), 2.5 MB"), running.join("\n"));
  assert.ok(running.includes("slowest  c.example 1.9s · a.example 40ms"));
  assert.ok(running.includes("speed    limited by the delay per host"));
  const { slowest, bottleneck, recentPagesPerSecond } = status({}, { live: LIVE, running: false });
  assert.deepEqual([slowest.map(({ host }) => host), bottleneck, recentPagesPerSecond], [["c.example", "a.example"], null, null]);
  assert.equal(status({ concurrency: 8 }, { live: { ...LIVE, waitingFor: null } }).bottleneck, "concurrency");
  assert.equal(status({}, { live: { ...LIVE, loopCpuShare: 0.97 } }).bottleneck, "cpu");
});

test("what a resume will tell in the end is not counted before: redirects whose chain is not over", () => {
  const owed = [{ page: aPage("http://a.example/old", { outcome: "redirected", status: 301 }), listed: true, skipped: [], found: [], edges: [] }];
  const request = makeRequest("http://a.example/new", [1, 2, 3, 4], { hop: "redirect", depth: 1, referrer: null, rest: { owed } });
  const place = { standing: "queued", depth: 1, request, attempt: 0, crashes: 0, dueEpoch: null } as const;
  const tally = new Map([...TALLY, ["outcome:redirected", 3], ["status:301", 3]] as const);
  const { byOutcome, byStatus, hosts } = status({}, { tally, queue: () => [place] });
  assert.deepEqual(
    [byOutcome, byStatus],
    [
      { fetched: 150, failed: 40, redirected: 2 },
      { "200": 149, "301": 2, "404": 1 },
    ],
  );
  assert.deepEqual(hosts, [{ host: "a.example", waiting: 1 }]);
});

test("the whole text", () => {
  assert.deepEqual(statusLines(status({ maxDepth: 5, limits: { pages: 1_000 }, maxRequestsPerMinute: "2/s" }, {})), [
    "state    running",
    "started  2026-01-01 00:00:00 UTC; 10.0s of work",
    "pages    150, 15/s, 2.5 MB",
    "waiting  50 queued, 2 wait for another try, 8 in flight",
    "depth    level 3",
    "left     about 3.0s at the rate so far, and more for what is yet to be found",
    "limit    850 pages left of --limit",
    "records  fetched 150 · failed 40",
    "status   200 149 · 404 1",
    "failed   timeout 40",
    "skipped  robots 7",
    "retries  4",
    "hosts    a.example 2 · b.example 1",
    "options  --limit 1000 --concurrency 64 --per-host 8 --delay auto --rate 120/min",
  ]);
});
