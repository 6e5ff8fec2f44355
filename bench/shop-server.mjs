// The generated shop in a process of its own, for bench/shop.mjs. Tells its parent where it lies, and how many requests it had at once.
import { createShop } from "../src/testing/shop.ts";

const [products, offers, least, most] = process.argv.slice(2).map(Number);
const shop = createShop({ seed: 1, products, offers });
const served = await shop.serve({ latency: [least, most] });
process.send({ origin: served.origin, lists: shop.listPages });
process.on("message", () => process.send({ requests: shop.visits.length, mostAtOnce: served.mostAtOnce, cpuS: cpuSeconds() }));
process.on("disconnect", () => process.exit());

function cpuSeconds() {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e6;
}
