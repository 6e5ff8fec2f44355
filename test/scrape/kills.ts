/** Crawls of a generated shop by the real command with a scraper, killed and started again until they are finished: the items are those of an undisturbed run, each once. */
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { seededRandom } from "../../src/testing/clock.ts";
import { createShop, type Shop } from "../../src/testing/shop.ts";
import { runCommand } from "../crawl/kills.ts";

export interface ShopKillPlan {
  readonly seed: number;
  readonly products: number;
  readonly offers: number;
  /** Longest time before a kill, ms from the start of the process. */
  readonly withinMs: number;
  readonly kills: number;
}

export interface ShopKillFigures {
  readonly kills: number;
  readonly items: number;
  /** Requests that were made again because of kills. */
  readonly again: number;
}

const SCRAPER = join(import.meta.dirname, "shop-scraper.ts");

function linesOf(file: string): string[] {
  const text = readFileSync(file, "utf8");
  assert.ok(text === "" || text.endsWith("\n"), `${file}: the last line is torn`);
  return text.split("\n").filter((line) => line !== "");
}

/** Items of the run as texts, without what a repeated request changes. */
function itemsOf(file: string): string[] {
  return linesOf(file)
    .map((line) => {
      const { _meta, ...fields } = JSON.parse(line);
      return JSON.stringify([fields, _meta.url]);
    })
    .sort();
}

function rowsOf(file: string): string[] {
  const database = new DatabaseSync(file, { readOnly: true });
  try {
    return database
      .prepare("SELECT sku, product, title, seller, price FROM offers")
      .all()
      .map((row) => JSON.stringify(row))
      .sort();
  } finally {
    database.close();
  }
}

function expectedItems(shop: Shop, origin: string, from: number, to: number): string[] {
  const items: string[] = [];
  for (let id = from; id <= to; id++) {
    const { title } = shop.product(id);
    for (const { sku, seller, price } of shop.offers(id)) items.push(JSON.stringify([{ sku, product: id, title, seller, price }, `${origin}/item/${id}`]));
  }
  return items.sort();
}

/** A first run that is killed again and again, then newer products and a second run that is killed as well. */
export async function checkShopKills(plan: ShopKillPlan): Promise<ShopKillFigures> {
  const random = seededRandom(plan.seed * 2_654_435 + 7);
  const folder = mkdtempSync(join(tmpdir(), "skein-shop-kills-"));
  const shop = createShop({ seed: plan.seed, products: plan.products, perPage: 10, offers: plan.offers, pages: "small" });
  // A few lost connections, which are tried again; 503 would make the crawl wait for the host.
  for (let i = 0; i < 3; i++) shop.fail(`/item/${1 + Math.floor(random() * plan.products)}`, null, 1);
  let kills = 0;
  let items = 0;
  let again = 0;
  try {
    await using served = await shop.serve({ latency: [2, 20] });
    const args = ["crawl", `${served.origin}/list/0`, "-s", SCRAPER, "--state", "state", "--parse-workers", "1", "--no-robots", "-q"];
    const outputs = ["-o", "items.jsonl", "-o", "items.sqlite", "--pages", "pages.jsonl", "--skipped", "skipped.jsonl"];
    let from = 1;
    for (const round of ["first", "second"]) {
      const to = shop.newest;
      const arrived = shop.visits.length;
      const most = round === "first" ? plan.kills : Math.ceil(plan.kills / 3);
      for (let killed = 0; ; ) {
        const dueAt = performance.now() + 80 + random() * plan.withinMs;
        const asked = shop.visits.length;
        // One kill may come at any moment of the start; the others wait until something was settled (decision 0011).
        const early = killed === 0 && random() < 0.3;
        const due = () => performance.now() >= dueAt && (early || shop.visits.length >= asked + 12);
        const { code, stderr } = await runCommand([...args, ...outputs], folder, killed >= most ? null : due);
        if (code === 0) break;
        assert.equal(code, null, `seed ${plan.seed}, ${round} run after ${killed} kills: exit ${code}: ${stderr}`);
        killed++;
        kills++;
      }
      const about = `seed ${plan.seed}, ${round} run, ${kills} kills`;
      const expected = expectedItems(shop, served.origin, from, to);
      assert.deepEqual(itemsOf(join(folder, "items.jsonl")), expected, `${about}: items.jsonl`);
      const rows = expected.map((line) => JSON.stringify(JSON.parse(line)[0]));
      assert.deepEqual(rowsOf(join(folder, "items.sqlite")), rows.sort(), `${about}: items.sqlite`);
      const urls = linesOf(join(folder, "pages.jsonl")).map((line) => JSON.parse(line));
      assert.equal(new Set(urls.map(({ url }) => url)).size, urls.length, `${about}: a page has two records`);
      assert.deepEqual(
        urls.filter(({ outcome }) => outcome !== "fetched"),
        [],
        about,
      );
      items += expected.length;
      again += shop.visits.slice(arrived).filter(({ endedAt }) => endedAt !== null).length - urls.length;
      from = to + 1;
      shop.add(23);
    }
    return { kills, items, again };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
