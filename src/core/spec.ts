/** Every option, once: type, limits, default, unit and sentence. Types, flags, `--help`, environment names, the config file, messages and docs/options.md all come from here. */
import { z } from "zod";

/** What the command line, the docs and a job service need to know of an option beyond its type. */
export interface OptionMeta {
  /** Long flag without dashes; `--no-X` for a boolean that defaults to true is written `no-X`. Absent: library and config file only. */
  readonly flag?: string;
  /** One letter. */
  readonly short?: string;
  /** May stand in the body of a job; the others are the operator's. */
  readonly job?: true;
  /** What the value is called in `--help`, e.g. `N`, `D`. */
  readonly value?: string;
  /** Ms, bytes, requests …; every number has one. */
  readonly unit?: string;
  /** A hidden alias kept for the command line only. */
  readonly group: "what to crawl" | "limits" | "politeness" | "requests" | "output" | "running";
}

const DURATION = /^(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)?$/;
const DURATION_MS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };
const SIZE = /^(\d+(?:\.\d+)?)\s*(b|kb|mb|gb|kib|mib|gib)?$/i;
const SIZE_BYTES: Readonly<Record<string, number>> = { b: 1, kb: 1e3, mb: 1e6, gb: 1e9, kib: 1024, mib: 1024 ** 2, gib: 1024 ** 3 };

/** "250ms", "1s", "2m", "1h", "30d" or a number of milliseconds → milliseconds; null when it is neither. */
export function parseDuration(text: string | number): number | null {
  if (typeof text === "number") return Number.isFinite(text) && text >= 0 ? text : null;
  const match = DURATION.exec(text.trim());
  return match ? Number(match[1]) * (DURATION_MS[match[2] ?? "ms"] ?? 1) : null;
}

/** "10MB", "64KiB" or a number of bytes → bytes; null when it is neither. */
export function parseSize(text: string | number): number | null {
  if (typeof text === "number") return Number.isFinite(text) && text >= 0 ? Math.floor(text) : null;
  const match = SIZE.exec(text.trim());
  return match ? Math.floor(Number(match[1]) * (SIZE_BYTES[(match[2] ?? "b").toLowerCase()] ?? 1)) : null;
}

/** "120/min", "2/s", "500/h" or a number a minute → requests a minute; null when it is neither. */
export function parseRate(text: string | number): number | null {
  if (typeof text === "number") return Number.isFinite(text) && text > 0 ? text : null;
  const match = /^(\d+(?:\.\d+)?)\s*(?:\/\s*(s|sec|m|min|h|hour))?$/.exec(text.trim());
  if (!match || Number(match[1]) <= 0) return null;
  const per = match[2] ?? "min";
  return Number(match[1]) * (per.startsWith("s") ? 60 : per.startsWith("h") ? 1 / 60 : 1);
}

function converted(parse: (text: string | number) => number | null, allowed: string) {
  return z.union([z.string(), z.number()], `expected ${allowed}`).transform((value, context) => {
    const result = parse(value);
    if (result !== null) return result;
    context.addIssue({ code: "custom", message: `expected ${allowed}` });
    return z.NEVER;
  });
}

const duration = () => converted(parseDuration, "a duration such as 250ms, 1s, 2m, 30d, or a number of milliseconds");
const size = () => converted(parseSize, "a size such as 500KB, 10MB, 1GiB, or a number of bytes");
const rate = () => converted(parseRate, "a rate such as 120/min, 2/s, or a number of requests a minute");
const count = (least: number) => z.int(`expected a whole number from ${least}`).min(least, `expected a whole number from ${least}`);
const patterns = () => z.array(z.string().min(1, "expected a pattern, not an empty string")).default([]);

/** Attaches what the flags and docs need. */
function option<T extends z.ZodType>(schema: T, description: string, meta: OptionMeta): T {
  return schema.meta({ description, ...meta });
}

