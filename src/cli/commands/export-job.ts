/** `skein export --store`: takes the results of a crawl out of its store into files, as the crawl's one writer. */

import { resolve } from "node:path";
import type { ExportOpened, ExportSummary, exportJob } from "../../cluster/export-store.ts";
import { CrawlError } from "../../core/errors.ts";
import { parseSpec } from "../../core/spec.ts";
import { spellCount } from "../../core/units.ts";
import type { ExportKind } from "../../inspect/export.ts";
import { reasonWords } from "../../rules/reasons.ts";
import { type Console, createConsole } from "../console.ts";
import { afterSignal, EXIT } from "../exit.ts";
import type { Io, StopSignal } from "../io.ts";
import { fileText } from "../job-words.ts";
import type { Reading } from "../verb.ts";
import type { Asked } from "./export.ts";

export interface StoreExportParts {
  readonly exportJob: typeof exportJob;
}

interface Wanted {
  readonly url: string;
  readonly job: number;
  readonly reading: Reading;
  readonly asked: Asked;
}

const COUNTED: Readonly<Record<ExportKind, (count: number) => string>> = {
  pages: (count) => spellCount(count, "page record"),
  items: (count) => spellCount(count, "item"),
  skipped: (count) => spellCount(count, "skipped URL"),
  links: (count) => spellCount(count, "link"),
};

/** The schema knows which file names are outputs. */
export function checkNames(files: readonly string[]): void {
  try {
    parseSpec({ outputs: files });
  } catch (error) {
    if (!(error instanceof CrawlError)) throw error;
    const problems = error.problems.map(({ message }) => ({ option: "--output", message }));
    throw new CrawlError("invalid-options", problems.map(({ message }) => `--output: ${message}`).join("\n"), { cause: error, problems });
  }
}

function targetsOf({ reading, asked }: Wanted, io: Io): readonly { readonly what: ExportKind | null; readonly file: string }[] {
  const at = (file: string): string => (file === "-" ? "-" : resolve(io.cwd, file));
  const more = (["pages", "skipped", "links"] as const).flatMap((what) => reading.texts(what).map((file) => ({ what, file: at(file) })));
  const what = reading.text("what") === null ? null : asked.what;
  return [...asked.files.map((file) => ({ what, file: at(file) })), ...more];
}

function sayOpened(console: Console, { elsewhere, writtenBefore, waiting, continued, over, seedsComplete }: ExportOpened): void {
  const fields = { written: writtenBefore, waiting };
  if (continued.length > 0) console.say("info", `going on with ${continued.join(", ")}`, "going on", { files: continued.join(", ") });
  if (elsewhere.length > 0) {
    const text = `written before, and no more in the store: ${elsewhere.map(fileText).join(", ")}`;
    console.say("info", text, "written before", { ...fields, files: elsewhere.map(({ path }) => path).join(", ") });
  } else if (writtenBefore > 0 && continued.length === 0) {
    const text = `${spellCount(writtenBefore, "result")} of this crawl went to no file, and ${writtenBefore === 1 ? "is" : "are"} no more in the store`;
    console.say("warn", `warning: ${text}`, "results went to no file", fields);
  }
  if (!over && !seedsComplete) {
    const text = "not all seeds of this crawl were read yet: it cannot end before the command that created it has read them";
    console.say("warn", `warning: ${text}`, "seeds are missing");
  }
}

function sayEnd(console: Console, { counts, end, over, dropped }: ExportSummary, written: readonly ExportKind[], job: number): void {
  const parts = written.map((kind) => COUNTED[kind](counts[kind])).join(", ");
  const how = end === null ? (over ? "the crawl was stopped before its end" : "the crawl goes on") : `the crawl is over (${reasonWords(end, null)})`;
  console.say("info", `${parts} written; ${how}`, "exported", { ...counts, end, over });
  if (dropped) console.say("info", `job ${job} was taken out of the store`, "dropped", { job });
}

/** The reader of stdout had what it wanted. */
function readerLeft(error: unknown): boolean {
  for (let at = error; at instanceof Error; at = at.cause) if ("code" in at && at.code === "EPIPE") return true;
  return false;
}

/** Answers the exit status. Throws CrawlError for what is ours; the caller says it. */
export async function exportFromStore(wanted: Wanted, io: Io, load: () => Promise<StoreExportParts>): Promise<number> {
  const { url, job, reading, asked } = wanted;
  const targets = targetsOf(wanted, io);
  checkNames(targets.map(({ file }) => file));
  const console = createConsole(io, { format: "text", quiet: reading.isOn("quiet"), verbose: false, progress: false });
  const { exportJob } = await load();
  let main: ExportKind = "pages";
  const run = exportJob({
    ...{ url, job, targets, fields: asked.fields, meta: asked.meta, follow: reading.isOn("follow"), drop: reading.isOn("drop"), cwd: io.cwd },
    log: console.log,
    onOpen(opened) {
      main = opened.main;
      sayOpened(console, opened);
    },
  });
  const signals: StopSignal[] = [];
  const off = io.onSignal((signal) => {
    signals.push(signal);
    if (signals.length > 1) io.die(signal);
    run.leave();
  });
  try {
    const summary = await run.done;
    const kinds = [...new Set(targets.map(({ what }) => what ?? main))];
    sayEnd(console, summary, kinds, job);
    const [signal] = signals;
    if (signal === undefined) return EXIT.ok;
    console.say("info", "interrupted; the same command goes on", "interrupted");
    return EXIT[signal];
  } catch (error) {
    if (readerLeft(error)) return EXIT.ok;
    throw afterSignal(error, signals[0] ?? null, "nothing is lost, and the same command goes on");
  } finally {
    off();
    console.finish();
  }
}
