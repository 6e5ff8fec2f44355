/** The frontier cases must reject every frontier that breaks a rule: one mutant a rule, each a small wrong turn around the memory store. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import type { Frontier, FrontierConfig, FrontierHooks, Lease, Settled, Settlement } from "../src/core/frontier.ts";
import type { Output } from "../src/core/records.ts";
import type { CrawlRequest, RequestRest } from "../src/core/request.ts";
import { createMemoryFrontier } from "../src/store/memory.ts";
import { openSqliteBench } from "../src/store/sqlite/bench-for-tests.ts";
import { createTestClock, seededRandom } from "../src/testing/clock.ts";
import { type DurableBench, noRecord } from "../src/testing/frontier/bench.ts";
import { restartCases } from "../src/testing/frontier/restart-cases.ts";
import { caseConfig, crashedOutput, type FrontierBench, flattenOwed, frontierCases } from "../src/testing/frontier-cases.ts";

/** Where a mutant may go wrong. Everything it leaves out is right. */
interface Mutant {
  /** The sentence that is false of it. */
  readonly breaks: string;
  readonly config?: (config: FrontierConfig) => FrontierConfig;
  readonly hooks?: (hooks: FrontierHooks) => FrontierHooks;
  readonly frontier?: (inner: Frontier, hooks: FrontierHooks) => Partial<Frontier>;
}

function open(mutant: Mutant, given: FrontierConfig): FrontierBench {
  const clock = createTestClock();
  const written: Output[] = [];
  let refused = false;
  const hooks: FrontierHooks = {
    write(outputs) {
      if (refused) throw new Error("disk full");
      written.push(...flattenOwed(outputs));
    },
    crashed: crashedOutput,
  };
  const config = mutant.config?.(given) ?? given;
  const inner = createMemoryFrontier(config, mutant.hooks?.(hooks) ?? hooks, { clock, random: seededRandom(1) });
  return {
    frontier: { ...inner, seed: inner.seed, ...mutant.frontier?.(inner, hooks) },
    advance: (ms) => clock.advance(ms),
    outputs: () => written,
    refuseWrites: (refuse) => {
      refused = refuse;
    },
  };
}

/** A mutant that sees every settlement before the store does. */
const settling = (breaks: string, change: (page: Settled) => Settled): Mutant => ({
  breaks,
  frontier: (inner) => ({ settle: (pages, links) => inner.settle(pages.map(change), links) }),
});
const settlement = (breaks: string, change: (settlement: Settlement) => Settlement): Mutant =>
  settling(breaks, (page) => ({ ...page, settlement: change(page.settlement) }));

/** A mutant that sees every request on its way in. */
const adding = (breaks: string, change: (request: CrawlRequest) => CrawlRequest): Mutant => ({
  breaks,
  frontier: (inner) => ({
    add: (requests) => inner.add(requests.map(change)),
    settle: (pages, links) => inner.settle(pages, links.map(change)),
  }),
});

/** A mutant that sees every lease on its way out. */
const leasing = (breaks: string, change: (lease: Lease) => Lease): Mutant => ({
  breaks,
  frontier: (inner) => ({
    async claim(max) {
      const claim = await inner.claim(max);
      return claim.kind === "leases" ? { ...claim, leases: claim.leases.map(change) } : claim;
    },
  }),
});

const configured = (breaks: string, change: Partial<FrontierConfig> | ((config: FrontierConfig) => Partial<FrontierConfig>)): Mutant => ({
  breaks,
  config: (config) => ({ ...config, ...(typeof change === "function" ? change(config) : change) }),
});

function without(request: CrawlRequest, field: keyof RequestRest): CrawlRequest {
  if (request.rest === null) return request;
  const { [field]: _, ...rest } = request.rest;
  return { ...request, rest };
}

let salt = 0;
const salted = (output: Output): Output => ({
  ...output,
  skipped: output.skipped.map((entry) => ({ ...entry, idLo: entry.idLo + ++salt * 1_000 })),
  found: output.found.map((entry) => ({ ...entry, idLo: entry.idLo + ++salt * 1_000 })),
});

const withOutput = (page: Settlement, change: (output: Output) => Output): Settlement =>
  (page.kind === "done" || page.kind === "dropped") && page.output !== null ? ({ ...page, output: change(page.output) } as Settlement) : page; // only the output differs

