/** What a command finds in its state directory, and what it does about it. Pure: the decision and its one line. */
import { CrawlError } from "../core/errors.ts";
import { type CrawlSpec, options } from "../core/spec.ts";
import { limitWords, reasonWords } from "./reasons.ts";

/** What a state directory holds. */
export interface FoundRun {
  readonly spec: CrawlSpec;
  /** Completed: nothing is left, or a limit or stop ended it. */
  readonly completed: boolean;
  /** Requests queued, delayed or lost with the last process. */
  readonly left: number;
  /** All its seeds are in: it can go on without them. */
  readonly seedsRead: boolean;
  readonly counted: number;
  /** Ms of work, bytes on the wire, failed pages and items so far. */
  readonly elapsedMs: number;
  readonly bytes: number;
  readonly failed: number;
  readonly items: number;
  readonly finishReason: string | null;
}

export type ResumeDecision =
  /** Goes on where the last run ended. */
  | { readonly kind: "resume"; readonly say: string }
  /** The last run is over: a new one, in which any option may differ. */
  | { readonly kind: "new-run"; readonly say: string }
  /** Options changed that an unfinished run cannot change; `changed` as a user knows them. */
  | { readonly kind: "refuse"; readonly changed: readonly string[]; readonly say: string };

/** Where and how it runs; changes nothing of what comes out. */
const OF_THE_MACHINE: ReadonlySet<string> = new Set(["stateDir", "store", "durability", "parseWorkers", "parseTimeout", "cacheSize"]);

/** May change while a run is unfinished: limits, concurrency and politeness (product contract, section 4). */
function mayChange(path: string): boolean {
  const node = options().find((option) => option.path === path);
  if (path === "robots") return false;
  return node === undefined || node.meta.group === "limits" || node.meta.group === "politeness" || OF_THE_MACHINE.has(path);
}

function valueAt(spec: CrawlSpec, path: string): unknown {
  let value: unknown = spec;
  for (const key of path.split(".")) value = typeof value === "object" && value !== null ? Reflect.get(value, key) : undefined;
  return value;
}

/** Paths of options that differ and must not. */
export function forbiddenChanges(before: CrawlSpec, now: CrawlSpec): string[] {
  return options()
    .map(({ path }) => path)
    .filter((path) => !mayChange(path) && JSON.stringify(valueAt(before, path)) !== JSON.stringify(valueAt(now, path)));
}

/** The flag by which a user knows an option, or its name in the spec. */
function spelled(path: string): string {
  const flag = options().find((option) => option.path === path)?.meta.flag;
  return flag === undefined ? path : `--${flag}`;
}

interface Limit {
  /** Null: there is none. */
  readonly before: number | null;
  readonly now: number | null;
  /** Whether the run has spent as much already. */
  passed(limit: number): boolean;
}

/** The limit that ended the run; null: none did. */
function limitOf(found: FoundRun, { limits }: CrawlSpec): Limit | null {
  const before = found.spec.limits;
  switch (found.finishReason) {
    case "limit-pages":
      return { before: before.pages, now: limits.pages, passed: (limit) => found.counted >= limit };
    case "limit-items":
      return { before: before.items, now: limits.items, passed: (limit) => found.items >= limit };
    case "limit-time":
      return { before: before.time, now: limits.time, passed: (limit) => found.elapsedMs >= limit };
    case "limit-bytes":
      return { before: before.bytes, now: limits.bytes, passed: (limit) => found.bytes >= limit };
    case "limit-errors":
      return { before: before.errors, now: limits.errors, passed: (limit) => found.failed > limit };
    default:
      return null;
  }
}

/** A larger one is larger even where the run has passed it already: then it ends at once, and keeps what it has. */
const isRaised = ({ before, now, passed }: Limit): boolean => now === null || (before === null ? !passed(now) : now > before);

export function decideResume(found: FoundRun, now: CrawlSpec, dir: string): ResumeDecision {
  const limit = limitOf(found, now);
  const goesOn = found.completed && (found.left > 0 || !found.seedsRead) && limit !== null && isRaised(limit);
  const counted = `${found.counted} page${found.counted === 1 ? "" : "s"}`;
  const ended = reasonWords(found.finishReason ?? "finished", found.spec.limits);
  if (found.completed && !goesOn) {
    const over = ended === "finished" ? `finished (${counted})` : `over (${ended}, ${counted})`;
    return { kind: "new-run", say: `the crawl in ${dir} is ${over}: starting a new run` };
  }
  const changed = forbiddenChanges(found.spec, now).map(spelled);
  if (changed.length > 0) {
    const names = changed.join(", ");
    return {
      kind: "refuse",
      changed,
      say: `the crawl in ${dir} is unfinished and was started with other options: ${names}. Use the same ones to resume it, or --fresh to drop it`,
    };
  }
  return {
    kind: "resume",
    say: `${goesOn ? goingOn(found, now, dir, limit) : `resuming the unfinished crawl in ${dir}`} (${counted} done, ${found.left} queued)`,
  };
}

/**
 * What is wrong with a command that names no seed: it may only go on. `its-own`: it reads the seeds that the run was started with; `none`: there are none,
 * and the run must have read all of its. Null: nothing.
 */
export function unnamedFault(decision: ResumeDecision["kind"], found: FoundRun, unnamed: "its-own" | "none", name: string): string | null {
  if (decision === "new-run") return `${name} is over`;
  const lacks = decision === "resume" && unnamed === "none" && !found.seedsRead;
  return lacks ? `of ${name} not all seeds were read: give it the same list again, what is known is passed over` : null;
}

export const noSeeds = (why: string): CrawlError => new CrawlError("no-seeds", `nothing to crawl: no seed was given, and ${why}`);

function goingOn(found: FoundRun, { limits }: CrawlSpec, dir: string, { now, passed }: Limit): string {
  const ended = `the crawl in ${dir} ${reasonWords(found.finishReason ?? "finished", found.spec.limits)}`;
  if (now === null || !passed(now)) return `${ended}: going on`;
  return `${ended}, and has passed ${limitWords(found.finishReason ?? "", limits)} already: nothing is fetched, and nothing is dropped`;
}
