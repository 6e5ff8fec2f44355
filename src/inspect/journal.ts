/** Finds and reads lines of a journal without holding more than a piece of it: the bytes are searched, only what is found is parsed. */
import { type FileHandle, open } from "node:fs/promises";
import { CrawlError } from "../core/errors.ts";
import type { Journal } from "./inspect.ts";

const PIECE = 1024 * 1024;
const NEWLINE = 10;

/** A line that was found, and where it begins. */
export interface FoundLine {
  readonly at: number;
  readonly text: string;
}

function unreadable(path: string, cause: unknown): CrawlError {
  const why = cause instanceof Error ? cause.message : String(cause);
  return new CrawlError("state-unwritable", `the journal ${path} cannot be read: ${why}`, { cause });
}

async function openJournal(path: string): Promise<FileHandle> {
  try {
    return await open(path, "r");
  } catch (error) {
    throw unreadable(path, error);
  }
}

/** The line that begins at `at`, without its end. */
async function lineAt(file: FileHandle, at: number, bytes: number): Promise<string> {
  const parts: Buffer[] = [];
  for (let from = at; from < bytes; ) {
    const piece = Buffer.allocUnsafe(Math.min(64 * 1024, bytes - from));
    const { bytesRead } = await file.read(piece, 0, piece.length, from);
    if (bytesRead === 0) break;
    const end = piece.subarray(0, bytesRead).indexOf(NEWLINE);
    parts.push(piece.subarray(0, end < 0 ? bytesRead : end));
    if (end >= 0) break;
    from += bytesRead;
  }
  return Buffer.concat(parts).toString("utf8");
}

interface Search {
  readonly needle: Buffer;
  /** Only lines that begin with it. */
  readonly atStart: boolean;
  /** Only lines that begin before this byte. */
  readonly before?: number | undefined;
}

/**
 * The lines that hold `needle`, which has no line end in it, each once. A journal of no bytes need not exist.
 * The needle may lie across two pieces: the end of each is kept for the next.
 */
async function* search(journal: Journal, { needle, atStart, before }: Search): AsyncGenerator<FoundLine> {
  if (journal.bytes === 0) return;
  const limit = Math.min(before ?? journal.bytes, journal.bytes);
  const file = await openJournal(journal.path);
  try {
    const buffer = Buffer.allocUnsafe(PIECE + needle.length);
    /** Bytes of the buffer that came with the last piece, where the buffer begins in the file, and the last line begun before it. */
    let kept = 0;
    let base = 0;
    let lineStart = 0;
    let last = -1;
    while (base < limit) {
      const { bytesRead } = await file.read(buffer, kept, Math.min(PIECE, journal.bytes - base - kept), base + kept);
      if (bytesRead === 0) return;
      const held = buffer.subarray(0, kept + bytesRead);
      for (let hit = held.indexOf(needle); hit >= 0; hit = held.indexOf(needle, hit + 1)) {
        const newline = hit === 0 ? -1 : held.lastIndexOf(NEWLINE, hit - 1);
        const begins = newline < 0 ? lineStart : base + newline + 1;
        if (begins >= limit) return;
        if (begins === last || (atStart && begins !== base + hit)) continue;
        last = begins;
        yield { at: begins, text: await lineAt(file, begins, journal.bytes) };
      }
      const keep = Math.min(needle.length - 1, held.length);
      const dropped = held.length - keep;
      const newline = dropped === 0 ? -1 : held.lastIndexOf(NEWLINE, dropped - 1);
      if (newline >= 0) lineStart = base + newline + 1;
      held.copyWithin(0, dropped);
      base += dropped;
      kept = keep;
    }
  } finally {
    await file.close();
  }
}

async function first(lines: AsyncGenerator<FoundLine>): Promise<FoundLine | null> {
  for await (const line of lines) return line;
  return null;
}

/** The first record of a URL; records begin with it (core/records.ts). */
export function findRecord(journal: Journal, url: string, before?: number): Promise<FoundLine | null> {
  return first(search(journal, { needle: Buffer.from(`{"url":${JSON.stringify(url)},`), atStart: true, before }));
}

/** The first line in which the URL stands as a whole string. */
export function findMention(journal: Journal, url: string): Promise<FoundLine | null> {
  return first(search(journal, { needle: Buffer.from(JSON.stringify(url)), atStart: false }));
}

/** Records of seeds, and of what redirected seeds led to. */
export function findSeeds(journal: Journal): AsyncGenerator<FoundLine> {
  return search(journal, { needle: Buffer.from(',"depth":0,"referrer":null,'), atStart: false });
}

/** Every line of a journal, in pieces of about a megabyte. */
export async function* journalLines(journal: Journal): AsyncGenerator<readonly string[]> {
  if (journal.bytes === 0) return;
  const file = await openJournal(journal.path);
  try {
    let buffer = Buffer.allocUnsafe(PIECE);
    let kept = 0;
    for (let at = 0; at < journal.bytes; ) {
      // A line longer than the buffer.
      if (kept > buffer.length / 2) buffer = Buffer.concat([buffer], buffer.length * 2);
      const { bytesRead } = await file.read(buffer, kept, Math.min(buffer.length - kept, journal.bytes - at), at);
      if (bytesRead === 0) throw unreadable(journal.path, new Error(`it has ${at} bytes; ${journal.bytes} were committed`));
      at += bytesRead;
      const held = buffer.subarray(0, kept + bytesRead);
      const end = held.lastIndexOf(NEWLINE) + 1;
      if (end > 0) yield held.toString("utf8", 0, end - 1).split("\n");
      kept = held.length - end;
      held.copyWithin(0, end);
    }
    if (kept > 0) throw unreadable(journal.path, new Error("its last line has no end"));
  } finally {
    await file.close();
  }
}
