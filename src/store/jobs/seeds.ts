/** The seeds of a job, one a line in a file: checked and appended as they arrive, read back while the job runs. Never held as a whole. */
import { closeSync, openSync, readSync } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { CrawlError } from "../../core/errors.ts";
import type { RejectedLine } from "../../core/jobs.ts";
import { admitSeed } from "../../rules/admit.ts";
import { expandBraces, shownSeed } from "../../rules/seeds.ts";

export interface SeedIntake {
  /** Where the file is to be appended to; what lies behind was never promised to anybody. */
  readonly bytes: number;
  /** Seeds in it. */
  readonly total: number;
  readonly bareScheme: "http" | "https" | "refuse";
  readonly emptyLines: "skip" | "reject";
  /** Most seeds of the file. */
  readonly most: number;
}

export interface TakenSeeds {
  /** Of the whole file now. */
  readonly bytes: number;
  readonly total: number;
  /** The first of those that were taken, without credentials. */
  readonly first: readonly string[];
  readonly rejected: readonly RejectedLine[];
  readonly rejectedTotal: number;
  /** More than the file may hold: nothing of it counts. */
  readonly tooMany: boolean;
}

export const SEEDS_SHOWN = 1_000;
const REJECTED_SHOWN = 100;
const BATCH_CHARS = 64 * 1024;
const PIECE = 64 * 1024;

/** In these the lines of the file would end; URLs lose them anyhow (URL Standard §4.1). */
const LINE_ENDS = /[\r\n\t]/g;

const unwritable = (error: unknown): CrawlError =>
  new CrawlError("state-unwritable", `cannot keep the seeds: ${error instanceof Error ? error.message : String(error)}`, { cause: error });

/** Appends the good lines. Empty lines and comments (`#`) are passed over. What the source throws passes through; the file is then as it was promised before. */
export async function takeSeeds(path: string, lines: AsyncIterable<string> | Iterable<string>, intake: SeedIntake): Promise<TakenSeeds> {
  const file = await opened(path, intake.bytes);
  let { bytes, total } = intake;
  let waiting: string[] = [];
  let chars = 0;
  const first: string[] = [];
  const rejected: RejectedLine[] = [];
  let rejectedTotal = 0;

  async function drain(): Promise<void> {
    if (chars === 0) return;
    const text = Buffer.from(`${waiting.join("\n")}\n`);
    waiting = [];
    chars = 0;
    try {
      await file.appendFile(text);
    } catch (error) {
      throw unwritable(error);
    }
    bytes += text.length;
  }

  /** Whether it is a URL. */
  function take(text: string, line: number): boolean {
    const verdict = admitSeed(text, NO_SEED, intake.bareScheme);
    if (verdict.kind === "bad") {
      rejectedTotal++;
      const why = verdict.why.replace("; write http:// or https://, or give --default-scheme", "; write http:// or https://");
      if (rejected.length < REJECTED_SHOWN) rejected.push({ line, text: shownSeed(text.trim()), reason: why });
      return false;
    }
    total++;
    const kept = text.replace(LINE_ENDS, "").trim();
    if (first.length < SEEDS_SHOWN) first.push(withoutUserinfo(kept));
    waiting.push(kept);
    chars += kept.length + 1;
    return true;
  }

  try {
    let line = 0;
    for await (const text of lines) {
      line++;
      const trimmed = text.trim();
      if (trimmed === "" ? intake.emptyLines === "skip" : trimmed.startsWith("#")) continue;
      for (const seed of expandBraces(text)) {
        // Of a range whose first URL is none there is no need to see a million others.
        if (!take(seed, line)) break;
        if (total > intake.most) return { ...intake, first, rejected, rejectedTotal, tooMany: true };
        if (chars >= BATCH_CHARS) await drain();
      }
    }
    await drain();
    await file.sync();
    return { bytes, total, first, rejected, rejectedTotal, tooMany: false };
  } finally {
    await file.close();
  }
}

/** Only whether a line is a URL is asked for. */
const NO_SEED = [0, 0, 0, 0] as const;

const withoutUserinfo = (url: string): string => url.replace(/^([a-z][a-z0-9+.-]*:[\\/]*)[^\\/?#]*@/i, "$1");

async function opened(path: string, bytes: number): Promise<FileHandle> {
  try {
    const file = await open(path, "a", 0o600);
    await file.truncate(bytes);
    return file;
  } catch (error) {
    throw unwritable(error);
  }
}

/** The lines between two places at which lines begin. Synchronous: a piece is read when the ones before it are used up. */
export function* readSeeds(path: string, from: number, to: number): Generator<string> {
  if (to <= from) return;
  const file = openSync(path, "r");
  try {
    let rest = Buffer.alloc(0);
    for (let at = from; at < to; ) {
      const piece = Buffer.allocUnsafe(Math.min(PIECE, to - at));
      const read = readSync(file, piece, 0, piece.length, at);
      if (read === 0) throw new CrawlError("state-unwritable", "the file of the job's seeds is shorter than it was");
      at += read;
      const held = Buffer.concat([rest, piece.subarray(0, read)]);
      const end = held.lastIndexOf(10) + 1;
      if (end > 0) yield* held.toString("utf8", 0, end - 1).split("\n");
      rest = held.subarray(end);
    }
  } finally {
    closeSync(file);
  }
}