export const crawlSpec = z.strictObject({
  seeds: option(z.array(z.string()).default([]), "URLs at which the crawl starts. {1..1000} expands.", { job: true, group: "what to crawl" }),
  defaultScheme: option(z.enum(["http", "https"]).nullable().default(null), "Scheme for bare hosts in input files.", {
    flag: "default-scheme",
    value: "http|https",
    job: true,
    group: "what to crawl",
  }),
  maxDepth: option(count(0).nullable().default(null), "How many links away from the seeds; 0 fetches the seeds only.", {
    flag: "depth",
    short: "d",
    value: "N",
    unit: "links",
    job: true,
    group: "what to crawl",
  }),
  depthMode: option(z.enum(["exact", "first"]).default("exact"), "exact: by levels, each page at its smallest depth. first: no levels, for wide crawls.", {
    flag: "depth-mode",
    value: "exact|first",
    job: true,
    group: "what to crawl",
  }),
  scope: z
    .strictObject({
      preset: option(
        z.enum(["page", "prefix", "host", "domain", "any"]).default("host"),
        "What belongs to the crawl: the seed pages, what lies below them, their host and port, their registrable domain, or anything.",
        { flag: "scope", value: "page|prefix|host|domain|any", job: true, group: "what to crawl" },
      ),
      include: option(patterns(), "Only URLs that match (repeatable); seeds are always in.", {
        flag: "include",
        value: "PATTERN",
        job: true,
        group: "what to crawl",
      }),
      exclude: option(patterns(), "Never URLs that match (repeatable); wins over --include.", {
        flag: "exclude",
        value: "PATTERN",
        job: true,
        group: "what to crawl",
      }),
    })
    .prefault({}),
  follow: option(patterns(), "Follow only links that match (repeatable); others are recorded but not followed.", {
    flag: "follow",
    value: "PATTERN",
    job: true,
    group: "what to crawl",
  }),
  list: option(patterns(), "Print and write to -o only pages that match (repeatable); what is followed does not change.", {
    flag: "list",
    value: "PATTERN",
    job: true,
    group: "output",
  }),
  print: option(z.enum(["pages", "links"]).default("pages"), "What stdout lists: pages fetched, or every distinct link found.", {
    flag: "print",
    value: "pages|links",
    job: true,
    group: "output",
  }),
  limits: z
    .strictObject({
      pages: option(count(1).nullable().default(null), "End after exactly so many pages.", {
        flag: "limit",
        value: "N",
        unit: "pages",
        job: true,
        group: "limits",
      }),
      timeMs: option(duration().nullable().default(null), "End after so long.", { flag: "time-limit", value: "D", unit: "ms", job: true, group: "limits" }),
      bytes: option(size().nullable().default(null), "End after so many body bytes on the wire.", {
        flag: "max-bytes",
        value: "S",
        unit: "bytes",
        job: true,
        group: "limits",
      }),
      errors: option(count(0).nullable().default(null), "End with exit status 6 once more pages than this have failed.", {
        flag: "max-errors",
        value: "N",
        unit: "pages",
        job: true,
        group: "limits",
      }),
    })
    .prefault({}),
  concurrency: option(count(1).max(10_000, "expected at most 10000").default(64), "Requests in flight.", {
    flag: "concurrency",
    short: "c",
    value: "N",
    unit: "requests",
    job: true,
    group: "politeness",
  }),
  perHost: z
    .strictObject({
      concurrency: option(count(1).max(1_000, "expected at most 1000").default(8), "Requests in flight per host.", {
        flag: "per-host",
        value: "N",
        unit: "requests",
        job: true,
        group: "politeness",
      }),
      delay: option(
        z.union([z.literal("auto"), duration()]).default("auto"),
        "Least gap between request starts on a host, or auto: adapt to how the host answers.",
        { flag: "delay", value: "D|auto", unit: "ms", job: true, group: "politeness" },
      ),
      jitter: option(z.number().min(0, "expected 0 to 1").max(1, "expected 0 to 1").default(0), "Lengthen each delay by a random share up to this.", {
        flag: "jitter",
        value: "0..1",
        unit: "share",
        job: true,
        group: "politeness",
      }),
    })
    .prefault({}),
  hosts: option(
    z
      .record(
        z.string(),
        z.strictObject({
          delay: duration().optional(),
          concurrency: count(1).optional(),
          headers: z.record(z.string(), z.string()).optional(),
        }),
      )
      .default({}),
    'Delay, concurrency and headers by host, e.g. {"example.com": {"delay": "2s"}}.',
    { job: true, group: "politeness" },
  ),
  maxRequestsPerMinute: option(rate().nullable().default(null), "Request starts of the whole crawl, e.g. 120/min.", {
    flag: "rate",
    value: "N/min",
    unit: "requests a minute",
    job: true,
    group: "politeness",
  }),
  robots: option(z.boolean().default(true), "Obey robots.txt, meta robots, X-Robots-Tag and rel=nofollow.", {
    flag: "no-robots",
    job: true,
    group: "politeness",
  }),
  retry: z
    .strictObject({
      max: option(count(0).max(100, "expected at most 100").default(2), "Extra tries after a passing failure (408, 425, 429, 5xx, network).", {
        flag: "retries",
        value: "N",
        unit: "tries",
        job: true,
        group: "requests",
      }),
    })
    .prefault({}),
  maxWait: option(duration().default(300_000), "Longest Crawl-delay or Retry-After that is honoured; a longer one fails the page.", {
    flag: "max-wait",
    value: "D",
    unit: "ms",
    job: true,
    group: "politeness",
  }),
  timeout: option(
    duration().pipe(z.number().min(1, "expected at least 1ms")).default(30_000),
    "Longest time for a whole request; connect and idle limits derive from it.",
    { flag: "timeout", value: "D", unit: "ms", job: true, group: "requests" },
  ),
  maxBodySize: option(
    size().pipe(z.number().min(1, "expected at least 1 byte")).default(10_000_000),
    "Decoded bytes of a body that are kept; the rest is cut and flagged.",
    { flag: "max-body-size", value: "S", unit: "bytes", job: true, group: "requests" },
  ),
  types: option(z.enum(["text", "html", "all"]).default("text"), "Which bodies are downloaded: text (HTML, XML, plain, JSON …), HTML only, or all.", {
    flag: "types",
    value: "text|html|all",
    job: true,
    group: "requests",
  }),
  userAgent: option(
    z.string().min(1, "expected a user agent").nullable().default(null),
    "User-Agent header; its product token is the name looked up in robots.txt.",
    { flag: "user-agent", short: "A", value: "TEXT", job: true, group: "requests" },
  ),
  headers: option(
    z.record(z.string(), z.string()).default({}),
    "Header sent with every request (repeatable); Authorization and Cookie go to the seeds' hosts only.",
    { flag: "header", short: "H", value: "'K: V'", job: true, group: "requests" },
  ),
  auth: option(z.record(z.string(), z.string()).default({}), "Basic authorization for a host, HOST=USER:PASSWORD (repeatable).", {
    flag: "auth",
    value: "HOST=USER:PASS",
    group: "requests",
  }),
  cookies: option(z.string().nullable().default(null), "Cookies to start with, a Netscape cookie file.", { flag: "cookies", value: "FILE", group: "requests" }),
  proxy: option(z.array(z.string()).default([]), "HTTP proxy (repeatable: rotation). Default: HTTP_PROXY, HTTPS_PROXY, NO_PROXY.", {
    flag: "proxy",
    value: "URL",
    group: "requests",
  }),
  insecure: option(z.boolean().default(false), "Accept invalid TLS certificates.", { flag: "insecure", group: "requests" }),
  addresses: z
    .strictObject({
      refusePrivate: option(z.boolean().default(false), "Refuse loopback, private and other non-public addresses, on every hop.", {
        flag: "refuse-private",
        group: "requests",
      }),
      allow: option(z.array(z.string()).default([]), "Host, address or CIDR allowed in spite of --refuse-private (repeatable).", {
        flag: "allow-address",
        value: "HOST|CIDR",
        group: "requests",
      }),
    })
    .prefault({}),
  order: option(z.enum(["bfs", "dfs"]).default("bfs"), "Among equal priorities oldest or newest first.", {
    flag: "order",
    value: "bfs|dfs",
    job: true,
    group: "what to crawl",
  }),
  images: option(z.boolean().default(false), "Image URLs in page records.", { flag: "images", job: true, group: "output" }),
  fields: option(z.array(z.string()).nullable().default(null), "Only these fields of page records, comma-separated.", {
    flag: "fields",
    value: "a,b",
    job: true,
    group: "output",
  }),
  scraper: option(z.string().nullable().default(null), "Module whose default export is a function (url, html) => links.", {
    flag: "scraper",
    short: "s",
    value: "FILE",
    group: "what to crawl",
  }),
  outputs: option(z.array(z.string()).default([]), "Page records to a file, .jsonl or .jsonl.gz, or - for JSON Lines on stdout (repeatable).", {
    flag: "output",
    short: "o",
    value: "FILE",
    group: "output",
  }),
  pagesFile: option(z.string().nullable().default(null), "Page records to a file, whatever --list says.", { flag: "pages", value: "FILE", group: "output" }),
  skippedFile: option(z.string().nullable().default(null), "Skipped URLs with their reasons.", { flag: "skipped", value: "FILE", group: "output" }),
  skippedAll: option(z.boolean().default(false), "List duplicates among the skipped too.", { flag: "skipped-all", group: "output" }),
  linksFile: option(z.string().nullable().default(null), "Edges of the link graph: from, to.", { flag: "links", value: "FILE", group: "output" }),
});

/** A crawl as the user states it: JSON, every field optional but the seeds. */
export type CrawlSpecInput = z.input<typeof crawlSpec>;
/** A crawl with every default filled in; durations in ms, sizes in bytes. */
export type CrawlSpec = z.output<typeof crawlSpec>;