const mutants: readonly Mutant[] = [
  adding("a URL is handed out once", (request) => ({ ...request, idLo: request.idLo ^ ++salt })),
  adding("priority orders the requests of a host", (request) => ({ ...request, priority: 0 })),
  adding("a redirect carries what it owes", (request) => without(request, "owed")),
  adding("a reopened URL is handed out again", (request) => without(request, "reopen")),
  adding("a request keeps its uncommon parts", (request) => (request.rest?.method === undefined ? request : { ...request, rest: null })),
  adding("referrers are kept", (request) => ({ ...request, referrer: null })),
  configured("arrival is the order of bfs, newest first that of dfs", (config) => ({ order: config.order === "bfs" ? "dfs" : "bfs" })),
  configured("levels hold the next but one back", { levels: false }),
  configured("depth is lowered without levels too", { levels: true }),
  configured("a host has its number of requests in flight at most", { perHostConcurrency: 1_000 }),
  configured("settings by host hold", { hosts: new Map() }),
  configured("the delay holds", { perHostDelayMs: 0 }),
  configured("auto starts with two and grows", (config) => (config.perHostDelayMs === "auto" ? { perHostDelayMs: 0 } : {})),
  configured("jitter lengthens delays", { jitter: 0 }),
  configured("the rate holds", { ratePerMinute: null }),
  configured("robots.txt is asked for", { robots: false }),
  configured("robots.txt is left alone where it is not obeyed", { robots: true }),
  configured("waits are cut to the longest", { maxWaitMs: 1e9 }),
  configured("leases expire", { leaseMs: 1e9 }),
  configured("a limit is a limit", { limitPages: null }),
  configured("leased pages use up the limit", (config) => ({ limitPages: config.limitPages === null ? null : config.limitPages + 1 })),
  leasing("tokens tell leases apart", (lease) => ({ ...lease, token: lease.token.slice(0, -1) })),
  leasing("attempts are counted", (lease) => ({ ...lease, attempt: 0 })),
  leasing("crashes are counted", (lease) => ({ ...lease, crashes: 0 })),
  leasing("leases carry the robots state", (lease) => ({ ...lease, robots: null })),
  leasing("leases carry cookies", (lease) => ({ ...lease, cookies: null })),
  settlement("a page that does not count gives its place back", (page) => (page.kind === "done" ? { ...page, counted: true } : page)),
  settlement("a retry waits", (page) => (page.kind === "retry" ? { ...page, afterMs: 0 } : page)),
  settlement("a returned request counts no attempt", (page) => (page.kind === "returned" ? { kind: "retry", afterMs: 0 } : page)),
  settlement("a dropped page is not counted", (page) =>
    page.kind === "dropped" && page.output !== null ? { kind: "done", counted: true, output: page.output } : page,
  ),
  settlement("a skipped URL is written once", (page) => withOutput(page, salted)),
  settlement("a robots answer expires", (page) =>
    page.kind === "robots" && page.answer.kind !== "redirect" ? { ...page, answer: { ...page.answer, ttlMs: 1e12 } } : page,
  ),
  settlement("redirects of robots.txt are followed", (page) =>
    page.kind === "robots" && page.answer.kind === "redirect" ? { kind: "robots", answer: { kind: "allow-all", ttlMs: 1e9 } } : page,
  ),
  settlement("robots rules are kept as text", (page) =>
    page.kind === "robots" && page.answer.kind === "rules" ? { kind: "robots", answer: { kind: "allow-all", ttlMs: page.answer.ttlMs } } : page,
  ),
  settling("values change with the settle that brings them", ({ values: _, ...page }) => page),
  settling("the larger value is kept, not the later", (page) =>
    page.values === undefined ? page : { ...page, values: page.values.map((change) => ({ ...change, op: "set" as const })) },
  ),
  {
    breaks: "a stale settle changes no value",
    frontier: (inner) => ({
      async settle(pages, links) {
        const answers = await inner.settle(pages, links);
        for (const [i, page] of pages.entries()) if (answers[i] === "stale" && page.values !== undefined) await inner.setValues(page.values);
        return answers;
      },
    }),
  },
  { breaks: "values can be set outside of a settle", frontier: () => ({ setValues: async () => undefined }) },
  { breaks: "items past the limit are not written", config: (config) => ({ ...config, limitItems: null }) },
  settling("Retry-After and Crawl-delay of a settle hold", (page) => ({ ...page, host: null })),
  settling("pushback counts", (page) => ({ ...page, answer: null })),
  settling("each pushback is a burst of its own", (page) => ({
    ...page,
    answer: page.answer === null ? null : { kind: "good", latencyMs: page.answer.latencyMs },
  })),
  settling("a host that was not contacted owes no rest", (page) => ({ ...page, sinceStartMs: page.sinceStartMs ?? 0 })),
  settling("the gap counts from the start, not from the end", (page) => ({ ...page, sinceStartMs: page.sinceStartMs === null ? null : 0 })),
  settling("cookies are kept", (page) => ({ ...page, setCookies: null })),
  settling("new seeds are told", (page) => ({ ...page, newSeeds: null })),
  settling("counters are raised", (page) => ({ ...page, tally: [] })),
  {
    breaks: "a second use of a token is stale",
    frontier: (inner) => ({ settle: async (pages, links) => (await inner.settle(pages, links)).map(() => "applied" as const) }),
  },
  {
    breaks: "links come before the page is acknowledged",
    frontier: (inner) => ({
      async settle(pages, links) {
        const answers = await inner.settle(pages, []);
        await inner.add(links);
        return answers;
      },
    }),
  },
  {
    breaks: "links of a stale settle are kept",
    frontier: (inner) => ({
      async settle(pages, links) {
        const answers = await inner.settle(pages, []);
        if (answers.includes("applied")) await inner.add(links);
        return answers;
      },
    }),
  },
  {
    breaks: "outputs of stale pages are not written",
    frontier: (inner, hooks) => ({
      async settle(pages, links) {
        const answers = await inner.settle(pages, links);
        for (const [i, { settlement: page }] of pages.entries()) if (answers[i] === "stale" && page.kind === "done") hooks.write([page.output]);
        return answers;
      },
    }),
  },
  {
    breaks: "drained means nothing leased either",
    frontier: (inner) => ({
      async claim(max) {
        const claim = await inner.claim(max);
        const { queued, delayed } = await inner.counts();
        return claim.kind === "wait" && queued + delayed === 0 ? { kind: "drained" } : claim;
      },
    }),
  },
  {
    breaks: "delayed requests keep a crawl alive",
    frontier: (inner) => ({
      async claim(max) {
        const claim = await inner.claim(max);
        const { queued, leased } = await inner.counts();
        return claim.kind === "wait" && queued + leased === 0 ? { kind: "drained" } : claim;
      },
    }),
  },
  {
    breaks: "a crawl ends only after its seeds are complete",
    frontier: (inner) => ({
      async add(requests) {
        const counts = await inner.add(requests);
        await inner.seedsComplete();
        return counts;
      },
    }),
  },
  { breaks: "seedsComplete lets a crawl end", frontier: () => ({ seedsComplete: async () => undefined }) },
  { breaks: "a start moves the host's clock", frontier: (inner) => ({ progress: (_, ended) => inner.progress([], ended) }) },
  { breaks: "the slot returns when the response ends", frontier: (inner) => ({ progress: (started) => inner.progress(started, []) }) },
  {
    breaks: "a slow connect does not shrink the gap",
    frontier: (inner) => ({
      async claim(max) {
        const claim = await inner.claim(max);
        if (claim.kind === "leases")
          await inner.progress(
            claim.leases.map(({ token }) => ({ token, sinceMs: 0 })),
            [],
          );
        return claim;
      },
    }),
  },
  {
    breaks: "due hosts take turns",
    frontier: (inner) => ({
      async claim(max) {
        const claim = await inner.claim(max);
        if (claim.kind !== "leases") return claim;
        const first = claim.leases[0]!.request.host;
        const back = claim.leases.filter((lease) => lease.request.host !== first);
        await inner.settle(
          back.map((lease) => ({ ...blank(lease), settlement: { kind: "returned" } as const })),
          [],
        );
        return { ...claim, leases: claim.leases.filter((lease) => lease.request.host === first) };
      },
    }),
  },
  { breaks: "a claim gives at most what was asked for", frontier: (inner) => ({ claim: () => inner.claim(128) }) },
  { breaks: "a claim gives as much as is due", frontier: (inner) => ({ claim: () => inner.claim(1) }) },
  { breaks: "renewed leases live on", frontier: (inner) => ({ renew: async () => ({ lost: [], control: (await inner.counts()).control }) }) },
  { breaks: "renew names what is lost", frontier: (inner) => ({ renew: async (held) => ({ lost: [], control: (await inner.renew(held)).control }) }) },
  { breaks: "renew tells the control state", frontier: (inner) => ({ renew: async (held) => ({ lost: (await inner.renew(held)).lost, control: "run" }) }) },
  ...(["pause", "finish", "drain", "now"] as const).map(
    (word): Mutant => ({ breaks: `${word} is obeyed`, frontier: (inner) => ({ control: async (to) => (to === word ? undefined : inner.control(to)) }) }),
  ),
  { breaks: "now ends all leases", frontier: (inner) => ({ control: (to) => inner.control(to === "now" ? "drain" : to) }) },
  { breaks: "finish lets what is queued be done", frontier: (inner) => ({ control: (to) => inner.control(to === "finish" ? "drain" : to) }) },
  {
    breaks: "finish outlasts a pause",
    frontier: (inner) => {
      let finished = false;
      return {
        async control(to) {
          if (to === "finish") finished = true;
          if (to !== "pause" || !finished) await inner.control(to);
        },
      };
    },
  },
  { breaks: "tuning holds", frontier: () => ({ tune: async () => undefined }) },
  { breaks: "the limit can be changed", frontier: () => ({ setPageLimit: async () => undefined }) },
  {
    breaks: "leased and settled requests do not remain",
    frontier: (inner) => {
      const all: CrawlRequest[] = [];
      return {
        add: (requests) => {
          all.push(...requests);
          return inner.add(requests);
        },
        async *remaining() {
          yield* all;
        },
      };
    },
  },
  { breaks: "a write that fails rejects the settle", hooks: (hooks) => ({ ...hooks, write: (outputs) => attempt(() => hooks.write(outputs)) }) },
  {
    breaks: "a crashed request leaves its record",
    hooks: (hooks) => ({ ...hooks, write: (outputs) => hooks.write(outputs.filter((output) => output.page?.error?.code !== "crashed")) }),
  },
  { breaks: "outputs are written in settle order", hooks: (hooks) => ({ ...hooks, write: (outputs) => hooks.write([...outputs].reverse()) }) },
  { breaks: "outputs are written", hooks: (hooks) => ({ ...hooks, write: () => undefined }) },
  { breaks: "robots state can be asked for", frontier: () => ({ robotsOf: async () => null }) },
  {
    breaks: "places balance",
    frontier: (inner) => ({
      async counts() {
        const counts = await inner.counts();
        return { ...counts, seen: counts.seen - counts.delayed };
      },
    }),
  },
  {
    breaks: "robots requests are counted apart",
    frontier: (inner) => ({
      async counts() {
        const counts = await inner.counts();
        return { ...counts, leased: counts.leased + counts.robotsLeased, robotsLeased: 0 };
      },
    }),
  },
];

