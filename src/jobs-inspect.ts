/** What is asked of a job beside its run: why a URL was or was not fetched, and its hosts where it does not run now. */
import type { Clock } from "./core/clock.ts";
import { CrawlError } from "./core/errors.ts";
import type { JobHost } from "./core/jobs.ts";
import { openStateView, type StateView } from "./inspect.ts";
import { explain } from "./inspect-explain.ts";
import { explanationLines } from "./inspect-words.ts";
import { parseUrl } from "./rules/url.ts";
import type { JobRow } from "./store/jobs/book.ts";
import { committedOf } from "./store/jobs/committed.ts";

/** Canonical where it is a URL; of a bare host the form that the crawl knows. */
function askedUrl(text: string, view: StateView): string {
  const trimmed = text.trim();
  const forms = (/^[a-z][a-z0-9+.-]*:\/\//i.test(trimmed) ? [trimmed] : [`https://${trimmed}`, `http://${trimmed}`]).flatMap((form) => {
    const parsed = parseUrl(form);
    return "reject" in parsed ? [] : [parsed.url];
  });
  return forms.find((form) => view.lookUp(form) !== null) ?? forms[0] ?? trimmed;
}

export async function explainJob(dir: string, url: string, clock: Clock): Promise<{ readonly url: string; readonly lines: readonly string[] }> {
  if (committedOf(dir) === null) return { url, lines: ["The job has not begun: nothing was looked at yet."] };
  using view = openStateView(dir);
  const asked = askedUrl(url, view);
  const explanation = await explain(view, asked);
  const lines = explanationLines(explanation, { spec: view.spec, finishReason: view.finishReason, now: clock.epoch() });
  return { url: asked, lines };
}

/** As its process noted them last, and those whose rules were changed. */
export function hostsOf(dir: string, row: JobRow, most: number): readonly JobHost[] {
  const noted = notedHosts(dir);
  const known = new Set(noted.map(({ host }) => host));
  const patched = Object.keys(row.patches).filter((host) => !known.has(host));
  const idle = { queued: 0, inFlight: 0, dueInMs: 0, settled: 0, meanLatencyMs: 0 };
  const all = [
    ...noted.map((host) => ({ ...host, inFlight: 0, dueInMs: 0 })),
    ...patched.map((host) => ({ ...idle, host, concurrency: row.patches[host]?.concurrency ?? 0, delayMs: row.patches[host]?.delayMs ?? 0 })),
  ];
  return all.slice(0, most).map((host) => ({ ...host, paused: row.patches[host.host]?.paused === true }));
}

function notedHosts(dir: string) {
  try {
    if (committedOf(dir) === null) return [];
    using view = openStateView(dir);
    return view.live?.hosts ?? [];
  } catch (error) {
    // It has no state that can be read: there are no hosts to show, and its run says why.
    if (error instanceof CrawlError) return [];
    throw error;
  }
}
