/** Every option, once: type, limits, default, unit and sentence. Types, flags, `--help`, environment names, the config file, messages and docs/options.md all come from here. */
import * as z from "zod/mini";
import { CrawlError, type OptionProblem } from "./errors.ts";
import {
  allowedForms,
  choice,
  count,
  duration,
  fileForms,
  form,
  headerFields,
  isDatabase,
  isOutputFile,
  isPageField,
  isProxy,
  metas,
  option,
  outputFile,
  patterns,
  rate,
  size,
  text,
  texts,
  trapLimit,
} from "./forms.ts";
import { PAGE_FIELDS } from "./records.ts";
import { type OptionNode, optionNodes, problemsOf } from "./schema.ts";
import { parseStopRule, STOP_RULE_FORM } from "./stop-rule.ts";
import { TRAP_NAMES } from "./traps.ts";

/** A list, or anything that yields seeds one after the other; JSON holds lists only. */
export type Seeds = readonly string[] | Iterable<string> | AsyncIterable<string>;
function isSeeds(value: unknown): boolean {
  if (Array.isArray(value)) return value.every((seed) => typeof seed === "string");
  return typeof value === "object" && value !== null && (Symbol.iterator in value || Symbol.asyncIterator in value);
}

const seeds = form(z.custom<Seeds>(isSeeds), "a list (or sync or async iterable) of URLs");
const STORE_URL = /^(?:rediss?|rediss?\+sentinel):\/\/\S+$/;
/** Names of an item's fields, `[]` at the end for lists; `_meta` is ours. */
const ITEM_FIELD = /^(?!_)[^\s=@[\]]+(?:\[\])?$/;
const hostRules = z.strictObject({
  delay: z.optional(duration()),
  concurrency: z.optional(count(1, 1_000)),
  headers: z.optional(form(headerFields(), "header names with their values")),
});

