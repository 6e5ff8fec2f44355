/** Random webs crawled by two and three threads, in memory and in a state directory, and kills of such crawls, for as long as there is time. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { checkKills } from "./kills.ts";
import { checkThreadedWeb } from "./threads-web.ts";

const minutes = Number(process.env["SKEIN_LONG_MINUTES"] ?? "1");
const first = Number(process.env["SKEIN_LONG_SEED"] ?? "1000");

test("crawls of random webs in threads find exactly what there is, and survive kills", async (t) => {
  const until = performance.now() + minutes * 60_000;
  const root = mkdtempSync(join(tmpdir(), "skein-threads-long-"));
  let rounds = 0;
  let kills = 0;
  try {
    for (let seed = first; performance.now() < until; seed++) {
      if (seed % 10 === 9) kills += (await checkKills({ pages: 160, seed, withinMs: 900, kills: 4, threads: 2 + (seed % 2) })).kills;
      else await checkThreadedWeb(seed, 2 + (seed % 2), seed % 4 === 0 ? join(root, String(seed)) : null);
      rounds++;
    }
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
  console.log(`rounds: ${rounds}`);
  t.diagnostic(`${kills} kills`);
});
