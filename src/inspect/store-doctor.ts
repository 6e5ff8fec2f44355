/** Whether a shared store is fit for crawls: the server, what of it is on a disk, and that each crawl there is sound. Mends nothing. */

import { CrawlError } from "../core/errors.ts";
import { silentLog } from "../core/log.ts";
import { spellCount } from "../core/units.ts";
import type { Link } from "../store/redis/connect.ts";
import { createCrawls } from "../store/redis/crawls.ts";
import { scanInvariants } from "../store/redis/doctor.ts";
import { type Glance, glance, writerOf } from "../store/redis/look.ts";
import { masterOf, type ServerFacts, serverFacts } from "../store/redis/server.ts";
import { listWorkers, type WorkerView } from "../store/redis/workers.ts";
import type { Check } from "./doctor.ts";
import { atWork, connectStore, endOf, specOf, stateOf } from "./store.ts";
import { checkResults, checkWorkers } from "./store-work.ts";
import { whyNoWrites } from "./store-writes.ts";

const ok = (name: string, text: string): Check => ({ name, level: "ok", text, next: null });
const warn = (name: string, text: string, next: string): Check => ({ name, level: "warn", text, next });
const fail = (name: string, text: string, next: string): Check => ({ name, level: "fail", text, next });

const CRAWLS_LOOKED_AT = 1_000;
const MUCH_MEMORY = 0.8;
const FAULTS_SHOWN = 5;

const megabytes = (bytes: number): string => `${(bytes / 1e6).toLocaleString("en", { maximumFractionDigits: bytes < 1e7 ? 1 : 0 })} MB`;

type Info = ServerFacts["info"];

function checkMemory(info: Info): Check {
  const most = Number(info.get("maxmemory") ?? 0);
  const used = Number(info.get("used_memory") ?? 0);
  const policy = info.get("maxmemory_policy") ?? "noeviction";
  const has = `${megabytes(used)} in use`;
  if (most === 0) {
    const text = `${has}, no bound (maxmemory 0)`;
    return policy === "noeviction"
      ? ok("memory", text)
      : warn("memory", `${text}; maxmemory-policy is ${policy}`, "set it to noeviction before anybody sets a bound");
  }
  const text = `${has} of ${megabytes(most)}, ${policy}`;
  if (used < most * MUCH_MEMORY) return ok("memory", text);
  return warn("memory", text, "give it more (maxmemory), or take finished crawls out (skein export --drop): full, it takes nothing and all workers wait");
}

/** None: it is a master. */
function checkRole(info: Info): Check[] {
  const master = masterOf(info);
  if (master === null) return [];
  return [
    fail(
      "role",
      `a read-only replica of ${master}: crawls need the master`,
      `name it, redis://${master}, or the Sentinels that know it, redis+sentinel://HOST:26379,HOST/NAME (--store, SKEIN_STORE)`,
    ),
  ];
}

function checkDisk({ info, snapshots, stopsWrites }: ServerFacts): Check {
  if (info.get("rdb_last_bgsave_status") === "err" && snapshots === true && stopsWrites !== false)
    return fail(
      "persistence",
      "the last snapshot could not be written: the server takes no writes (MISCONF), and all workers wait",
      "make room in the server's directory, or make it writable, then redis-cli BGSAVE; snapshots alone are no reason to stop: redis-cli CONFIG SET stop-writes-on-bgsave-error no",
    );
  if (info.get("aof_enabled") === "1") {
    const failed = ["aof_last_write_status", "aof_last_bgrewrite_status"].filter((name) => (info.get(name) ?? "ok") !== "ok");
    const refuses = failed.includes("aof_last_write_status");
    if (failed.length === 0) return ok("persistence", "append-only file on, its last write went well");
    return fail(
      "persistence",
      `the append-only file has trouble: ${failed.map((name) => `${name} ${info.get(name)}`).join(", ")}${refuses ? "; the server takes no writes (MISCONF), and all workers wait" : ""}`,
      "make room on the server's disk, and see its log",
    );
  }
  const next = "redis-cli CONFIG SET appendonly yes, and the same in its configuration";
  if (info.get("rdb_last_bgsave_status") === "err")
    return fail("persistence", "the last snapshot could not be written", "make room on the server's disk, and see its log");
  if (snapshots === false) return warn("persistence", "nothing is kept on disk: a restart of the server loses every crawl", next);
  return warn("persistence", "no append-only file: a restart of the server goes back to the last snapshot, if there is one", next);
}

