/** Rounds of kills on Redis: `node src/store/redis/kills.long.ts [rounds] [pages]`, 20 and 1,500 by default. */
import { test } from "node:test";
import { killRound } from "./kills-for-tests.ts";
import { skipRedis } from "./server-for-tests.ts";

const rounds = Number(process.argv[2] ?? 20);
const pages = Number(process.argv[3] ?? 1_500);

for (let seed = 1; seed <= rounds; seed++) {
  test(`redis: round ${seed} of kills leaves every page once`, { skip: skipRedis }, async (t) => {
    const { workersKilled, serversKilled, frozen } = await killRound(seed, pages);
    t.diagnostic(`${workersKilled} workers and ${serversKilled} servers killed, ${frozen} workers frozen`);
  });
}
