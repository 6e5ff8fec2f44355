/** Records as text, plain or gzipped, gathered into batches and appended to a file; says where it stands and goes on there. Knows nothing of formats. */
import { realClock } from "../core/clock.ts";
import { CrawlError } from "../core/errors.ts";
import type { SinkState } from "../core/sink.ts";
import { type LineBuffer, lineBuffer } from "../rules/lines.ts";
import { appendFile, notAsLeft } from "./file.ts";
import { gzipSteps } from "./gzip.ts";

/** Plain text goes out in batches of about this many bytes. */
const BATCH_BYTES = 64 * 1024;
/** A step of a gzip member takes up to so much text: larger gains nothing, and holds the crawl up. */
const STEP_BYTES = 256 * 1024;
/** A slow crawl's records are seen at the latest with the first write after so long. */
const STALE_MS = 250;

export interface TextFile {
  /** Records whole in the file and in the batch. */
  readonly records: number;
  /** Append a record here, then call `endRecord`. */
  readonly lines: LineBuffer;
  endRecord(): void;
  /** After each batch of outputs: hands the text on when enough came together. Throws CrawlError `output-unwritable`. */
  settle(): void;
  flush(): void;
  checkpoint(sync: boolean): SinkState;
  /** Idempotent. `end` gives what the format wants there. A file that got no record, although `settle` was called, is replaced; one that was never settled is left alone. */
  close(end: (empty: boolean) => string): void;
}

/** What is in the saved state of a text file. `bytes` is null when nothing was settled yet, 0 when nothing was written. */
interface TextState {
  readonly bytes: number | null;
  readonly mark: number;
  readonly records: number;
  readonly crc: number;
  readonly size: number;
}

function readState(state: SinkState | null, form: string, path: string): TextState | null {
  if (state === null) return null;
  const number = (name: string): number => {
    const value = state[name];
    if (typeof value !== "number" || !(value >= 0)) throw notAsLeft(path, "the saved state is not that of such a file");
    return value;
  };
  if (state.form !== form) throw notAsLeft(path, `the saved state is that of another output (${state.form ?? "?"}, not ${form})`);
  return { bytes: state.bytes === null ? null : number("bytes"), mark: number("mark"), records: number("records"), crc: number("crc"), size: number("size") };
}

/** `target`: a path or a file descriptor, which stays open. `form` names what is in it: a state of another form is refused. */
export function textFile(target: string | number, options: { readonly gzip: boolean; readonly form: string; readonly state: SinkState | null }): TextFile {
  const name = typeof target === "number" ? "stdout" : target;
  const at = readState(options.state, options.form, name);
  const begun = at !== null && at.bytes !== null && at.bytes > 0;
  const file = appendFile(target, at === null || at.bytes === null ? null : { bytes: at.bytes, mark: at.mark });
  const gzip = options.gzip ? gzipSteps(begun ? { crc: at.crc, size: at.size } : null) : null;
  const lines = lineBuffer();
  /** Where records end in `lines`. */
  const ends: number[] = [];
  let records = begun ? at.records : 0;
  let settled = at !== null && at.bytes !== null;
  let drainedAt = realClock.now();
  let closed = false;
  let failure: CrawlError | null = null;
  /** What the file's gzip member holds; `gzip` itself is ahead of it when a step could not be written. */
  let packed = gzip?.state() ?? null;

  function append(text: Uint8Array): void {
    try {
      file.append(gzip === null ? text : gzip.step(text), gzip === null ? ends : []);
      packed = gzip?.state() ?? null;
    } catch (error) {
      // Every failure of the file is one; what is not is ours.
      failure = error instanceof CrawlError ? error : new CrawlError("internal", `cannot write ${name}`, { cause: error });
      throw failure;
    } finally {
      ends.length = 0;
    }
  }

  function drain(): void {
    if (failure !== null) throw failure;
    if (lines.size === 0) return;
    drainedAt = realClock.now();
    append(lines.take());
  }

  /** After a failure: the end of what was saved before, so that a crawl in memory leaves a valid file if a few bytes fit. */
  function endAfterFailure(end: string): void {
    if (file.length === 0) return;
    const text = Buffer.from(end);
    try {
      const rest = packed === null ? null : gzipSteps(packed);
      file.append(rest === null ? text : Buffer.concat([rest.step(text), rest.end()]), []);
    } catch {
      // The failure itself was told when it happened.
    }
  }

  return {
    lines,
    get records() {
      return records;
    },
    endRecord() {
      records++;
      ends.push(lines.size);
    },
    settle() {
      settled = true;
      if (failure !== null) throw failure;
      if (lines.size >= (gzip === null ? BATCH_BYTES : STEP_BYTES) || (gzip === null && realClock.now() - drainedAt >= STALE_MS)) drain();
    },
    flush: drain,
    checkpoint(sync) {
      drain();
      if (sync) file.sync();
      const { bytes, mark } = file.state();
      return { form: options.form, bytes: settled ? bytes : null, mark, records, ...(gzip?.state() ?? { crc: 0, size: 0 }) };
    },
    close(end) {
      if (closed) return;
      closed = true;
      try {
        if (failure !== null) return endAfterFailure(end(false));
        drain();
        if (!settled) return;
        const text = end(records === 0);
        if (text !== "") append(Buffer.from(text));
        if (gzip !== null) file.append(gzip.end(), []);
        file.create();
      } finally {
        file.close();
      }
    },
  };
}
