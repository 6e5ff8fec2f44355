/** What processes tell of themselves on a real Redis: known for a minute by the server's clock, and then no more. needs: redis-server */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { silentLog } from "../../core/log.ts";
import { connectRedis, type Link } from "./connect.ts";
import { skipRedis, startServer, type TestServer } from "./server-for-tests.ts";
import { listWorkers, sayAlive, sayGone, type WorkerSelf } from "./workers.ts";

let server: TestServer | null = null;
before(async () => {
  if (skipRedis === false) server = await startServer();
});
after(async () => {
  await server?.stop();
});

const worker = (id: string, ageMs: number): WorkerSelf => ({
  ...{ id, host: "box", pid: 7, kind: "work", ageMs },
  shares: [{ crawl: 1, inFlight: 2, taken: 9, pagesPerSecond: 1.5, limitedBy: "delay", claims: ["abc"] }],
});

test("a worker is known until it says goodbye, or has said nothing for a minute", { skip: skipRedis }, async () => {
  const link = await connectRedis(server?.url ?? "", { log: silentLog, prefix: "beats" });
  try {
    await sayAlive(link, worker("young", 1_000));
    await sayAlive(link, worker("old", 50_000));
    const [old, young] = await listWorkers(link);
    assert.deepEqual([old?.id, young?.id, old?.shares[0]?.taken], ["old", "young", 9], "who came first, first");
    assert.ok((old?.silentMs ?? 60_000) < 10_000);

    // Twenty seconds of silence, then all of a minute.
    await link.command("PEXPIRE", `${link.tag}:worker:old`, 40_000);
    const silent = (await listWorkers(link)).find(({ id }) => id === "old");
    assert.ok(silent !== undefined && silent.silentMs >= 20_000 && silent.silentMs < 30_000, String(silent?.silentMs));
    await link.command("PEXPIRE", `${link.tag}:worker:old`, 0);
    assert.deepEqual(
      (await listWorkers(link)).map(({ id }) => id),
      ["young"],
    );
    const names = async (at: Link): Promise<number> => ((await at.command("SMEMBERS", `${link.tag}:workers`)) as Buffer[]).length; // SMEMBERS
    assert.equal(await names(link), 2, "who only looks changes nothing");
    const other = await connectRedis(server?.url ?? "", { log: silentLog, prefix: "beats" });
    await sayAlive(other, worker("young", 2_000));
    assert.equal(await names(other), 1, "its name goes when the next process comes");
    await other.close();

    await sayGone(link, "young");
    assert.deepEqual(await listWorkers(link), []);
    const keys = ((await link.command("KEYS", "*")) as Buffer[]).map(String).filter((key) => !key.startsWith(link.tag)); // KEYS
    assert.deepEqual(keys, [], "nothing lies outside the prefix");
  } finally {
    await link.close();
  }
});
