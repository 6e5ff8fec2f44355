/** The shop's scraper, with a handler that waits for the file SKEIN_TEST_GO and then computes for a while: parsing is what limits such a crawl. */
import { existsSync } from "node:fs";
import { defineScraper } from "skein";
import shop from "./shop-scraper.ts";

const BUSY_MS = 25;
const go = process.env["SKEIN_TEST_GO"] ?? "";
const cell = new Int32Array(new SharedArrayBuffer(4));

function compute(): void {
  while (!existsSync(go)) Atomics.wait(cell, 0, 0, 5);
  const until = performance.now() + BUSY_MS;
  while (performance.now() < until);
}

export default defineScraper({
  items: { offers: { key: "sku" } },
  version: "slow",
  handlers: {
    list: shop.handlers["list"] as never, // as it is there
    detail(context) {
      compute();
      return shop.handlers["detail"]?.(context as never); // what the same scraper follows
    },
  },
});
