import assert from "node:assert/strict";
import { test } from "node:test";
import type { WorkerView } from "../store/redis/workers.ts";
import { checkResults, checkWorkers } from "./store-work.ts";
import { whyNoWrites } from "./store-writes.ts";

const worker = (pid: number, silentMs: number): WorkerView => ({ id: `w${pid}`, host: "h", pid, kind: "work", ageMs: 60_000, silentMs, shares: [] });
const owner = { kind: "serve", host: "h", pid: 7, leftMs: 9_000 };

function resultsOf(info: Readonly<Record<string, string>>, { waiting = 12, held = false, noWrites = null as string | null } = {}) {
  const at = { id: 3, info: new Map(Object.entries(info)), waiting, waitingBytes: 1_000 };
  return checkResults(at, { owner: held ? owner : null, noWrites })[0] ?? null;
}

test("results of a service that is gone: its service is to be started again, since export takes none of it", () => {
  const check = resultsOf({ kind: "serve", job: "a1b2c3-1" });
  assert.equal(check?.text, "12 results wait, and nobody writes them");
  assert.match(check?.next ?? "", /^start skein serve --store … again with the --state DIR that has it as job 1\b/);
  assert.doesNotMatch(check?.next ?? "", /export/);
});

test("results of a crawl whose command is gone: by export, or the same command", () => {
  assert.match(resultsOf({ kind: "crawl" })?.next ?? "", /^skein export --store … --job 3 --follow -o FILE, or the command/);
});

test("results that somebody writes are told of once workers wait for it, and then who is slow", () => {
  assert.equal(resultsOf({ kind: "serve", job: "a1b2c3-1" }, { held: true }), null);
  const check = resultsOf({ kind: "serve", job: "a1b2c3-1" }, { held: true, waiting: 1_000_000 });
  assert.match(check?.next ?? "", /^skein serve \(process 7 on h\) writes them/);
});

test("workers of a store that takes no writes are not called dead: they cannot say that they live", () => {
  const silent = checkWorkers([worker(1, 20_000), worker(2, 16_000)], null);
  assert.match(`${silent.text} ${silent.next}`, /^0 processes work; not heard of for a while: process 1 on h, process 2 on h it was killed/);
  for (const workers of [[worker(1, 20_000), worker(2, 16_000)], []]) {
    const full = checkWorkers(workers, "it is full");
    assert.match(full.text, /^the store takes no writes \(it is full\), so nobody who works here can say that he lives/);
    assert.doesNotMatch(`${full.text} ${full.next}`, /killed|taken up|0 processes/);
    assert.equal(full.level, "warn");
  }
  assert.equal(checkWorkers([worker(1, 1_000)], "it is full").level, "ok");
  assert.doesNotMatch(resultsOf({ kind: "crawl" }, { noWrites: "it is full" })?.text ?? "", /nobody writes them/);
});

test("whether a store takes writes goes by what its server says", () => {
  const why = (info: Readonly<Record<string, string>>, snapshots: boolean | null = true, stopsWrites?: boolean) =>
    whyNoWrites({ info: new Map(Object.entries(info)), snapshots, ...(stopsWrites === undefined ? {} : { stopsWrites }) });
  assert.equal(why({ maxmemory: "0", used_memory: "9000000" }), null);
  assert.equal(why({ maxmemory: "100000000", used_memory: "98000000" }), null);
  assert.equal(why({ maxmemory: "100000000", used_memory: "100000001" }), "it is full");
  assert.equal(why({ maxmemory: "100000000", used_memory: "99999000" }), "it is full");
  assert.equal(why({ maxmemory: "100000000", used_memory: "104000000", mem_not_counted_for_evict: "8000000" }), null);
  assert.equal(why({ aof_enabled: "1", aof_last_write_status: "err" }), "it cannot write its append-only file");
  assert.equal(why({ aof_enabled: "0", aof_last_write_status: "err" }), null);
  assert.equal(why({ rdb_last_bgsave_status: "err" }), "it cannot write its snapshots");
  assert.equal(why({ rdb_last_bgsave_status: "err" }, false), null);
  assert.equal(why({ rdb_last_bgsave_status: "err" }, true, false), null);
});
