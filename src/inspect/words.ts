/** An explanation in plain sentences. What is true was gathered before (explain.ts); nothing is looked up here. */
import type { EpochMs } from "../core/clock.ts";
import { assertNever } from "../core/errors.ts";
import type { ErrorCode, PageRecord, SkippedRecord, SkipReason } from "../core/records.ts";
import type { CrawlSpec } from "../core/spec.ts";
import { spellCount, spellDuration } from "../core/units.ts";
import { reasonWords } from "../rules/reasons.ts";
import type { Explanation, Outlook, QueuePlace, StoreFacts, WayStep } from "./explain.ts";

/** What the words depend on beside the explanation. */
export interface Telling {
  readonly spec: CrawlSpec;
  /** Null: the crawl has not come to its end. */
  readonly finishReason: string | null;
  readonly now: EpochMs;
}

const SCOPES: Readonly<Record<CrawlSpec["scope"]["preset"], string>> = {
  page: "only the seeds themselves belong to it",
  prefix: "only what lies in the folders of the seeds belongs to it",
  host: "only pages on the hosts and ports of the seeds belong to it",
  domain: "only pages on the domains of the seeds belong to it",
  any: "everything belongs to it",
};

const ERRORS: Readonly<Record<ErrorCode, string>> = {
  dns: "its host name cannot be resolved",
  connect: "no connection could be made",
  tls: "no secure connection could be made",
  timeout: "the answer took too long",
  reset: "the connection was lost",
  protocol: "the answer is not HTTP",
  http: "the server answered with an error",
  "rate-limited": "the server asks for more patience than the crawl may have",
  "robots-unavailable": "robots.txt of its host cannot be had, and then nothing may be fetched (RFC 9309 §2.3.1.4)",
  redirect: "its redirects lead nowhere",
  "too-large": "the answer is too large",
  decode: "the body cannot be decompressed",
  parse: "the body cannot be parsed",
  scraper: "the scrape function threw on it",
  crashed: "the process died while it fetched this page, again and again",
  "blocked-address": "its address is not public, and such addresses are refused unless --allow-address names them",
};

const plainDuration = (ms: number): string => spellDuration(ms < 1_000 ? Math.round(ms) : Math.round(ms / 1_000) * 1_000);
const outOfScope = (preset: CrawlSpec["scope"]["preset"]): string => `it lies outside the crawl, whose scope is "${preset}": ${SCOPES[preset]}`;

/** `include *.html, *.htm` → the patterns. */
const afterWord = (rule: string | null | undefined): string => rule?.replace(/^\S+\s*/, "") ?? "";

function outOfScopeBy(rule: string | null | undefined, spec: CrawlSpec): string {
  if (rule?.startsWith("include ")) return `no --include pattern matches it (${afterWord(rule)})`;
  if (rule == null || rule.startsWith("scope ")) return outOfScope(spec.scope.preset);
  return rule;
}

function robotsLine({ robots }: Explanation, rule: string | undefined): string {
  if (rule === "robots.txt unavailable") return "robots.txt of its host cannot be had, and then nothing may be fetched (RFC 9309 §2.3.1.4)";
  const line = robots?.rule != null && robots.rule === rule ? `line ${robots.line} of ${robots.robotsUrl}` : "robots.txt";
  const group = robots?.group == null ? "" : `, in the group for ${robots.group === "*" ? "every agent (*)" : robots.group}`;
  return `${line} disallows it${rule === undefined ? "" : `: "${rule}"${group}`}`;
}

