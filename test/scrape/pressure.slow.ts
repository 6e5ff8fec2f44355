/** Download and parse side by side: when parsing is the limit downloads wait, and never while a parse worker is free. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { assemble } from "../../src/assemble.ts";
import type { Scraping } from "../../src/core/scraping.ts";
import { parseSpec } from "../../src/core/spec.ts";
import { startSession } from "../../src/engine/session.ts";
import { createShop } from "../../src/testing/shop.ts";

const WORKERS = 2;
const PRODUCTS = 200;

interface Pressure {
  readonly samples: number;
  /** Samples at which the buffer was full, and those of them at which a worker had nothing to do. */
  readonly full: number;
  readonly idle: number;
  /** Samples at which the stats named parsing as what limits the speed. */
  readonly named: number;
  readonly mostWaiting: number;
  readonly items: number;
  readonly pages: number;
}

async function measure(scraper: string, concurrency: number): Promise<Pressure> {
  const folder = mkdtempSync(join(tmpdir(), "skein-pressure-"));
  // Parsing begins once the buffer has been full, and was named for it: that does not hang on how fast this machine downloads.
  process.env["SKEIN_TEST_GO"] = join(folder, "go");
  let gone = false;
  const shop = createShop({ seed: 2, products: PRODUCTS, perPage: 20, offers: PRODUCTS * 3, pages: "small" });
  await using served = await shop.serve({ latency: [1, 4] });
  const spec = parseSpec({
    ...{ seeds: [`${served.origin}/list/0`], robots: false, scraper: join(import.meta.dirname, scraper), parseWorkers: WORKERS, concurrency },
    perHost: { concurrency, delay: 0 },
  });
  const parts = assemble(spec, {});
  let scraping: Scraping | null = null;
  const session = startSession(
    {
      ...parts,
      async openScraping() {
        scraping = (await parts.openScraping?.()) ?? null;
        assert.ok(scraping !== null);
        return scraping;
      },
    },
    [`${served.origin}/list/0`],
  );
  const seen = { samples: 0, full: 0, idle: 0, named: 0, mostWaiting: 0 };
  let allUp = false;
  const open = () => scraping as Scraping | null; // set in a callback, which the compiler does not follow
  const sampler = setInterval(() => {
    const now = open();
    if (now === null) return;
    const { busy, waiting } = now.view();
    // Threads come up one after the other; from here on all are there.
    allUp ||= busy === WORKERS;
    if (!allUp) return;
    seen.samples++;
    seen.mostWaiting = Math.max(seen.mostWaiting, waiting);
    if (now.full()) {
      seen.full++;
      if (busy < WORKERS) seen.idle++;
    }
    void session.stats().then(({ bottleneck }) => {
      if (bottleneck === "parse") seen.named++;
      if (gone || seen.named === 0 || seen.full === 0) return;
      gone = true;
      writeFileSync(join(folder, "go"), "");
    });
  }, 2);
  const summary = await session.done.finally(() => {
    clearInterval(sampler);
    rmSync(folder, { recursive: true });
  });
  return { ...seen, items: summary.items, pages: summary.pages };
}

test("when parsing is the limit downloads wait, the stats say so, and no worker is ever free meanwhile", async (t) => {
  const { samples, full, idle, named, mostWaiting, items, pages } = await measure("slow-scraper.ts", 8);
  t.diagnostic(`${samples} samples, full ${full}, worker free ${idle}, named ${named}, most waiting ${mostWaiting}`);
  assert.equal(items, PRODUCTS * 3);
  assert.equal(pages, PRODUCTS + 10);
  assert.ok(full > 0, "the buffer was never full");
  assert.equal(idle, 0);
  assert.ok(named > 0, "the stats never named parsing");
  // As many pages as requests may be in flight, and those that were in flight when it was full.
  assert.ok(mostWaiting <= 16, String(mostWaiting));
});
