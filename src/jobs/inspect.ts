/** What is asked of a job beside its run: why a URL was or was not fetched, and its hosts where it does not run now. */
import type { Clock } from "../core/clock.ts";
import { CrawlError } from "../core/errors.ts";
import type { HostView } from "../core/frontier.ts";
import type { JobHost } from "../core/jobs.ts";
import { type Explainable, explain } from "../inspect/explain.ts";
import { openStateView } from "../inspect/inspect.ts";
import { explanationLines } from "../inspect/words.ts";
import { parseUrl } from "../rules/url.ts";
import type { JobRow } from "../store/jobs/book.ts";
import { committedOf } from "../store/jobs/committed.ts";

export interface Explained {
  readonly url: string;
  readonly lines: readonly string[];
}

export const NOT_BEGUN = "The job has not begun: nothing was looked at yet.";

/** Canonical where it is a URL; of a bare host the form that the crawl knows. */
export async function askedUrl(text: string, view: Pick<Explainable, "lookUp">): Promise<string> {
  const trimmed = text.trim();
  const forms = (/^[a-z][a-z0-9+.-]*:\/\//i.test(trimmed) ? [trimmed] : [`https://${trimmed}`, `http://${trimmed}`]).flatMap((form) => {
    const parsed = parseUrl(form);
    return "reject" in parsed ? [] : [parsed.url];
  });
  for (const form of forms) if ((await view.lookUp(form)) !== null) return form;
  return forms[0] ?? trimmed;
}

export async function explainJob(dir: string, url: string, clock: Clock): Promise<Explained> {
  if (committedOf(dir) === null) return { url, lines: [NOT_BEGUN] };
  using view = openStateView(dir);
  const asked = await askedUrl(url, view);
  const explanation = await explain(view, asked);
  const lines = explanationLines(explanation, { spec: view.spec, finishReason: view.finishReason, now: clock.epoch() });
  return { url: asked, lines };
}

/** As its process noted them last, and those whose rules were changed. */
export function hostsOf(dir: string, row: JobRow, most: number): readonly JobHost[] {
  const noted = notedHosts(dir).map((host) => ({ ...host, inFlight: 0, dueInMs: 0 }));
  return allHosts(noted, row, most);
}

/** The given ones, and others whose rules were changed. */
export function allHosts(given: readonly HostView[], row: JobRow, most: number): readonly JobHost[] {
  const known = new Set(given.map(({ host }) => host));
  const patched = Object.keys(row.patches).filter((host) => !known.has(host));
  const idle = { queued: 0, inFlight: 0, dueInMs: 0, settled: 0, meanLatencyMs: 0 };
  const all = [
    ...given,
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
