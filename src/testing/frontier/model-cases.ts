/** Random steps on a frontier, each judged by the model (testing/frontier-model.ts): what no case of a single rule thought of. */
import assert from "node:assert/strict";
import type { FrontierConfig, Settlement } from "../../core/frontier.ts";
import type { CrawlRequest } from "../../core/request.ts";
import { seededRandom } from "../clock.ts";
import { createFrontierModel, type FrontierModel } from "../frontier-model.ts";
import { caseConfig, type FrontierBench, type FrontierCase, type Hand, handOf, noRecord, type RestartCase, settledAs } from "./bench.ts";

const STEPS = 300;
const SEEDS = 40;

interface Walk {
  readonly hand: Hand;
  readonly bench: FrontierBench;
  readonly model: FrontierModel;
  readonly random: () => number;
  readonly below: (n: number) => number;
  readonly tokens: string[];
  passMs(ms: number): Promise<void>;
  nowMs(): number;
}

function configOf(seed: number): Partial<FrontierConfig> {
  const random = seededRandom(seed * 31 + 5);
  return {
    levels: random() < 0.5,
    order: random() < 0.5 ? "bfs" : "dfs",
    perHostDelayMs: random() < 0.5 ? 0 : 40,
    perHostConcurrency: 1 + Math.floor(random() * 4),
    limitPages: random() < 0.3 ? 1 + Math.floor(random() * 30) : null,
    leaseMs: 400,
  };
}

function randomLinks(walk: Walk, depth: number): CrawlRequest[] {
  const { below, hand } = walk;
  return Array.from({ length: below(5) }, () => {
    const n = below(60);
    return hand.link(`http://h${n % 4}.test/${n}`, {
      depth: Math.max(0, depth - (walk.random() < 0.2 ? 1 + below(2) : 0)),
      priority: below(8) === 0 ? below(3) - 1 : 0,
    });
  });
}

async function claim(walk: Walk): Promise<void> {
  const { model, bench, below, tokens } = walk;
  const max = 1 + below(6);
  model.beforeClaim();
  const answer = await bench.frontier.claim(max);
  if (answer.kind === "drained") {
    assert.equal(model.completed, true, "drained too early");
    return;
  }
  assert.equal(model.completed, false, "drained, but the claim answers otherwise");
  assert.notEqual(answer.kind, "held");
  if (answer.kind === "leases") {
    assert.ok(answer.leases.length <= max);
    for (const lease of answer.leases) {
      model.take(lease);
      tokens.push(lease.token);
    }
    if (answer.leases.length < max) assert.equal(model.mayGive(), false, "more was due than was given");
    return;
  }
  assert.equal(model.mayGive(), false, "something is due");
  if (answer.kind === "wait") assert.ok(walk.nowMs() + answer.waitMs <= model.nextAt() + 1e-6, `waiting ${answer.waitMs} ms is too long`);
}

async function settle(walk: Walk): Promise<void> {
  const { model, bench, below, random, tokens } = walk;
  if (tokens.length === 0) return;
  const token = tokens[below(tokens.length)]!;
  const depth = model.held.find((lease) => lease.token === token)?.depth ?? 1;
  const links = randomLinks(walk, depth + 1);
  const how = (
    [{ kind: "done", counted: true }, { kind: "done", counted: true }, { kind: "done", counted: false }, { kind: "dropped" }, { kind: "returned" }] as const
  )[below(7)] ?? {
    kind: "retry" as const,
    afterMs: random() * 100,
  };
  const settlement: Settlement = how.kind === "done" ? { ...how, output: noRecord } : how.kind === "dropped" ? { kind: "dropped", output: null } : how;
  const sinceMs = random() < 0.2 ? null : random() * 5;
  model.add(links);
  const applied = model.settle(token, how, sinceMs);
  assert.deepEqual(await bench.frontier.settle([settledAs({ token }, settlement, { sinceStartMs: sinceMs })], links), [applied ? "applied" : "stale"]);
}

async function step(walk: Walk): Promise<void> {
  const { model, bench, below, random, tokens } = walk;
  const token = tokens[below(Math.max(1, tokens.length))];
  const draw = random();
  if (draw < 0.35) await claim(walk);
  else if (draw < 0.65) await settle(walk);
  else if (draw < 0.75) await walk.passMs(random() < 0.1 ? 450 : below(60));
  else if (draw < 0.8) {
    const links = randomLinks(walk, below(4));
    assert.deepEqual(await bench.frontier.add(links), model.add(links));
  } else if (token === undefined) return;
  else if (draw < 0.88) {
    model.started(token, 0);
    await bench.frontier.progress([{ token, sinceMs: 0 }], []);
  } else if (draw < 0.94) {
    model.ended(token);
    await bench.frontier.progress([], [token]);
  } else {
    const held = [...new Set([token, ...model.held.map((lease) => lease.token)])].filter(() => random() < 0.6);
    assert.deepEqual((await bench.frontier.renew(held)).lost, model.renew(held));
  }
}

/** `restarts`: the share of steps before which the store's process ends. */
async function randomWalk(bench: FrontierBench, seed: number, restarts: number): Promise<void> {
  const random = seededRandom(seed);
  const chance = seededRandom(seed + 1_000);
  let now = 0;
  const model = createFrontierModel({ ...caseConfig, ...configOf(seed) }, () => now);
  const passMs = async (ms: number): Promise<void> => {
    await bench.advance(ms);
    now += ms;
  };
  const walk: Walk = { hand: handOf(bench), bench, model, random, below: (n) => Math.floor(random() * n), tokens: [], passMs, nowMs: () => now };
  const completeAt = Math.floor(random() * STEPS);
  for (let i = 0; i < STEPS && !model.completed; i++) {
    if (i === completeAt) {
      model.seedsComplete();
      await bench.frontier.seedsComplete();
    }
    if (bench.restart !== undefined && chance() < restarts) model.restarted((await bench.restart(chance() < 0.5 ? "closed" : "killed")).lost);
    await step(walk);
    model.compare(await bench.frontier.counts());
  }
}

export const modelCases: readonly FrontierCase[] = Array.from({ length: SEEDS }, (_, seed) => ({
  rule: "model",
  name: `random steps agree with the model (seed ${seed})`,
  config: configOf(seed),
  run: (bench) => randomWalk(bench, seed, 0),
}));

export const modelRestartCase = (seed: number): RestartCase => ({
  rule: "model",
  name: `random steps and restarts agree with the model (seed ${seed})`,
  config: configOf(seed),
  run: (bench) => randomWalk(bench, seed, 0.06),
});

export const modelRestartCases: readonly RestartCase[] = Array.from({ length: SEEDS }, (_, seed) => modelRestartCase(seed));