function blank(lease: Lease): Omit<Settled, "settlement"> {
  return { token: lease.token, sinceStartMs: null, answer: null, host: null, setCookies: null, newSeeds: null, tally: [] };
}

function attempt(run: () => void): void {
  try {
    run();
  } catch {
    // The mutant's fault: it acknowledges what it could not write.
  }
}

/** The name of the first case that rejects it. */
async function rejectedBy(mutant: Mutant): Promise<string | null> {
  for (const one of frontierCases) {
    try {
      await one.run(open(mutant, { ...caseConfig, ...one.config }));
    } catch {
      return one.name;
    }
  }
  return null;
}

for (const mutant of mutants) {
  test(`a frontier of which it is not true that ${mutant.breaks} is rejected`, async (context) => {
    const by = await rejectedBy(mutant);
    context.diagnostic(`rejected by: ${by}`);
    assert.notEqual(by, null, "no case rejects it");
  });
}

/** Where a store that outlives its process may go wrong. */
interface DurableMutant {
  readonly breaks: string;
  /** What its files lack, whenever it is opened again. */
  readonly lacks?: string;
  readonly hooks?: (hooks: FrontierHooks) => FrontierHooks;
  /** It does nothing when it is closed. */
  readonly diesWhenClosed?: true;
}

const durableMutants: readonly DurableMutant[] = [
  { breaks: "leases of a dead process are known", lacks: "UPDATE progress SET leased = x''" },
  { breaks: "counters belong to the step", lacks: `UPDATE progress SET counters = json_set(counters, '$.done', 0, '$.dropped', 0)` },
  { breaks: "counted pages belong to the step", lacks: `UPDATE progress SET counters = json_set(counters, '$.counted', 0)` },
  { breaks: "tallies belong to the step", lacks: `UPDATE progress SET counters = json_set(counters, '$.tally', json('[]'))` },
  { breaks: "complete seeds stay complete", lacks: `UPDATE progress SET counters = json_set(counters, '$.seedsComplete', json('false'))` },
  { breaks: "what was seen is read back", lacks: "DELETE FROM log WHERE kind = 0 AND NOT EXISTS (SELECT 1 FROM queue)" },
  { breaks: "of two values in the log the later holds", lacks: "DELETE FROM log WHERE kind = 0 AND id > (SELECT min(id) FROM log WHERE kind = 0)" },
  { breaks: "skipped URLs are remembered", lacks: "DELETE FROM log WHERE kind = 1" },
  { breaks: "found links are remembered", lacks: "DELETE FROM log WHERE kind = 2" },
  { breaks: "what is queued is read back", lacks: "DELETE FROM queue" },
  { breaks: "arrival is kept", lacks: "UPDATE queue SET seq = -seq" },
  { breaks: "history is kept", lacks: "UPDATE queue SET history = NULL" },
  { breaks: "referrers are kept", lacks: "UPDATE queue SET referrer = NULL" },
  { breaks: "the uncommon parts of requests are kept", lacks: "UPDATE queue SET rest = NULL" },
  { breaks: "priority, depth and hop are kept", lacks: "UPDATE queue SET facts = (128 * 32) + 1" },
  { breaks: "robots answers are kept", lacks: "DELETE FROM robots" },
  { breaks: "robots answers expire", lacks: "UPDATE robots SET expires_at = 9e12" },
  { breaks: "cookies are kept", lacks: "DELETE FROM cookie" },
  { breaks: "new seeds are kept", lacks: "DELETE FROM seed" },
  { breaks: "rules of hosts are kept", lacks: "DELETE FROM host" },
  {
    breaks: "outputs are written in the step that acknowledges their pages",
    hooks(hooks) {
      let late: readonly Output[] = [];
      return {
        ...hooks,
        write(outputs) {
          hooks.write(late);
          late = outputs;
        },
      };
    },
  },
  { breaks: "a crash leaves its record", hooks: (hooks) => ({ ...hooks, crashed: () => noRecord }) },
  { breaks: "a process that ends in good order hands its leases back", diesWhenClosed: true },
];

