/** Every option, once: type, limits, default, unit and sentence. Types, flags, `--help`, environment names, the config file, messages and docs/options.md all come from here. */
import * as z from "zod/mini";
import { CrawlError, type OptionProblem } from "./errors.ts";
import { PAGE_FIELDS } from "./records.ts";
import { type OptionMeta, type OptionNode, optionNodes, problemsOf } from "./schema.ts";
import { TRAP_NAMES } from "./traps.ts";
import { parseDuration, parseRate, parseSize } from "./units.ts";

type Schema = z.ZodMiniType;

const metas = new WeakMap<object, OptionMeta>();
const allowedForms = new WeakMap<object, string>();

/** Gives an option its default and what help and docs need. */
function option<T extends Schema>(schema: T, fallback: z.core.util.NoUndefined<z.output<T>>, meta: OptionMeta) {
  const made = z._default(schema, fallback);
  metas.set(made, meta);
  return made;
}

/** Notes the allowed form, which every message about the value repeats. */
function form<T extends Schema>(schema: T, allowed: string): T {
  allowedForms.set(schema, allowed);
  return schema;
}

function converted(parse: (text: string | number) => number | null, least: number, allowed: string) {
  const convert = z.transform((value: string | number, context): number => {
    const result = parse(value);
    if (result !== null && result >= least) return result;
    context.issues.push({ code: "custom", input: value, message: "" });
    return z.NEVER;
  });
  return form(z.pipe(z.union([z.string(), z.number()]), convert), allowed);
}

const duration = (leastMs = 0) =>
  converted(parseDuration, leastMs, `a duration ${leastMs > 0 ? `from ${leastMs}ms ` : ""}such as 250ms, 1s, 2m, 1h, 30d, or a number of milliseconds`);
const size = (least = 0) => converted(parseSize, least, `a size ${least > 0 ? `from ${least} byte ` : ""}such as 500KB, 10MB, 1GiB, or a number of bytes`);
const rate = () => converted(parseRate, 0, "a rate such as 120/min, 2/s, or a number of requests a minute");
const count = (least: number, most: number | null = null) =>
  form(
    z.int().check(z.gte(least), z.lte(most ?? Number.MAX_SAFE_INTEGER)),
    most === null ? `a whole number from ${least}` : `a whole number from ${least} to ${most}`,
  );
const choice = <const T extends readonly string[]>(...names: T) => form(z.enum(names), `one of ${names.join(", ")}`);
const text = (allowed: string) => form(z.string().check(z.minLength(1)), allowed);
const texts = (allowed: string) => form(z.array(z.string().check(z.minLength(1))), allowed);
const patterns = () => texts("a pattern such as *.html, /docs/**, or re: and a regular expression");
const fileForms = "a file name that ends in .jsonl, .json, .csv (each also with .gz) or .sqlite";
const isDatabase = (name: string) => /\.sqlite$/i.test(name);
const isOutputFile = (name: string) => /[^/\\]\.(?:(?:jsonl|json|csv)(?:\.gz)?|sqlite)$/i.test(name);
const outputFile = () => form(z.string().check(z.refine(isOutputFile)), fileForms);
const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
const headerFields = () => z.record(z.string().check(z.regex(HEADER_NAME)), z.string().check(z.regex(/^[^\r\n\0]*$/)));
const isProxy = (value: string) => /^https?:$/.test(URL.parse(value)?.protocol ?? "");
const isPageField = (name: string) => PAGE_FIELDS.some((field) => field === name);

/** A figure for a rule, or null, which lifts it. */
function trapLimit() {
  const convert = z.transform((value: string | number | null, context): number | null => {
    if (value === null || value === "off") return null;
    const figure = typeof value === "number" ? value : /^\d+$/.test(value) ? Number(value) : -1;
    if (Number.isInteger(figure) && figure >= 0) return figure;
    context.issues.push({ code: "custom", input: value, message: "" });
    return z.NEVER;
  });
  return form(z.pipe(z.union([z.string(), z.number(), z.null()]), convert), "a whole number from 0, or off");
}

/** A list, or anything that yields seeds one after the other; JSON holds lists only. */
export type Seeds = readonly string[] | Iterable<string> | AsyncIterable<string>;
function isSeeds(value: unknown): boolean {
  if (Array.isArray(value)) return value.every((seed) => typeof seed === "string");
  return typeof value === "object" && value !== null && (Symbol.iterator in value || Symbol.asyncIterator in value);
}

const seeds = form(z.custom<Seeds>(isSeeds), "a list (or sync or async iterable) of URLs");
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
    description: "Pages listed in sitemaps are seeds too (repeatable): the URL of one, or without a value those that robots.txt names and /sitemap.xml.",
  }),
  order: option(choice("bfs", "dfs"), "bfs", {
    ...{ group: "what to crawl", flag: "order", value: "bfs|dfs", job: true },
    description: "Among equal priorities take the oldest (bfs) or the newest (dfs) URL first.",
  }),
  scraper: option(z.nullable(text("the path of a module")), null, {
    ...{ group: "what to crawl", flag: "scraper", short: "s", value: "FILE" },
    description: "Module whose default export is a function (url, html) => links; they join the page's own links.",
  }),
  limits: z.prefault(
    z.strictObject({
      pages: option(z.nullable(count(1)), null, {
        ...{ group: "limits", flag: "limit", value: "N", unit: "pages", job: true },
        description: "End after exactly so many pages.",
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
  durability: option(choice("normal", "strict"), "normal", {
    ...{ group: "output", flag: "durability", value: "normal|strict" },
    description: "With --state: strict syncs the disk at every step, so that a power cut loses nothing either.",
  }),
  outputs: option(form(z.array(z.string().check(z.refine((name) => name === "-" || isOutputFile(name)))), `${fileForms}, or - for stdout`), [], {
    ...{ group: "output", flag: "output", short: "o", value: "FILE" },
    description: "Page records to a file, by its suffix .jsonl, .json, .csv (each also .gz) or .sqlite, or - for JSON Lines on stdout (repeatable).",
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
    ...(["pagesFile", "skippedFile", "linksFile"] as const).map((name) => [name, spec[name], name === "pagesFile" ? "pages" : name] as const),
  ];
  return named.flatMap(([option, file, table]) => {
    if (file === null) return [];
    const place = isDatabase(file) ? `${file}\0${table}` : file;
    const other = files.get(place);
    files.set(place, option);
    return other === undefined ? [] : [{ option, message: `another output goes to ${file} too; give each a file of its own` }];
  });
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
  const problems = result.success ? sharedFiles(result.data) : result.error.issues.flatMap((issue) => problemsOf(described, issue, input));
  if (result.success && problems.length === 0) return result.data;
  throw new CrawlError("invalid-options", problems.map(({ option, message }) => `${option}: ${message}`).join("\n"), { problems });
}
