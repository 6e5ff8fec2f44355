/** Whether this machine, and a state directory, are fit for a crawl: what `skein doctor` checks. Mends nothing. */
import { accessSync, closeSync, constants, openSync, readFileSync, readSync, rmSync, statfsSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { fileURLToPath } from "node:url";
import { realClock } from "../core/clock.ts";
import { reasonWords } from "../rules/reasons.ts";
import { type Journal, openStateView, type StateView } from "./inspect.ts";

export interface Check {
  readonly name: string;
  readonly level: "ok" | "warn" | "fail";
  readonly text: string;
  /** What to do; null when all is well. */
  readonly next: string | null;
}

export interface DoctorOptions {
  /** Requests in flight that are meant (-c). */
  readonly concurrency: number;
  readonly stateDir: string | null;
  readonly cwd: string;
}

const OLDEST_NODE = 24;
/** Files open beside the connections: outputs, state, the program itself. */
const SPARE_FILES = 64;
const LITTLE_SPACE = 200e6;
const DAY_MS = 86_400_000;

const ok = (name: string, text: string): Check => ({ name, level: "ok", text, next: null });
const warn = (name: string, text: string, next: string): Check => ({ name, level: "warn", text, next });
const fail = (name: string, text: string, next: string): Check => ({ name, level: "fail", text, next });
const reasonOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

export function checkNode(version: string): Check {
  const major = Number(version.split(".")[0]);
  return major >= OLDEST_NODE
    ? ok("node", `Node.js ${version}`)
    : fail("node", `Node.js ${version} is too old`, `install Node.js ${OLDEST_NODE} or newer from https://nodejs.org/`);
}

/** Each coding that is asked for must come back as it went. */
function checkCodings(): Check {
  const zlib = process.getBuiltinModule("node:zlib");
  const codings: readonly (readonly [string, ((bytes: Buffer) => Buffer) | undefined, ((bytes: Buffer) => Buffer) | undefined])[] = [
    ["gzip", zlib.gzipSync, zlib.gunzipSync],
    ["deflate", zlib.deflateSync, zlib.inflateSync],
    ["br", zlib.brotliCompressSync, zlib.brotliDecompressSync],
    ["zstd", zlib.zstdCompressSync, zlib.zstdDecompressSync],
  ];
  const body = Buffer.from("skein ".repeat(100));
  const broken = codings.flatMap(([name, pack, unpack]) => {
    try {
      return pack !== undefined && unpack?.(pack(body)).equals(body) ? [] : [name];
    } catch {
      return [name];
    }
  });
  const names = codings.map(([name]) => name).join(", ");
  return broken.length === 0
    ? ok("bodies", `${names} are understood`)
    : fail("bodies", `bodies in ${broken.join(", ")} cannot be read`, "use an official build of Node.js; this one lacks parts of zlib");
}

function checkCharsets(): Check {
  const missing = ["windows-1252", "shift_jis", "euc-kr", "gb18030", "big5", "koi8-r"].filter((label) => {
    try {
      return new TextDecoder(label).encoding !== label;
    } catch {
      return true;
    }
  });
  return missing.length === 0
    ? ok("charsets", "pages in old charsets can be read")
    : warn("charsets", `pages in ${missing.join(", ")} cannot be read`, "use a build of Node.js with full ICU");
}

/** Node raises the soft limit to the hard one at its start. `limits`: the text of /proc/self/limits; null where there is none. */
export function checkFiles(limits: string | null, concurrency: number): Check {
  const soft = limits === null ? undefined : /^Max open files\s+(\d+|unlimited)/m.exec(limits)?.[1];
  if (soft === undefined) return ok("files", "the limit of open files is not told by this system");
  const needed = concurrency + SPARE_FILES;
  if (soft === "unlimited" || Number(soft) >= needed) return ok("files", `${soft} files may be open; -c ${concurrency} needs about ${needed}`);
  return fail(
    "files",
    `only ${soft} files may be open; -c ${concurrency} needs about ${needed}`,
    `raise it (ulimit -n ${needed}), or crawl with -c ${Math.max(1, Number(soft) - SPARE_FILES)}`,
  );
}

function openFilesLimits(): string | null {
  try {
    return readFileSync("/proc/self/limits", "utf8");
  } catch {
    return null; // not Linux
  }
}

/** `builtAt`: when this program was written to the disk. */
export function checkClock(now: number, builtAt: number): Check {
  const iso = new Date(now).toISOString();
  if (now < builtAt - DAY_MS)
    return fail("clock", `the clock says ${iso}, which is before this program was installed`, "set the clock: certificates and cookies are judged by it");
  return ok("clock", `the clock says ${iso}`);
}

function checkSqlite(): Check {
  try {
    using db = new DatabaseSync(":memory:");
    db.exec("CREATE TABLE t (n INTEGER); INSERT INTO t VALUES (7)");
    const row = db.prepare("SELECT n, sqlite_version() AS version FROM t").get();
    return row?.n === 7 ? ok("sqlite", `SQLite ${row.version} works`) : fail("sqlite", "SQLite gives wrong answers", "use an official build of Node.js");
  } catch (error) {
    return fail("sqlite", `SQLite does not work: ${reasonOf(error)}`, "use an official build of Node.js; --state needs node:sqlite");
  }
}

/** The nearest folder that exists. */
function existing(dir: string): string {
  return statSync(dir, { throwIfNoEntry: false }) !== undefined || dirname(dir) === dir ? dir : existing(dirname(dir));
}

function checkFolder(name: string, dir: string): Check {
  const folder = existing(dir);
  if (!statSync(folder).isDirectory()) return fail(name, `${folder} is no folder`, "name another directory");
  const trial = join(folder, `.skein-doctor-${process.pid}`);
  try {
    accessSync(folder, constants.W_OK);
    writeFileSync(trial, "x");
    rmSync(trial);
  } catch (error) {
    return fail(name, `${folder} cannot be written: ${reasonOf(error)}`, "name a directory of your own, or free space on its disk");
  }
  const { bavail, bsize } = statfsSync(folder);
  const free = bavail * bsize;
  const text = `${folder} can be written, ${Math.round(free / 1e6).toLocaleString("en")} MB are free`;
  return free < LITTLE_SPACE ? warn(name, text, "a crawl needs about 3 KB a page; free some space") : ok(name, text);
}

function checkDatabase(dir: string): Check {
  try {
    using db = new DatabaseSync(join(dir, "state.db"), { readOnly: true, timeout: 5_000 });
    const found = db
      .prepare("PRAGMA integrity_check(3)")
      .all()
      .map((row) => String(Object.values(row)[0]));
    if (found.length === 1 && found[0] === "ok") return ok("state.db", "the database is whole");
    return fail(
      "state.db",
      `the database is damaged: ${found.join("; ")}`,
      "keep a copy, then start over with --fresh; pages.jsonl and skipped.jsonl can be read without it",
    );
  } catch (error) {
    return fail("state.db", `the database cannot be read: ${reasonOf(error)}`, "see that no backup or copy of it is under way; else start over with --fresh");
  }
}

/** What the counters say waits must lie in the queue. */
function checkCounters(view: StateView): Check {
  let rows = 0;
  for (const place of view.queue()) if (place.request.hop !== "robots") rows++;
  const { queued, delayed, leased, done, dropped } = view.counts;
  const said = queued + delayed + leased;
  const text = `${done + dropped} settled, ${said} waiting`;
  if (rows === said) return ok("counters", text);
  return fail(
    "counters",
    `the counters say that ${said} URLs wait, the queue holds ${rows}`,
    "report it, with the directory; a resume counts the queue itself",
  );
}

function lastByte(path: string, at: number): number {
  const byte = Buffer.alloc(1);
  const file = openSync(path, "r");
  try {
    readSync(file, byte, 0, 1, at);
  } finally {
    closeSync(file);
  }
  return byte[0] ?? 0;
}

/** A file that grew after the last commit is cut back on resume; one that is shorter has lost what was promised. */
function checkJournal(name: string, { path, bytes }: Journal): Check {
  const size = statSync(path, { throwIfNoEntry: false })?.size ?? null;
  if (bytes === 0) return ok(name, "nothing was committed yet");
  if (size === null) return fail(name, `${path} is gone; ${bytes} bytes were committed`, "bring it back, or start over with --fresh");
  if (size < bytes) return fail(name, `${path} has ${size} bytes; ${bytes} were committed`, "bring back the whole file, or start over with --fresh");
  if (lastByte(path, bytes - 1) !== 10)
    return fail(name, `${path} was changed: its last committed line has no end`, "bring back the file as it was, or start over with --fresh");
  return ok(name, size === bytes ? `${bytes} bytes, whole lines` : `${bytes} bytes committed; ${size - bytes} more are cut off when it resumes`);
}

function checkOutputs(view: StateView, cwd: string): Check[] {
  return [...view.sinks].flatMap(([name, { bytes }]) => {
    if (name.startsWith("journal:") || typeof bytes !== "number" || bytes === 0) return [];
    const size = statSync(join(cwd, name), { throwIfNoEntry: false })?.size ?? statSync(name, { throwIfNoEntry: false })?.size ?? 0;
    if (size >= bytes) return [];
    return [
      warn(
        "outputs",
        `${name} has ${size} bytes; ${bytes} were committed`,
        "run this where the crawl was started; a crawl that resumes needs the file as it was",
      ),
    ];
  });
}

function checkState(dir: string, cwd: string): Check[] {
  if (statSync(join(dir, "state.db"), { throwIfNoEntry: false }) === undefined) return [ok("state", `there is no crawl in ${dir} yet`)];
  const database = checkDatabase(dir);
  if (database.level === "fail") return [database];
  let view: StateView;
  try {
    view = openStateView(dir);
  } catch (error) {
    return [database, fail("state", reasonOf(error), "name another directory, or start over with --fresh")];
  }
  using opened = view;
  const ended = opened.finishReason === null ? null : reasonWords(opened.finishReason, opened.spec.limits);
  const stands = ended ?? (opened.running ? "running now" : "unfinished; the same command resumes it");
  const early = opened.startedAt > realClock.epoch() + DAY_MS;
  return [
    database,
    early ? warn("state", "the crawl was started in the future", "set the clock") : ok("state", `the crawl in ${dir}: ${stands}`),
    checkCounters(opened),
    checkJournal("pages.jsonl", opened.journal.pages),
    checkJournal("skipped.jsonl", opened.journal.skipped),
    // Only crawls with a scraper have it.
    ...(opened.journal.items.bytes === 0 ? [] : [checkJournal("items.jsonl", opened.journal.items)]),
    ...checkOutputs(opened, cwd),
  ];
}

/** Every check, in the order in which they are told. */
export function examine({ concurrency, stateDir, cwd }: DoctorOptions): Check[] {
  return [
    checkNode(process.versions.node),
    checkCodings(),
    checkCharsets(),
    checkFiles(openFilesLimits(), concurrency),
    checkClock(realClock.epoch(), statSync(fileURLToPath(import.meta.url)).mtimeMs),
    checkSqlite(),
    checkFolder(stateDir === null ? "folder" : "directory", stateDir ?? cwd),
    ...(stateDir === null ? [] : checkState(stateDir, cwd)),
  ];
}