export const crawlSpec = z.strictObject({
  seeds: option(seeds, [], {
    group: "what to crawl",
    job: true,
    description: "URLs at which the crawl starts; {1..1000} in one stands for a thousand of them.",
  }),
  defaultScheme: option(z.nullable(choice("http", "https")), null, {
    ...{ group: "what to crawl", flag: "default-scheme", value: "http|https", job: true },
    description: "Scheme for bare hosts in input files; without it such lines are reported and skipped.",
  }),
  maxDepth: option(z.nullable(count(0)), null, {
    ...{ group: "what to crawl", flag: "depth", short: "d", value: "N", unit: "links", job: true },
    description: "How many links away from the seeds; 0 fetches the seeds only.",
  }),
  depthMode: option(choice("exact", "first"), "exact", {
    ...{ group: "what to crawl", flag: "depth-mode", value: "exact|first", job: true },
    description: "With --depth: go level by level so that each page has its smallest depth (exact), or take the depth first found, for wide crawls (first).",
  }),
  scope: z.prefault(
    z.strictObject({
      preset: option(choice("page", "prefix", "host", "domain", "any"), "host", {
        ...{ group: "what to crawl", flag: "scope", value: "page|prefix|host|domain|any", job: true },
        description: "What belongs to the crawl: the seed pages, what lies below them, their host and port, their registrable domain, or anything.",
      }),
      include: option(patterns(), [], {
        ...{ group: "what to crawl", flag: "include", value: "PATTERN", job: true },
        description: "Only URLs that match one of these (repeatable); seeds are always in.",
      }),
      exclude: option(patterns(), [], {
        ...{ group: "what to crawl", flag: "exclude", value: "PATTERN", job: true },
        description: "Never URLs that match one of these (repeatable); wins over --include.",
      }),
    }),
    {},
  ),
  follow: option(patterns(), [], {
    ...{ group: "what to crawl", flag: "follow", value: "PATTERN", job: true },
    description: "Follow only links that match one of these (repeatable); others are recorded but not followed.",
  }),
  traps: option(
    form(z.partialRecord(z.enum(["all", ...TRAP_NAMES]), trapLimit()), `NAME=N or NAME=off, where NAME is all or one of ${TRAP_NAMES.join(", ")}`),
    {},
    {
      ...{ group: "what to crawl", flag: "trap", value: "NAME=N|off", job: true, pair: "=" },
      description: "Limit of a rule against spider traps (repeatable; docs/traps.md): another figure, or off; all=off lifts every rule.",
    },
  ),
  sitemaps: option(texts("auto, or the URL of a sitemap"), [], {
    ...{ group: "what to crawl", flag: "sitemap", value: "URL", bare: "auto", job: true },
    description:
      "Pages listed in sitemaps are seeds too (repeatable): the URL of one, or without a value those that robots.txt names and /sitemap.xml. A URL behind it that does not look like a sitemap is a seed; --sitemap=URL takes any.",
  }),
  order: option(choice("bfs", "dfs"), "bfs", {
    ...{ group: "what to crawl", flag: "order", value: "bfs|dfs", job: true },
    description: "Among equal priorities take the oldest (bfs) or the newest (dfs) URL first.",
  }),
  scraper: option(z.nullable(text("the path of a module")), null, {
    ...{ group: "scraping", flag: "scraper", short: "s", value: "FILE" },
    description: "Module that reads the pages: its default export is made by defineScraper, or is a function (url, html) => links.",
  }),
  extract: option(
    form(z.record(z.string().check(z.regex(ITEM_FIELD)), text("a selector")), "NAME=SELECTOR, NAME=SELECTOR@ATTRIBUTE, or NAME[]=… for all matches"),
    {},
    {
      ...{ group: "scraping", flag: "extract", short: "e", value: "NAME=CSS", job: true, pair: "=" },
      description: "A field of an item for each page, by CSS selector (repeatable): name=css for its text, name=css@attr, name[]=css for all matches.",
    },
  ),
  stopWhen: option(form(z.array(z.string().check(z.refine((rule) => parseStopRule(rule) !== null))), STOP_RULE_FORM), [], {
    ...{ group: "scraping", flag: "stop-when", value: "RULE", job: true },
    description: "Stop once an item's field says so (repeatable): 'date<2026-01-01', 'date<=last x5' for five in a row not newer than the last run's newest.",
  }),
  parseWorkers: option(z.nullable(count(0, 256)), null, {
    ...{ group: "scraping", flag: "parse-workers", value: "N", unit: "threads" },
    description: "Threads in which the scraper module runs; 0: in the loop's own. By default one less than there are cores, with a scraper module.",
  }),
  parseTimeout: option(duration(1), 60_000, {
    ...{ group: "scraping", flag: "parse-timeout", value: "D", unit: "ms" },
    description:
      "Longest time that a scraper may take for one page. A parse worker is then replaced and the page tried once more; in the loop's own thread only a handler that awaits can be given up (retried like one that throws).",
  }),
  cache: option(z.nullable(form(z.union([z.literal("auto"), duration()]), "auto, or a duration such as 1h, 30d, or a number of milliseconds")), null, {
    ...{ group: "scraping", flag: "cache", value: "D|auto", unit: "ms" },
    description: "Keep responses and serve them again for this long, or auto: as long as they say themselves (RFC 9111).",
  }),
  cacheSize: option(z.nullable(size(1)), null, {
    ...{ group: "scraping", flag: "cache-size", value: "S", unit: "bytes" },
    description: "Most bytes that the cache takes, the oldest responses going first; 10GB on the disk and 1GB in a store unless given.",
  }),
  offline: option(form(z.boolean(), "true or false"), false, {
    ...{ group: "scraping", flag: "offline" },
    description: "Only what the cache holds, however old it is: no request is made.",
  }),
  incremental: option(form(z.boolean(), "true or false"), false, {
    ...{ group: "scraping", flag: "incremental" },
    description:
      "With --state: ask only for what changed since the last run that had it too, or --cache; unchanged pages are not parsed again, their links and items still count.",
  }),
  limits: z.prefault(
    z.strictObject({
      pages: option(z.nullable(count(1)), null, {
        ...{ group: "limits", flag: "limit", value: "N", unit: "pages", job: true },
        description: "End after exactly so many pages.",
      }),
      items: option(z.nullable(count(1)), null, {
        ...{ group: "limits", flag: "max-items", value: "N", unit: "items", job: true },
        description: "End after so many items; none past it is written.",
      }),
      time: option(z.nullable(duration(1)), null, {
        ...{ group: "limits", flag: "time-limit", value: "D", unit: "ms", job: true },
        description: "End after so long.",
      }),
      bytes: option(z.nullable(size(1)), null, {
        ...{ group: "limits", flag: "max-bytes", value: "S", unit: "bytes", job: true },
        description: "End after so many body bytes on the wire.",
      }),
      errors: option(z.nullable(count(0)), null, {
        ...{ group: "limits", flag: "max-errors", value: "N", unit: "pages", job: true },
        description: "End with exit status 6 once more pages than this have failed.",
      }),
    }),
    {},
  ),
  concurrency: option(count(1, 10_000), 64, {
    ...{ group: "politeness", flag: "concurrency", short: "c", value: "N", unit: "requests", job: true },
    description: "Most requests in flight.",
  }),
  threads: option(count(1, 64), 1, {
    ...{ group: "politeness", flag: "threads", value: "N", unit: "threads" },
    description: "Whole loops, fetching and parsing, in so many threads that share the crawl and its concurrency.",
  }),
  perHost: z.prefault(
    z.strictObject({
      concurrency: option(count(1, 1_000), 8, {
        ...{ group: "politeness", flag: "per-host", value: "N", unit: "requests", job: true },
        description: "Most requests in flight on one host.",
      }),
      delay: option(form(z.union([z.literal("auto"), duration()]), "auto, or a duration such as 250ms, 1s, 2m, or a number of milliseconds"), "auto", {
        ...{ group: "politeness", flag: "delay", value: "D|auto", unit: "ms", job: true },
        description: "Least gap between request starts on a host, or auto: adapt to how the host answers.",
      }),
      jitter: option(form(z.number().check(z.gte(0), z.lte(1)), "a number from 0 to 1"), 0, {
        ...{ group: "politeness", flag: "jitter", value: "0..1", unit: "share of the delay", job: true },
        description: "Lengthen each delay by a random share of it up to this.",
      }),
    }),
    {},
  ),
  hosts: option(
    form(z.record(z.string(), hostRules), 'an object such as {"example.com": {delay, concurrency, headers}}'),
    {},
    {
      ...{ group: "politeness", job: true },
      description: 'Delay, concurrency and headers by host, e.g. {"example.com": {"delay": "2s"}}.',
    },
  ),
  maxRequestsPerMinute: option(z.nullable(rate()), null, {
    ...{ group: "politeness", flag: "rate", value: "N/min", unit: "requests a minute", job: true },
    description: "Most request starts of the whole crawl, e.g. 120/min or 2/s.",
  }),
  robots: option(form(z.boolean(), "true or false"), true, {
    ...{ group: "politeness", flag: "no-robots", job: true },
    description: "Obey robots.txt, meta robots, X-Robots-Tag and rel=nofollow.",
  }),
  maxWait: option(duration(), 300_000, {
    ...{ group: "politeness", flag: "max-wait", value: "D", unit: "ms", job: true },
    description: "Longest Crawl-delay or Retry-After that is honoured; a longer one fails the page.",
  }),
  retry: z.prefault(
    z.strictObject({
      max: option(count(0, 100), 2, {
        ...{ group: "requests", flag: "retries", value: "N", unit: "tries", job: true },
        description: "Extra tries after a passing failure (408, 425, 429, 5xx, network).",
      }),
    }),
    {},
  ),
  timeout: option(duration(1), 30_000, {
    ...{ group: "requests", flag: "timeout", value: "D", unit: "ms", job: true },
    description: "Longest time for a whole request; connect and idle limits derive from it.",
  }),
  maxBodySize: option(size(1), 10_000_000, {
    ...{ group: "requests", flag: "max-body-size", value: "S", unit: "bytes", job: true },
    description: "Decoded bytes of a body that are kept; the rest is cut and the record says truncated.",
  }),
  types: option(choice("text", "html", "all"), "text", {
    ...{ group: "requests", flag: "types", value: "text|html|all", job: true },
    description: "Which bodies are downloaded: text (HTML, XML, plain, JSON and the like), HTML only, or all.",
  }),
  userAgent: option(z.nullable(form(z.string().check(z.minLength(1), z.regex(/^[^\r\n\0]*$/)), "a user agent on one line")), null, {
    ...{ group: "requests", flag: "user-agent", short: "A", value: "TEXT", job: true },
    description: "User-Agent header; its product token is the name looked up in robots.txt.",
  }),
  headers: option(
    form(headerFields(), "a header as 'Name: value'"),
    {},
    {
      ...{ group: "requests", flag: "header", short: "H", value: "'K: V'", job: true, pair: ":", secret: true },
      description: "Header sent with every request (repeatable); Authorization and Cookie go to the seeds' hosts only.",
    },
  ),
  auth: option(
    form(z.record(z.string().check(z.minLength(1)), z.string().check(z.regex(/:/))), "HOST=USER:PASSWORD"),
    {},
    {
      ...{ group: "requests", flag: "auth", value: "HOST=USER:PASS", pair: "=", secret: true },
      description: "User and password for a host, sent as Basic authorization (repeatable).",
    },
  ),
  cookies: option(z.nullable(text("a file name")), null, {
    ...{ group: "requests", flag: "cookies", value: "FILE" },
    description: "Cookies to start with, a Netscape cookie file.",
  }),
  proxy: option(form(z.array(z.string().check(z.refine(isProxy))), "an http:// or https:// URL"), [], {
    ...{ group: "requests", flag: "proxy", value: "URL", secret: true },
    description: "HTTP proxy (repeatable: taken in turn); without it HTTP_PROXY, HTTPS_PROXY and NO_PROXY count.",
  }),
  insecure: option(form(z.boolean(), "true or false"), false, { group: "requests", flag: "insecure", description: "Accept invalid TLS certificates." }),
  addresses: z.prefault(
    z.strictObject({
      refusePrivate: option(form(z.boolean(), "true or false"), false, {
        ...{ group: "requests", flag: "refuse-private" },
        description: "Refuse loopback, private and other non-public addresses, on every hop.",
      }),
      allow: option(texts("a host, an address or a CIDR block"), [], {
        ...{ group: "requests", flag: "allow-address", value: "HOST|CIDR" },
        description: "Host, address or CIDR block allowed in spite of --refuse-private (repeatable).",
      }),
    }),
    {},
  ),
  stateDir: option(z.nullable(text("a directory")), null, {
    ...{ group: "output", flag: "state", value: "DIR" },
    description: "Keep the crawl in a directory: it survives kill -9, and the same command resumes it.",
  }),
  store: option(z.nullable(form(z.string().check(z.regex(STORE_URL)), "a URL such as redis://host:6379, rediss:// with TLS, or redis+sentinel://")), null, {
    ...{ group: "output", flag: "store", value: "URL", secret: true },
    description: "Keep the crawl in a Redis, where others work on it too (skein work); the same command resumes it.",
  }),
  durability: option(choice("normal", "strict"), "normal", {
    ...{ group: "output", flag: "durability", value: "normal|strict" },
    description: "With --state or --store: strict syncs the outputs (and the state) at every step, so that a power cut loses nothing either.",
  }),
  outputs: option(form(z.array(z.string().check(z.refine((name) => name === "-" || isOutputFile(name)))), `${fileForms}, or - for stdout`), [], {
    ...{ group: "output", flag: "output", short: "o", value: "FILE" },
    description:
      "Records to a file, by its suffix .jsonl, .json, .csv (each also .gz) or .sqlite, or - for JSON Lines on stdout (repeatable): items where there is a scraper that gives some, or -e, else pages.",
  }),
  list: option(patterns(), [], {
    ...{ group: "output", flag: "list", value: "PATTERN", job: true },
    description: "Print and write to -o only pages that match one of these (repeatable); what is followed does not change.",
  }),
  print: option(choice("pages", "links"), "pages", {
    ...{ group: "output", flag: "print", value: "pages|links", job: true },
    description: "What stdout lists: the pages fetched, or every distinct link found.",
  }),
  fields: option(z.nullable(form(z.array(z.string().check(z.refine(isPageField))), `names from ${PAGE_FIELDS.join(", ")}`)), null, {
    ...{ group: "output", flag: "fields", value: "a,b", job: true, commas: true },
    description: "Only these fields of page records, separated by commas.",
  }),
  meta: option(form(z.boolean(), "true or false"), true, {
    ...{ group: "output", flag: "no-meta", job: true },
    description: "Add _meta (url, depth, fetchedAt) to every item.",
  }),
  images: option(form(z.boolean(), "true or false"), false, { group: "output", flag: "images", job: true, description: "Image URLs in page records." }),
  pagesFile: option(z.nullable(outputFile()), null, {
    ...{ group: "output", flag: "pages", value: "FILE" },
    description: "Page records to a file, whatever --list says.",
  }),
  skippedFile: option(z.nullable(outputFile()), null, {
    ...{ group: "output", flag: "skipped", value: "FILE" },
    description: "Skipped URLs with their reasons to a file.",
  }),
  skippedAll: option(form(z.boolean(), "true or false"), false, {
    ...{ group: "output", flag: "skipped-all" },
    description: "List duplicates among the skipped too.",
  }),
  changesFile: option(z.nullable(outputFile()), null, {
    ...{ group: "output", flag: "changes", value: "FILE" },
    description: "With --incremental: what was added, changed, unchanged and gone since the last run, to a file.",
  }),
  linksFile: option(z.nullable(outputFile()), null, {
    ...{ group: "output", flag: "links", value: "FILE" },
    description: "Edges of the link graph, from and to, to a file.",
  }),
});