async function openDurable(mutant: DurableMutant, config: FrontierConfig): Promise<DurableBench & { close(): Promise<void> }> {
  const { lacks, hooks } = mutant;
  const spoil = (dir: string): void => {
    const db = new DatabaseSync(join(dir, "state.db"));
    db.exec(lacks ?? "");
    db.close();
  };
  const bench = await openSqliteBench(config, { ...(hooks === undefined ? {} : { hooks }), ...(lacks === undefined ? {} : { spoil }) });
  if (mutant.diesWhenClosed !== true) return bench;
  return { ...bench, outputs: bench.outputs, restart: () => bench.restart("killed") };
}

for (const mutant of durableMutants) {
  test(`a durable frontier of which it is not true that ${mutant.breaks} is rejected`, async (context) => {
    for (const one of restartCases) {
      const bench = await openDurable(mutant, { ...caseConfig, ...one.config });
      try {
        await one.run(bench);
      } catch {
        context.diagnostic(`rejected by: ${one.name}`);
        return;
      } finally {
        await bench.close();
      }
    }
    assert.fail("no case rejects it");
  });
}

test("the right frontier passes every case in the mutants' bench", async () => {
  for (const one of frontierCases) await one.run(open({ breaks: "nothing" }, { ...caseConfig, ...one.config }));
});
