/** The writer of a crawl on a shared store: what workers settled leaves the store once, for files of any format, from where the last writer came to. For `skein export --store`. */
import { existsSync } from "node:fs";
import { hostname } from "node:os";
import { resolve } from "node:path";
import { frontierConfig } from "../assemble.ts";
import { type Clock, realClock } from "../core/clock.ts";
import { CrawlError, LostCrawl } from "../core/errors.ts";
import type { Logger } from "../core/log.ts";
import type { Output } from "../core/records.ts";
import type { Sink, SinkState } from "../core/sink.ts";
import { type CrawlSpec, parseSpec } from "../core/spec.ts";
import { crashedOutput } from "../engine/crashed.ts";
import type { ExportKind } from "../inspect/export.ts";
import { connectStore, endOf, exportName, findJob, type OutputFile, outputFiles, serviceJobOf, specOf } from "../inspect/store.ts";
import { makeSkip } from "../rules/admit.ts";
import { loadScope } from "../rules/scope.ts";
import { checkDistinct, openSinks } from "../sinks/open.ts";
import { sharedLines } from "../sinks/shared-lines.ts";
import type { ItemType } from "../sinks/tables.ts";
import type { Link } from "../store/redis/connect.ts";
import { createCrawls } from "../store/redis/crawls.ts";
import { openRedisFrontier } from "../store/redis/frontier.ts";
import { type Glance, glance } from "../store/redis/look.ts";
import { type Outbox, type OutboxOptions, type OutboxOwner, openOutbox, outboxOwner } from "../store/redis/outbox.ts";
import { SHARED_LEASES } from "./cluster.ts";
import { startDrain } from "./drain.ts";
import { lostWords, tellingLost } from "./lost.ts";
import { namedFiles } from "./output-files.ts";

interface ExportTarget {
  readonly what: ExportKind;
  readonly file: string;
}

export interface JobExport {
  readonly url: string;
  readonly job: number;
  /** Which records go to which file, absolute or `-`. Null: those that `crawl -o` would write, items if it gives some, else pages. */
  readonly targets: readonly { readonly what: ExportKind | null; readonly file: string }[];
  readonly fields: readonly string[] | null;
  readonly meta: boolean;
  /** Until the crawl has ended; else what is there now. */
  readonly follow: boolean;
  /** Takes the crawl out of the store once it has ended and all is written. */
  readonly drop: boolean;
  readonly cwd: string;
  readonly log: Logger;
  readonly clock?: Clock;
  /** Told when the outputs are held and the files open. */
  readonly onOpen: (opened: ExportOpened) => void;
}

export interface ExportOpened {
  /** What goes to targets that name no kind. */
  readonly main: "pages" | "items";
  /** Of others, or of this export before: what is in no file of this export any more. */
  readonly elsewhere: readonly OutputFile[];
  /** Outputs that were written before by whomever, those to stdout included. */
  readonly writtenBefore: number;
  readonly waiting: number;
  /** Files that are gone on with. */
  readonly continued: readonly string[];
  readonly over: boolean;
  readonly seedsComplete: boolean;
}

export interface ExportSummary {
  readonly counts: Readonly<Record<ExportKind, number>>;
  /** Null: the crawl has not ended. */
  readonly end: string | null;
  readonly over: boolean;
  readonly dropped: boolean;
}

export interface ExportRun {
  /** Rejects with CrawlError `store-unreachable`, `state-held`, `output-unwritable`, `invalid-options`. */
  readonly done: Promise<ExportSummary>;
  /** Ends behind what is being written; the same command goes on there. */
  leave(): void;
}

/** Of a crawl that is gone. */
const REST = {
  files: "What was still to come is lost, unless the store is restored from a backup: then the same command goes on from there",
  none: "Nothing was written, and nothing comes, unless the store is restored from a backup",
} as const;
const LOOK_MS = 500;
const BATCH = 256;

const givesItems = (spec: CrawlSpec): boolean => spec.scraper !== null || Object.keys(spec.extract).length > 0;

/** What the crawl's own command writes to its main outputs. */
const mainKind = (spec: CrawlSpec): "pages" | "items" => (givesItems(spec) ? "items" : "pages");

function refuse(option: string, message: string): never {
  throw new CrawlError("invalid-options", `${option}: ${message}`, { problems: [{ option, message }] });
}

