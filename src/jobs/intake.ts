/** How jobs come to be, and more URLs to a job: their seeds are stored as they arrive, and the job is there once all of them are. */
import { mkdirSync, renameSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { CrawlError } from "../core/errors.ts";
import type { Created, JobService, NewJob } from "../core/jobs.ts";
import type { AddedSeeds } from "../engine/adding.ts";
import type { JobRow } from "../store/jobs/book.ts";
import { readSeeds, SEEDS_SHOWN, takeSeeds } from "../store/jobs/seeds.ts";
import { hasEnded, specOf } from "./keeper.ts";
import { countKnown } from "./known.ts";
import type { JobKeeper, JobsOptions } from "./parts.ts";
import { type RunningJob, SEEDS_FILE } from "./run.ts";
import { jobOptions, scraperFile } from "./spec.ts";

export function createIntake(keeper: JobKeeper, options: JobsOptions): Pick<JobService, "create" | "addUrls"> {
  const { dir, maxJobs = 10_000, maxUrls = 10_000_000 } = options;
  const { book, change, clock, dirOf, home, log, policy, viewOf } = keeper;
  const turns = createTurns();

  async function createOnce({ spec: given, lines, idempotency, emptyLines = "skip" }: NewJob): Promise<Created> {
    if (keeper.closing) throw new CrawlError("state-unwritable", "the service is about to stop");
    const known = idempotency === null ? null : book.keyed(idempotency.key);
    if (idempotency !== null && known !== null) {
      const row = book.get(known.id);
      for await (const _ of lines); // the fingerprint is known at their end
      if (row !== null) {
        const { rejected, rejectedTotal } = row;
        const same = idempotency.fingerprint === known.fingerprint;
        return same ? { kind: "repeated", job: await viewOf(row), rejected, rejectedTotal } : { kind: "conflict", job: await viewOf(row) };
      }
    }
    const spec = jobOptions(given);
    if (spec.scraper !== null) scraperFile(spec.scraper, policy);
    if (keeper.busy >= maxJobs) return { kind: "too-many", what: "jobs", limit: maxJobs };
    const folder = join(dir, "incoming", crypto.randomUUID());
    mkdirSync(folder, { mode: 0o700 });
    try {
      const intake = { bytes: 0, total: 0, bareScheme: spec.defaultScheme ?? "refuse", emptyLines, most: maxUrls } as const;
      const { first, bytes, total, rejected, rejectedTotal, tooMany } = await takeSeeds(join(folder, SEEDS_FILE), lines, intake);
      if (tooMany) return { kind: "too-many", what: "urls", limit: maxUrls };
      if (total === 0 && !spec.sitemaps.some((url) => url !== "auto")) return { kind: "no-seeds", rejected, rejectedTotal };
      const nonce = crypto.randomUUID().slice(0, 8);
      const row = book.add(
        { spec: JSON.stringify(spec), nonce, seeds: first, seedsTotal: total, seedsBytes: bytes, createdAt: clock.epoch(), rejected, rejectedTotal },
        idempotency === null ? null : { key: idempotency.key, fingerprint: idempotency.fingerprint },
        (id) => renameSync(folder, dirOf(id)),
      );
      keeper.enqueue(row.id);
      keeper.hubOf(row.id).emit({ kind: "state", state: "queued", finishReason: null });
      // The answer says what was made; it starts when others have had their turn.
      const view = await viewOf(row);
      clock.soon(keeper.pump);
      return { kind: "created", job: view, rejected, rejectedTotal };
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  }

  const UNKNOWN = { kind: "unknown" as const };
  const conflict = async (row: JobRow, why: string) => ({ kind: "conflict" as const, job: await viewOf(row), why });

  async function addUrls(id: number, lines: AsyncIterable<string> | Iterable<string>): ReturnType<JobService["addUrls"]> {
    const before = book.get(id);
    if (before === null) return UNKNOWN;
    if (hasEnded(before)) return conflict(before, "the job has ended");
    if (before.state === "stopping") return conflict(before, "the job is stopping");
    // Before anything is read: where its crawl takes no changes now, nothing is changed.
    if (keeper.runOf(id) !== undefined) await home.tell(async () => undefined);
    else if (!(await home.holdOpen(before))) return conflict(before, "the job came to its end");
    const path = join(dirOf(id), SEEDS_FILE);
    const intake = { bytes: before.seedsBytes, total: before.seedsTotal, emptyLines: "skip", most: maxUrls } as const;
    const taken = await takeSeeds(path, lines, { ...intake, bareScheme: specOf(before).defaultScheme ?? "refuse" });
    const row = book.get(id);
    if (row === null) return UNKNOWN;
    if (hasEnded(row)) return conflict(row, "the job has ended");
    const { rejected, rejectedTotal, tooMany, bytes, total, first } = taken;
    if (tooMany) return conflict(row, `a job takes at most ${maxUrls} URLs`);
    const fresh = () => readSeeds(path, before.seedsBytes, bytes);
    const guess = () => ({ ...countKnown(readSeeds(path, 0, before.seedsBytes), fresh(), specOf(row).defaultScheme), rejected, rejectedTotal });
    // From here on a restart reads them too.
    const note = () => void change(id, { seedsBytes: bytes, seedsTotal: total, seeds: [...row.seeds, ...first].slice(0, SEEDS_SHOWN) });
    const undo = () => {
      // Others may have been added after them.
      if (book.get(id)?.seedsBytes === bytes) change(id, { seedsBytes: before.seedsBytes, seedsTotal: before.seedsTotal, seeds: before.seeds });
    };
    const run = keeper.runOf(id);
    if (run === undefined) {
      note();
      return guess();
    }
    const counts = await addTo(run, { row, lines: fresh(), note, undo });
    if (counts === "later") return guess();
    if (counts !== null) return { added: counts.added, known: counts.known, rejected, rejectedTotal };
    undo();
    const now = book.get(id);
    return now === null ? UNKNOWN : conflict(now, "the job came to its end");
  }

  interface Adding {
    readonly row: JobRow;
    readonly lines: Iterable<string>;
    note(): void;
    undo(): void;
  }

  /**
   * Notes them and adds them to the crawl. Null: it takes none any more. Rejects where nothing was noted: its store takes no changes now. `later`: the store went away
   * in between; they are noted, and this run or the next one adds them once it is back.
   */
  async function addTo(run: RunningJob, { row: { id }, lines, note, undo }: Adding): Promise<AddedSeeds | null | "later"> {
    const given: Promise<AddedSeeds | null>[] = [];
    try {
      return await home.tell(() => {
        note();
        const adding = run.add(lines);
        given.push(adding);
        return adding;
      });
    } catch (error) {
      const now = book.get(id);
      const [adding] = given;
      if (adding === undefined || now === null || hasEnded(now)) throw error;
      log("warn", "URLs are noted, and are added when the crawl of the job can be reached", { job: id, why: String(error) });
      adding.then(
        (counts) => {
          if (counts === null && !keeper.closing) undo();
        },
        () => undefined, // the run fails with it, and the next one reads them
      );
      return "later";
    }
  }

  return {
    create(job) {
      const { idempotency } = job;
      return idempotency === null ? createOnce(job) : turns.take(`key ${idempotency.key}`, () => createOnce(job));
    },
    addUrls: (id, lines) => turns.take(`job ${id}`, () => addUrls(id, lines)),
  };
}

/** Calls under one name, one after the other. */
function createTurns() {
  const last = new Map<string, Promise<unknown>>();
  return {
    async take<T>(name: string, run: () => Promise<T>): Promise<T> {
      const mine = (last.get(name) ?? Promise.resolve()).then(run, run);
      last.set(name, mine);
      try {
        return await mine;
      } finally {
        if (last.get(name) === mine) last.delete(name);
      }
    },
  };
}
