/** A site of raw answers and a whole crawl of it, for the cases of the field. Holds no case itself. Of the known ones four have no test: WARC (F116, F117) and pages saved as files (F118, F119) are not written yet. */
import assert from "node:assert/strict";
import type { Socket } from "node:net";
import { type AssembleOptions, DEFAULT_USER_AGENT } from "../../src/assemble.ts";
import { realClock } from "../../src/core/clock.ts";
import type { Summary } from "../../src/core/events.ts";
import type { PageRecord } from "../../src/core/records.ts";
import { type CrawlInput, crawl } from "../../src/crawl.ts";
import type { Lookup } from "../../src/fetch/dns.ts";
import { createFetcher } from "../../src/fetch/http.ts";
import { page, type RawRequest, type RawServer, startRawServer } from "../../src/fetch/raw-server.ts";
import { wantsBody } from "../../src/rules/media-type.ts";

/** HTML, or a whole answer: text that begins with `HTTP/` and bytes go out as they are. `{origin}` and `{port}` are the site's. */
export type Answer = string | Uint8Array | ((request: RawRequest, socket: Socket) => string | Uint8Array | null);

export interface Site extends RawServer {
  /** Request targets in the order they came, robots.txt left out. */
  targets(): string[];
  /** How often this target was asked for. */
  asked(target: string): number;
}

/** Answers by request target; the others get `otherwise`, by default 404, as does robots.txt unless it is among them. */
export async function site(answers: Readonly<Record<string, Answer>>, otherwise: Answer = page("none", [], "404 Not Found")): Promise<Site> {
  const server = await startRawServer((request, socket) => {
    const answer = answers[request.target] ?? (request.target === "/robots.txt" ? page("none", ["Content-Type: text/plain"], "404 Not Found") : otherwise);
    const said = typeof answer === "function" ? answer(request, socket) : answer;
    if (typeof said !== "string") return said;
    const text = said.replaceAll("{origin}", server.origin).replaceAll("{port}", String(server.port));
    return text.startsWith("HTTP/") ? text : page(text);
  });
  return Object.assign(server, {
    targets: () => server.requests.map(({ target }) => target).filter((target) => target !== "/robots.txt"),
    asked: (target: string) => server.requests.filter((request) => request.target === target).length,
  });
}

/** A redirect without a body. */
export const moved = (location: string, status = "302 Found", headers: readonly string[] = []): string =>
  [`HTTP/1.1 ${status}`, `Location: ${location}`, ...headers, "Content-Length: 0", "", ""].join("\r\n");

/** Writes these bytes and closes the connection. */
export const closing =
  (bytes: string): Answer =>
  (_, socket) => {
    socket.end(bytes, "latin1");
    return null;
  };

/** A plain text file, such as robots.txt. */
export const plain = (text: string | Uint8Array): Uint8Array => page(text, ["Content-Type: text/plain"]);

export interface Crawled {
  readonly records: readonly PageRecord[];
  readonly summary: Summary;
  /** `reason path` of each skipped URL. */
  readonly skipped: readonly string[];
  /** The one record of a path, or of a URL. */
  at(path: string): PageRecord;
  /** Path → status of fetched pages, `→ path` of redirects, the error code or outcome of the others. */
  outcomes(): Record<string, number | string>;
}

/** Crawls the site from `/`, unless the spec says otherwise. Seeds may be paths. Fails the test when the crawl does not end within a minute. */
export async function crawled(
  of: Site,
  spec: Partial<CrawlInput> & { readonly seeds?: string | readonly string[] } = {},
  options: AssembleOptions = {},
): Promise<Crawled> {
  const seeds = [spec.seeds ?? "/"].flat().map((seed) => (seed.startsWith("/") ? of.origin + seed : seed));
  const skipped: string[] = [];
  const short = (url: string) => (url.startsWith(`${of.origin}/`) ? url.slice(of.origin.length) : url);
  const hooks = { onSkip: ({ reason, url }: { reason: string; url: string }) => void skipped.push(`${reason} ${short(url)}`) };
  // Back-off is drawn at random from zero on: here it is always zero, so that no test waits for a retry.
  const world = { random: () => 0, ...options.world };
  const run = crawl({ ...spec, seeds }, { hooks, ...options, world, signal: AbortSignal.timeout(60_000) });
  const records: PageRecord[] = [];
  for await (const record of run) records.push(record);
  const summary = await run.done;
  await of.idle(); // a connection that is left open shows as a test that hangs
  assert.notEqual(summary.finishReason, "cancelled", "the crawl did not end by itself");
  assert.equal(new Set(records.map(({ url }) => url)).size, records.length, "a URL has two records");
  return {
    records,
    summary,
    skipped,
    at(path) {
      const found = records.find(({ url }) => short(url) === path);
      assert.ok(found, `no record of ${path} among ${records.map(({ url }) => short(url)).join(" ")}`);
      return found;
    },
    outcomes: () => Object.fromEntries(records.map((record) => [short(record.url), summaryOf(record, short)])),
  };
}

function summaryOf(record: PageRecord, short: (url: string) => string): number | string {
  if (record.outcome === "fetched") return record.status ?? "no status";
  if (record.outcome === "redirected") return `→ ${short(record.location ?? "")}`;
  return record.error?.code ?? record.outcome;
}

/** A crawl whose host names are looked up by `lookup`. */
export function withLookup(lookup: Lookup): AssembleOptions {
  return {
    world: {
      openFetcher: async () =>
        createFetcher(
          {
            ...{ timeoutMs: 5_000, maxBodySize: 1_000_000, types: "text", wantsBody, userAgent: DEFAULT_USER_AGENT, headers: {}, hosts: {} },
            ...{
              proxy: [],
              insecure: false,
              addresses: { refusePrivate: false, allow: [] },
              perHostConcurrency: 8,
              auth: new Map(),
              seedHosts: new Set(),
              lookup,
            },
          },
          realClock,
        ),
    },
  };
}

/** Crawls a page that links the odd page and a healthy one, whose health it asserts. `record` is the odd page's, `asked` how often it was requested. */
export async function beside(
  path: string,
  odd: Answer,
  more: Readonly<Record<string, Answer>> = {},
  spec: Partial<CrawlInput> & { readonly seeds?: string } = {},
) {
  await using server = await site({ "/": `<a href="${path}">odd</a><a href="/ok">ok</a>`, "/ok": "<p>healthy", [path]: odd, ...more });
  const result = await crawled(server, spec);
  assert.equal(result.at("/ok").status, 200);
  return { ...result, record: result.at(path), asked: server.asked(path), targets: server.targets(), requests: server.requests };
}
