/** A data directory whose jobs have begun elsewhere, and one that an earlier version wrote. No store is reached for. */
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { after, test } from "node:test";
import { parseSpec } from "../core/spec.ts";
import { BOOK_FILE, openBook } from "../store/jobs/book.ts";
import { openJobs } from "./jobs.ts";

const root = mkdtempSync(join(tmpdir(), "skein-jobs-open-"));
after(() => rmSync(root, { recursive: true, force: true }));

const row = {
  ...{ spec: JSON.stringify(parseSpec({})), nonce: "abcdefgh", seeds: ["https://a.example/"], seedsTotal: 1, seedsBytes: 0, createdAt: 1 },
  ...{ rejected: [], rejectedTotal: 0 },
};

/** With one job, paused in the store. */
function withJob(): string {
  const dir = mkdtempSync(join(root, "d-"));
  const book = openBook(dir);
  book.add(row, null, () => mkdirSync(join(dir, "jobs", "0"), { recursive: true }));
  book.change(0, { state: "paused", startedAt: 2, crawl: 7 });
  book.close();
  return dir;
}

test("a file in the place of the directory is said to be one", () => {
  const file = join(mkdtempSync(join(root, "d-")), "file");
  writeFileSync(file, "");
  assert.throws(() => openBook(file), { code: "state-unwritable", message: /cannot use the data directory .*file: a file stands there/ });
  assert.throws(() => openBook(join(file, "jobs")), { code: "state-unwritable", message: /a file stands there/ });
});

test("jobs that have begun in a store are not begun anew without one", async () => {
  const dir = withJob();
  await assert.rejects(openJobs({ dir }), { code: "invalid-options", message: /1 job of this data directory has begun in a store: name it \(--store\)/ });
  const book = openBook(dir);
  book.change(0, { state: "completed", endedAt: 3, sizes: { pages: 0, items: 0, skipped: 0, images: 0 } });
  book.close();
  const jobs = await openJobs({ dir });
  const view = await jobs.get(0);
  assert.equal(view?.state, "completed");
  assert.match((await jobs.explain(0, "https://a.example/"))?.lines.join() ?? "", /lives in a store/);
  // Its keys in the store would be forgotten.
  await assert.rejects(jobs.cancel(0), { code: "store-unreachable" });
  assert.notEqual(await jobs.get(0), null);
  await jobs.close();
});

test("a book of the version before has its jobs still", () => {
  const dir = withJob();
  const db = new DatabaseSync(join(dir, BOOK_FILE));
  db.exec("ALTER TABLE job DROP COLUMN crawl; PRAGMA user_version = 1");
  db.close();
  const book = openBook(dir);
  assert.deepEqual([book.get(0)?.state, book.get(0)?.crawl], ["paused", null]);
  assert.equal(book.change(0, { crawl: 3 }).crawl, 3);
  book.close();
});
