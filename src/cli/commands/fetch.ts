/** `skein fetch`: one page as the crawler sees it, for people or as one JSON object. */

import { CrawlError } from "../../core/errors.ts";
import { spellNumber } from "../../core/units.ts";
import type { PageProbe, ProbeExchange, probePage, ScrapedView } from "../../inspect/probe.ts";
import type { RobotsVerdictView } from "../../inspect/probe-verdict.ts";
import { harmless } from "../console.ts";
import { EXIT } from "../exit.ts";
import { cliFlag } from "../flags.ts";
import type { Io } from "../io.ts";
import { spellBytes, spellElapsed } from "../progress.ts";
import { argumentFault } from "../seeds.ts";
import { JSON_FLAG, logOf, readVerb, usageError, type Verb } from "../verb.ts";
import { verdictWords } from "../verdict.ts";

/** Loaded only when there is something to fetch. */
export type LoadProbe = () => Promise<{ readonly probePage: typeof probePage }>;

export const FETCH: Verb = {
  name: "fetch",
  head: `Usage: skein fetch URL [options]

Fetches one page as the crawler would: robots.txt first, redirects followed, and says what came:
each answer with its status, headers and time, charset, links, what robots.txt and the page's own
directives say. A bare host is tried as https, then http.

Examples:
  skein fetch example.com/docs                      what the crawler sees there
  skein fetch https://example.com/ --json | jq .links
  skein fetch https://example.com/ -s links.ts      the links that a function of yours returns
  skein fetch example.com/1 -s shop.ts --handler detail      what a handler of yours makes of it
`,
  own: [
    JSON_FLAG,
    cliFlag("handler", {
      value: "NAME",
      allowed: "the name of a handler",
      description: "With -s: the handler that the page goes to. [the one that seeds go to]",
    }),
  ],
  shared: [
    ...["user-agent", "header", "auth", "cookies", "proxy", "insecure", "timeout", "max-body-size", "types", "refuse-private", "allow-address"],
    ...["robots", "images", "retries", "max-wait", "scraper", "extract"],
  ],
  defaults: { retries: 0 },
  tail: `
There is one try unless --retries says otherwise. A page that robots.txt disallows is not fetched
unless --no-robots is given.

Exit status: 0 an answer came, whatever its status, or robots.txt disallows the page; 4 no answer
came; 2 usage.
`,
};

const CHARSET_SOURCES: Readonly<Record<string, string>> = {
  bom: "from its byte order mark",
  header: "from the Content-Type header",
  meta: "from the document",
  "utf-8-valid": "nobody says; the bytes are valid UTF-8",
  default: "nobody says; the default",
};

function exchangeLine(exchange: ProbeExchange): string {
  const { url, status, location, error, durationMs } = exchange;
  const came = status === null ? "no answer" : String(status);
  const more = location !== null ? ` → ${location}` : error !== null ? `  ${error.code}: ${error.message}` : "";
  return `${came.padEnd(9)} ${url}${more}  (${spellElapsed(durationMs)})`;
}

/** `name      value`, for what there is. */
function rows(entries: readonly (readonly [name: string, value: string | null | undefined])[]): string[] {
  return entries.flatMap(([name, value]) => (value == null ? [] : [`${name.padEnd(11)} ${value}`]));
}

function section(title: string, lines: readonly string[]): string[] {
  return ["", `${title} (${spellNumber(lines.length)})`, ...lines.map((line) => `  ${line}`)];
}

function sizeWords({ record }: PageProbe): string | null {
  if (record === null || record.status === null) return null;
  if (record.bodySkipped) return "the body was not downloaded: its type is not wanted (--types)";
  const cut = record.truncated ? ", cut there (--max-body-size)" : "";
  return `${spellBytes(record.bytes)} on the wire, ${spellBytes(record.bytesDecoded)} decoded${cut}`;
}

function robotsRow(probe: PageProbe, obeyed: boolean): string {
  const last: RobotsVerdictView | undefined = probe.robots.at(-1);
  if (!obeyed) return "not asked (--no-robots)";
  return last === undefined ? "robots.txt was not reached" : verdictWords(last);
}

