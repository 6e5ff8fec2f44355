/** What a command finds in its state directory, and what it does about it. Pure: the decision and its one line. */
import { type CrawlSpec, options } from "../core/spec.ts";
import { reasonWords } from "./reasons.ts";

/** What a state directory holds. */
export interface FoundRun {
  readonly spec: CrawlSpec;
  /** Completed: nothing is left, or a limit or stop ended it. */
  readonly completed: boolean;
  /** Requests queued, delayed or lost with the last process. */
  readonly left: number;
  readonly counted: number;
  /** Ms of work, bytes on the wire, failed pages and items so far. */
  readonly elapsedMs: number;
  readonly bytes: number;
  readonly failed: number;
  readonly items: number;
  /** Items that the limit cut off: their pages are done. */
  readonly itemsCut: number;
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

/** Whether the limit that ended the run leaves room now. */
function isRaised(found: FoundRun, { limits }: CrawlSpec): boolean {
  switch (found.finishReason) {
    case "limit-pages":
      return limits.pages === null || limits.pages > found.counted;
    case "limit-items":
      return found.itemsCut === 0 && (limits.items === null || limits.items > found.items);
    case "limit-time":
      return limits.time === null || limits.time > found.elapsedMs;
    case "limit-bytes":
      return limits.bytes === null || limits.bytes > found.bytes;
    case "limit-errors":
      return limits.errors === null || limits.errors >= found.failed;
    default:
      return false;
  }
}

export function decideResume(found: FoundRun, now: CrawlSpec, dir: string): ResumeDecision {
  const goesOn = found.completed && found.left > 0 && isRaised(found, now);
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
  const why = goesOn ? `the crawl in ${dir} ${ended}: going on` : `resuming the unfinished crawl in ${dir}`;
  return { kind: "resume", say: `${why} (${counted} done, ${found.left} queued)` };
}
