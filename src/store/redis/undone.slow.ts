/** A server that lost its last moments, as a power cut does: what they held is done again, also what only one process could tell it. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Frontier } from "../../core/frontier.ts";
import { crashedOutput } from "../../testing/frontier/bench.ts";
import { createCrawls } from "./crawls.ts";
import { scanInvariants } from "./doctor.ts";
import { openOutbox } from "./outbox.ts";
import { skipRedis } from "./server-for-tests.ts";
import { bench, checkUndoneClaim, done, link } from "./undone-for-tests.ts";

/** Works until nothing is left; answers the URLs. */
async function finish(frontier: Frontier): Promise<string[]> {
  const urls: string[] = [];
  for (let claim = await frontier.claim(8); claim.kind !== "drained"; claim = await frontier.claim(8)) {
    for (const lease of claim.kind === "leases" ? claim.leases : []) {
      urls.push(lease.request.url);
      await done(frontier, lease);
    }
  }
  return urls.sort();
}

test("seeds that a power cut undid are told again, and so is that they are complete", { skip: skipRedis }, async (t) => {
  const { frontier, moment, link: to, id } = await bench(t);
  const back = moment();
  await frontier.noteSeeds(["http://a.test/"]);
  await frontier.add([link(frontier, "http://a.test/1"), link(frontier, "http://a.test/2")]);
  await frontier.seedsComplete();
  await back();
  assert.deepEqual(await finish(frontier), ["http://a.test/1", "http://a.test/2"]);
  assert.deepEqual((await scanInvariants(to, id)).faults, []);
});

test("the token of a claim that a power cut undid is nobody's", { skip: skipRedis }, (t) => checkUndoneClaim(t));

test("links that a worker leaves out, since the store had them, are sent to a store that has them no more", { skip: skipRedis }, async (t) => {
  const { frontier, moment, link: to, id } = await bench(t);
  await frontier.add([link(frontier, "http://a.test/p"), link(frontier, "http://a.test/q")]);
  await frontier.seedsComplete();
  const claim = await frontier.claim(2);
  const [first, second] = claim.kind === "leases" ? claim.leases : [];
  assert.ok(first !== undefined && second !== undefined);
  const back = moment();
  const both = [link(frontier, "http://a.test/x"), link(frontier, "http://a.test/y")];
  await done(frontier, first, both);
  let settled: Promise<readonly string[]> | null = null;
  // On its way while the server is away: what it leaves out was decided before.
  await back(() => {
    settled = done(frontier, second, both);
  });
  assert.deepEqual(await settled, ["applied"]);
  // The settle of the first was undone: its lease is out still, and so it can be settled again.
  assert.deepEqual(await done(frontier, first), ["applied"]);
  assert.deepEqual(await finish(frontier), ["http://a.test/x", "http://a.test/y"]);
  assert.deepEqual((await scanInvariants(to, id)).faults, []);
});

/** What a drain writes, and what a second one after it would. */
function drainOf(outbox: Awaited<ReturnType<typeof openOutbox>>, written: string[]) {
  return async (): Promise<void> => {
    for (let batch = await outbox.read(1); batch !== null; batch = await outbox.read(1)) {
      written.push(...batch.outputs.map(({ page }) => page?.url ?? ""));
      await outbox.checkpoint(batch.cursor, new Map([["file", { length: written.length }]]));
    }
  };
}

for (const dies of [false, true]) {
  const who = dies ? "and the drain dies afterwards" : "and the drain lives on";
  test(`pages whose settle a power cut undid are written once, ${who}`, { skip: skipRedis }, async (t) => {
    const { frontier, moment, link: to, id } = await bench(t);
    await frontier.add(["1", "2", "3", "4"].map((n) => link(frontier, `http://a.test/${n}`)));
    await frontier.seedsComplete();
    const claim = await frontier.claim(4);
    const leases = claim.kind === "leases" ? claim.leases : [];
    const written: string[] = [];
    let outbox = await openOutbox(to, id, { crashed: crashedOutput });
    await done(frontier, leases[0]!);
    await drainOf(outbox, written)();
    const back = moment();
    for (const lease of leases.slice(1, 3)) await done(frontier, lease);
    await drainOf(outbox, written)();
    await back();
    if (dies) {
      // One more page is settled and written before it does.
      await done(frontier, leases[3]!);
      await drainOf(outbox, written)();
      await outbox[Symbol.asyncDispose]();
      outbox = await openOutbox(to, id, { crashed: crashedOutput });
      written.length = Number(outbox.states.get("file")?.["length"]);
    }
    for (const lease of leases) await done(frontier, lease);
    await drainOf(outbox, written)();
    assert.deepEqual(
      written.toSorted(),
      ["1", "2", "3", "4"].map((n) => `http://a.test/${n}`),
    );
    assert.equal((await frontier.claim(1)).kind, "drained");
    assert.equal((await createCrawls(to).ends("0-0")).length, 1);
  });
}

test("a drain that followed another one does not go on when the server is back where it was before: it cannot know what the other wrote", {
  skip: skipRedis,
}, async (t) => {
  const { frontier, moment, link: to, id } = await bench(t);
  await frontier.add(["1", "2"].map((n) => link(frontier, `http://a.test/${n}`)));
  await frontier.seedsComplete();
  const claim = await frontier.claim(2);
  const leases = claim.kind === "leases" ? claim.leases : [];
  const back = moment();
  await done(frontier, leases[0]!);
  const written: string[] = [];
  const first = await openOutbox(to, id, { crashed: crashedOutput });
  await drainOf(first, written)();
  await first[Symbol.asyncDispose]();
  const second = await openOutbox(to, id, { crashed: crashedOutput });
  await back();
  for (const lease of leases) await done(frontier, lease);
  await assert.rejects(drainOf(second, written)(), { code: "store-unreachable", message: /the same command again goes on from there/ });
  await to.command("DEL", `${to.tag}:${id}:own`);
  const third = await openOutbox(to, id, { crashed: crashedOutput });
  assert.equal(third.states.size, 0);
  written.length = 0;
  await drainOf(third, written)();
  assert.deepEqual(written.toSorted(), ["http://a.test/1", "http://a.test/2"]);
});

test("a drain is told apart from one that was there before, when the server is back in its time", { skip: skipRedis }, async (t) => {
  const { moment, link: to, id } = await bench(t);
  await openOutbox(to, id, { crashed: crashedOutput, heirOf: "job" });
  const back = moment();
  const second = await openOutbox(to, id, { crashed: crashedOutput, heirOf: "job" });
  await back();
  await assert.rejects(second.keep(), { code: "store-unreachable", message: /the same command again goes on from there/ });
  const third = await openOutbox(to, id, { crashed: crashedOutput, heirOf: "job" });
  await third.keep();
  await assert.rejects(second.keep(), { code: "state-held" });
});

test("a drain whose hold has run out goes on as long as nobody else came, and not once somebody has", { skip: skipRedis }, async (t) => {
  const { frontier, link: to, id } = await bench(t);
  await frontier.add([link(frontier, "http://a.test/1")]);
  const first = await openOutbox(to, id, { crashed: crashedOutput });
  // Its 15 s are over: what a server that was away for longer finds.
  await to.command("DEL", `${to.tag}:${id}:own`);
  await first.keep();
  await to.command("DEL", `${to.tag}:${id}:own`);
  const second = await openOutbox(to, id, { crashed: crashedOutput });
  await assert.rejects(first.keep(), /being written by/);
  await second[Symbol.asyncDispose]();
  await assert.rejects(first.keep(), /being written by/);
});
