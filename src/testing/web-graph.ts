/** A random web as plain data, and an independent breadth-first reference of what a crawl of it must find. No time, no requests: see web.ts. */
import { seededRandom } from "./clock.ts";

/** What a URL answers. */
export type PageKind =
  | { readonly kind: "page"; readonly links: readonly string[] }
  /** 404 without links. */
  | { readonly kind: "missing" }
  /** 301 or 302. */
  | { readonly kind: "redirect"; readonly status: number; readonly to: string }
  /** Redirects to itself with a cookie; a request that brings the cookie gets the page. */
  | { readonly kind: "gate"; readonly cookie: string; readonly links: readonly string[] }
  /** 503, 500 or a reset, for ever. */
  | { readonly kind: "broken"; readonly how: Trouble }
  /** Trouble for the first requests, then a page. */
  | { readonly kind: "flaky"; readonly how: Trouble; readonly times: number; readonly links: readonly string[] };

export type Trouble = "503" | "500" | "429" | "reset" | "timeout";

export type RobotsKind =
  | { readonly kind: "missing" }
  | { readonly kind: "rules"; readonly text: string; readonly crawlDelayMs: number }
  /** Redirects to the robots.txt of another host, whose rules then hold. */
  | { readonly kind: "redirect"; readonly to: string }
  /** 503 for the first requests; Infinity: for ever. */
  | { readonly kind: "trouble"; readonly times: number; readonly after: string };

export interface WebHost {
  readonly name: string;
  /** No connection can be made. */
  readonly dead: boolean;
  readonly connectMs: number;
  readonly latencyMs: number;
  readonly bodyMs: number;
  readonly robots: RobotsKind;
}

export interface WebGraph {
  readonly hosts: ReadonlyMap<string, WebHost>;
  /** By URL. */
  readonly pages: ReadonlyMap<string, PageKind>;
  readonly seeds: readonly string[];
}

export interface GraphOptions {
  readonly seed: number;
  readonly hosts?: number;
  readonly pages?: number;
  readonly seeds?: number;
  /** Most links of a page. */
  readonly links?: number;
  /** Share of URLs that are not plain pages, 0 … 1. */
  readonly oddShare?: number;
  /** Share of hosts that no connection reaches. */
  readonly deadShare?: number;
  /** Tries beyond the first that the crawl will make: trouble that passes passes within them. */
  readonly retries?: number;
  readonly robots?: boolean;
  /** Longest time to the response head, ms; hosts differ. */
  readonly slowestMs?: number;
}

const TROUBLES: readonly Trouble[] = ["503", "500", "429", "reset", "timeout"];
const PRIVATE = "User-agent: *\nDisallow: /private/\n";

export function generateGraph(options: GraphOptions): WebGraph {
  const random = seededRandom(options.seed);
  const below = (n: number): number => Math.floor(random() * n);
  const hostCount = options.hosts ?? 6;
  const pageCount = options.pages ?? 80;
  const names = Array.from({ length: hostCount }, (_, i) => `h${i}.test${i % 5 === 4 ? ":8080" : ""}`);
  const retries = options.retries ?? 2;
  const hosts = new Map<string, WebHost>();
  for (const [i, name] of names.entries()) {
    hosts.set(name, {
      name,
      dead: i > 0 && random() < (options.deadShare ?? 0.1),
      connectMs: below(3) * 7,
      latencyMs: 1 + below(options.slowestMs ?? 60),
      bodyMs: below(10),
      robots: options.robots === false ? { kind: "missing" } : randomRobots(random, names, i, retries),
    });
  }
  const urls = Array.from({ length: pageCount }, (_, i) => `http://${names[below(hostCount)]}/${random() < 0.1 ? "private/" : ""}p${i}`);
  const pages = new Map<string, PageKind>();
  const links = (i: number): string[] => Array.from({ length: below((options.links ?? 5) + 1) }, () => linkFrom(random, urls, i));
  for (const [i, url] of urls.entries()) {
    pages.set(url, random() < (options.oddShare ?? 0.3) ? oddPage(random, urls, i, retries, links(i)) : { kind: "page", links: links(i) });
  }
  return { hosts, pages, seeds: urls.slice(0, options.seeds ?? 2) };
}

/** Half of the links go a short way on, so that webs are deep and have short cuts. */
function linkFrom(random: () => number, urls: readonly string[], i: number): string {
  const to = random() < 0.5 ? Math.min(urls.length - 1, i + 1 + Math.floor(random() * 4)) : Math.floor(random() * urls.length);
  return urls[to]!;
}

