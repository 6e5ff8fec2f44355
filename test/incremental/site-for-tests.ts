/** A site of pages that a test changes between two crawls, with validators as the server of each page gives them. */
import { readFileSync } from "node:fs";
import type { IncomingMessage } from "node:http";
import { join } from "node:path";
import type { Summary } from "../../src/core/events.ts";
import type { PageRecord } from "../../src/core/records.ts";
import type { ChangeRecord } from "../../src/core/visits.ts";
import { type CrawlInput, type CrawlOptions, crawl } from "../../src/crawl.ts";
import { type Served, serve } from "../crawl/served.ts";

export interface SitePage {
  readonly body: string;
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly type?: string;
  /** Answers 304 to a request with this validator; absent: whenever its ETag or date is sent. */
  readonly confirms?: (headers: IncomingMessage["headers"]) => boolean;
}

export interface Site extends Served {
  /** By path; what is not there is 404. */
  readonly pages: Map<string, SitePage>;
  /** What was asked since the last call, robots.txt apart: path, and the conditions that were sent. */
  asked(): Record<string, { readonly etag?: string; readonly since?: string }>;
}

export const links = (...paths: string[]): string => paths.map((path) => `<a href="${path}">${path}</a>`).join(" ");
export const page = (title: string, to: readonly string[] = [], headers: Record<string, string> = { etag: `"${title}"` }): SitePage => ({
  body: `<title>${title}</title>${links(...to)}`,
  headers,
});

export async function openSite(pages: Readonly<Record<string, SitePage>>): Promise<Site> {
  const map = new Map(Object.entries(pages));
  const served = await serve((request, response) => {
    const known = map.get(request.url ?? "");
    if (known === undefined) return void response.writeHead(404, { "content-type": "text/html" }).end("<p>none");
    const { status = 200, headers = {}, body, type = "text/html; charset=utf-8" } = known;
    const sent = request.headers;
    const same =
      known.confirms?.(sent) ??
      ((headers["etag"] !== undefined && sent["if-none-match"] === headers["etag"]) ||
        (headers["last-modified"] !== undefined && sent["if-modified-since"] === headers["last-modified"]));
    if (same) response.writeHead(304, headers).end();
    else response.writeHead(status, { "content-type": type, ...headers }).end(body);
  });
  let told = 0;
  return {
    ...served,
    get arrivals() {
      return served.arrivals;
    },
    pages: map,
    asked() {
      const since = served.arrivals.slice(told).filter(({ target }) => target !== "/robots.txt");
      told = served.arrivals.length;
      return Object.fromEntries(
        since.map(({ target, headers }) => {
          const etag = headers["if-none-match"];
          const modified = headers["if-modified-since"];
          return [target, { ...(etag === undefined ? {} : { etag }), ...(modified === undefined ? {} : { since: modified }) }];
        }),
      );
    },
  };
}

export interface Ran {
  readonly summary: Summary;
  /** By path. */
  readonly pages: Record<string, PageRecord>;
}

/** One crawl to its end. */
export async function ran(spec: CrawlInput, options: CrawlOptions = {}): Promise<Ran> {
  const run = crawl(spec, options);
  const pages: Record<string, PageRecord> = {};
  for await (const one of run) pages[new URL(one.url).pathname + new URL(one.url).search] = one;
  return { summary: await run.done, pages };
}

export const by = <K extends keyof PageRecord>(pages: Record<string, PageRecord>, field: K): Record<string, PageRecord[K]> =>
  Object.fromEntries(
    Object.entries(pages)
      .map(([path, one]) => [path, one[field]] as const)
      .sort(),
  );

export function linesOf<T>(folder: string, file: string): T[] {
  return readFileSync(join(folder, file), "utf8")
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as T); // written by the crawl
}

/** `change` by path, items as `path#key`. */
export function changesIn(folder: string, file = "changes.jsonl"): Record<string, string> {
  const records = linesOf<ChangeRecord>(folder, file);
  return Object.fromEntries(
    records
      .map(({ kind, url, change, key, fields }) => {
        const path = new URL(url).pathname;
        return [kind === "page" ? path : `${path}#${key ?? ""}`, fields === undefined ? change : `${change} ${fields.join(",")}`] as const;
      })
      .sort(),
  );
}
