/** A file that only grows: opened with its first bytes, cut back to the last whole record when the disk fails, continued at a committed offset. Knows no format. */
import {
  accessSync,
  closeSync,
  constants,
  fdatasyncSync,
  fstatSync,
  fsyncSync,
  ftruncateSync,
  openSync,
  readSync,
  statSync,
  unlinkSync,
  writeSync,
} from "node:fs";
import { dirname } from "node:path";
import { CrawlError } from "../core/errors.ts";

/** Where a file stands. `mark`: a checksum of the bytes just before, by which another run's file is told from this one's. */
export interface FileState {
  readonly bytes: number;
  readonly mark: number;
}

export interface AppendFile {
  /** Bytes of it that are whole records. */
  readonly length: number;
  /** `ends`: offsets in `bytes` at which a record ends, ascending; a batch that fails is cut back to the last of them that was written, else to its start. */
  append(bytes: Uint8Array, ends: readonly number[]): void;
  /** Waits until all of it is on the disk. */
  sync(): void;
  state(): FileState;
  /** Makes it an empty file, if it was not opened before. */
  create(): void;
  close(): void;
}

/** The mark covers so many bytes. */
const MARK_BYTES = 64;

/** `more`: what of it is there all the same. */
export function unwritable(path: string, cause: unknown, more = ""): CrawlError {
  const why = cause instanceof Error ? cause.message.replace(/, (?:open|write|access|stat|ftruncate|fdatasync|fsync)\b.*$/, "") : String(cause);
  return new CrawlError("output-unwritable", `cannot write ${path}: ${why}${more}`, { cause });
}

/** The file is not the one that the saved state speaks of. */
export function notAsLeft(path: string, why: string): CrawlError {
  return new CrawlError("output-unwritable", `cannot go on with ${path}: ${why}; put back the file of that run, or begin again with --fresh`);
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
    if (known === undefined) tryToCreate(path);
    else accessSync(path, constants.W_OK);
  } catch (error) {
    throw unwritable(path, error);
  }
}

/** The rights of a folder do not tell: none takes files in /proc. What it makes it takes away again. */
function tryToCreate(path: string): void {
  try {
    closeSync(openSync(path, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL, 0o666));
  } catch (error) {
    // A link to a file that is not there yet: only the folder of that file can tell, and there the first record will.
    if (error instanceof Error && "code" in error && error.code === "EEXIST") return;
    throw error;
  }
  unlinkSync(path);
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

function markOf(bytes: Uint8Array): number {
  return process.getBuiltinModule("node:zlib").crc32(bytes);
}

/** Opens a file as its state left it and undoes what was written since; answers the bytes before the offset. */
function reopened(path: string, at: FileState): { fd: number; last: Buffer } {
  let fd: number;
  try {
    fd = openSync(path, constants.O_RDWR | constants.O_APPEND);
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") throw notAsLeft(path, "it is gone since the crawl stopped");
    throw unwritable(path, error);
  }
  try {
    const { size } = fstatSync(fd);
    if (size < at.bytes) throw notAsLeft(path, `it has ${size} bytes and had ${at.bytes} when the crawl stopped`);
    const last = Buffer.alloc(Math.min(MARK_BYTES, at.bytes));
    readSync(fd, last, 0, last.length, at.bytes - last.length);
    if (markOf(last) !== at.mark) throw notAsLeft(path, "it was replaced or changed since the crawl stopped");
    if (size > at.bytes) ftruncateSync(fd, at.bytes);
    return { fd, last };
  } catch (error) {
    closeSync(fd);
    throw error instanceof CrawlError ? error : unwritable(path, error);
  }
}

/** A new file's name is on the disk only when its folder is. Windows has no such call. */
function syncFolder(path: string): void {
  if (process.platform === "win32") return;
  const folder = openSync(dirname(path), constants.O_RDONLY);
  try {
    fsyncSync(folder);
  } finally {
    closeSync(folder);
  }
}

/**
 * `target`: a path, replaced with the first bytes, or a file descriptor, which stays open. `at`: where to go on; what lies behind is cut off now.
 * Throws CrawlError `output-unwritable`; what failed once is not tried again by its owner.
 */
export function appendFile(target: string | number, at: FileState | null): AppendFile {
  const name = typeof target === "number" ? "stdout" : target;
  const resumed = at !== null && at.bytes > 0 && typeof target === "string" ? reopened(target, at) : null;
  let fd = resumed?.fd ?? null;
  let last: Uint8Array = resumed?.last ?? Buffer.alloc(0);
  let length = resumed === null ? 0 : (at?.bytes ?? 0);
  let folderSynced = false;

  function open(): number {
    // Appending: after a cut the next byte goes to the end, not to where the last one went.
    fd ??= typeof target === "number" ? target : openSync(target, constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC | constants.O_APPEND, 0o666);
    return fd;
  }

  function remember(bytes: Uint8Array): void {
    length += bytes.length;
    last = bytes.length >= MARK_BYTES ? Buffer.from(bytes.subarray(-MARK_BYTES)) : Buffer.concat([last, bytes]).subarray(-MARK_BYTES);
  }

  /** before: whole records, the first part of the batch · after: whole records only. Pipes and devices cannot be cut. */
  function cutBack(opened: number, batch: Uint8Array, whole: number): void {
    remember(batch.subarray(0, whole));
    if (fstatSync(opened).isFile()) ftruncateSync(opened, length);
  }

  return {
    get length() {
      return length;
    },
    append(bytes, ends) {
      try {
        const opened = open();
        const { written, error } = writeAll(opened, bytes);
        if (error === null) return remember(bytes);
        cutBack(opened, bytes, ends.findLast((end) => end <= written) ?? 0);
        throw error;
      } catch (error) {
        throw unwritable(name, error);
      }
    },
    sync() {
      if (fd === null) return;
      try {
        fdatasyncSync(fd);
        if (!folderSynced && typeof target === "string") syncFolder(target);
        folderSynced = true;
      } catch (error) {
        throw unwritable(name, error);
      }
    },
    state: () => ({ bytes: length, mark: markOf(last) }),
    create() {
      try {
        open();
      } catch (error) {
        throw unwritable(name, error);
      }
    },
    close() {
      if (fd !== null && typeof target === "string") closeSync(fd);
      fd = null;
    },
  };
}
