/** Why a URL of a job was or was not fetched, where the crawl lives in a store and its records in the job's directory. */
import { join } from "node:path";
import type { Clock } from "../core/clock.ts";
import type { RobotsState } from "../core/frontier.ts";
import type { SinkState } from "../core/sink.ts";
import type { CrawlSpec } from "../core/spec.ts";
import { type Explainable, explainFrom, journalRecords } from "../inspect/explain.ts";
import type { Journal } from "../inspect/inspect.ts";
import { waitingAt } from "../inspect/store-explain.ts";
import { explanationLines } from "../inspect/words.ts";
import { hostKeyOf } from "../rules/url.ts";
import type { JobRow } from "../store/jobs/book.ts";
import type { Link } from "../store/redis/connect.ts";
import { glance, lookAt, notedSeeds, writerOf } from "../store/redis/look.ts";
import { askedUrl, type Explained, NOT_BEGUN } from "./inspect.ts";
import { fileOf, sinkOf, wholeLines } from "./lines.ts";

export interface StoredInput {
  readonly row: JobRow;
  readonly crawl: number;
  readonly dir: string;
  readonly spec: CrawlSpec;
  readonly clock: Clock;
  /** Where the journals stand, if this process writes them. */
  readonly states: ReadonlyMap<string, SinkState> | null;
  readonly robotsOf: (origin: string) => Promise<RobotsState | null>;
}

/** What is finished is deleted after some days (store/redis/crawls.ts). */
const GONE = "Its crawl is no longer in the store: only what has a record is known.";
const NO_COUNTS = { queued: 0, delayed: 0, done: 0 };
/** Sitemaps are known under a name of their own (engine/sitemaps.ts). */
const hostOf = (url: string): string => hostKeyOf(url.replace(/^sitemap:/, ""));

export async function explainStored(link: Link, { row, crawl, dir, spec, clock, ...input }: StoredInput, url: string): Promise<Explained> {
  const at = await glance(link, crawl);
  if (at !== null && at.seed === null) return { url, lines: [NOT_BEGUN] };
  const states = input.states ?? (await writerOf(link, crawl)).states;
  const look = at === null || at.seed === null ? null : lookAt(link, at, at.seed, hostOf);

  async function journal(table: "pages" | "skipped"): Promise<Journal> {
    const bytes = row.sizes?.[table] ?? (at === null ? await wholeLines(dir, table) : states.get(sinkOf(table))?.["bytes"]);
    return { path: join(dir, fileOf(table)), bytes: typeof bytes === "number" ? bytes : 0 };
  }

  const records = journalRecords(await journal("pages"), await journal("skipped"));
  const view: Explainable = {
    ...{ spec: { ...spec, seeds: row.seeds }, counts: at ?? NO_COUNTS, noRecords: false, beganInMemory: false },
    records: {
      ...records,
      async *seeds() {
        yield* await notedSeeds(link, crawl);
        yield* records.seeds();
      },
    },
    lookUp: (asked) => look?.lookUp(asked) ?? null,
    wasSkipped: (asked) => look?.wasSkipped(asked) ?? false,
    robotsOf: (origin) => (look === null ? null : input.robotsOf(origin)),
    queue: (host) => waitingAt(look, host),
  };
  const asked = await askedUrl(url, view);
  const explanation = await explainFrom(view, asked);
  const lines = explanationLines(explanation, { spec: view.spec, finishReason: row.finishReason, now: clock.epoch() });
  return { url: asked, lines: look === null && explanation.kind === "unknown" ? [GONE] : lines };
}