/** Why it was skipped: what follows "because". Total over the reasons, so that a new one cannot be forgotten. */
function skipWords(reason: SkipReason, explanation: Explanation, skipped: SkippedRecord, { spec }: Telling): string {
  const { rule } = skipped;
  switch (reason) {
    case "out-of-scope":
      return outOfScopeBy(rule, spec);
    case "excluded":
      return `the pattern --exclude ${afterWord(rule)} matches it`;
    case "not-followed":
      return `no --follow pattern matches it (${spec.follow.join(", ")}); such links are recorded and not followed`;
    case "depth":
      return `it is ${spellCount(skipped.depth, "link")} away from the seeds, and ${rule ?? `--depth ${spec.maxDepth}`} goes no further`;
    case "page-limit":
      return `the crawl had its ${spellCount(spec.limits.pages ?? 0, "page")} (--limit) while it was still queued`;
    case "robots":
      return robotsLine(explanation, rule);
    case "nofollow":
      return rule === "rel=nofollow" ? "the link says rel=nofollow" : "the page with the link says nofollow for all its links (meta robots or X-Robots-Tag)";
    case "duplicate-content":
      return `its content is that of another page${rule === undefined ? "" : ` (${rule})`}`;
    case "trap":
      return `it looks like a spider trap${rule === undefined ? "" : ` (${rule})`}`;
    case "file-type":
      return `files of its type are not fetched${rule === undefined ? "" : ` (${rule})`}`;
    case "scheme":
      return "its scheme is neither http nor https";
    case "invalid-url":
      return "it is not a URL";
    case "url-too-long":
      return "it is longer than a URL may be";
    case "private-address":
      return `its address is not public, and such addresses are refused unless --allow-address names them${rule === undefined ? "" : `: ${rule}`}`;
    case "redirect-out-of-scope":
      return `a redirect led to it, and ${outOfScopeBy(rule, spec)}`;
    case "stopped":
      return "the crawl was ended while it was still queued";
    case "duplicate":
      return "it was known already";
    default:
      return assertNever(reason);
  }
}

function sizeWords(record: PageRecord): string {
  if (record.bodySkipped) return `whose body was not downloaded, since its type (${record.contentType ?? "none given"}) is not wanted (--types)`;
  const cut = record.truncated ? ", cut there (--max-body-size)" : "";
  return `${spellCount(record.bytesDecoded, "byte")} of ${record.contentType ?? "a type not given"}${cut}`;
}

function triesWords({ attempts }: PageRecord): string {
  return attempts === 1 ? "at the first try" : `after ${spellCount(attempts, "try", "tries")}`;
}

function pageWords(explanation: Explanation, record: PageRecord, telling: Telling): string[] {
  const { skipped } = explanation;
  const when = `on ${record.fetchedAt.slice(0, 19).replace("T", " ")} UTC`;
  switch (record.outcome) {
    case "fetched": {
      const links = record.links.length > 0 ? ` It has ${spellCount(record.links.length, "link")}.` : "";
      const cached = record.fromCache ? " It came from the cache." : "";
      return [`It was fetched ${when}, ${triesWords(record)}: status ${record.status}, ${sizeWords(record)}.${links}${cached}`];
    }
    case "unchanged":
      return [`It was asked for ${when} and has not changed since the last run (status ${record.status}); it was not parsed again.`];
    case "redirected":
      return [`It was asked for ${when} and redirects with status ${record.status} to ${record.location ?? "an address that is not recorded"}.`];
    case "disallowed": {
      // Where its skipped line is not at hand, robots.txt as the crawl knows it says the same.
      const { robots } = explanation;
      const rule = skipped?.reason === "robots" ? skipped.rule : robots?.allowed === false ? (robots.rule ?? undefined) : undefined;
      return [`It was not fetched: ${robotsLine(explanation, rule)}.`];
    }
    case "failed": {
      const code = record.error?.code;
      const words = code === undefined ? "it failed" : ERRORS[code];
      const tries = record.attempts > 0 ? `, ${triesWords(record)}` : "";
      const status = record.status === null ? "" : ` (status ${record.status})`;
      return [`It could not be fetched${tries}: ${words}${status}. Code ${code ?? "unknown"}: ${record.error?.message ?? "no message"}.`];
    }
    case "gone":
      return [`It was there in the last run and is not found any more${record.status === null ? "" : ` (status ${record.status})`}.`];
    default:
      return [assertNever(record.outcome), telling.finishReason ?? ""];
  }
}

function leasedWords(store: StoreFacts | undefined): string {
  if (store === undefined) return "It is being fetched now, or was when the process died; then it is fetched again on resume.";
  if (store.worker === null) return "It is in flight: a worker fetches it now, or has died, and then another takes it up within 15 s.";
  const { kind, host, pid } = store.worker;
  return `It is being fetched now, by skein ${kind} on ${host} (process ${pid}).`;
}

