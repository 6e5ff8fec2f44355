/** One round of kills; kills.long.ts has many. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { killRound } from "./kills-for-tests.ts";
import { skipRedis } from "./server-for-tests.ts";

test("workers and server are killed all the time: every page is there once, the crawl ends once (F104, F106)", { skip: skipRedis }, async () => {
  const { workersKilled, serversKilled } = await killRound(2, 300);
  assert.ok(workersKilled + serversKilled > 0);
});