const WAYS: Readonly<Record<ExportKind, string>> = {
  pages: "page records (--pages FILE)",
  items: "items (-o FILE, with --pages FILE for page records)",
  skipped: "skipped URLs (--skipped FILE)",
  links: "links (--links FILE)",
};

/** What leaves the store is gone from it: whatever the crawl was asked to write must be written. */
function checkComplete(spec: CrawlSpec, targets: readonly ExportTarget[]): void {
  const main = mainKind(spec);
  const wanted: ExportKind[] = [main];
  if (spec.pagesFile !== null && main !== "pages") wanted.push("pages");
  if (spec.skippedFile !== null) wanted.push("skipped");
  if (spec.linksFile !== null) wanted.push("links");
  const missing = wanted.filter((kind) => !targets.some(({ what }) => what === kind));
  if (missing.length === 0) return;
  refuse(
    "--what",
    `what is taken out of the store is gone from it, and the crawl is to write more than that: add ${missing.map((kind) => WAYS[kind]).join(", ")}`,
  );
}

/** The crawl's own files must not be replaced by what is left of it. `begun`: files of this export, whatever they are called. */
function checkOwn(
  spec: CrawlSpec,
  targets: readonly ExportTarget[],
  { cwd, begun }: { readonly cwd: string; readonly begun: ReadonlyMap<string, SinkState> },
): void {
  const { outputs, pagesFile, skippedFile, linksFile } = spec;
  const own = new Set([...outputs, pagesFile, skippedFile, linksFile].flatMap((file) => (file === null || file === "-" ? [] : [resolve(cwd, file)])));
  const taken = targets.find(({ file }) => own.has(file) && !begun.has(file) && existsSync(file));
  if (taken !== undefined) refuse("--output", `${taken.file} is a file of the crawl itself, which the command that created it goes on with; name another`);
}

/** As a spec: a database takes several kinds, and each is one sink. */
function sinkSpec(spec: CrawlSpec, targets: readonly ExportTarget[], { fields, meta }: Pick<JobExport, "fields" | "meta">): CrawlSpec {
  const only = (kind: ExportKind): string | null => {
    const [first, second] = targets.filter(({ what }) => what === kind).map(({ file }) => file);
    if (second !== undefined) refuse("--output", `${kind} go to one file; with another format: skein export --state, or convert it`);
    return first ?? null;
  };
  const main = mainKind(spec);
  return parseSpec({
    outputs: targets.filter(({ what }) => what === main).map(({ file }) => file),
    pagesFile: main === "pages" ? null : only("pages"),
    skippedFile: only("skipped"),
    linksFile: only("links"),
    skippedAll: spec.skippedAll,
    ...{ fields, meta },
  });
}

async function itemTypesOf(spec: CrawlSpec): Promise<readonly ItemType[]> {
  if (Object.keys(spec.extract).length === 0) return [];
  const { fieldsModule } = await import("../parse/scrape/module.ts");
  return (await fieldsModule(spec.extract)).itemTypes;
}

/** Where the files of this export stood, by path: as this machine left them, else as another did that has the file too (a volume under another host name). */
function statesHere(outbox: Outbox, files: readonly string[]): ReadonlyMap<string, SinkState> {
  const known = outputFiles(outbox.states).filter(({ by }) => by === "export");
  const found = new Map<string, SinkState>();
  for (const file of files) {
    const of = known.filter(({ path }) => path === file);
    const mine = of.find(({ host }) => host === hostname()) ?? (existsSync(file) ? of[0] : undefined);
    const state = mine === undefined ? undefined : outbox.states.get(exportName(mine.host ?? "", file));
    if (state === undefined) continue;
    if (typeof state.bytes === "number" && state.bytes > 0 && !existsSync(file)) {
      const message = `${file} is gone, and had ${state.records ?? "some"} records: put it back, or name another file for what is still to come`;
      throw new CrawlError("output-unwritable", message);
    }
    found.set(file, state);
  }
  return found;
}

/** Pages tell their links where the crawl did not keep edges apart. */
function withEdges(output: Output): Output {
  const { page } = output;
  if (page === null || output.edges.length > 0) return output;
  return { ...output, edges: page.links.map((to) => ({ from: page.url, to })) };
}

