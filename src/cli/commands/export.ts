/** `skein export`: the records of a crawl in a state directory into a file of another format, or to stdout as JSON Lines; of one on a store: export-job.ts. */

import { resolve } from "node:path";
import type { PageRecord } from "../../core/records.ts";
import { spellNumber } from "../../core/units.ts";
import type { ExportKind, exportTo, itemLine, journalFor } from "../../inspect/export.ts";
import type { Journal, openStateView, StateView } from "../../inspect/inspect.ts";
import type { journalLines } from "../../inspect/journal.ts";
import { appendPage, appendRecord, lineBuffer } from "../../rules/lines.ts";
import { type Console, createConsole } from "../console.ts";
import { EXIT } from "../exit.ts";
import { cliFlag } from "../flags.ts";
import type { Io } from "../io.ts";
import { spellUrls } from "../progress.ts";
import { type Reading, readVerb, STATE_FLAG, usageError, type Verb } from "../verb.ts";
import { JOB_FLAG, neededJob, whereOf } from "../where.ts";
import { checkNames, exportFromStore, type StoreExportParts } from "./export-job.ts";

export interface ExportParts {
  readonly openStateView: typeof openStateView;
  readonly exportTo: typeof exportTo;
  readonly journalFor: typeof journalFor;
  readonly itemLine: typeof itemLine;
  readonly journalLines: typeof journalLines;
}

const KINDS: readonly ExportKind[] = ["pages", "items", "skipped", "links"];

const COUNTED: Readonly<Record<ExportKind, string>> = { pages: "pages", links: "pages", items: "items", skipped: "skipped URLs" };

export const EXPORT: Verb = {
  name: "export",
  head: `Usage: skein export --state DIR [-o FILE]… [options]
       skein export --store URL --job ID [--follow] [-o FILE]… [options]

Writes what a crawl has recorded so far, running or not, into files. The format goes by their names:
.jsonl, .json, .csv (each also with .gz) or .sqlite. Without -o, JSON Lines on stdout.

From a store results are taken, each once: what is written is in the files and no more in the store.
The same command goes on with its files, also after a kill. With --follow until the crawl has ended.

Examples:
  skein export --state crawl1 -o pages.csv --fields url,status,title
  skein export --state crawl1 --what skipped | jq -r .reason | sort | uniq -c
  skein export --state crawl1 --what items -o shop.sqlite
  skein export --store redis://localhost:6379 --job 3 --follow -o pages.jsonl --skipped skipped.csv
`,
  own: [
    STATE_FLAG,
    JOB_FLAG,
    cliFlag("what", {
      value: KINDS.join("|"),
      allowed: `one of ${KINDS.join(", ")}`,
      description: "Page records, items of the scraper, skipped URLs, or the edges of the link graph. [pages; of a store: items where the crawl gives them]",
    }),
    cliFlag("output", {
      short: "o",
      value: "FILE",
      allowed: "a file name, or -",
      description: "Where to; - is stdout (repeatable). An existing file is replaced.",
    }),
    cliFlag("follow", { description: "From a store: until the crawl has ended. Without it, what is there now." }),
    cliFlag("pages", { value: "FILE", allowed: "a file name", description: "From a store: page records too, beside items." }),
    cliFlag("skipped", { value: "FILE", allowed: "a file name", description: "From a store: skipped URLs too." }),
    cliFlag("links", { value: "FILE", allowed: "a file name", description: "From a store: the edges of the link graph too." }),
    cliFlag("drop", { description: "From a store: take the crawl out of it once it has ended and all is written." }),
    cliFlag("quiet", { short: "q", description: "Do not say what was written." }),
  ],
  shared: ["fields", "meta", "store"],
  tail: `
Exit status: 0; 2 usage, no crawl in DIR, or no such job; 3 a file cannot be written; of a store
also 5 it does not answer, 7 another process writes the results, 130 or 143 interrupted.
`,
};

