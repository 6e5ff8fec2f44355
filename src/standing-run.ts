/** The run that stands in a state directory, before anything is done about it: for who goes on with it, and for who drops it. Lazily loaded: it needs SQLite. */
import { existsSync } from "node:fs";
import { type CrawlSpec, parseSpec } from "./core/spec.ts";
import type { FoundRun } from "./rules/resume.ts";
import { readState } from "./store/sqlite/read.ts";

export interface StandingRun {
  /** With digests in the place of what is secret. */
  readonly spec: CrawlSpec;
  readonly seedsRead: boolean;
  /** The options of which there are digests only. */
  readonly secrets: readonly string[];
}

/** Null: there is none. Throws CrawlError `state-unwritable` when the directory is none of ours, or damaged. */
export function readStandingRun(dir: string): StandingRun | null {
  if (!existsSync(dir)) return null;
  const reader = readState(dir);
  const run = reader?.run ?? null;
  reader?.close();
  if (run === null) return null;
  const { spec, seedsRead } = foundRun(dir, run.spec, run.finishReason);
  return { spec, seedsRead, secrets: secretsOf(spec) };
}

export function foundRun(dir: string, spec: string, finishReason: string | null): FoundRun {
  const reader = readState(dir);
  try {
    const counters = reader?.counters ?? null;
    const left = counters === null ? 0 : counters.queued + counters.delayed + counters.leased;
    // A run that was never committed to, or that has no reason to have ended, is unfinished.
    const tally = new Map(counters?.tally);
    return {
      spec: parseSpec(JSON.parse(spec)),
      completed: finishReason !== null,
      left,
      counted: counters?.counted ?? 0,
      elapsedMs: counters?.elapsedMs ?? 0,
      bytes: tally.get("bytes") ?? 0,
      failed: tally.get("outcome:failed") ?? 0,
      items: tally.get("items") ?? 0,
      seedsRead: counters?.seedsComplete ?? false,
      finishReason,
    };
  } finally {
    reader?.close();
  }
}

/** What `--fresh` drops, in one line; null: nothing is there. */
export function droppedWords(dir: string): string | null {
  const reader = readState(dir);
  try {
    if (reader === null || reader.run === null) return null;
    const { counted = 0, queued = 0, delayed = 0, leased = 0 } = reader.counters ?? {};
    const pages = `${counted} page${counted === 1 ? "" : "s"}`;
    const left = queued + delayed + leased;
    const what = reader.run.finishReason === null ? `unfinished run in ${dir} (${pages} done, ${left} queued)` : `last run in ${dir} (${pages})`;
    return `dropped the ${what}: starting anew`;
  } finally {
    reader?.close();
  }
}

function secretsOf({ headers, auth, hosts, proxy, seeds }: CrawlSpec): string[] {
  const digested = (urls: readonly unknown[]): boolean => urls.some((url) => /^[a-z]+:\/\/sha256-[0-9a-f]{32}@/i.test(String(url)));
  const held = {
    headers: Object.keys(headers).length > 0,
    auth: Object.keys(auth).length > 0,
    hosts: Object.values(hosts).some((rules) => rules.headers !== undefined),
    proxy: digested(proxy),
    seeds: Array.isArray(seeds) && digested(seeds),
  };
  return Object.entries(held).flatMap(([name, is]) => (is ? [name] : []));
}
