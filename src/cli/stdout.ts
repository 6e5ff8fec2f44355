/** The sink behind stdout: URLs or JSON Lines, written beside the crawl. A slow reader makes the crawl wait, one that goes away ends it. */
import { realClock } from "../core/clock.ts";
import { CrawlError } from "../core/errors.ts";
import type { Output } from "../core/records.ts";
import type { Sink } from "../core/sink.ts";
import { appendPage, itemText, type LineBuffer, lineBuffer } from "../rules/lines.ts";
import type { Io } from "./io.ts";

/** What waits for the reader before the crawl is paused. */
const FULL_BYTES = 1024 * 1024;
/** Lines are gathered for so long, so that a fast crawl does not write each by itself. */
const GATHER_MS = 25;
const BATCH_BYTES = 64 * 1024;

export interface StdoutOptions {
  /** Asked once the crawl has opened: whether it gives items is known by then. */
  readonly what: () => "pages" | "links" | "records" | "items";
  /** Items have `_meta`. */
  readonly meta: boolean;
  readonly fields: readonly string[] | null;
  /** Around each write: on a terminal the progress line must go. */
  readonly beforeWrite: () => void;
  readonly afterWrite: () => void;
  /** The reader is behind by `FULL_BYTES`; later `onSpace`. */
  readonly onFull: () => void;
  readonly onSpace: () => void;
  /** The reader went away (EPIPE). Nothing is written any more. */
  readonly onClosed: () => void;
}

function append(lines: LineBuffer, output: Output, options: StdoutOptions): void {
  const { page, listed } = output;
  const { fields, meta } = options;
  const what = options.what();
  if (what === "items") {
    if (listed) for (const { json } of output.items ?? []) lines.text(`${itemText(json, meta ? page : null)}\n`);
    return;
  }
  if (what === "links") {
    for (const { value } of output.found) lines.text(`${value}\n`);
    return;
  }
  if (page === null || !listed) return;
  if (what === "records") appendPage(lines, page, fields);
  else if (page.outcome === "fetched" && page.status !== null && page.status >= 200 && page.status < 300) lines.text(`${page.url}\n`);
}

export function stdoutSink(stdout: Io["stdout"], options: StdoutOptions): Sink {
  /** One is filled while the other is written. */
  let filling = lineBuffer();
  let spare = lineBuffer();
  let writing: Promise<void> | null = null;
  let timer: { cancel(): void } | null = null;
  let full = false;
  let over = false;
  let failure: CrawlError | null = null;

  function fail(error: unknown): void {
    over = true;
    if (error instanceof Error && "code" in error && (error.code === "EPIPE" || error.code === "ECONNRESET")) options.onClosed();
    else failure = new CrawlError("output-unwritable", `cannot write stdout: ${error instanceof Error ? error.message : String(error)}`, { cause: error });
  }

  async function pump(): Promise<void> {
    while (filling.size > 0 && !over) {
      const bytes = filling.take();
      [filling, spare] = [spare, filling];
      options.beforeWrite();
      await stdout.write(bytes).catch(fail);
      options.afterWrite();
      if (full && filling.size < BATCH_BYTES) {
        full = false;
        options.onSpace();
      }
    }
    writing = null;
  }

  function start(): void {
    timer?.cancel();
    timer = null;
    // With nothing to write, pump would end before its promise is kept here.
    if (writing === null && filling.size > 0 && !over) writing = pump();
  }

  return {
    name: "stdout",
    write(outputs) {
      if (failure !== null) throw failure;
      if (over) return;
      for (const output of outputs) append(filling, output, options);
      if (filling.size >= FULL_BYTES && !full) {
        full = true;
        options.onFull();
      }
      if (writing !== null || filling.size === 0) return;
      if (filling.size >= BATCH_BYTES || stdout.isTerminal) start();
      else timer ??= realClock.after(GATHER_MS, start);
    },
    flush: start,
    async close() {
      start();
      while (writing !== null) await writing;
      if (failure !== null) throw failure;
    },
  };
}
