/** The scraper of the shop scenario: an item for each offer. Run by the real command, as a user's file is. */
import { defineScraper } from "skein";

export default defineScraper<{ list: { index?: number }; detail: { id?: string } }>({
  version: 1,
  items: { offers: { key: "sku" } },
  handlers: {
    list({ $, follow, stopSeries, watermark, data }) {
      const index = data.index ?? 0;
      const mark = watermark("date", { olderInARow: 1 });
      for (const row of $("tr.item")) {
        if (mark.old($(row).attr("data-date") ?? "")) return stopSeries();
        const href = $(row).find("a").attr("href");
        follow(href, { handler: "detail", priority: 5, data: { id: href?.slice(6) } });
      }
      follow($("a.next").attr("href"), { handler: "list", series: "list", index: index + 1, data: { index: index + 1 } });
    },
    detail({ $, item, data, state }) {
      const title = $("h1").text();
      for (const offer of $("li.offer")) {
        const one = $(offer);
        item({ sku: one.attr("data-sku"), product: Number(data.id), title, seller: one.find(".seller").text(), price: Number(one.find(".price").text()) });
      }
      state.set(`seen-${data.id}`, true);
    },
  },
});
