/** What belongs to the crawl, what is followed and what is listed. Depth, nofollow and robots are decided elsewhere (admit.ts, robots.ts). */
import { CrawlError } from "../core/errors.ts";
import type { SkipReason } from "../core/records.ts";
import { compilePatterns, type Pattern } from "./patterns.ts";
import { hostKeyOf, hostnameOf } from "./url.ts";

export type ScopePreset = "page" | "prefix" | "host" | "domain" | "any";

/** What may be crawled; names as in the spec. */
export interface ScopeOptions {
  readonly preset: ScopePreset;
  readonly include: readonly string[];
  readonly exclude: readonly string[];
}

type SiteRule = (host: string) => string;

export interface ScopeVerdict {
  readonly reason: Extract<SkipReason, "out-of-scope" | "excluded">;
  /** `scope host`, `include *.html` or `exclude *.pdf`. */
  readonly rule: string;
}

/** Takes canonical URLs throughout. */
export interface Scope {
  /** Null: in scope. Seeds are always in, even if a pattern excludes them. Makes no objects. */
  verdict(url: string): ScopeVerdict | null;
  /** May this link be followed (`follow`)? */
  follows(url: string): boolean;
  /** Is this page printed and written to `-o` (`list`)? */
  lists(url: string): boolean;
  /** The target of a redirected seed is a seed too. */
  addSeed(url: string): void;
  /** How each pattern was read, for `-v`. */
  readonly described: readonly string[];
}

/** Whether a URL lies in what the preset and the seeds span. */
interface Territory {
  add(seed: string): void;
  has(url: string): boolean;
}

/** Hosts whose site is remembered. A crawl of the whole web must not remember them all. */
const MAX_KNOWN_HOSTS = 20_000;

const SLASH = 47;

/** Hosts with their ports; http and https on their own ports belong together. Most links stay on the host of the last one: that is compared without a slice. */
function hostTerritory(): Territory {
  const hosts = new Set<string>();
  let last = "";
  return {
    add: (seed) => void hosts.add(hostKeyOf(seed)),
    has(url) {
      const start = url.charCodeAt(4) === 58 ? 7 : 8;
      if (last !== "" && url.startsWith(last, start) && url.charCodeAt(start + last.length) === SLASH) return true;
      const host = hostKeyOf(url);
      if (!hosts.has(host)) return false;
      last = host;
      return true;
    },
  };
}

/** The folders of the seeds' paths and what lies below them, on the same host and port. A question costs one look-up per folder of the URL, however many seeds there are. */
function prefixTerritory(): Territory {
  const folders = new Map<string, Set<string>>();
  const pathOf = (url: string) => url.indexOf("/", 8);
  const pathEnd = (url: string) => {
    const query = url.indexOf("?");
    return query < 0 ? url.length : query;
  };
  return {
    add(seed) {
      const host = hostKeyOf(seed);
      const known = folders.get(host) ?? new Set();
      folders.set(host, known.add(seed.slice(pathOf(seed), seed.lastIndexOf("/", pathEnd(seed)) + 1)));
    },
    has(url) {
      const known = folders.get(hostKeyOf(url));
      if (known === undefined) return false;
      const path = pathOf(url);
      const end = pathEnd(url);
      for (let slash = path; slash >= 0 && slash < end; slash = url.indexOf("/", slash + 1)) if (known.has(url.slice(path, slash + 1))) return true;
      return false;
    },
  };
}

/** Registrable domains, on any port. */
function domainTerritory(siteOf: SiteRule): Territory {
  const sites = new Set<string>();
  const known = new Map<string, boolean>();
  return {
    add(seed) {
      sites.add(siteOf(hostnameOf(seed)));
      known.clear();
    },
    has(url) {
      const host = hostnameOf(url);
      const remembered = known.get(host);
      if (remembered !== undefined) return remembered;
      const inside = sites.has(siteOf(host));
      if (known.size >= MAX_KNOWN_HOSTS) known.clear();
      known.set(host, inside);
      return inside;
    },
  };
}