/** A piece of the journal as it goes to stdout. */
function stdoutBytes(lines: readonly string[], { what, fields, meta }: Asked, parts: ExportParts): Uint8Array {
  if (what === "items") return Buffer.from(lines.map((line) => `${parts.itemLine(line, meta)}\n`).join(""));
  if (what === "skipped" || (what === "pages" && fields === null)) return Buffer.from(`${lines.join("\n")}\n`);
  const buffer = lineBuffer();
  for (const line of lines) {
    const page = JSON.parse(line) as PageRecord; // `as`: the journal of pages was written by this program
    if (what === "pages") appendPage(buffer, page, fields);
    else for (const to of page.links) appendRecord(buffer, { from: page.url, to });
  }
  return Buffer.from(buffer.take());
}

export interface Asked {
  readonly what: ExportKind;
  readonly fields: readonly string[] | null;
  readonly meta: boolean;
  /** `-`: stdout. */
  readonly files: readonly string[];
}

/** Throws CrawlError `invalid-options`. */
function askedOf(reading: Reading): Asked {
  const given = reading.text("what") ?? "pages";
  const what = KINDS.find((kind) => kind === given);
  if (what === undefined) throw usageError("--what", `expected one of ${KINDS.join(", ")}, got ${JSON.stringify(given)}`);
  const fields = reading.isGiven("fields") ? reading.spec.fields : null;
  if (fields !== null && what !== "pages") throw usageError("--fields", "chooses fields of page records; it goes with --what pages");
  const { meta } = reading.spec;
  const files = reading.texts("output");
  checkNames(files);
  return { what, fields, meta, files: files.length === 0 ? ["-"] : files };
}

/** Files that a resume of the crawl needs as they are must not be replaced. */
function checkTargets(view: StateView, files: readonly string[], cwd: string): void {
  const kept = new Set([
    view.journal.pages.path,
    view.journal.skipped.path,
    view.journal.items.path,
    ...[...view.sinks.keys()].map((name) => resolve(cwd, name)),
  ]);
  const own = files.find((file) => file !== "-" && kept.has(resolve(cwd, file)));
  if (own !== undefined) throw usageError("--output", `${own} is a file of the crawl itself; name another`);
}

/** Looks into the state and lets go of it: a reader of stdout that takes its time would otherwise keep the database from tidying up. */
function journalOf({ openStateView, journalFor }: ExportParts, dir: string, { what, files }: Asked, io: Io, console: Console): Journal {
  using view = openStateView(dir);
  if (view.beganInMemory !== null) {
    const text = `this crawl ran in memory until it was interrupted: the ${spellUrls(view.beganInMemory.settled)} that it had settled by then ${view.beganInMemory.settled === 1 ? "is" : "are"} only in its outputs`;
    console.say("warn", `warning: ${text}`, text);
  }
  checkTargets(view, files, io.cwd);
  return journalFor(view, what);
}

/** Flags that make no sense for a state directory, from which nothing is taken. */
const OF_STORES = ["follow", "pages", "skipped", "links", "drop"] as const;

/** Answers the exit status. Throws CrawlError for what is ours; the caller says it. */
export async function exportCommand(
  argv: readonly string[],
  io: Io,
  load: () => Promise<ExportParts>,
  loadStore: () => Promise<StoreExportParts>,
): Promise<number> {
  const reading = await readVerb(EXPORT, argv, io);
  if (reading === null) return EXIT.ok;
  const where = whereOf(reading, argv, io);
  const asked = askedOf(reading);
  if (where.kind === "store") return exportFromStore({ url: where.url, job: neededJob(where.job), reading, asked }, io, loadStore);
  const foreign = OF_STORES.find((name) => reading.isOn(name) || reading.text(name) !== null);
  if (foreign !== undefined) throw usageError(`--${foreign}`, "goes with --store; a state directory keeps everything, and is exported by --what");
  const { dir } = where;
  const parts = await load();
  const console = createConsole(io, { format: "text", quiet: reading.isOn("quiet"), verbose: false, progress: false });
  const journal = journalOf(parts, dir, asked, io, console);
  const { what } = asked;
  for (const file of asked.files) {
    if (file === "-") for await (const lines of parts.journalLines(journal)) await io.stdout.write(stdoutBytes(lines, asked, parts));
    else {
      const count = await parts.exportTo(journal, resolve(io.cwd, file), asked);
      const counted = `${what === "links" ? "links of " : ""}${spellNumber(count)} ${COUNTED[what]}`;
      console.say("info", `${file}: ${counted}`, "exported", { file, count });
    }
  }
  return EXIT.ok;
}
