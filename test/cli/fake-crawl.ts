/** A crawl that does what the test tells it, in place of the real one. */
import type { CrawlEvent, Summary } from "../../src/core/events.ts";
import type { Output, PageRecord } from "../../src/core/records.ts";
import type { CrawlInput, CrawlOptions, CrawlRun } from "../../src/crawl.ts";

export function aSummary(more: Partial<Summary> = {}): Summary {
  return {
    ...{ elapsedMs: 500, pages: 1, pagesPerSecond: 2, queued: 0, inFlight: 0, failed: 0, items: 0, badItems: 0, bytes: 10, bytesDecoded: 10 },
    ...{
      byStatus: {},
      byOutcome: {},
      byError: {},
      bySkipReason: {},
      duplicates: 0,
      retries: 0,
      requests: 1,
      loopCpuShare: 0,
      parseCpuShare: null,
      waitingForParse: 0,
      bottleneck: "nothing",
    },
    ...{ finishReason: "finished", detail: null, seeds: 1, seedsReached: 1, slowestHosts: [], files: [], resumeFrom: null },
    ...more,
  };
}

export function aPage(url: string, more: Partial<PageRecord> = {}): PageRecord {
  const facts = {
    status: 200,
    outcome: "fetched",
    depth: 0,
    referrer: null,
    redirects: [],
    contentType: "text/html",
    bytes: 1,
    bytesDecoded: 1,
    links: [],
  } as const;
  return { url, ...facts, attempts: 1, fetchedAt: "2026-01-01T00:00:00.000Z", durationMs: 1, ...more };
}

export interface FakeRun {
  readonly input: CrawlInput;
  readonly options: CrawlOptions;
  /** What was asked of the run, in order: `stop flight`, `pause` … */
  readonly asked: string[];
  settle(...pages: PageRecord[]): void;
  event(event: CrawlEvent): void;
  /** Resolves at the next request of that kind. */
  until(asked: string): Promise<void>;
}

/** `play` is the crawl: what it returns is the summary, what it throws is how `done` rejects. */
export function fakeCrawl(play: (run: FakeRun) => Promise<Partial<Summary>>) {
  const runs: FakeRun[] = [];
  function crawl(input: CrawlInput, options: CrawlOptions = {}): CrawlRun {
    const asked: string[] = [];
    const waiting = new Map<string, () => void>();
    const ask = async (what: string) => {
      asked.push(what);
      waiting.get(what)?.();
    };
    const run: FakeRun = {
      input,
      options,
      asked,
      settle(...pages) {
        const outputs = pages.map((page): Output => ({ page, listed: true, skipped: [], found: [], edges: [] }));
        for (const sink of options.sinks ?? []) if (!("takes" in sink)) sink.write(outputs);
        for (const output of outputs) options.onEvent?.({ kind: "settled", output });
      },
      event: (event) => options.onEvent?.(event),
      until: (what) => (asked.includes(what) ? Promise.resolve() : new Promise((resolve) => waiting.set(what, resolve))),
    };
    runs.push(run);
    const done = (async () => {
      await Promise.resolve();
      options.onEvent?.({ kind: "opened", gives: "pages", parseWorkers: 0 });
      const summary = aSummary(await play(run));
      for (const sink of options.sinks ?? []) if (!("takes" in sink)) await sink.close();
      return summary;
    })();
    done.catch(() => undefined); // whoever awaits `done` sees it
    return {
      stop: (request) => ask(`stop ${request?.mode}`),
      pause: () => ask("pause"),
      resume: () => ask("resume"),
      stats: async () => aSummary(),
      add: async () => null,
      done,
      items() {
        throw new Error("not expected");
      },
      // biome-ignore lint/correctness/useYield: the command line never iterates a run
      async *[Symbol.asyncIterator]() {
        throw new Error("not expected");
      },
      [Symbol.asyncDispose]: async () => undefined,
    };
  }
  return { runs, load: async () => ({ crawl, INTERRUPTED: "interrupted" }) };
}