const NOTHING: Territory = { add: () => {}, has: () => false };
const EVERYTHING: Territory = { add: () => {}, has: () => true };

function territoryOf(preset: ScopePreset, siteOf: SiteRule | null): Territory {
  if (preset === "any") return EVERYTHING;
  if (preset === "host") return hostTerritory();
  if (preset === "prefix") return prefixTerritory();
  // The seeds themselves are in whatever the territory says.
  if (preset === "page") return NOTHING;
  if (siteOf === null) throw new CrawlError("internal", "scope domain was compiled without its site rule; use loadScope");
  return domainTerritory(siteOf);
}

function anyMatches(patterns: readonly Pattern[], url: string): boolean {
  for (let i = 0; i < patterns.length; i++) if (patterns[i]!.matches(url)) return true;
  return false;
}

function firstMatch(patterns: readonly Pattern[], url: string): number {
  for (let i = 0; i < patterns.length; i++) if (patterns[i]!.matches(url)) return i;
  return -1;
}

/**
 * Compiles what the user chose: the preset over the union of the seeds, narrowed by `include`, then by `exclude`, which wins; seeds are always in.
 * `siteOf` (rules/site.ts) is needed for the preset `domain` only. Throws CrawlError `invalid-options` when patterns are wrong, all at once.
 */
export function compileScope(
  options: ScopeOptions,
  followPatterns: readonly string[],
  listPatterns: readonly string[],
  seeds: Iterable<string>,
  siteOf: SiteRule | null = null,
): Scope {
  const patterns = compilePatterns({ "scope.include": options.include, "scope.exclude": options.exclude, follow: followPatterns, list: listPatterns });
  const { "scope.include": include, "scope.exclude": exclude, follow, list } = patterns;
  const territory = territoryOf(options.preset, siteOf);
  const outside: ScopeVerdict = { reason: "out-of-scope", rule: `scope ${options.preset}` };
  const notIncluded: ScopeVerdict = { reason: "out-of-scope", rule: `include ${options.include.join(", ")}` };
  const excluded = options.exclude.map((text): ScopeVerdict => ({ reason: "excluded", rule: `exclude ${text}` }));
  // Only where a seed could lie outside its own scope must the seeds themselves be kept.
  const ownSeeds = options.preset === "page" || include.length + exclude.length > 0 ? new Set<string>() : null;

  function judge(url: string): ScopeVerdict | null {
    if (exclude.length > 0) {
      const by = firstMatch(exclude, url);
      if (by >= 0) return excluded[by]!;
    }
    if (!territory.has(url)) return outside;
    return include.length > 0 && !anyMatches(include, url) ? notIncluded : null;
  }
  const scope: Scope = {
    verdict(url) {
      const verdict = judge(url);
      return verdict === null || ownSeeds?.has(url) === true ? null : verdict;
    },
    follows: (url) => follow.length === 0 || anyMatches(follow, url),
    lists: (url) => list.length === 0 || anyMatches(list, url),
    addSeed(url) {
      ownSeeds?.add(url);
      territory.add(url);
    },
    described: (["include", "exclude", "follow", "list"] as const).flatMap((name) =>
      ({ include, exclude, follow, list })[name].map((pattern) => `--${name} ${pattern.text}: ${pattern.describe}`),
    ),
  };
  for (const seed of seeds) scope.addSeed(seed);
  return scope;
}

/** compileScope that loads the public suffix list if the preset needs it, and only then. */
export async function loadScope(options: ScopeOptions, follow: readonly string[], list: readonly string[], seeds: Iterable<string>): Promise<Scope> {
  const siteOf = options.preset === "domain" ? (await import("./site.ts")).siteOf : null;
  return compileScope(options, follow, list, seeds, siteOf);
}
