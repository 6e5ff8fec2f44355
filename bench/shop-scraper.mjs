// The scraper of bench/shop.mjs: the first list page follows all others, each offer of a detail page is an item.
import { defineScraper } from "skein";

export default defineScraper({
  version: 1,
  items: { offers: { key: "sku" } },
  handlers: {
    list({ $, follow, stopSeries, watermark, data }) {
      const mark = watermark("date");
      if (data.index === undefined) {
        const pages = Number($("table").attr("data-pages"));
        for (let index = 1; index < pages; index++) follow(`/list/${index}`, { handler: "list", series: "list", index, data: { index } });
      }
      for (const row of $("tr.item")) {
        if (mark.old($(row).attr("data-date"))) return stopSeries();
        follow($(row).find("a").attr("href"), { handler: "detail", priority: 5 });
      }
    },
    detail({ $, item }) {
      const title = $("h1").text();
      const date = $("time").attr("datetime");
      for (const offer of $("li.offer")) {
        const one = $(offer);
        item({
          sku: one.attr("data-sku"),
          title,
          date,
          seller: one.find(".seller").text(),
          price: Number(one.find(".price").text()),
          terms: one.find(".terms").text(),
        });
      }
    },
  },
});
