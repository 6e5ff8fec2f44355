/** A crawl without a network, in a process that may be killed: every page of a small made-up web, its records in a file; for tests only. `node crawl-for-tests.ts DIR PAGES [LIMIT]` */
import { closeSync, fdatasyncSync, ftruncateSync, openSync, writeSync } from "node:fs";
import { join } from "node:path";
import { realClock } from "../../core/clock.ts";
import type { FrontierHooks, Lease, Settled } from "../../core/frontier.ts";
import type { Output } from "../../core/records.ts";
import type { CrawlRequest } from "../../core/request.ts";
import { makeRequest, makeSkip } from "../../rules/admit.ts";
import { readFault, striking } from "../../testing/faults.ts";
import { outputFor, settledAs } from "../../testing/frontier/bench.ts";
import { caseConfig, crashedOutput, flattenOwed } from "../../testing/frontier-cases.ts";
import { type Durability, openFrontierIn, openStateDirectory } from "./frontier.ts";

const HOSTS = 5;
export const urlOf = (n: number): string => `http://h${n % HOSTS}.test/${n}`;
const numberOf = (url: string): number => Number(url.slice(url.lastIndexOf("/") + 1));

/** Pages 0 … n − 1 link to their successors in several ways; every 7th fails once, every 11th has no record that counts. */
export const linksOf = (n: number, pages: number): number[] => [n * 2 + 1, n * 2 + 2, (n * 7) % pages, n + 1].filter((to) => to < pages);
export const isUncounted = (n: number): boolean => n % 11 === 10;
const failsOnce = (n: number): boolean => n % 7 === 3;

export interface CrawlOptions {
  readonly dir: string;
  readonly pages: number;
  readonly limit: number | null;
  readonly durability: Durability;
  readonly passing?: (point: string) => void;
  /** Called once the state is open, and after the first settle. */
  readonly reached?: (what: "started" | "settled") => void;
}

/** A file of lines that goes on at the byte where the state says it stood. */
function openLines(path: string, at: number) {
  const fd = openSync(path, "a");
  ftruncateSync(fd, at);
  let length = at;
  return {
    append(lines: readonly string[]): void {
      const bytes = Buffer.from(lines.map((line) => `${line}\n`).join(""));
      // In two halves, so that there is something to be torn.
      const half = bytes.length >> 1;
      writeSync(fd, bytes, 0, half);
      writeSync(fd, bytes, half);
      length += bytes.length;
    },
    checkpoint(sync: boolean): number {
      if (sync) fdatasyncSync(fd);
      return length;
    },
    close: () => closeSync(fd),
  };
}

/** Until nothing is left. */
export async function crawlMadeUpWeb(options: CrawlOptions): Promise<void> {
  const { dir, pages, limit, durability, passing } = options;
  const state = openStateDirectory(dir, { durability });
  const at = (name: string): number => Number(state.sinkStates().get(name)?.length ?? 0);
  const records = openLines(join(dir, "pages.jsonl"), at("pages"));
  const skipped = openLines(join(dir, "skipped.jsonl"), at("skipped"));
  const hooks: FrontierHooks = {
    write(outputs: readonly Output[]) {
      const flat = flattenOwed(outputs);
      records.append(flat.flatMap((output) => (output.page === null ? [] : [JSON.stringify([output.page.url, output.page.outcome])])));
      skipped.append(flat.flatMap((output) => output.skipped.map((skip) => skip.value.url)));
    },
    checkpoint: (sync) =>
      new Map([
        ["pages", { length: records.checkpoint(sync) }],
        ["skipped", { length: skipped.checkpoint(sync) }],
      ]),
    crashed: crashedOutput,
  };
  const env = { clock: realClock, random: Math.random, ...(passing === undefined ? {} : { passing }) };
  const frontier = await openFrontierIn(state, { config: { ...caseConfig, limitPages: limit, leaseMs: Infinity }, hooks, env, durability, probationMs: 5_000 });
  if (state.run() === null) state.startRun({ name: "made-up", spec: "{}", startedAt: Date.now() });
  const link = (n: number): CrawlRequest => makeRequest(urlOf(n), frontier.seed, { hop: "link", depth: 1, referrer: urlOf(0) });
  await frontier.add([link(0)]);
  await frontier.seedsComplete();

  function visit(lease: Lease): { readonly page: Settled; readonly links: readonly CrawlRequest[] } {
    const n = numberOf(lease.request.url);
    if (failsOnce(n) && lease.attempt === 0) return { page: settledAs(lease, { kind: "retry", afterMs: 1 }), links: [] };
    const skip = makeSkip(frontier.seed, { url: `http://other.test/${n % 17}`, referrer: null, depth: 1, reason: "out-of-scope" });
    const output = outputFor(lease.request.url, { skipped: [skip] });
    return { page: settledAs(lease, { kind: "done", counted: !isUncounted(n), output }, { tally: [["pages", 1]] }), links: linksOf(n, pages).map(link) };
  }

  options.reached?.("started");
  let first = true;
  for (;;) {
    const claim = await frontier.claim(12);
    if (claim.kind === "drained") break;
    if (claim.kind !== "leases") {
      await new Promise<void>((resolve) => realClock.after(claim.kind === "wait" ? Math.min(claim.waitMs, 50) : 10, resolve));
      continue;
    }
    for (let from = 0; from < claim.leases.length; from += 4) {
      const visits = claim.leases.slice(from, from + 4).map(visit);
      await frontier.settle(
        visits.map((one) => one.page),
        visits.flatMap((one) => one.links),
      );
      if (first) options.reached?.("settled");
      first = false;
    }
  }
  frontier.finish("finished");
  records.close();
  skipped.close();
  await frontier[Symbol.asyncDispose]();
}

if (process.argv[1] === import.meta.filename) {
  const [dir = "", pages = "0", limit] = process.argv.slice(2);
  const fault = process.env.SKEIN_FAULT;
  await crawlMadeUpWeb({
    dir,
    pages: Number(pages),
    limit: limit === undefined ? null : Number(limit),
    reached: (what) => void process.stdout.write(`${what}\n`),
    durability: process.env.SKEIN_DURABILITY === "strict" ? "strict" : "normal",
    ...(fault === undefined ? {} : { passing: striking(readFault(fault)) }),
  });
}
