/** `skein reparse`: the scraper again over the pages that a crawl has stored, without the network. */

import { CrawlError } from "../../core/errors.ts";
import { parseSpec } from "../../core/spec.ts";
import { spellNumber } from "../../core/units.ts";
import type { Reparsed, reparse } from "../../reparse.ts";
import { type Console, createConsole } from "../console.ts";
import { EXIT } from "../exit.ts";
import { cliFlag } from "../flags.ts";
import type { Io } from "../io.ts";
import { spellElapsed } from "../progress.ts";
import { stdoutSink } from "../stdout.ts";
import { type Reading, readVerb, STATE_FLAG, stateOf, usageError, type Verb } from "../verb.ts";

export interface ReparseParts {
  readonly reparse: typeof reparse;
}

export const REPARSE: Verb = {
  name: "reparse",
  head: `Usage: skein reparse -s FILE --state DIR [-o FILE]… [options]

Reads the pages again that a crawl with --state DIR and --cache has stored, on all cores, and writes
all their items. No request is made. Pages that this version of the scraper has read from the same
bytes are not read again: their items are taken as they are.

Examples:
  skein crawl shop.example -s shop.ts --state shop --cache 30d -o items.jsonl
  skein reparse -s shop.ts --state shop -o items.jsonl        after a change to shop.ts
  skein reparse -e 'title=h1' --state shop | jq .title
`,
  own: [
    STATE_FLAG,
    cliFlag("output", {
      ...{ short: "o", value: "FILE", allowed: "a file name, or -" },
      description: "Where the items go; - is stdout (repeatable). An existing file is replaced once all is done.",
    }),
    cliFlag("all", { description: "Read every stored page, whatever read it before." }),
    cliFlag("quiet", { short: "q", description: "Only errors on stderr: no warnings, no summary." }),
  ],
  shared: ["scraper", "extract", "parse-workers", "parse-timeout", "meta"],
  tail: `
--parse-workers is the number of cores unless it is given.

Exit status: 0, also if the scraper failed for some pages; 2 usage, or no stored pages in DIR; 3 a
file cannot be written; 7 a crawl is running in DIR.
`,
};

/** Throws CrawlError `invalid-options`. */
function outputsOf(reading: Reading): readonly string[] {
  const { scraper, extract } = reading.spec;
  const given = (scraper === null ? 0 : 1) + (Object.keys(extract).length > 0 ? 1 : 0);
  if (given === 0) throw usageError("--scraper", "what is to read the pages? Give -s FILE, or fields with -e");
  if (given > 1) throw usageError("--scraper", "give a module or fields with -e, not both");
  const files = reading.texts("output");
  try {
    parseSpec({ outputs: files });
  } catch (error) {
    if (!(error instanceof CrawlError)) throw error;
    const problems = error.problems.map(({ message }) => ({ option: "--output", message }));
    throw new CrawlError("invalid-options", problems.map(({ message }) => `--output: ${message}`).join("\n"), { cause: error, problems });
  }
  return files.length === 0 ? ["-"] : files;
}

/** Items on stdout; `room` waits for a reader that is behind. */
function stdoutItems(io: Io, meta: boolean) {
  let waiting: PromiseWithResolvers<void> | null = null;
  let left = false;
  const go = (): void => {
    waiting?.resolve();
    waiting = null;
  };
  const sink = stdoutSink(io.stdout, {
    ...{ what: () => "items" as const, meta, fields: null, beforeWrite: () => undefined, afterWrite: () => undefined, onSpace: go },
    onFull: () => {
      if (!left) waiting ??= Promise.withResolvers();
    },
    onClosed() {
      left = true;
      go();
    },
  });
  return { sink, room: async (): Promise<void> => waiting?.promise };
}

function tell(console: Console, done: Reparsed): void {
  const { parsed, kept, failed, notStored, items, badItems, unvisited, elapsedMs, workers } = done;
  const pages = (count: number): string => `${spellNumber(count)} page${count === 1 ? "" : "s"}`;
  const rate = elapsedMs > 0 ? Math.round(((parsed + kept + failed) * 1_000) / elapsedMs) : 0;
  const threads = workers === 0 ? "" : `, ${workers} parse worker${workers === 1 ? "" : "s"}`;
  const text = `${pages(parsed)} parsed, ${spellNumber(kept)} kept, ${spellNumber(failed)} failed; ${spellNumber(items)} items in ${spellElapsed(elapsedMs)} (${spellNumber(rate)} pages/s${threads})`;
  console.say("info", text, "reparsed", { parsed, kept, failed, notStored, items, badItems, unvisited, elapsedMs: Math.round(elapsedMs), workers });
  const warn = (count: number, words: string, message: string): void => {
    if (count > 0) console.say("warn", `warning: ${words}`, message, { count });
  };
  warn(failed, `the scraper failed for ${pages(failed)}: their items are left out`, "pages failed");
  warn(notStored, `${pages(notStored)} not stored: their items are those of the crawl. Crawl again with --cache to store them`, "pages not stored");
  if (unvisited > 0) {
    const words = `the scraper follows ${spellNumber(unvisited)} URL${unvisited === 1 ? "" : "s"} that the crawl has not visited: the next crawl will`;
    console.say("info", words, "not visited", { count: unvisited });
  }
}

/** Answers the exit status. Throws CrawlError for what is ours; the caller says it. */
export async function reparseCommand(argv: readonly string[], io: Io, load: () => Promise<ReparseParts>): Promise<number> {
  const reading = await readVerb(REPARSE, argv, io);
  if (reading === null) return EXIT.ok;
  const outputs = outputsOf(reading);
  const dir = stateOf(reading, io);
  const { scraper, extract, parseWorkers, parseTimeout, meta } = reading.spec;
  const console = createConsole(io, { format: "text", quiet: reading.isOn("quiet"), verbose: false, progress: false });
  const stdout = outputs.includes("-") ? stdoutItems(io, meta) : null;
  const { reparse } = await load();
  const done = await reparse({
    ...{ dir, scraper, extract, workers: parseWorkers, parseTimeoutMs: parseTimeout, meta, all: reading.isOn("all"), cwd: io.cwd, log: console.log },
    outputs: outputs.filter((file) => file !== "-"),
    sinks: stdout === null ? [] : [stdout.sink],
    ...(stdout === null ? {} : { room: stdout.room }),
  });
  console.finish();
  tell(console, done);
  return EXIT.ok;
}
