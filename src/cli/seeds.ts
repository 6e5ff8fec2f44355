/** Reads seeds from arguments and input files as a stream: checks each, reports the bad ones by number, passes on the good. Scope and depth are not its affair. */
import { createReadStream, statSync } from "node:fs";
import { CrawlError, type OptionProblem } from "../core/errors.ts";
import { admitSeed } from "../rules/admit.ts";
import { expandBraces } from "../rules/seeds.ts";

export interface SeedSources {
  /** From the command line or the config file: `URL`, bare host, either with `{1..1000}`. */
  readonly listed: Iterable<string> | AsyncIterable<string>;
  /** Paths, or "-" for `stdin`. */
  readonly files: readonly string[];
  readonly defaultScheme: "http" | "https" | null;
  readonly stdin: () => AsyncIterable<Uint8Array>;
  /** Told of each bad seed, in order, while they are read. */
  readonly onBad: (bad: BadSeed) => void;
}

export interface BadSeed {
  /** `argument 2`, `urls.txt:17`. */
  readonly where: string;
  readonly text: string;
  readonly why: string;
}

const ANY_SEED = [0, 0, 0, 0] as const;
/** The form of a bare host: dotted name, localhost, address in brackets, or anything with a port; then a path or nothing. */
const HOST = /^(?:\[[0-9a-f:.]+\]|localhost|[^\s/?#@:.]+(?:\.[^\s/?#@:.]+)+\.?|[^\s/?#@:.]+(?=:\d))(?::\d{1,5})?(?:[/?#].*)?$/i;
const SCHEME = /^[a-z][a-z0-9+.-]*:(?!\d+(?:[/?#]|$))/i;

/** Null when good, else what is wrong with it. */
function fault(text: string, bare: "https" | "refuse"): string | null {
  if (text === "") return "empty";
  const [first] = expandBraces(text);
  const verdict = admitSeed(first ?? "", ANY_SEED, bare === "refuse" ? "refuse" : "try-both");
  if (verdict.kind === "bad") return verdict.why;
  return SCHEME.test(text) || HOST.test(text) ? null : "neither a URL nor a host name";
}

/** What is wrong with a URL or bare host given as an argument; null when it is good. */
export function argumentFault(text: string): string | null {
  return fault(text.trim(), "https");
}

/** Chunks to lines: CRLF or LF, a byte order mark taken away, UTF-16 read when its mark says so. */
async function* linesOf(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  let decoder: InstanceType<typeof TextDecoder> | null = null;
  let rest = "";
  for await (const chunk of chunks) {
    decoder ??= new TextDecoder(chunk[0] === 0xff && chunk[1] === 0xfe ? "utf-16le" : chunk[0] === 0xfe && chunk[1] === 0xff ? "utf-16be" : "utf-8");
    const lines = (rest + decoder.decode(chunk, { stream: true })).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) yield line.endsWith("\r") ? line.slice(0, -1) : line;
  }
  rest += decoder?.decode() ?? "";
  if (rest !== "") yield rest;
}

/** The cells of a CSV record (RFC 4180), or null when a quoted cell goes on in the next line. */
function cellsOf(record: string): string[] | null {
  const cells: string[] = [];
  let at = 0;
  for (;;) {
    if (record[at] === '"') {
      let cell = "";
      for (;;) {
        const quote = record.indexOf('"', at + 1);
        if (quote < 0) return null;
        cell += record.slice(at + 1, quote);
        at = quote + 1;
        if (record[at] !== '"') break;
        cell += '"';
      }
      const comma = record.indexOf(",", at);
      cells.push(cell + record.slice(at, comma < 0 ? undefined : comma));
      at = comma;
    } else {
      const comma = record.indexOf(",", at);
      cells.push(record.slice(at, comma < 0 ? undefined : comma));
      at = comma;
    }
    if (at < 0) return cells;
    at++;
  }
}

/** The last cell that is a URL, else the last that could be a host; null when there is none. */
function urlCell(cells: readonly string[]): string | null {
  const trimmed = cells.map((cell) => cell.trim());
  return (
    trimmed.findLast((cell) => /^https?:\/\//i.test(cell)) ??
    trimmed.findLast((cell) => HOST.test(cell) && !/^[\d.,:-]+$/.test(cell.replace(/^\d+\.\d+\.\d+\.\d+/, "x"))) ??
    null
  );
}

interface Line {
  readonly number: number;
  readonly text: string;
}

/** The seeds of a CSV file; its first line may be a heading. A line without URL or host is given whole, to be reported. */
async function* csvSeeds(lines: AsyncIterable<string>): AsyncGenerator<Line> {
  let number = 0;
  let open = "";
  let first = true;
  for await (const line of lines) {
    number++;
    const record = open === "" ? line : `${open}\n${line}`;
    const cells = cellsOf(record);
    open = cells === null && record.length < 100_000 ? record : "";
    if (cells === null && open !== "") continue;
    if (record.trim() === "" || record.startsWith("#")) continue;
    const found = cells === null ? null : urlCell(cells);
    if (found !== null || !first) yield { number, text: found ?? record };
    first = false;
  }
  if (open !== "") yield { number, text: open };
}

async function* plainSeeds(lines: AsyncIterable<string>): AsyncGenerator<Line> {
  let number = 0;
  for await (const line of lines) {
    number++;
    // A comment may also follow the URL; in a URL no blank stands before a "#".
    const text = line.replace(/(?:^|\s)#.*$/, "").trim();
    if (text !== "") yield { number, text };
  }
}

/** Gzip is told by its first bytes, whatever the name says. */
async function* decompressed(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const iterator = chunks[Symbol.asyncIterator]();
  const first = await iterator.next();
  if (first.done) return;
  async function* whole(): AsyncGenerator<Uint8Array> {
    yield first.value;
    yield* { [Symbol.asyncIterator]: () => iterator };
  }
  if (first.value[0] !== 0x1f || first.value[1] !== 0x8b) {
    yield* whole();
    return;
  }
  // Loaded when needed: most runs have no such file.
  const [{ Readable }, { createGunzip }] = await Promise.all([import("node:stream"), import("node:zlib")]);
  const source = Readable.from(whole());
  const gunzip = createGunzip();
  source.on("error", (error) => gunzip.destroy(error));
  yield* source.pipe(gunzip);
}

async function* fileSeeds(path: string, sources: SeedSources): AsyncGenerator<Line> {
  const lines = linesOf(decompressed(path === "-" ? sources.stdin() : createReadStream(path)));
  try {
    yield* /\.csv(?:\.gz)?$/i.test(path) ? csvSeeds(lines) : plainSeeds(lines);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new CrawlError("invalid-options", `input file ${path === "-" ? "stdin" : path} cannot be read: ${why}`, { cause: error });
  }
}

async function* goodSeeds(sources: SeedSources): AsyncGenerator<string> {
  let number = 0;
  for await (const seed of sources.listed) {
    number++;
    const text = seed.trim();
    const why = fault(text, "https");
    if (why === null) yield text;
    else sources.onBad({ where: `argument ${number}`, text, why });
  }
  for (const path of sources.files) {
    const name = path === "-" ? "stdin" : path;
    for await (const line of fileSeeds(path, sources)) {
      const bare = !SCHEME.test(line.text);
      const text = bare && sources.defaultScheme !== null ? `${sources.defaultScheme}://${line.text}` : line.text;
      const why = bare && sources.defaultScheme !== null && !HOST.test(line.text) ? "neither a URL nor a host name" : fault(text, "refuse");
      if (why === null) yield text;
      else sources.onBad({ where: `${name}:${line.number}`, text: line.text, why });
    }
  }
}

/** What is wrong with the input files before any is read. */
export function checkInputFiles(files: readonly string[]): OptionProblem[] {
  const missing = files.flatMap((path) => {
    if (path === "-") return [];
    const known = statSync(path, { throwIfNoEntry: false });
    return known === undefined || known.isDirectory() ? [{ option: "--input-file", message: `${path}: ${known ? "is a folder" : "no such file"}` }] : [];
  });
  const twice = files.filter((path) => path === "-").length > 1 ? [{ option: "--input-file", message: "stdin (-) can be read only once" }] : [];
  return [...missing, ...twice];
}

/**
 * Good seeds in order, read as they are asked for; the first is read at once. Null, where there may be none: there is none at all, not even a bad one.
 * Throws CrawlError `no-seeds` when none is good. Braces are left to the crawl, which expands them as lazily.
 */
export async function openSeeds(sources: SeedSources, mayBeNone = false): Promise<AsyncIterable<string> | null> {
  let bad = 0;
  const onBad = (seed: BadSeed) => {
    bad++;
    sources.onBad(seed);
  };
  const seeds = goodSeeds({ ...sources, onBad });
  const first = await seeds.next();
  if (first.done) {
    if (mayBeNone && bad === 0) return null;
    throw new CrawlError(
      "no-seeds",
      bad === 0 ? "nothing to crawl: give a URL, or a file of URLs with -i" : bad === 1 ? "the one seed is not usable" : `none of the ${bad} seeds is usable`,
    );
  }
  async function* all(): AsyncGenerator<string> {
    yield first.value;
    yield* seeds;
  }
  return all();
}
