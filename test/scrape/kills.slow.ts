/** Items exactly once over kills; many more run in test:long. */
import assert from "node:assert/strict";
import test from "node:test";
import { checkShopKills } from "./kills.ts";

test("a crawl with a scraper in a parse worker that is killed and resumed gives the items of an undisturbed one, each once, in JSONL and SQLite", async (t) => {
  const { kills, items } = await checkShopKills({ seed: 1, products: 140, offers: 900, withinMs: 300, kills: 3 });
  t.diagnostic(`${kills} kills, ${items} items`);
  assert.ok(kills > 0);
});