interface Writing {
  readonly sinks: readonly Sink[];
  readonly counts: Record<ExportKind, number>;
  write(outputs: readonly Output[]): void;
  checkpoint(sync: boolean): ReadonlyMap<string, SinkState>;
  committed(): void;
}

function writingTo(sinks: readonly Sink[], main: "pages" | "items", edges: boolean): Writing {
  const counts = { pages: 0, items: 0, skipped: 0, links: 0 };
  return {
    ...{ sinks, counts },
    write(outputs) {
      const full = edges ? outputs.map(withEdges) : outputs;
      for (const sink of sinks) sink.write(full);
      for (const { page, listed, items, skipped, edges: links } of full) {
        if (page !== null && (listed || main === "items")) counts.pages++;
        if (listed) counts.items += items?.length ?? 0;
        counts.skipped += skipped.length;
        counts.links += links.length;
      }
    },
    checkpoint: (sync) => new Map(sinks.flatMap((sink) => (sink.checkpoint === undefined ? [] : [[exportName(hostname(), sink.name), sink.checkpoint(sync)]]))),
    committed() {
      for (const sink of sinks) sink.committed?.();
    },
  };
}

/** What the page limit left in the queue, as the crawl's own process lists it at its end: behind the last checkpoint, for a larger limit would go on. */
async function leftOver(link: Link, at: Glance, spec: CrawlSpec, { write }: Writing): Promise<void> {
  if (at.seed === null || endOf(at, spec) !== "limit-pages" || at.info.has("finished")) return;
  await using frontier = await openRedisFrontier({ ...frontierConfig(spec), ...SHARED_LEASES }, { link, id: at.id });
  let batch: Output[] = [];
  for await (const { url, referrer, depth, rest } of frontier.remaining()) {
    const skip = makeSkip(frontier.seed, { url, referrer, depth, reason: "page-limit" });
    batch.push(...(rest?.owed ?? []), { page: null, listed: false, skipped: [skip], found: [], edges: [] });
    if (batch.length < BATCH) continue;
    write(batch);
    batch = [];
  }
  write(batch);
}

/** A process of this machine that is no more. */
function isDead({ host, pid }: OutboxOwner): boolean {
  if (host !== hostname()) return false;
  try {
    process.kill(pid, 0);
    return pid === process.pid;
  } catch (error) {
    return error instanceof Error && "code" in error && error.code === "ESRCH";
  }
}

/** A writer that was killed here holds the outputs for some seconds more: those are waited for. Rejects with `state-held` when one lives. */
async function takeOutputs(link: Link, job: number, options: OutboxOptions, say: (leftMs: number) => Promise<void>): Promise<Outbox> {
  for (;;) {
    try {
      return await openOutbox(link, job, options);
    } catch (error) {
      const owner = error instanceof CrawlError && error.code === "state-held" ? await outboxOwner(link, job) : null;
      if (owner === null || !isDead(owner)) throw error;
      await say(owner.leftMs);
    }
  }
}

/** A file that another unfinished crawl writes, now or when it goes on, would lose what is in it. */
async function refuseForeign(link: Link, job: number, spec: CrawlSpec): Promise<void> {
  const files = namedFiles(spec);
  const owner = await createCrawls(link).ownerOf(files.map(({ name }) => name));
  if (owner === null || owner.id === job) return;
  const { option, file } = files[owner.file] ?? { option: "--output", file: "it" };
  const goes = owner.held ? "is being written" : "is unfinished";
  refuse(option, `${file} is a file of crawl ${owner.id} in the store at ${link.address.shown}, which ${goes}: name another file`);
}