function oddPage(random: () => number, urls: readonly string[], i: number, retries: number, links: readonly string[]): PageKind {
  const how = TROUBLES[Math.floor(random() * TROUBLES.length)]!;
  const draw = random();
  if (draw < 0.2) return { kind: "missing" };
  if (draw < 0.3) return { kind: "broken", how };
  if (draw < 0.6 && retries > 0) return { kind: "flaky", how, times: 1 + Math.floor(random() * retries), links };
  if (draw < 0.68) return { kind: "gate", cookie: `gate${i}`, links };
  // Redirects lead onwards, or to themselves: no loop whose records would depend on where it was entered.
  const to = random() < 0.1 ? i : Math.min(urls.length - 1, i + 1 + Math.floor(random() * 20));
  return { kind: "redirect", status: random() < 0.5 ? 301 : 302, to: urls[to]! };
}

function randomRobots(random: () => number, names: readonly string[], i: number, retries: number): RobotsKind {
  const draw = random();
  if (draw < 0.3) return { kind: "missing" };
  if (draw < 0.5) return { kind: "rules", text: PRIVATE, crawlDelayMs: 0 };
  if (draw < 0.65) return { kind: "rules", text: `${PRIVATE}Crawl-delay: 1\n`, crawlDelayMs: 1_000 };
  if (draw < 0.8 && i > 0) return { kind: "redirect", to: `http://${names[0]}/robots.txt` };
  if (draw < 0.9 && retries > 0) return { kind: "trouble", times: 1, after: PRIVATE };
  return draw < 0.95 && i > 0 ? { kind: "trouble", times: Infinity, after: "" } : { kind: "missing" };
}

export type ExpectedOutcome = "fetched" | "redirected" | "failed" | "disallowed";

export interface Expected {
  readonly depth: number;
  readonly outcome: ExpectedOutcome;
  /** Only redirects lead to it at this depth: when one of them arrives after the page was fetched, the record shows a depth one larger (docs/decisions/0004). */
  readonly byRedirect: boolean;
}

/** What robots.txt makes of a host's pages. */
function robotsVerdict(graph: WebGraph, host: WebHost, robots: boolean): (url: string) => ExpectedOutcome | null {
  if (!robots) return () => null;
  let of = host;
  for (let hops = 0; of.robots.kind === "redirect" && hops < 5; hops++) {
    const next = graph.hosts.get(of.robots.to.split("/")[2]!);
    if (next === undefined) break;
    of = next;
  }
  const answer = of.robots;
  if (of.dead || (answer.kind === "trouble" && answer.times === Infinity)) return () => "failed";
  const rules = answer.kind === "rules" ? answer.text : answer.kind === "trouble" ? answer.after : "";
  return (url) => (rules.includes("/private/") && url.includes("/private/") ? "disallowed" : null);
}

/** Every URL a whole crawl must record, with its exact depth and outcome. `maxDepth` null: all. */
export function expectedOf(graph: WebGraph, options: { readonly maxDepth: number | null; readonly robots: boolean }): ReadonlyMap<string, Expected> {
  const verdicts = new Map([...graph.hosts.values()].map((host) => [host.name, robotsVerdict(graph, host, options.robots)]));
  const found = new Map<string, Expected>();
  let level = [...graph.seeds];
  for (let depth = 0; level.length > 0 && (options.maxDepth === null || depth <= options.maxDepth); depth++) {
    const next: string[] = [];
    const linked = new Set(level);
    // Redirect targets join the level they were met on.
    for (let url = level.pop(); url !== undefined; url = level.pop()) {
      if (found.has(url)) continue;
      const host = graph.hosts.get(url.split("/")[2]!);
      const page = graph.pages.get(url);
      if (host === undefined || page === undefined) continue;
      const refused = host.dead ? "failed" : verdicts.get(host.name)?.(url);
      const outcome = refused ?? outcomeOf(url, page);
      found.set(url, { depth, outcome, byRedirect: !linked.has(url) });
      if (refused) continue;
      if (page.kind === "page" || page.kind === "flaky" || page.kind === "gate") next.push(...page.links);
      else if (page.kind === "redirect" && outcome === "redirected") level.push(page.to);
    }
    level = next;
  }
  return found;
}

function outcomeOf(url: string, page: PageKind): ExpectedOutcome {
  if (page.kind === "redirect") return page.to === url ? "failed" : "redirected";
  return page.kind === "broken" ? "failed" : "fetched";
}
