/** Everything that is wrong with a request, gathered before it is refused: its head, its options and its lines, each with its place. Makes no job. */
import type { RejectedLine } from "../core/jobs.ts";
import { admitSeed } from "../rules/admit.ts";
import { expandBraces, shownSeed } from "../rules/seeds.ts";
import { type Bytes, linesOf } from "./bytes.ts";
import { HttpProblem, type ProblemEntry } from "./problem.ts";
import { withoutUser } from "./views.ts";

/** Of one kind, in one answer. */
export const MOST_ERRORS = 100;

/** Where the URLs of a request stand. */
export interface SeedPlace {
  readonly option: "seeds" | "urls";
  /** Of a list in JSON (RFC 6901), with `#` before it; null: they are lines. */
  readonly pointer: string | null;
}

/** URLs that came in JSON; null: an entry that is no text, which is told of apart. */
export type Entries = readonly (string | null)[];

export interface Entered {
  /** Null: there is no list. */
  readonly list: Entries | null;
  readonly faults: readonly ProblemEntry[];
}

/** A list of URLs in JSON, each text as it stands. Names every entry that is no text, the first hundred at least. */
export function entriesOf(value: unknown, { option, pointer }: SeedPlace): Entered {
  const place = pointer ?? "#";
  if (!Array.isArray(value)) return { list: null, faults: [{ option, pointer: place, message: "expected a list of URLs" }] };
  const all: readonly unknown[] = value;
  const list = all.map((entry) => (typeof entry === "string" ? entry : null));
  const faults = list.flatMap((entry, index) => (entry === null ? [{ option, pointer: `${place}/${index}`, message: "expected a text" }] : []));
  return { list, faults: faults.slice(0, MOST_ERRORS) };
}

/** Runs what pulls the lines of a body; rejects with the body's own fault where that is why it failed, whatever became of it on its way through the store. */
export async function pulling<T>(bytes: Bytes, work: (lines: AsyncIterable<string>) => Promise<T>): Promise<T> {
  let failure: unknown = null;
  try {
    return await work(linesOf(bytes, (error) => (failure = error)));
  } catch (error) {
    throw failure ?? error;
  }
}

export interface Judged {
  readonly good: boolean;
  readonly rejected: readonly RejectedLine[];
  readonly rejectedTotal: number;
}

/** Of a range `{1..1000}` so many are looked at. */
const MOST_OF_RANGE = 1_000;

/** Which lines are no URLs, as they would be told if they were kept (store/jobs/seeds.ts). None is held in memory but those that are named. */
export async function judgeLines(
  lines: AsyncIterable<string> | Iterable<string | null>,
  how: { readonly bareScheme: "http" | "https" | "refuse"; readonly emptyLines: "skip" | "reject" },
): Promise<Judged> {
  const rejected: RejectedLine[] = [];
  let [line, rejectedTotal, good] = [0, 0, false];
  for await (const text of lines) {
    line++;
    const trimmed = text?.trim() ?? "";
    if (text === null || (trimmed === "" ? how.emptyLines === "skip" : trimmed.startsWith("#"))) continue;
    let looked = 0;
    for (const seed of expandBraces(text)) {
      const verdict = admitSeed(seed, [0, 0, 0, 0], how.bareScheme);
      if (verdict.kind === "seed") {
        good = true;
        if (++looked < MOST_OF_RANGE) continue;
        break;
      }
      rejectedTotal++;
      const reason = verdict.why.replace(", or give --default-scheme", "");
      if (rejected.length < MOST_ERRORS) rejected.push({ line, text: shownSeed(seed.trim()), reason });
      break;
    }
  }
  return { good, rejected, rejectedTotal };
}

const shownLines = (rejected: readonly RejectedLine[]) => rejected.map(({ line, text, reason }) => ({ line, text: withoutUser(text), reason }));

/** Further members of an answer about lines that are no URLs. */
export function rejections({ rejected, rejectedTotal }: Omit<Judged, "good">): Readonly<Record<string, unknown>> {
  if (rejectedTotal === 0) return {};
  return { rejected: shownLines(rejected), ...(rejectedTotal > rejected.length ? { rejectedTotal } : {}) };
}

/** What is wrong with lines of which none is a URL. */
function seedFaults({ rejected, rejectedTotal }: Omit<Judged, "good">, { option, pointer }: SeedPlace): { detail: string; errors: readonly ProblemEntry[] } {
  if (rejectedTotal === 0) {
    const detail = "there is no URL in the body";
    return { detail, errors: [{ option, ...(pointer === null ? {} : { pointer }), message: detail }] };
  }
  const errors = shownLines(rejected).map(({ line, text, reason }) => ({
    ...(pointer === null ? {} : { option, pointer: `${pointer}/${line - 1}` }),
    ...{ line, text, message: reason },
  }));
  return { detail: rejectedTotal === 1 ? "the line is no URL" : `none of the ${rejectedTotal} lines is a URL`, errors };
}

export function noSeeds(lines: Omit<Judged, "good">, place: SeedPlace): HttpProblem {
  return new HttpProblem({ status: 400, ...seedFaults(lines, place), more: rejections(lines) });
}

const spelt = ({ option = "", message }: ProblemEntry): string => (option === "" ? message : `${option}: ${message}`);

/** A body that cannot be read, beside what was found before. */
export function besides(faults: readonly ProblemEntry[], error: unknown): unknown {
  if (faults.length === 0 || !(error instanceof HttpProblem)) return error;
  const { details } = error;
  const errors = [...faults, ...(details.errors ?? [{ option: "", message: details.detail }])];
  return new HttpProblem({ ...details, status: 400, detail: [...faults.map(spelt), details.detail].join("; "), errors });
}

/** What the request is refused for: of its query, head and form, and of its options. */
export interface Faults {
  readonly head: readonly ProblemEntry[];
  readonly options: readonly ProblemEntry[];
}

export interface Lines {
  readonly place: SeedPlace;
  /** Null: there is no list. */
  readonly list: Entries | null;
  /** Streamed lines; null: the list is all there is. */
  readonly bytes: Bytes | null;
  readonly bareScheme: "http" | "https" | "refuse";
  /** Without a URL there is nothing to do. */
  readonly needed: boolean;
}

/** Of a request that has these faults: reads its lines as well, holding none, and names everything at once. */
export async function refusal({ head, options }: Faults, { place, list, bytes, bareScheme, needed }: Lines): Promise<unknown> {
  const known = [...head, ...options];
  let judged: Judged = { good: true, rejected: [], rejectedTotal: 0 };
  try {
    if (bytes !== null) judged = await pulling(bytes, (lines) => judgeLines(lines, { bareScheme, emptyLines: "skip" }));
    else if (list !== null) judged = await judgeLines(list, { bareScheme, emptyLines: "reject" });
  } catch (error) {
    return besides(known, error);
  }
  const sentence = options.length === 0 ? [] : [options.length === 1 ? "an option is wrong" : `${options.length} options are wrong`];
  const isNone = needed && !judged.good && (judged.rejectedTotal > 0 || list === null || list.every((entry) => entry !== null));
  const seeds = isNone ? seedFaults(judged, place) : null;
  return new HttpProblem({
    status: 400,
    detail: [...head.map(spelt), ...sentence, ...(seeds === null ? [] : [seeds.detail])].join("; "),
    errors: [...known.slice(0, 2 * MOST_ERRORS), ...(seeds?.errors ?? [])],
    more: rejections(judged),
  });
}
