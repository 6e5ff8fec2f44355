/** A crawl whose loops run in threads (--threads): this one keeps the frontier and writes the outputs, they fetch and read. Decision 0022. */
import { CrawlError } from "../core/errors.ts";
import { type Claim, type Lease, returned, type Settled, type Token } from "../core/frontier.ts";
import type { Fetcher } from "../core/outcome.ts";
import type { CrawlRequest } from "../core/request.ts";
import type { SeedGrowth } from "../engine/parts.ts";
import { CONTROL, type Loop, type LoopInput, type LoopView } from "../engine/run.ts";
import { judgeLinks } from "./links.ts";
import { type Answer, type Batch, type Call, type FromThread, receivedError, type ThreadStart } from "./messages.ts";
import { specOf, viewOf } from "./parts.ts";
import { openSeat, type Seat } from "./seat.ts";
import { createTrials } from "./trials.ts";
import { createWaker } from "./wake.ts";

/** Most leases of a claim. */
const MAX_CLAIM = 128;
const PING_EVERY_MS = 1_000;
/** A thread that says nothing for so many pings is replaced, at the least: loading, or a page of many megabytes, takes its time. */
const LEAST_PINGS = 30;
/** Threads that die one after the other before any of them has settled a page. */
const MAX_STARTS = 3;
const HELD_MS = 1_000;

/** For the thread that only keeps the frontier. */
export const noFetcher: Fetcher = {
  fetch: () => Promise.reject(new CrawlError("internal", "this thread does not fetch")),
  abort: () => undefined,
  abortAll: () => undefined,
  [Symbol.asyncDispose]: async () => undefined,
};

type Heard = { readonly kind: "batch"; readonly seat: Seat; readonly batch: Batch } | { readonly kind: "ended"; readonly seat: Seat; readonly why: string };

export function createLoops({ cwd }: { readonly cwd: string }): (input: LoopInput) => Loop {
  return (input) => startLoops(input, cwd);
}