/** What a scraper said of the page. */
function scrapedLines({ links, follows, items, badItems, stop, stopSeries }: ScrapedView): string[] {
  const place = (series: string | undefined, index: number | undefined) => (series === undefined ? "" : `  ${series} ${index}`);
  return [
    ...(links.length > 0 ? section("links of the scraper", links) : []),
    ...(follows.length > 0
      ? section(
          "follows",
          follows.map(({ url, handler, series, index }) => `${url}${handler === null ? "" : `  ${handler}`}${place(series, index)}`),
        )
      : []),
    ...section(
      "items",
      items.map(({ type, item }) => `${type === "items" ? "" : `${type}  `}${JSON.stringify(item)}`),
    ),
    ...(badItems.length > 0
      ? section(
          "bad items",
          badItems.map(({ field, message, item }) => `${field === "" ? "item" : field}: ${message}  ${item}`),
        )
      : []),
    ...(stopSeries ? ["", "stops its series"] : []),
    ...(stop === null ? [] : ["", `stops the crawl (${stop.mode})${stop.reason === null ? "" : `: ${stop.reason}`}`]),
  ];
}

/** Lines for people. */
export function fetchLines(probe: PageProbe, obeyed: boolean): string[] {
  const { record, exchanges } = probe;
  const final = exchanges.findLast((exchange) => !exchange.robots);
  const moved = record !== null && probe.base !== null && probe.base !== record.url;
  const charset = record?.charset === undefined ? null : `${record.charset}, ${CHARSET_SOURCES[record.charsetSource ?? ""] ?? "unknown source"}`;
  const lines = [
    ...exchanges.map(exchangeLine),
    "",
    ...rows([
      ["url", record?.url ?? probe.url],
      ["outcome", record === null ? "none" : `${record.outcome}${record.error === undefined ? "" : ` (${record.error.code}): ${record.error.message}`}`],
      ["status", record?.status == null ? null : String(record.status)],
      ["robots", robotsRow(probe, obeyed)],
      ["directives", record?.robots?.join(", ")],
      ["type", record?.contentType],
      ["charset", charset],
      ["size", sizeWords(probe)],
      ["time", final?.latencyMs == null ? null : `${spellElapsed(final.latencyMs)} to the first byte, ${spellElapsed(final.durationMs)} in all`],
      ["title", record?.title],
      ["canonical", record?.canonical],
      ["base", moved ? probe.base : null],
    ]),
  ];
  if (final !== undefined && final.headers.length > 0) {
    lines.push(
      ...section(
        "headers",
        final.headers.map(([name, value]) => `${name}: ${value}`),
      ),
    );
  }
  if (probe.base !== null || probe.links.length > 0) {
    lines.push(
      ...section(
        "links",
        probe.links.map(({ url, nofollow }) => (nofollow ? `${url}  nofollow` : url)),
      ),
    );
  }
  if (probe.rejected.length > 0) {
    lines.push(
      ...section(
        "no links for a crawl",
        probe.rejected.map(({ href, reason }) => `${href}  ${reason}`),
      ),
    );
  }
  if (record?.images !== undefined) lines.push(...section("images", record.images));
  if (probe.scraped !== null) lines.push(...scrapedLines(probe.scraped));
  return lines;
}

/** Answers the exit status. Throws CrawlError for what is ours; the caller says it. */
export async function fetchCommand(argv: readonly string[], io: Io, load: LoadProbe): Promise<number> {
  const reading = await readVerb(FETCH, argv, io);
  if (reading === null) return EXIT.ok;
  const [text, ...more] = reading.args;
  if (text === undefined) throw new CrawlError("invalid-options", "nothing to fetch: give a URL");
  if (more.length > 0) throw usageError(more[0] ?? "", "skein fetch takes one URL");
  const fault = argumentFault(text);
  if (fault !== null) throw usageError(text, fault);
  const { spec } = reading;
  const handler = reading.text("handler");
  if (handler !== null && spec.scraper === null) throw usageError("--handler", "which scraper's? Give -s FILE too");
  const { probePage } = await load();
  const retries = reading.isGiven("retry.max") ? spec.retry.max : 0;
  const probe = await probePage({ ...spec, retry: { ...spec.retry, max: retries } }, text.trim(), { log: logOf(io), cwd: io.cwd, handler });
  const out = reading.isOn("json") ? JSON.stringify(probe) : fetchLines(probe, spec.robots).map(harmless).join("\n");
  await io.stdout.write(Buffer.from(`${out}\n`));
  const { record } = probe;
  return record === null || (record.outcome === "failed" && record.status === null) ? EXIT.noSeedReached : EXIT.ok;
}
