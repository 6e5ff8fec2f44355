/** A state directory made of what a test says, for answers that a real crawl gives seldom. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { RobotsState } from "../../src/core/frontier.ts";
import type { PageRecord, SkippedRecord } from "../../src/core/records.ts";
import { type CrawlSpecInput, parseSpec } from "../../src/core/spec.ts";
import type { Journal, StateView } from "../../src/inspect/inspect.ts";
import { makeRequest } from "../../src/rules/admit.ts";
import type { KnownPlace } from "../../src/store/sqlite/read.ts";
import { aPage } from "./fake-crawl.ts";

export interface FakeState {
  readonly spec?: CrawlSpecInput;
  readonly pages?: readonly PageRecord[];
  readonly skipped?: readonly SkippedRecord[];
  /** Oldest first. */
  readonly queue?: readonly (Partial<KnownPlace> & { readonly url: string; readonly referrer?: string })[];
  /** URLs settled without a record, and how. */
  readonly settled?: Readonly<Record<string, "done" | "dropped">>;
  readonly robots?: RobotsState;
  /** Pages settled, where more were than have a record. */
  readonly counted?: number;
  /** URLs whose skipped line was written elsewhere. */
  readonly passedOver?: readonly string[];
  readonly more?: Partial<StateView>;
}

const SEED = [1, 2, 3, 4] as const;

export function fakeState(state: FakeState): StateView {
  const dir = mkdtempSync(join(tmpdir(), "skein-state-"));
  const journal = (name: string, records: readonly object[]): Journal => {
    const path = join(dir, `${name}.jsonl`);
    const text = records.map((record) => `${JSON.stringify(record)}\n`).join("");
    // What was appended and never committed must not be seen.
    writeFileSync(path, `${text}{"url":"http://uncommitted.example/","depth":0,"referrer":null,`);
    return { path, bytes: Buffer.byteLength(text) };
  };
  const pages = state.pages ?? [aPage("http://a.example/")];
  const queue = (state.queue ?? []).map(({ url, referrer, ...place }): KnownPlace & { request: NonNullable<KnownPlace["request"]> } => {
    const depth = place.depth ?? 1;
    const request = makeRequest(url, SEED, { hop: referrer === undefined ? "seed" : "link", depth, referrer: referrer ?? null });
    return { standing: "queued", attempt: 0, crashes: 0, dueEpoch: null, ...place, depth, request };
  });
  const settled = (standing: "done" | "dropped", depth: number): KnownPlace => ({ standing, depth, request: null, attempt: 0, crashes: 0, dueEpoch: null });
  return {
    dir,
    spec: parseSpec({ seeds: ["http://a.example/"], ...state.spec }),
    counts: {
      ...{ queued: queue.length, delayed: 0, leased: 0, done: state.counted ?? pages.length, dropped: 0, counted: pages.length, level: 0, completed: false },
    },
    control: "run",
    tally: new Map(),
    startedAt: Date.UTC(2026, 0, 1),
    elapsedMs: 10_000,
    finishReason: "finished",
    running: false,
    journal: { pages: journal("pages", pages), skipped: journal("skipped", state.skipped ?? []), items: journal("items", []) },
    sinks: new Map(),
    beganInMemory: null,
    live: null,
    lookUp(url) {
      const page = pages.find((record) => record.url === url);
      if (page !== undefined) return settled("done", page.depth);
      const other = state.settled?.[url];
      return queue.find(({ request }) => request.url === url) ?? (other === undefined ? null : settled(other, 0));
    },
    wasSkipped: (url) => state.passedOver?.includes(url) === true,
    queue: () => queue,
    robotsOf: () => state.robots ?? null,
    [Symbol.dispose]: () => rmSync(dir, { recursive: true }),
    ...state.more,
  };
}
