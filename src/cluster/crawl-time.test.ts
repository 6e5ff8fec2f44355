/** The time of work of a crawl on a store, told by its creator and, once that is away, by its workers: without what it was paused for. The store is a map. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Link } from "../store/redis/connect.ts";
import { createCrawls } from "../store/redis/crawls.ts";
import { createTestClock } from "../testing/clock.ts";
import { followTime, noteTime } from "./crawl-time.ts";

/** Hashes and texts by key, asked as the files of crawls ask. */
function fakeStore() {
  const hashes = new Map<string, Map<string, string>>([
    ["{t}:1:info", new Map()],
    ["{t}:1:m", new Map()],
  ]);
  const texts = new Map<string, string>();
  const command = async (name: string, key: string, ...rest: readonly unknown[]): Promise<unknown> => {
    const hash = hashes.get(key);
    switch (name) {
      case "EXISTS":
        return hash === undefined ? 0 : 1;
      case "HSET":
        hash?.set(String(rest[0]), String(rest[1]));
        return 1;
      case "HGET": {
        const value = hash?.get(String(rest[0]));
        return value === undefined ? null : Buffer.from(value);
      }
      case "GET":
        return texts.get(key) ?? null;
      case "PTTL":
        return texts.has(key) ? 15_000 : -2;
      default:
        throw new Error(`${name} is not asked here`);
    }
  };
  // `as`: what is asked of it here it has.
  const link = { tag: "{t}", command } as unknown as Link;
  return {
    link,
    control: (to: string) => void hashes.get("{t}:1:m")?.set("ctl", to),
    owned: (yes: boolean) => void (yes ? texts.set("{t}:1:own", "serve|host|1") : texts.delete("{t}:1:own")),
    noted: () => Number(hashes.get("{t}:1:info")?.get("elapsed") ?? 0),
  };
}

test("who writes the outputs notes the time of work without pauses, and goes on with what was noted before", async () => {
  const clock = createTestClock();
  const store = fakeStore();
  const time = noteTime(createCrawls(store.link), 1, clock, 1_000);
  const told: string[] = [];
  const frontier = time.heeding({ control: async (to: string) => void told.push(to) });
  await clock.advance(11_000);
  assert.deepEqual([store.noted(), time.elapsedMs()], [11_000, 12_000]);
  await frontier.control("pause");
  await clock.advance(3_600_000);
  assert.deepEqual([store.noted(), time.elapsedMs()], [12_000, 12_000]);
  await frontier.control("run");
  await clock.advance(1_000);
  assert.equal(time.elapsedMs(), 13_000);
  assert.deepEqual(told, ["pause", "run"]);
  time.close();
});

test("workers of a crawl whose creator died in a pause, or before one, count neither pause", async () => {
  const clock = createTestClock();
  const store = fakeStore();
  const asked = followTime(store.link, 1, clock);
  const time = noteTime(createCrawls(store.link), 1, clock, 0);
  const frontier = time.heeding({ control: async (to: string) => store.control(to) });
  /** Once a second, as workers do. */
  async function seconds(count: number): Promise<number | null> {
    let last: number | null = null;
    for (let n = 0; n < count; n++) {
      await clock.advance(1_000);
      last = await asked();
    }
    return last;
  }
  store.owned(true);
  assert.equal(await seconds(10), null);
  await frontier.control("pause");
  assert.equal(await seconds(1_000), null);
  time.close();
  store.owned(false);
  const dead = (await seconds(500)) ?? Number.NaN;
  assert.ok(dead >= 10_000 && dead <= 11_000, String(dead));
  store.control("run");
  const further = (await seconds(20)) ?? Number.NaN;
  assert.ok(further >= dead + 20_000 && further <= dead + 21_000, String(further));
  store.control("pause");
  const again = (await seconds(500)) ?? Number.NaN;
  assert.ok(again <= further + 1_000, String(again));
  assert.equal(store.noted(), again);
});