function queueWords(queue: QueuePlace, store: StoreFacts | undefined, { now, finishReason, spec }: Telling): string[] {
  const limited = finishReason?.startsWith("limit-") === true;
  const ended =
    finishReason === null
      ? ""
      : ` The crawl was over before its turn (${reasonWords(finishReason, spec.limits)}); ${limited ? "with a larger limit " : ""}the same command goes on there.`;
  switch (queue.standing) {
    case "queued": {
      const before = queue.aheadOnHost === 0 ? "next in turn on its host" : `behind ${spellCount(queue.aheadOnHost, "page")} of its host`;
      return [`It waits in the queue, ${before}; ${spellCount(queue.waiting, "page waits", "pages wait")} in all.${ended}`];
    }
    case "delayed": {
      const due = queue.dueAt === null ? "" : queue.dueAt <= now ? ", which is due" : `, in ${plainDuration(queue.dueAt - now)}`;
      return [`It waits for another try${due}: ${spellCount(queue.attempt, "try", "tries")} failed in passing.${ended}`];
    }
    case "leased":
      return [leasedWords(store)];
    default:
      return [assertNever(queue.standing)];
  }
}

function metWords({ linkedFrom, passedOver }: Outlook, { noRecords, beganInMemory, store }: Explanation): string {
  if (passedOver && store !== undefined) {
    const from = linkedFrom === null ? "" : ` on ${linkedFrom}`;
    return `It was found${from} and passed over; the line that says why is in the crawl's outputs, where those were asked for (--skipped).`;
  }
  if (linkedFrom !== null) return `${linkedFrom} links to it, but the crawl took no new links by then.`;
  if (passedOver) return "It was passed over while the crawl ran in memory; why is not recorded here.";
  if (beganInMemory && !noRecords)
    return "The crawl has not met it, as far as is recorded: it ran in memory at first, and what it read then is not recorded here.";
  return noRecords
    ? "The crawl has not met it, as far as is recorded: it ran in memory until it was interrupted."
    : "The crawl has not met it: no page that was read links to it.";
}

function outlookWords(outlook: Outlook, explanation: Explanation, { spec, finishReason }: Telling): string[] {
  const met = metWords(outlook, explanation);
  const near = outlook.near === null ? [] : [`It knows ${outlook.near}, which is another URL.`];
  const more = finishReason === null ? " The crawl has not ended; it may still be found." : "";
  if (outlook.sitemap) return ["It was read as a sitemap, not as a page.", ...near];
  if (explanation.url.endsWith("/robots.txt") && explanation.robots !== null) return ["It is read as a rule for the crawler, not as a page; none links to it."];
  switch (outlook.reason) {
    case "out-of-scope":
      return [met, ...near, `If it were found it would not be fetched: ${outOfScopeBy(outlook.rule, spec)}.`];
    case "excluded":
      return [met, ...near, `If it were found it would not be fetched: the pattern --exclude ${afterWord(outlook.rule)} matches it.`];
    case "not-followed":
      return [met, ...near, `If it were found it would not be followed: no --follow pattern matches it (${spec.follow.join(", ")}).`];
    case "in-scope": {
      const { robots } = explanation;
      if (robots !== null && !robots.allowed) return [met, ...near, `It belongs to the crawl, but ${robotsLine(explanation, robots.rule ?? undefined)}.`];
      if (outlook.passedOver)
        return [
          met,
          ...near,
          ...(explanation.store === undefined ? [] : ["The scope and robots.txt have nothing against it: depth, nofollow or a trap rule may."]),
        ];
      const depth = spec.maxDepth === null ? "" : `, if not more than ${spellCount(spec.maxDepth, "link")} from a seed (--depth)`;
      return [met, ...near, `If it were found it would be fetched${depth}.${more}`];
    }
    default:
      return [assertNever(outlook.reason)];
  }
}

/** Where a record went that the store has no more, and which of the files were searched for it. */
function leftFor(files: StoreFacts["files"]): string[] {
  const nameOf = ({ path, host }: StoreFacts["files"][number]) => `${path}${host === null ? "" : ` on ${host}`}`;
  if (files.length === 0) return ["Its record has left the store: it went to standard output, or was not asked for."];
  const searched = files.filter(({ here }) => here).map(nameOf);
  const elsewhere = files.filter(({ here }) => !here).map(nameOf);
  const oneOf = files.length === 1 ? "" : "one of ";
  return [
    `Its record has left the store: it was written to ${oneOf}${files.map(nameOf).join(", ")}.`,
    ...(searched.length === 0 ? [] : [`It is not in ${searched.join(", ")}, which ${searched.length === 1 ? "was" : "were"} searched here.`]),
    ...(elsewhere.length === 0 ? [] : [`From here ${elsewhere.join(", ")} cannot be read (another machine or folder, or not JSON Lines): look there.`]),
  ];
}

