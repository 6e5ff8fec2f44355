/** A file of whole lines: opened with the first one, written in batches, cut back to the last whole line when the disk fails. Knows nothing of records. */
import { accessSync, closeSync, constants, fstatSync, ftruncateSync, openSync, statSync, writeSync } from "node:fs";
import { dirname } from "node:path";
import { realClock } from "../core/clock.ts";
import { CrawlError } from "../core/errors.ts";
import { type LineBuffer, lineBuffer } from "../rules/lines.ts";

/** Plain text goes out in batches of about this many bytes. */
const BATCH_BYTES = 64 * 1024;
/** A gzip member holds about this much text: larger gains nothing, and a torn file loses at most its last member. */
const MEMBER_BYTES = 1024 * 1024;
/** A slow crawl's lines are seen at the latest with the first write after so long. */
const STALE_MS = 250;

export interface LineFile {
  /** Append whole lines here, then call `settle`. */
  readonly lines: LineBuffer;
  /** Hands the lines on when enough came together. Throws CrawlError `output-unwritable`. */
  settle(): void;
  flush(): void;
  /** Idempotent. A file that got no line, although settle was called, is replaced by an empty one. */
  close(): void;
}

function unwritable(path: string, cause: unknown): CrawlError {
  const why = cause instanceof Error ? cause.message.replace(/, (?:open|write|access|stat|ftruncate)\b.*$/, "") : String(cause);
  return new CrawlError("output-unwritable", `cannot write ${path}: ${why}`, { cause });
}

/** Fails early, and touches nothing: the folder must be there, and the file or the folder writable. */
export function checkWritable(path: string): void {
  const known = statSync(path, { throwIfNoEntry: false });
  if (known?.isDirectory()) throw new CrawlError("output-unwritable", `cannot write ${path}: it is a folder`);
  const folder = dirname(path);
  if (!known && !statSync(folder, { throwIfNoEntry: false })?.isDirectory()) {
    throw new CrawlError("output-unwritable", `cannot write ${path}: there is no folder ${folder}`);
  }
  try {
    accessSync(known ? path : folder, constants.W_OK);
  } catch (error) {
    throw unwritable(path, error);
  }
}

/** Waits without running anything else; for a full pipe whose other end set it non-blocking. */
function pause(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}

/** Writes as much as it can; answers how much that was and what stopped it. */
function writeAll(fd: number, bytes: Uint8Array): { written: number; error: unknown } {
  let written = 0;
  while (written < bytes.length) {
    try {
      written += writeSync(fd, bytes, written, bytes.length - written);
    } catch (error) {
      if (!(error instanceof Error && "code" in error && error.code === "EAGAIN")) return { written, error };
      pause(5);
    }
  }
  return { written, error: null };
}

/** `target`: a path, replaced when the first line is written, or a file descriptor, which stays open. */
export function lineFile(target: string | number, gzip: boolean): LineFile {
  const name = typeof target === "number" ? "stdout" : target;
  const lines = lineBuffer();
  // Loaded when needed, and at once: the settle step waits for nothing.
  const pack = gzip ? process.getBuiltinModule("node:zlib").gzipSync : null;
  let fd: number | null = null;
  /** Bytes in the file, all of them whole lines (or members). */
  let length = 0;
  let settled = false;
  let drainedAt = realClock.now();
  let closed = false;
  let failure: CrawlError | null = null;

  function open(): number {
    if (fd !== null) return fd;
    fd = typeof target === "number" ? target : openSync(target, "w");
    return fd;
  }

  /** before: whole lines, the first part of the batch · after: whole lines only. Pipes and devices cannot be cut. */
  function cutBack(opened: number, batch: Uint8Array, written: number): void {
    if (!fstatSync(opened).isFile()) return;
    const whole = gzip ? 0 : batch.subarray(0, written).lastIndexOf(10) + 1;
    ftruncateSync(opened, length + whole);
  }

  function drain(): void {
    if (failure !== null) throw failure;
    if (lines.size === 0) return;
    drainedAt = realClock.now();
    const text = lines.take();
    try {
      const opened = open();
      const batch = pack === null ? text : pack(text);
      const { written, error } = writeAll(opened, batch);
      if (error !== null) {
        failure = unwritable(name, error);
        cutBack(opened, batch, written);
        throw failure;
      }
      length += written;
    } catch (error) {
      failure ??= unwritable(name, error);
      throw failure;
    }
  }

  function settle(): void {
    settled = true;
    if (failure !== null) throw failure;
    if (lines.size >= (gzip ? MEMBER_BYTES : BATCH_BYTES) || (!gzip && realClock.now() - drainedAt >= STALE_MS)) drain();
  }

  function close(): void {
    if (closed) return;
    closed = true;
    try {
      if (failure === null) drain();
      if (failure === null && settled) open();
    } catch (error) {
      failure ??= unwritable(name, error);
      throw failure;
    } finally {
      if (fd !== null && typeof target === "string") closeSync(fd);
      fd = null;
    }
  }

  return { lines, settle, flush: drain, close };
}
