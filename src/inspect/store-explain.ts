/** Why a URL was, or was not, crawled, of a crawl on a shared store: what the store knows, and the records that wait there or lie in files that can be read here. */
import { statSync } from "node:fs";
import { hostname } from "node:os";
import { resolve } from "node:path";
import type { Output } from "../core/records.ts";
import type { SinkState } from "../core/sink.ts";
import { hostKeyOf } from "../rules/url.ts";
import type { Link } from "../store/redis/connect.ts";
import { type CrawlLook, findWaiting, type Glance, lookAt, notedSeeds, serverNow, writerOf } from "../store/redis/look.ts";
import { listWorkers } from "../store/redis/workers.ts";
import { type Explainable, type Explanation, explainFrom, journalRecords, type Records, type StoreFacts } from "./explain.ts";
import type { Journal } from "./inspect.ts";
import { endOf, findJob, outputFiles, specOf } from "./store.ts";
import type { Telling } from "./words.ts";

export interface ExplainedJob {
  /** What the words depend on. */
  readonly telling: Telling;
  isKnown(url: string): Promise<boolean>;
  explain(url: string): Promise<Explanation>;
}

const NOTHING: Journal = { path: "", bytes: 0 };
/** Tokens of one claim begin with the same characters (cluster/pulse.ts). */
const CLAIM_CHARS = 12;

/** A file as far as its writer came, when it is on this machine and not shorter than it was. */
function journalOf(path: string, bytes: number): Journal | null {
  const size = statSync(path, { throwIfNoEntry: false })?.size ?? -1;
  return bytes > 0 && size >= bytes ? { path, bytes } : null;
}

/** JSON Lines of a kind that can be read here, and all files of that kind. */
function filesOf(states: ReadonlyMap<string, SinkState>, kind: "pages" | "skipped", cwd: string) {
  const forms = new Map(outputFiles(states).map((file, index) => [file, [...states.values()][index]?.form ?? ""] as const));
  const all = [...forms].filter(([, form]) => String(form).split(" ")[0] === kind);
  const here = all.map(([{ path, by, host, bytes }, form]) => {
    const readable = form === `${kind} jsonl` && (by === "crawl" || host === hostname());
    return { path, host, journal: readable ? journalOf(resolve(cwd, path), bytes ?? 0) : null };
  });
  return {
    journals: here.flatMap(({ journal }) => (journal === null ? [] : [journal])),
    files: here.map(({ path, host, journal }) => ({ path, host, here: journal !== null })),
  };
}

async function firstOf<T>(of: readonly Records[], ask: (records: Records) => Promise<T | null>): Promise<T | null> {
  for (const records of of) {
    const found = await ask(records);
    if (found !== null) return found;
  }
  return null;
}

/** What waits in the store. */
function waitingRecords(link: Link, job: number): Records {
  const find = (wanted: (output: Output) => boolean) => findWaiting(link, job, wanted);
  return {
    async page(url) {
      const page = (await find(({ page: one }) => one?.url === url))?.page ?? null;
      return page === null ? null : { record: page };
    },
    async skipped(url) {
      const found = await find(({ skipped }) => skipped.some(({ value }) => value.url === url));
      return found?.skipped.find(({ value }) => value.url === url)?.value ?? null;
    },
    mention: async (url) => (await find(({ page }) => page?.links.includes(url) === true))?.page?.url ?? null,
    seeds: () => notedUrls(link, job),
  };
}

async function* notedUrls(link: Link, job: number): AsyncGenerator<string> {
  yield* await notedSeeds(link, job);
}

function recordsOf(parts: readonly Records[]): Records {
  return {
    // Places of one file say nothing of another.
    async page(url) {
      const found = await firstOf(parts, (records) => records.page(url));
      return found === null ? null : { record: found.record };
    },
    skipped: (url) => firstOf(parts, (records) => records.skipped(url)),
    mention: (url) => firstOf(parts, (records) => records.mention(url)),
    async *seeds() {
      for (const records of parts) yield* records.seeds();
    },
  };
}

/** Nobody has begun with it. */
const UNKNOWN = { lookUp: () => null, wasSkipped: () => false, robotsOf: () => null } as const;

/** What is queued at a host, in its order. */
export async function* waitingAt(look: CrawlLook | null, host: string | null) {
  if (look === null || host === null) return;
  for await (const request of look.queueOf(host)) yield { standing: "queued", request };
}

/** Rejects with CrawlError `invalid-options` when there is no such job. */
export async function openJobView(link: Link, job: number, cwd: string): Promise<ExplainedJob> {
  const at: Glance = await findJob(link, job);
  const spec = specOf(at);
  const [{ states }, now, workers] = await Promise.all([writerOf(link, job), serverNow(link), listWorkers(link)]);
  const pages = filesOf(states, "pages", cwd);
  const skipped = filesOf(states, "skipped", cwd);
  const waiting = waitingRecords(link, job);
  const inFiles = [...pages.journals.map((one) => journalRecords(one, NOTHING)), ...skipped.journals.map((one) => journalRecords(NOTHING, one))];
  const look = at.seed === null ? null : lookAt(link, at, at.seed, (url) => hostKeyOf(url.replace(/^sitemap:/, "")));
  let token: string | null = null;
  const asked: Explainable = {
    ...{ spec, counts: at, noRecords: false, beganInMemory: false },
    records: recordsOf([waiting, ...inFiles]),
    queue: (host) => waitingAt(look, host),
    ...(look === null
      ? UNKNOWN
      : {
          async lookUp(url: string) {
            const place = await look.lookUp(url);
            token = place?.token ?? token;
            return place;
          },
          wasSkipped: look.wasSkipped,
          robotsOf: look.robotsOf,
        }),
  };

  function workerAt(): StoreFacts["worker"] {
    const claim = token?.slice(0, CLAIM_CHARS);
    const found = workers.find(({ shares }) => claim !== undefined && shares.some(({ crawl, claims }) => crawl === job && claims.includes(claim)));
    return found === undefined ? null : { kind: found.kind, host: found.host, pid: found.pid };
  }

  return {
    telling: { spec, finishReason: endOf(at, spec), now },
    isKnown: async (url) => (await asked.lookUp(url)) !== null,
    async explain(url) {
      token = null;
      const explanation = await explainFrom(asked, url);
      const waits = explanation.kind === "page" && (await waiting.page(url)) !== null;
      return { ...explanation, store: { worker: explanation.standing === "leased" ? workerAt() : null, waits, files: pages.files } };
    },
  };
}