/** Begins at once. */
export function exportJob(input: JobExport): ExportRun {
  const { job, follow } = input;
  const clock = input.clock ?? realClock;
  const left = Promise.withResolvers<"left">();

  /** Until the crawl is over, or this process is told to leave. */
  async function waitForEnd(link: Link, broken: Promise<never>): Promise<boolean> {
    for (;;) {
      const at = await Promise.race([glance(link, job), broken]);
      if (at === null) throw new LostCrawl(lost(link)(), "store-unreachable");
      if (at.over) return true;
      const pause = new Promise<"again">((again) => void clock.after(LOOK_MS, () => again("again")));
      if ((await Promise.race([pause, left.promise, broken])) === "left") return false;
    }
  }

  let writing: Writing | null = null;
  const standing = (): ReadonlyMap<string, SinkState> =>
    new Map((writing?.sinks ?? []).flatMap((sink) => (sink.checkpoint === undefined ? [] : [[sink.name, sink.checkpoint(false)]])));
  const lost = (link: Link) => (): string => lostWords(link, job, standing(), REST);

  async function write(link: Link, outbox: Outbox, spec: CrawlSpec, targets: readonly ExportTarget[]): Promise<ExportSummary> {
    const files = targets.map(({ file }) => file).filter((file) => file !== "-");
    const states = statesHere(outbox, files);
    checkOwn(spec, targets, { cwd: input.cwd, begun: states });
    const main = mainKind(spec);
    const toFiles = sinkSpec(spec, targets, input);
    const sinks = openSinks(toFiles, states, sharedLines(), main === "items" ? { types: await itemTypesOf(spec) } : null);
    const to = writingTo(sinks, main, toFiles.linksFile !== null && spec.linksFile === null);
    writing = to;
    try {
      const before = await findJob(link, job);
      const here = new Set([...states.keys()].map((file) => exportName(hostname(), file)));
      input.onOpen({
        main,
        elsewhere: outputFiles(new Map([...outbox.states].filter(([name]) => !here.has(name)))),
        writtenBefore: before.written,
        waiting: before.waiting,
        continued: [...states.keys()],
        over: before.over,
        seedsComplete: before.seedsComplete,
      });
      // A kill before the first checkpoint must not leave files that nobody is known to have begun.
      await outbox.note(new Map([...outbox.states, ...to.checkpoint(false)]));
      const drain = startDrain({ outbox, clock, hooks: to, strict: false });
      const toTheEnd = follow ? await waitForEnd(link, drain.broken) : (await Promise.race([drain.end(), left.promise])) !== "left";
      await (toTheEnd ? drain.end() : drain.leave());
      const at = await findJob(link, job);
      to.checkpoint(true);
      if (toTheEnd && at.over) await leftOver(link, at, spec, to);
      if (toTheEnd && at.over && targets.length > 0) for (const sink of sinks) sink.write([]);
      for (const sink of sinks) await sink.close();
      const dropped = input.drop && toTheEnd && at.over && at.waiting === 0;
      if (dropped) await createCrawls(link).delete(job);
      return { counts: to.counts, end: endOf(at, spec), over: at.over, dropped };
    } finally {
      // What failed is told; closing again does nothing.
      await Promise.allSettled(sinks.map(async (sink) => sink.close()));
    }
  }

  async function run(): Promise<ExportSummary> {
    const server = await connectStore(input.url, input.log, follow ? Infinity : undefined, left.promise);
    const link = tellingLost(server, lost(server));
    try {
      const at = await findJob(link, job);
      const spec = specOf(at);
      if (at.info.get("kind") === "serve")
        refuse("--job", `job ${job} belongs to a service, which takes its results itself: ask that for them (GET /v1/jobs/${serviceJobOf(at) ?? "ID"}/pages)`);
      if (input.drop && !follow && !at.over) refuse("--drop", `job ${job} has not ended; with --follow its end is waited for`);
      const targets = input.targets.map(({ what, file }) => ({ what: what ?? mainKind(spec), file }));
      checkComplete(spec, targets);
      checkDistinct(sinkSpec(spec, targets, input));
      await refuseForeign(link, job, sinkSpec(spec, targets, input));
      const scope = await loadScope(spec.scope, spec.follow, spec.list, []);
      const crashed = crashedOutput.bind(null, { clock, admit: { scope } });
      const outbox = await takeOutputs(link, job, { crashed, kind: "export" }, async (leftMs) => {
        input.log("info", "the last writer has died; its hold of the outputs ends soon", { seconds: Math.ceil(leftMs / 1_000) });
        await new Promise<void>((resolve) => void clock.after(leftMs + 50, resolve));
      });
      try {
        return await write(link, outbox, spec, targets);
      } finally {
        await outbox[Symbol.asyncDispose]();
      }
    } finally {
      await link.close();
    }
  }

  return { done: run(), leave: () => left.resolve("left") };
}