/** Its record left the store, and is not in a file that can be read here. */
function writtenWords(explanation: Explanation, { files }: StoreFacts): string[] {
  const { robots } = explanation;
  const barred = robots !== null && !robots.allowed;
  const why = barred ? [`It was not fetched: ${robotsLine(explanation, robots.rule ?? undefined)}.`] : ["It was settled."];
  const served = files.some(({ path }) => path.startsWith("journal:"));
  if (served) return [...why, "Its record is with the service that the crawl belongs to: ask that (GET /v1/jobs/ID/explain?url=…)."];
  const chain = barred ? [] : ["(If it redirects, its record comes with the end of the chain of redirects.)"];
  return [...why, ...leftFor(files), ...chain];
}

function settledWords(explanation: Explanation): string[] {
  const { standing, noRecords, beganInMemory, store } = explanation;
  if (store !== undefined && standing !== "dropped") return writtenWords(explanation, store);
  if (standing === "dropped") return ["It was given up without a record, in favour of another URL: https of a host that only speaks http."];
  if (noRecords) return ["It was settled while the crawl ran in memory, and has no record here; the crawl's outputs have it."];
  return [
    "It was asked for, and its record is not written yet: it redirects, and the chain of redirects that it began has not ended.",
    ...(beganInMemory ? ["(Or it was settled while the crawl ran in memory, before it was interrupted; the crawl's outputs have it then.)"] : []),
  ];
}

function foundWords(explanation: Explanation): string[] {
  const { way, record, skipped, queue } = explanation;
  const depth = record?.depth ?? queue?.depth ?? skipped?.depth ?? null;
  if (way.length === 0) return depth === 0 && explanation.kind !== "unknown" ? ["It is a seed, depth 0."] : [];
  const step = (at: WayStep, index: number): string => {
    const what = at.outcome === null ? " (a sitemap, or a page whose record is not here)" : index === 0 && at.depth === 0 ? " (seed)" : "";
    return `  ${index === 0 ? (explanation.wayCut ? "… " : "") : "→ "}${at.url}${at.status === undefined ? what : `${what} (redirect, ${at.status})`}`;
  };
  const head =
    depth === null
      ? "It was found this way:"
      : `It was found ${depth === 0 ? "at depth 0" : `${spellCount(depth, "link")} from a seed (depth ${depth})`}, this way:`;
  return [head, ...way.map(step), `  → ${explanation.url}`];
}

const waitsWords = ({ store }: Explanation): string[] =>
  store?.waits === true ? ["Its record waits in the store for whoever writes the outputs (skein export --store, or the crawl's own command)."] : [];

/** Reasons that are no link's: what was decided about a request, and what a limit or stop left in the queue. */
const DECIDED_LATER: ReadonlySet<SkipReason> = new Set(["robots", "private-address", "page-limit", "stopped"]);

/** The URL and what is to be said of it, a sentence or a step of the way a line. */
export function explanationLines(explanation: Explanation, telling: Telling): string[] {
  const { kind, record, skipped, queue, outlook, url } = explanation;
  const also =
    skipped !== null && kind !== "skipped" && !DECIDED_LATER.has(skipped.reason)
      ? [
          `A link to it on ${skipped.referrer ?? "an unknown page"} was passed over: ${skipWords(skipped.reason, explanation, skipped, telling)}. Another link counted.`,
        ]
      : [];
  switch (kind) {
    case "page":
      return [url, ...(record === null ? [] : pageWords(explanation, record, telling)), ...waitsWords(explanation), ...foundWords(explanation), ...also];
    case "skipped":
      return [
        url,
        ...(skipped === null ? [] : [`It was not fetched: ${skipWords(skipped.reason, explanation, skipped, telling)}.`]),
        ...foundWords(explanation),
      ];
    case "waiting":
      return [url, ...(queue === null ? [] : queueWords(queue, explanation.store, telling)), ...foundWords(explanation), ...also];
    case "settled":
      return [url, ...settledWords(explanation)];
    case "unknown":
      return [url, ...(outlook === null ? ["The crawl has not met it, and it is no URL that could be fetched."] : outlookWords(outlook, explanation, telling))];
    default:
      return [assertNever(kind)];
  }
}
