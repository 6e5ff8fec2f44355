/** One parse worker as the loop sees it: what was posted to it, whether it answers, how it died. Which page it gets is decided by pool.ts. */
import type { EventLoopUtilization } from "node:perf_hooks";
import { Worker } from "node:worker_threads";
import type { ScrapeLog, ScrapeOutcome, ScrapeTask } from "../../core/scraping.ts";
import type { ModuleFacts } from "./module.ts";
import type { OwnFiles } from "./own-files.ts";
import {
  type FromWorker,
  type LearntValues,
  type ScraperSource,
  SHARED_BYTES,
  SLOTS,
  sharedNow,
  sharedOf,
  type ToWorker,
  takeOut,
  type WorkerStart,
} from "./protocol.ts";
import type { Ranked } from "./waiting.ts";

/** A page on its way through the pool. */
export interface Job extends Ranked {
  readonly id: number;
  readonly task: ScrapeTask;
  /** Times it was begun with and lost. */
  losses: number;
  /** Given up: nobody waits for it any more. */
  over: boolean;
  readonly resolve: (outcome: ScrapeOutcome) => void;
}

export interface ThreadOptions {
  readonly source: ScraperSource;
  readonly own: OwnFiles;
  readonly memoryMb: number;
  readonly log: ScrapeLog;
}

export interface ThreadEvents {
  ready(facts: ModuleFacts): void;
  /** The scraper cannot be loaded; the thread is of no use. */
  unusable(refusal: FromWorker & { kind: "unusable" }): void;
  ended(job: Job, outcome: ScrapeOutcome): void;
  /** It is dead, once. `running`: the page it had begun with; `others`: those it had not. */
  lost(why: string, running: Job | null, others: readonly Job[]): void;
}

export interface Thread {
  /** Posted and not ended, oldest first. */
  readonly jobs: readonly Job[];
  readonly ready: boolean;
  post(job: Job, values: LearntValues | null): void;
  /** The page that is ready and was not begun with; null: there is none. */
  takeBack(): Job | null;
  /** How long it has been at what it does, ms: loading, a page, or nothing although there is a page. Null: it is idle. */
  busyFor(): { readonly ms: number; readonly job: Job | null } | null;
  /** Fires the abort signal of the running page, if the thread still hears. */
  abort(): void;
  kill(why: string): void;
  /** Ms of CPU since it was ready. */
  activeMs(): number;
  /** Ends it without a word. */
  dispose(): Promise<void>;
}

interface Posted {
  readonly job: Job;
  readonly slot: number;
}

export function startThread(options: ThreadOptions, events: ThreadEvents): Thread {
  const memory = new SharedArrayBuffer(SHARED_BYTES);
  const shared = sharedOf(memory);
  const worker = createWorker(options, memory);
  let posted: readonly Posted[] = [];
  let jobs: readonly Job[] = [];
  let ready = false;
  let dead = false;
  let why: string | null = null;
  /** Since when the oldest page is the oldest, or since when the module loads. */
  let since = sharedNow();
  let posts = 0;
  let atReady: EventLoopUtilization | null = null;
  let activeMs = 0;

  function keep(next: readonly Posted[]): void {
    if (next[0] !== posted[0]) since = sharedNow();
    posted = next;
    jobs = posted.map(({ job }) => job);
    // An idle thread must not keep the process from ending.
    if (jobs.length > 0) worker.ref();
    else worker.unref();
  }

  /** A dead thread tells nothing: the last figure stands. */
  function measure(): number {
    if (atReady !== null && !dead) activeMs = Math.max(activeMs, worker.performance.eventLoopUtilization().active - atReady.active);
    return activeMs;
  }

  const begun = ({ slot, job }: Posted) => Atomics.load(shared.slots, slot) !== job.id;

  function die(): void {
    if (dead) return;
    dead = true;
    const [head] = posted;
    const running = head !== undefined && begun(head) ? head.job : null;
    events.lost(
      why ?? "ended",
      running,
      jobs.filter((job) => job !== running),
    );
  }

  function hear(message: FromWorker): void {
    if (dead) return;
    switch (message.kind) {
      case "ready":
        ready = true;
        atReady = worker.performance.eventLoopUtilization();
        worker.unref();
        events.ready(message.facts);
        break;
      case "unusable":
        dead = true;
        events.unusable(message);
        break;
      case "log":
        options.log(message.level, message.message, message.fields);
        break;
      case "ended": {
        const found = posted.find(({ job }) => job.id === message.id);
        if (found === undefined) break;
        keep(posted.filter((one) => one !== found));
        events.ended(found.job, message.outcome);
        break;
      }
    }
  }

  worker.on("message", hear);
  worker.on("error", (error) => {
    const noMemory = "code" in error && error.code === "ERR_WORKER_OUT_OF_MEMORY";
    why ??= noMemory ? `ran out of memory (its limit is ${options.memoryMb} MB)` : `failed: ${error.message}`;
  });
  worker.on("exit", (code) => {
    why ??= `was ended by the scraper (exit code ${code})`;
    die();
  });

  return {
    get jobs() {
      return jobs;
    },
    get ready() {
      return ready && !dead;
    },
    post(job, values) {
      const slot = posts++ % SLOTS;
      // The task is kept for a second try: a copy of the body travels, and only it, whatever larger buffer it may be part of.
      const body = new Uint8Array(job.task.body);
      Atomics.store(shared.slots, slot, job.id);
      const message: ToWorker = { kind: "task", id: job.id, slot, task: { ...job.task, body }, values };
      worker.postMessage(message, [body.buffer]);
      keep([...posted, { job, slot }]);
    },
    takeBack() {
      const last = posted.at(-1);
      if (last === undefined || !takeOut(shared, last.slot, last.job.id)) return null;
      // Its slot is used next.
      posts--;
      keep(posted.slice(0, -1));
      return last.job;
    },
    busyFor() {
      if (dead) return null;
      measure();
      const [head] = posted;
      if (head === undefined) return ready ? null : { ms: sharedNow() - since, job: null };
      return begun(head) ? { ms: sharedNow() - shared.begun[0]!, job: head.job } : { ms: sharedNow() - since, job: null };
    },
    abort() {
      const [head] = posted;
      if (head !== undefined && !dead) worker.postMessage({ kind: "abort", id: head.job.id } satisfies ToWorker);
    },
    kill(reason) {
      why ??= reason;
      // Nothing is left to be said of it: what it does meanwhile is lost with it.
      void worker.terminate();
      die();
    },
    activeMs: measure,
    async dispose() {
      dead = true;
      await worker.terminate();
    },
  };
}

function createWorker({ source, own, memoryMb }: ThreadOptions, memory: SharedArrayBuffer): Worker {
  const start: WorkerStart = { source, own, shared: memory };
  return new Worker(new URL(own.worker), {
    workerData: start,
    execArgv: moduleFlags(process.execArgv),
    resourceLimits: { maxOldGenerationSizeMb: memoryMb },
    name: "skein parse worker",
  });
}

const MODULE_FLAG = /^(--import|--require|-r|--loader|--experimental-loader|--conditions|-C)(=|$)/;

/** Of the flags of this process those that say how modules are loaded: a thread that starts with a file refuses many others. */
export function moduleFlags(flags: readonly string[]): string[] {
  const kept: string[] = [];
  for (let i = 0; i < flags.length; i++) {
    const [, , ending] = MODULE_FLAG.exec(flags[i]!) ?? [];
    if (ending === "=") kept.push(flags[i]!);
    else if (ending === "" && i + 1 < flags.length) kept.push(flags[i]!, flags[++i]!);
  }
  return kept;
}
