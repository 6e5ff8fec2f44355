/** Turns the events of a crawl into lines for people: what could not be reached, odd seeds, retries. Groups what would flood the terminal. */
import type { CrawlEvent } from "../core/events.ts";
import type { PageRecord } from "../core/records.ts";
import { hostKeyOf } from "../rules/url.ts";
import type { Console } from "./console.ts";
import { spellElapsed } from "./progress.ts";

/** Lines a host (or the seeds) may have before the rest is only counted. */
const LINES_EACH = 20;
/** Hosts named in "… more on host" at the end. */
const HOSTS_NAMED = 20;

export interface Narrator {
  tell(event: CrawlEvent): void;
  /** What was counted instead of said. */
  finish(): void;
}

function whyFailed({ error, status }: PageRecord): string {
  const code = error?.code ?? "unknown";
  return code === "http" && status !== null ? `http ${status}` : code;
}

export function createNarrator(console: Console): Narrator {
  const failures = new Map<string, number>();
  let oddSeeds = 0;

  function failed(page: PageRecord): void {
    const host = hostKeyOf(page.url);
    const count = (failures.get(host) ?? 0) + 1;
    failures.set(host, count);
    if (count > LINES_EACH) return;
    const fields = { url: page.url, code: page.error?.code ?? null, status: page.status, detail: page.error?.message ?? null };
    if (page.error?.message.startsWith("offline:")) {
      console.say("warn", `not in the cache: ${page.url}, moving on`, "not in the cache", fields);
      return;
    }
    // The page was there; its reader was not up to it.
    if (page.error?.code === "scraper") console.say("warn", `scraper failed (${page.error.message}): ${page.url}, moving on`, "scraper failed", fields);
    else console.say("warn", `not accessible (${whyFailed(page)}): ${page.url}, moving on`, "not accessible", fields);
  }

  function oddSeed(page: PageRecord, why: string): void {
    if (++oddSeeds <= LINES_EACH) console.say("warn", `warning: seed ${why}: ${page.url}`, `seed ${why}`, { url: page.url, status: page.status });
  }

  function settled(page: PageRecord): void {
    if (page.outcome === "failed") failed(page);
    else if (page.depth > 0) return;
    else if (page.outcome === "disallowed") oddSeed(page, "disallowed by robots.txt");
    else if (page.outcome === "fetched" && page.status !== null && page.status >= 400) oddSeed(page, `answered ${page.status}`);
  }

  return {
    tell(event) {
      switch (event.kind) {
        case "settled":
          if (event.output.page !== null) settled(event.output.page);
          return;
        case "retry": {
          const { url, code, status, attempt, afterMs } = event;
          const why = code === "http" && status !== null ? `http ${status}` : code;
          console.say("debug", `try ${attempt} failed (${why}), again in ${spellElapsed(afterMs)}: ${url}`, "retry", { url, code, status, attempt, afterMs });
          return;
        }
        case "state":
          console.say("info", event.message, "state");
          return;
        case "seed-moved":
          console.say("warn", `seed moved: ${event.from} leads to ${event.to}, which counts as a seed too`, "seed moved", { from: event.from, to: event.to });
          return;
        case "stopping":
          if (event.reason.startsWith("limit-")) console.say("info", "limit reached, finishing what is in flight", "limit reached", { reason: event.reason });
          return;
        case "started":
        case "finished":
          return;
      }
    },
    finish() {
      const more = [...failures].map(([host, count]) => [host, count - LINES_EACH] as const).filter(([, count]) => count > 0);
      more.sort(([, a], [, b]) => b - a);
      for (const [host, count] of more.slice(0, HOSTS_NAMED))
        console.say("warn", `not accessible: … ${count} more on ${host}`, "more not accessible", { host, count });
      if (more.length > HOSTS_NAMED) console.say("warn", `not accessible: … and on ${more.length - HOSTS_NAMED} more hosts`, "more hosts not accessible");
      if (oddSeeds > LINES_EACH)
        console.say("warn", `… ${oddSeeds - LINES_EACH} more seeds were disallowed or missing`, "more odd seeds", { count: oddSeeds - LINES_EACH });
    },
  };
}
