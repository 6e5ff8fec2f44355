/** Rounds of kills below jobs on a store: the service, its workers and Redis, at random, until the jobs have ended. needs: redis-server */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { skipRedis, startServer } from "../../src/store/redis/server-for-tests.ts";
import { seededRandom } from "../../src/testing/clock.ts";
import { serve } from "../crawl/served.ts";
import { jobSite, resultsOf, SPEC, startService, startWorker } from "./shared-service.ts";

const JOBS = 3;
const PAGES = 120;
const KILLS = 5;

async function round(seed: number): Promise<void> {
  const random = seededRandom(seed);
  const root = mkdtempSync(join(tmpdir(), "skein-shared-rounds-"));
  const folder = () => mkdtempSync(join(root, "d-"));
  const redis = await startServer(["--maxmemory-policy", "noeviction"]);
  const cwd = folder();
  const args = () => ["--store", redis.url, "--state", "jobs", "--workers", random() < 0.5 ? "0" : "1"];
  const began = (spec: object) => (origin: string) => ({ seeds: [`${origin}/`], ...spec });
  const bodies = [began(SPEC), began({ ...SPEC, maxDepth: 3 }), began({ images: true, perHost: { concurrency: 4 } })];
  await using site = await serve(jobSite(PAGES, 20));
  const alone = await startService(["--state", "jobs"], folder());
  let service = await startService(args(), cwd);
  const workers = [startWorker(redis.url, folder()), startWorker(redis.url, folder())];
  try {
    for (const body of bodies) await alone.post("/v1/jobs", body(site.origin));
    for (let job = 0; job < JOBS; job++) await alone.until(job);
    for (const body of bodies) await service.post("/v1/jobs", body(site.origin));
    for (let kill = 0; kill < KILLS; kill++) {
      await new Promise<void>((resolve) => setTimeout(resolve, 300 + random() * 2_500));
      const victim = random();
      if (victim < 0.4) {
        await service.process.kill();
        await new Promise<void>((resolve) => setTimeout(resolve, random() * 1_000));
        service = await startService(args(), cwd);
      } else if (victim < 0.8) {
        const n = victim < 0.6 ? 0 : 1;
        await workers[n]?.kill();
        workers[n] = startWorker(redis.url, folder());
      } else {
        await redis.kill();
        await new Promise<void>((resolve) => setTimeout(resolve, random() * 3_000));
        await redis.start();
      }
    }
    for (let job = 0; job < JOBS; job++) {
      const [end, calm] = [await service.until(job), await alone.get(`/v1/jobs/${job}`)];
      assert.equal(end.state, "completed", `seed ${seed}, job ${job}: ${end.state} ${end.detail}`);
      assert.deepEqual(await resultsOf(service, job), await resultsOf(alone, job), `seed ${seed}, job ${job}`);
      for (const figure of ["total", "completed", "pages", "items", "images", "skipped"])
        assert.equal(end.counts[figure], calm.counts[figure], `seed ${seed}, job ${job}: ${figure}`);
    }
  } finally {
    for (const one of [alone.process, service.process, ...workers]) if (!one.over) await one.kill();
    await redis.stop();
    rmSync(root, { recursive: true, force: true });
  }
}

const minutes = Number(process.env.SKEIN_LONG_MINUTES ?? "1");

test("jobs on a store come out as on the embedded one, whoever is killed", { skip: skipRedis, timeout: (minutes + 5) * 60_000 }, async () => {
  const until = performance.now() + minutes * 60_000;
  const first = Number(process.env.SKEIN_SEED ?? (Math.floor(Date.now() / 86_400_000) % 10_000) * 1_000);
  let rounds = 0;
  for (; performance.now() < until; rounds++) await round(first + rounds);
  console.log(`jobs on a store from seed ${first}: ${rounds * KILLS} kills, rounds: ${rounds}`);
  assert.ok(rounds > 0);
});