function startLoops(input: LoopInput, cwd: string): Loop {
  const { parts, frontier, gate, values, limits } = input;
  const { clock, spec } = parts;
  const threads = Math.min(spec.threads, spec.concurrency);
  const sent = specOf(spec, threads);
  const seats: Seat[] = [];
  const growth: SeedGrowth[] = [];
  const hosts = new Set<string>();
  const trials = createTrials();
  const waker = createWaker(clock);
  const { wake } = waker;
  let heard: Heard[] = [];
  let over = false;
  let leaving = false;
  let requestsBefore = 0;
  let deaths = 0;
  let waitingFor: LoopView["waitingFor"] = null;
  let failure: { readonly error: unknown } | null = null;

  function fail(error: unknown): void {
    failure ??= { error };
    wake();
  }

  /** Seeds come one by one; a thread needs to know of each host once, and of each widening of the scope. */
  function grown(one: SeedGrowth): void {
    const { seed } = one;
    if (seed !== null && seed.credentials === null && !seed.guessed) {
      const key = `${seed.url.startsWith("https:") ? "https" : "http"} ${seed.host}`;
      if (hosts.has(key)) return;
      hosts.add(key);
    }
    growth.push(one);
    for (const seat of seats) seat.tellGrowth(one);
  }

  function sit(place: number): void {
    const share = Math.floor(spec.concurrency / threads) + (place < spec.concurrency % threads ? 1 : 0);
    const start: ThreadStart = { spec: sent, seed: frontier.seed, cwd, concurrency: share, shared: input.shared === true, growth: [...growth] };
    let silent = 0;
    const seat = openSeat(start, {
      heard(message) {
        silent = 0;
        try {
          hear(seat, message);
        } catch (error) {
          // Of a hook or a listener.
          fail(error);
        }
      },
      ended(why) {
        pinger.cancel();
        heard.push({ kind: "ended", seat, why });
        wake();
      },
    });
    const most = Math.max(LEAST_PINGS, (2 * spec.parseTimeout) / PING_EVERY_MS);
    // Counted, not timed: a machine that slept has pinged nobody.
    const ping = () => {
      if (silent++ >= most) void seat.end("did not answer any more");
      else seat.post({ kind: "ping" });
      pinger = clock.after(PING_EVERY_MS, ping);
    };
    let pinger = clock.after(PING_EVERY_MS, ping);
    // One at a time: the others go on, and bring what is to be tried.
    seat.onTrial = trials.open && seats.every((other, at) => at === place || !other.onTrial);
    seats[place] = seat;
  }

  function hear(seat: Seat, message: FromThread): void {
    switch (message.kind) {
      case "ready":
        seat.ready = true;
        if (over || leaving) seat.post({ kind: "over" });
        break;
      case "batch":
        heard.push({ kind: "batch", seat, batch: message.batch });
        break;
      case "call":
        answer(message.call).then((result) => seat.gone || seat.post({ kind: "answer", id: message.id, answer: result }), fail);
        return;
      case "event": {
        const { event } = message;
        if (event.kind === "retry") parts.hooks.onRetry?.(event);
        parts.onEvent(event);
        return;
      }
      case "log":
        parts.log(message.level, message.message, message.fields);
        return;
      case "failed":
        fail(receivedError(message.error));
        return;
      case "left":
        seat.gone = true;
        void seat.end(null);
        break;
      case "pong":
        return;
    }
    waker.soon();
  }

  async function answer(call: Call): Promise<Answer> {
    switch (call.name) {
      case "add": {
        const counts = await frontier.add(call.requests);
        waker.soon();
        return counts;
      }
      case "renew":
        return frontier.renew(call.held);
      case "values":
        return frontier.values();
    }
  }

  /** Everything that was heard, in one settle step. */
  async function take(): Promise<void> {
    if (heard.length === 0) return;
    const batches: (Heard & { kind: "batch" })[] = [];
    const dead: (Heard & { kind: "ended" })[] = [];
    for (const one of heard) {
      if (one.kind === "ended") dead.push(one);
      else batches.push(one);
    }
    heard = [];
    const started: Batch["started"][number][] = [];
    const ended: Token[] = [];
    const settled: Settled[] = [];
    const links: CrawlRequest[] = [];
    for (const { seat, batch } of batches) {
      seat.view = batch.view;
      seat.room += batch.asked;
      const settledNow = new Set(batch.settled.map(({ token }) => token));
      for (const start of batch.started) if (!settledNow.has(start.token)) started.push(start);
      for (const token of batch.ended) if (!settledNow.has(token)) ended.push(token);
      for (const [host, tuning] of batch.tunes) await frontier.tune(host, tuning);
      const judged = judgeLinks(parts.admit, batch, seat.held);
      seat.tellTaken(judged.refused);
      for (const page of judged.settled) settled.push(page);
      for (const link of judged.links) links.push(link);
    }
    if (started.length + ended.length > 0) await frontier.progress(started, ended);
    if (settled.length > 0) await settle(settled, links);
    for (const one of dead) await bury(one);
  }

  async function settle(settled: readonly Settled[], links: readonly CrawlRequest[]): Promise<void> {
    for (const page of settled) limits.ended(page);
    const answers = await frontier.settle(settled, links);
    for (const [i, page] of settled.entries()) {
      for (const seat of seats) {
        const lease = seat.held.get(page.token);
        if (lease === undefined) continue;
        seat.held.delete(page.token);
        seat.settled(page);
        if (page.settlement.kind === "returned") continue;
        deaths = 0;
        trials.passed(lease);
      }
      if (answers[i] !== "applied") continue;
      for (const url of page.newSeeds ?? []) {
        parts.admit.scope.addSeed(url);
        parts.identity.movedSeeds.push(url);
      }
      if (page.values === undefined) continue;
      await input.onValues(page.values);
      for (const { key } of page.values) for (const seat of seats) seat.tellValue(key, values.get(key));
    }
    const limited = limits.settled(settled);
    if (limited !== null) await limited;
  }

  /** A thread has ended. Its leases go back; what it died of is found out by trying them one by one (trials.ts). */
  async function bury({ seat, why }: Heard & { kind: "ended" }): Promise<void> {
    requestsBefore += seat.view.requests;
    seat.view = { ...seat.view, inFlight: 0, requests: 0 };
    const place = seats.indexOf(seat);
    const lost = [...seat.held.values()];
    seat.held.clear();
    const leaves = over || leaving || failure !== null;
    if (lost.length > 0 && frontier.abandon !== undefined) {
      const [only] = lost;
      if (!leaves && threads > 1) trials.suspect(lost);
      // Of several one is to blame: all come back, and which one it is, is found out.
      if (leaves || lost.length > 1 || only === undefined) await giveBack(lost);
      else await frontier.abandon([only.token]);
    }
    if (leaves || place < 0) return;
    if (++deaths > MAX_STARTS * threads && lost.length === 0)
      throw new CrawlError("internal", `the threads of the crawl cannot be started: the last one ${why}`);
    parts.log("warn", "a thread was replaced", { why, pages: lost.length });
    sit(place);
  }

  /** One claim for all; answers how long to wait, 0 for "again at once". */
  async function claim(): Promise<number> {
    tryAlone();
    let room = 0;
    for (const seat of seats) if (seat.ready && !seat.gone && !seat.onTrial) room += Math.max(0, seat.room);
    if (room === 0) {
      // Nobody asks while all are busy, or none has started yet: a stop may have ended it by then.
      if (seats.every(({ held, gone, ready }) => held.size === 0 && (gone || !ready))) over ||= (await frontier.counts()).completed;
      waitingFor = null;
      return Infinity;
    }
    if (!gate.open()) {
      waitingFor = "output";
      gate.onOpen(wake);
      return Infinity;
    }
    const claimed: Claim = await frontier.claim(Math.min(room, MAX_CLAIM));
    switch (claimed.kind) {
      case "leases":
        for (const url of claimed.seeds) parts.admit.scope.addSeed(url);
        if (claimed.seeds.length > 0) for (const seat of seats) seat.tellSeeds(claimed.seeds);
        for (const url of claimed.seeds) growth.push({ scope: url, seed: null });
        // A thread may have died meanwhile.
        await giveBack(claimed.leases.filter((lease) => !giveOut(lease)));
        waitingFor = null;
        return 0;
      case "wait":
        waitingFor = claimed.cause;
        return claimed.waitMs;
      case "held":
        waitingFor = claimed.why === "outbox-full" ? "output" : "paused";
        return HELD_MS;
      case "drained":
        over = true;
        return Infinity;
    }
  }

  /** To the thread with the most room; what may have killed one waits for its trial. False: there is no room. */
  function giveOut(lease: Lease): boolean {
    if (trials.detains(lease)) {
      tryAlone();
      return true;
    }
    let best: Seat | null = null;
    for (const seat of seats) if (seat.ready && !seat.gone && !seat.onTrial && seat.room > (best?.room ?? 0)) best = seat;
    best?.give(lease);
    return best !== null;
  }

  async function giveBack(leases: readonly Lease[]): Promise<void> {
    if (leases.length > 0)
      await frontier.settle(
        leases.map(({ token }) => returned(token)),
        [],
      );
  }

  function tryAlone(): void {
    for (const seat of seats) {
      if (!seat.onTrial) continue;
      if (!trials.open) seat.onTrial = false;
      else if (seat.ready && !seat.gone && seat.held.size === 0 && seat.room > 0) {
        const lease = trials.next();
        if (lease !== null) seat.give(lease);
      }
    }
  }

  function tellAll(): void {
    const now = clock.epoch();
    const spent = limits.known();
    for (const seat of seats) seat.flush(now, spent);
  }

  async function turn(): Promise<void> {
    while (!over && !leaving) {
      if (failure !== null) throw failure.error;
      waker.forget();
      await take();
      const waitMs = await claim();
      tellAll();
      if (waitMs > 0 && !over) await waker.next(waitMs);
    }
    if (over) for (const seat of seats) if (seat.ready && !seat.gone) seat.post({ kind: "over" });
    // What was aborted is still said, and one that starts must not outlive the crawl.
    for (;;) {
      if (failure !== null) throw failure.error;
      waker.forget();
      await take();
      for (const seat of seats) if (!seat.ready && !seat.gone) void seat.end(null);
      if (seats.every(({ gone }) => gone) && heard.length === 0) return;
      await waker.next(Infinity);
    }
  }

  async function run(): Promise<void> {
    try {
      await turn();
    } finally {
      parts.identity.onGrowth = null;
      over = true;
      await Promise.all(seats.map((seat) => seat.end(null)));
    }
  }

  parts.identity.onGrowth = grown;
  for (let place = 0; place < threads; place++) sit(place);

  return {
    done: run(),
    async stop(mode) {
      await frontier.control(CONTROL[mode]);
      if (mode !== "queue") await giveBack(trials.release());
      for (const seat of seats) if (seat.ready && !seat.gone) seat.post({ kind: "stop", mode });
      wake();
    },
    leave(abort = false) {
      leaving = true;
      void giveBack(trials.release()).catch(fail);
      for (const seat of seats) if (seat.ready && !seat.gone) seat.post({ kind: "leave", abort });
      wake();
    },
    wake,
    view: () => viewOf(seats, requestsBefore, waitingFor),
  };
}