/** A file that was cut off in the middle of a step is harmless once the server has rewritten it (store/redis/server.ts); whoever writes to the store first asks for that. */
export function checkRewrite({ info, rewrittenRun }: ServerFacts): Check[] {
  // A store that nobody has written to has nothing to lose.
  if (info.get("aof_enabled") !== "1" || rewrittenRun === null) return [];
  if (info.get("aof_rewrite_in_progress") === "1" || info.get("aof_rewrite_scheduled") === "1")
    return [ok("rewrite", "the server is rewriting its append-only file, as it is asked to once after each of its starts")];
  if (rewrittenRun === info.get("run_id") || Number(info.get("aof_last_rewrite_time_sec") ?? -1) >= 0)
    return [ok("rewrite", "the server has rewritten its append-only file since its start: a step that a crash cut in two is not in it")];
  return [
    warn(
      "rewrite",
      "the server has started since anybody wrote here, and not rewritten its append-only file, which may end in the middle of a step",
      "none, if a crawl or worker comes: that asks for it. Before the server is started once more: redis-cli BGREWRITEAOF",
    ),
  ];
}

/** Between two calls of a worker the numbers agree; between two of the scan they would not. */
async function checkCrawl(
  link: Link,
  at: Glance,
  { workers, noWrites }: { readonly workers: readonly WorkerView[]; readonly noWrites: string | null },
): Promise<Check[]> {
  const name = `crawl ${at.id}`;
  const here = atWork(workers, at.id).length;
  const state = stateOf(at, endOf(at, specOf(at)), here);
  const { owner } = await writerOf(link, at.id);
  const results = checkResults(at, { owner, noWrites });
  if (here > 0) return [ok(name, `${state}; looked through only while nobody works on it`), ...results];
  if (at.seed === null) return [ok(name, "nobody has begun with it"), ...results];
  // Whoever works on it may go on at any moment.
  if (noWrites !== null && !at.over)
    return [ok(name, `${state === "waiting" ? "has work" : state}; not looked through while the store takes no writes`), ...results];
  const { faults, queued, delayed, leased, seen, hosts } = await scanInvariants(link, at.id);
  const text = `${state}; ${spellCount(seen, "URL")} seen, ${spellCount(queued + delayed + leased, "waits", "wait")}, ${spellCount(hosts, "host")}`;
  if (faults.length === 0) return [ok(name, `${text}; sound`), ...results];
  const shown = faults.slice(0, FAULTS_SHOWN).join("; ");
  const more = faults.length > FAULTS_SHOWN ? `; ${faults.length - FAULTS_SHOWN} more` : "";
  return [fail(name, `${text}; ${shown}${more}`, "report it; the crawl may end early or never: begin it anew with --fresh"), ...results];
}

export interface StoreChecks {
  /** In the order in which they are told. */
  readonly checks: readonly Check[];
  /** False: it did not answer, which is all that is known then. */
  readonly answers: boolean;
}

/** A store that cannot be used is told as a failure. Rejects with CrawlError `store-unreachable` where it goes away meanwhile. */
export async function examineStore(url: string): Promise<StoreChecks> {
  const began = performance.now();
  let link: Link;
  try {
    link = await connectStore(url, silentLog);
  } catch (error) {
    if (!(error instanceof CrawlError)) throw error;
    const away = error.code === "store-unreachable";
    const next = away ? "start the server, or mend the address, the password or the network" : "set it right, or name another server";
    return { checks: [fail("store", error.message, next)], answers: !away };
  }
  try {
    const ms = Math.round(performance.now() - began);
    const { kind, version } = link.server;
    const [facts, ids, workers] = await Promise.all([serverFacts(link), createCrawls(link).list(CRAWLS_LOOKED_AT), listWorkers(link)]);
    const noWrites = whyNoWrites(facts);
    const checks = [
      ok("store", `${kind === "valkey" ? "Valkey" : "Redis"} ${version} at ${link.address.shown}, connected in ${ms} ms; ${spellCount(ids.length, "crawl")}`),
      checkMemory(facts.info),
      ...checkRole(facts.info),
      checkDisk(facts),
      ...checkRewrite(facts),
      checkWorkers(workers, noWrites),
    ];
    for (const id of ids) {
      const at = await glance(link, id);
      if (at !== null) checks.push(...(await checkCrawl(link, at, { workers, noWrites })));
    }
    return { checks, answers: true };
  } finally {
    await link.close();
  }
}
