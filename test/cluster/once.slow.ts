/** `skein work --once` on a real Redis: it ends at once where nobody has anything to do. needs: redis-server */
import assert from "node:assert/strict";
import { test } from "node:test";
import { main } from "../../src/cli/main.ts";
import { skipRedis } from "../../src/store/redis/server-for-tests.ts";
import { fakeIo } from "../cli/fake-io.ts";
import { redisSuite } from "./suite.ts";

const suite = redisSuite("once");

async function once(): Promise<string> {
  const io = fakeIo({ cwd: suite.folder() });
  const status = await main(["work", "--store", suite.redis.url, "--once", "--allow-address", "127.0.0.1"], io);
  assert.equal(status, 0, io.err());
  return io.err();
}
const NOTHING = /^nothing to do: no crawl of the store has URLs that this worker could take\n$/m;

test("a store without crawls: the end at once", { skip: skipRedis }, async () => {
  assert.match(await once(), NOTHING);
});
