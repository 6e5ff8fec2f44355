import assert from "node:assert/strict";
import { copyFileSync, existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import type { Output } from "../../core/records.ts";
import type { Visit } from "../../core/visits.ts";
import { openVisitBook, VISITS_FILE } from "./book.ts";
import { editVisits } from "./edit.ts";

const root = mkdtempSync(join(tmpdir(), "visits-"));
after(() => rmSync(root, { recursive: true, force: true }));
const folder = () => mkdtempSync(join(root, "d-"));

function visit(n: number, title: string, kind: Visit["kind"] = "page"): Visit {
  const url = `http://a.test/${n}`;
  const page = {
    url,
    status: 200,
    outcome: "fetched" as const,
    depth: 0,
    referrer: null,
    redirects: [],
    contentType: "text/html",
    bytes: 1,
    bytesDecoded: 1,
    title,
  };
  const follow = {
    href: "/x",
    handler: "h",
    priority: 0,
    data: null,
    series: null,
    index: null,
    method: "POST",
    headers: null,
    dontDedupe: false,
    oldRuns: null,
  };
  return {
    ...{ idHi: n, idLo: -n, kind, facts: null, scrape: null, method: "GET" },
    page: { ...page, links: [], attempts: 1, fetchedAt: "2026-01-01T00:00:00.000Z", durationMs: 1 },
    reading: {
      readBy: "1 h",
      links: null,
      follows: [{ ...follow, body: new Uint8Array([0, 255]) }],
      items: [{ type: "t", key: "1", json: "{}" }],
      badItems: [],
    },
  };
}

const outputs = (...visits: Visit[]): Output[] => visits.map((one) => ({ page: one.page, listed: true, skipped: [], found: [], edges: [], visit: one }));

test("a run finds what the run before it saw, whole, and not what it saw itself", async () => {
  const dir = folder();
  const first = openVisitBook(dir, "run-1", null);
  first.write(outputs(visit(1, "one"), visit(2, "two")));
  assert.equal(first.find({ idHi: 1, idLo: -1 }), null);
  await first.close();
  const second = openVisitBook(dir, "run-2", null);
  assert.deepEqual(second.find({ idHi: 1, idLo: -1 }), visit(1, "one"));
  second.write(outputs(visit(1, "one again")));
  assert.equal(second.find({ idHi: 1, idLo: -1 })?.page.title, "one");
  assert.deepEqual(
    [...second.missed()].map(({ page }) => page.title),
    ["two"],
  );
  await second.close();
  const third = openVisitBook(dir, "run-3", null);
  assert.equal(third.find({ idHi: 1, idLo: -1 })?.page.title, "one again");
  await third.close();
});

test("a failed visit keeps what was known, and the page is not missed", async () => {
  const dir = folder();
  const first = openVisitBook(dir, "run-1", null);
  first.write(outputs(visit(1, "one")));
  await first.close();
  const second = openVisitBook(dir, "run-2", null);
  second.write(outputs(visit(1, "", "failed")));
  assert.deepEqual([...second.missed()], []);
  await second.close();
  const third = openVisitBook(dir, "run-3", null);
  assert.equal(third.find({ idHi: 1, idLo: -1 })?.page.title, "one");
  await third.close();
});

test("a resume cuts back what was written after the last commit, and no more", async () => {
  const dir = folder();
  const before = openVisitBook(dir, "run-1", null);
  before.write(outputs(visit(9, "old")));
  await before.close();
  const killed = openVisitBook(dir, "run-2", null);
  killed.write(outputs(visit(1, "one")));
  const state = killed.checkpoint?.(true) ?? null;
  killed.write(outputs(visit(2, "two")));
  killed.flush();
  const copy = folder();
  for (const suffix of ["", "-wal"])
    if (existsSync(join(dir, VISITS_FILE + suffix))) copyFileSync(join(dir, VISITS_FILE + suffix), join(copy, VISITS_FILE + suffix));
  await killed.close();
  const resumed = openVisitBook(copy, "run-2", state);
  assert.deepEqual(titlesIn(copy, resumed), ["old", "one"]);
  await resumed.close();
  const uncommitted = openVisitBook(copy, "run-2", null);
  assert.deepEqual(titlesIn(copy, uncommitted), ["old"]);
  await uncommitted.close();
});

test("after a run that came to its end what it did not meet is dropped", async () => {
  const dir = folder();
  const first = openVisitBook(dir, "run-1", null);
  first.write(outputs(visit(1, "one"), visit(2, "two")));
  first.whole();
  await first.close();
  const second = openVisitBook(dir, "run-2", null);
  second.write(outputs(visit(1, "one")));
  second.whole();
  await second.close();
  const third = openVisitBook(dir, "run-3", null);
  assert.equal(third.find({ idHi: 2, idLo: -2 }), null);
  assert.notEqual(third.find({ idHi: 1, idLo: -1 }), null);
  await third.close();
  const editor = editVisits(dir);
  assert.equal([...(editor?.each() ?? [])].length, 1);
  editor?.close();
});

/** As an editor finds them. */
function titlesIn(dir: string, book: { flush(): void }): (string | undefined)[] {
  book.flush();
  const editor = editVisits(dir);
  const found = [...(editor?.each() ?? [])].map(({ visit }) => visit.page.title).sort();
  editor?.close();
  return found;
}

const titles = (visits: Iterable<Visit> | undefined) => [...(visits ?? [])].map(({ page }) => page.title).sort();

test("what failed run after run is kept over whole runs, and told apart from what was missed", async () => {
  const dir = folder();
  const first = openVisitBook(dir, "run-1", null);
  first.write(outputs(visit(1, "one"), visit(2, "two"), visit(3, "three")));
  first.whole();
  await first.close();
  for (const run of ["run-2", "run-3", "run-4"]) {
    const book = openVisitBook(dir, run, null);
    assert.deepEqual(titles(book.failed()), []);
    book.write(outputs(visit(1, "", "failed"), visit(2, "two"), visit(9, "", "failed")));
    assert.deepEqual(titles(book.failed()), ["one"]);
    assert.deepEqual(titles(book.missed()), run === "run-2" ? ["three"] : []);
    book.whole();
    await book.close();
  }
  const last = openVisitBook(dir, "run-5", null);
  assert.deepEqual(titlesIn(dir, last), ["one", "two"]);
  await last.close();
});

test("a page that is gone is gone for later runs too, after a run that ended early as well", async () => {
  const dir = folder();
  const first = openVisitBook(dir, "run-1", null);
  first.write(outputs(visit(1, "one"), visit(2, "two")));
  first.whole();
  await first.close();
  const second = openVisitBook(dir, "run-2", null);
  second.write(outputs(visit(1, "", "gone")));
  assert.deepEqual(titlesIn(dir, second), ["two"]);
  await second.close();
  const third = openVisitBook(dir, "run-3", null);
  assert.equal(third.find({ idHi: 1, idLo: -1 }), null);
  assert.deepEqual(titles(third.missed()), ["two"]);
  third.write(outputs(visit(1, "one is back")));
  assert.deepEqual(titlesIn(dir, third), ["one is back", "two"]);
  await third.close();
});

test("a book that lost visits to a power cut goes on, and calls nothing missed", async () => {
  const dir = folder();
  const first = openVisitBook(dir, "run-1", null);
  first.write(outputs(visit(1, "one"), visit(2, "two"), visit(3, "three")));
  first.whole();
  await first.close();
  const second = openVisitBook(dir, "run-2", null);
  second.write(outputs(visit(1, "one")));
  const state = second.checkpoint?.(true) ?? {};
  await second.close();
  const resumed = openVisitBook(dir, "run-2", { ...state, rows: Number(state["rows"]) + 1 });
  assert.deepEqual(titles(resumed.missed()), []);
  resumed.whole();
  await resumed.close();
  const third = openVisitBook(dir, "run-3", null);
  assert.deepEqual(titles(third.missed()), ["one", "three", "two"]);
  await third.close();
});
