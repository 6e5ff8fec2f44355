/** The pages of the generated shop as HTML, each a pure function of what it shows. Which page there is, and when, is shop.ts. */
import { seededRandom } from "./clock.ts";

export type Filling = "real" | "small";

export interface Row {
  readonly id: number;
  /** ISO 8601 in UTC. */
  readonly date: string;
}

export interface Product extends Row {
  readonly title: string;
  readonly seed: number;
}

export interface Offer {
  readonly sku: string;
  readonly seller: string;
  readonly price: number;
}

const WORDS = "amber basin cedar delta ember fjord grove haven inlet jetty knoll larch marsh north ocean plain quarry ridge shore tarn upland vale wharf".split(
  " ",
);
const SELLERS = ["Aster & Sons", "Birch Trading", "Corvid", "Dune Supply", "Elm Street", "Fennel"];

const encoder = new TextEncoder();
export const bytesOf = (text: string): Uint8Array => encoder.encode(text);

function prose(random: () => number, words: number): string {
  const some: string[] = [];
  for (let i = 0; i < words; i++) some.push(WORDS[Math.floor(random() * WORDS.length)] ?? "");
  return some.join(" ");
}

/** `first`: how many offers all older products have. */
export function offersOf({ id, seed }: Product, first: number, count: number): readonly Offer[] {
  const random = seededRandom(seed * 31 + id);
  return Array.from({ length: count }, (_, i) => ({
    sku: `S${first + i + 1}`,
    seller: SELLERS[Math.floor(random() * SELLERS.length)] ?? "",
    price: Math.round(random() * 100_000) / 100,
  }));
}

function head(title: string, filling: Filling): string {
  const style = filling === "small" ? "" : `<link rel="stylesheet" href="/style.css"><style>${"tr.item td { padding: 2px } ".repeat(20)}</style>`;
  return `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>${title}</title>${style}</head><body>`;
}

export interface Listing {
  readonly rows: readonly Row[];
  readonly perPage: number;
  readonly offset: number;
  /** Products in all. */
  readonly total: number;
  readonly seed: number;
  readonly filling: Filling;
}

export function listPage({ rows, perPage, offset, total, seed, filling }: Listing): string {
  const page = Math.floor(offset / perPage);
  const pages = Math.ceil(total / perPage);
  const lines = rows.map(({ id, date }) => {
    const link = `<tr class="item" data-date="${date}"><td><a href="/item/${id}">Product ${id}</a></td>`;
    if (filling === "small") return `${link}</tr>`;
    const random = seededRandom(seed * 17 + id);
    return `${link}<td class="price">${Math.round(random() * 9_999) / 100}</td><td><img src="/thumbs/${id}.jpg" alt="" width="80" height="80" loading="lazy"></td>
<td class="text"><p>${prose(random, 70)}</p><span class="tag">${prose(random, 3)}</span><button data-id="${id}" class="buy primary">Add to basket</button></td></tr>`;
  });
  const next = page + 1 < pages ? `<a class="next" href="/list/${page + 1}">next</a>` : "";
  return `${head(`Page ${page}`, filling)}<table data-pages="${pages}" data-total="${total}">${lines.join("\n")}</table>${next}</body></html>`;
}

export function itemPage(product: Product, offers: readonly Offer[], filling: Filling): string {
  const random = seededRandom(product.seed * 13 + product.id);
  const lines = offers.map(({ sku, seller, price }) => {
    const fields = `<b class="seller">${seller.replace("&", "&amp;")}</b> <i class="price">${price}</i>`;
    return `<li class="offer" data-sku="${sku}">${fields}${filling === "small" ? "" : ` <span class="terms">${prose(random, 25)}</span>`}</li>`;
  });
  const text = filling === "small" ? "" : Array.from({ length: 12 }, () => `<p>${prose(random, 80)}</p>`).join("\n");
  return `${head(product.title, filling)}<h1>${product.title}</h1><time datetime="${product.date}">${product.date}</time>${text}<ul>${lines.join("\n")}</ul><a href="/list/0">back</a></body></html>`;
}

export type Latency = readonly [leastMs: number, mostMs: number];

/** Where chance falls between the two. */
export function latencyOf([least, most]: Latency, chance: number): number {
  return least + (most - least) * chance;
}