/** A crawl as the user states it: JSON (but for iterable seeds), every field optional. */
export type CrawlSpecInput = z.input<typeof crawlSpec>;
/** A crawl with every default filled in; durations in ms, sizes in bytes. */
export type CrawlSpec = z.output<typeof crawlSpec>;

const described = { root: crawlSpec, metas, allowedForms };

/** Every option with its dot path, in the order of the schema. */
export function options(): readonly OptionNode[] {
  return optionNodes(described);
}

/** Two outputs to one file would overwrite each other; a database has a table for each kind of record. */
function sharedFiles(spec: CrawlSpec): OptionProblem[] {
  const files = new Map<string, string>();
  const named = [
    ...spec.outputs.map((file) => ["outputs", file, "pages"] as const),
    ...(["pagesFile", "skippedFile", "changesFile", "linksFile"] as const).map((name) => [name, spec[name], name === "pagesFile" ? "pages" : name] as const),
  ];
  return named.flatMap(([option, file, table]) => {
    if (file === null) return [];
    const place = isDatabase(file) ? `${file}\0${table}` : file;
    const other = files.get(place);
    files.set(place, option);
    return other === undefined ? [] : [{ option, message: `another output goes to ${file} too; give each a file of its own` }];
  });
}

/** Options that mean nothing without another one. */
function needed(spec: CrawlSpec): OptionProblem[] {
  const problems: OptionProblem[] = [];
  if (spec.store !== null && spec.stateDir !== null)
    problems.push({ option: "store", message: "a crawl lives in a store or in a state directory: leave one of --store and --state out" });
  if (spec.incremental && spec.stateDir === null) {
    const how = spec.store === null ? "give --state DIR (stateDir) too" : "give --state DIR (stateDir) in place of the store";
    problems.push({ option: "incremental", message: `needs a state directory that holds the last run: ${how}` });
  }
  const last = spec.stopWhen.find((rule) => parseStopRule(rule)?.value.kind === "last");
  if (last !== undefined && spec.stateDir === null && spec.store === null)
    problems.push({
      option: "stopWhen",
      message: `${JSON.stringify(last)} compares with the last run, which only a state directory keeps: give --state DIR (stateDir) too`,
    });
  if (spec.changesFile !== null && !spec.incremental)
    problems.push({ option: "changesFile", message: "needs a last run to compare with: give --incremental (incremental) and --state DIR (stateDir) too" });
  return problems;
}

/** `sitemaps` may be given as true or as one URL. */
function withLists(input: unknown): unknown {
  if (typeof input !== "object" || input === null || !("sitemaps" in input)) return input;
  const { sitemaps } = input;
  if (typeof sitemaps === "boolean") return { ...input, sitemaps: sitemaps ? ["auto"] : [] };
  return typeof sitemaps === "string" ? { ...input, sitemaps: [sitemaps] } : input;
}

/** Checks and completes a crawl as the user states it. Throws CrawlError `invalid-options` with every problem at once. */
export function parseSpec(input: unknown): CrawlSpec {
  const result = crawlSpec.safeParse(withLists(input));
  const problems = result.success
    ? [...sharedFiles(result.data), ...needed(result.data)]
    : result.error.issues.flatMap((issue) => problemsOf(described, issue, input));
  if (result.success && problems.length === 0) return result.data;
  throw new CrawlError("invalid-options", problems.map(({ option, message }) => `${option}: ${message}`).join("\n"), { problems });
}
