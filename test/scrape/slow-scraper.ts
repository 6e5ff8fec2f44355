/** The shop's scraper, with a handler that computes for a while: parsing is what limits such a crawl. */
import { defineScraper } from "skein";
import shop from "./shop-scraper.ts";

const BUSY_MS = 25;

function compute(): void {
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
