/** A history of runs over one shop, by chance: what is new comes out, whatever shifts, fails, is interrupted or limited. */
import assert from "node:assert/strict";
import { seededRandom } from "../../src/testing/clock.ts";
import { checkBounds, distinct, type ListingOptions, openListing } from "./listing.ts";

export interface Figures {
  readonly visits: number;
  readonly items: number;
  readonly parts: number;
  /** List pages behind the first old one that were in flight. */
  readonly behind: number;
}

function planOf(seed: number, listPages: number): ListingOptions {
  const chance = seededRandom(seed * 15_485_863);
  const pick = <T>(...choices: readonly T[]): T => choices[Math.floor(chance() * choices.length)]!;
  const perPage = pick(5, 6, 9);
  const style = pick("chain", "all");
  const least = pick(1, 50);
  return {
    ...{ seed, style, perPage, overlap: style === "all" ? pick(0, 2, 3) : 0, olderInARow: pick(1, 1, 3, 5), by: pick("$", "html", "html") },
    ...{ products: listPages * perPage - Math.floor(chance() * perPage), flaky: pick(0, 0, 0.05, 0.2), concurrency: pick(64, 64, 8, 2) },
    latency: [least, least + pick(0, 20, 150, 1_000)],
  };
}

/** Throws an AssertionError that names the seed when anything is wrong. */
export async function checkListing(seed: number, listPages: number): Promise<Figures> {
  const options = planOf(seed, listPages);
  const chance = seededRandom(seed * 32_452_843 + 1);
  const below = (n: number) => Math.floor(chance() * n);
  using listing = openListing(options);
  const { shop } = listing;
  const { perPage, overlap, style } = options;
  const step = perPage - overlap;
  const out = new Set<number>();
  /** Id of the product that is the watermark. */
  let mark = 0;
  let parts = 0;
  let behind = 0;
  const history: object[] = [];
  const told = () => `seed ${seed}: ${JSON.stringify(options)}, ${JSON.stringify(history)}`;

  const kinds = ["whole", "nothing", "twenty", ...[0, 1, 2].map(() => (["twenty", "seven", "broken", "beyond", "cut", "limit"] as const)[below(6)]!)];
  for (const kind of kinds) {
    if (kind === "twenty" || kind === "limit") shop.add(20);
    if (kind === "seven" || kind === "beyond" || kind === "cut" || kind === "broken") shop.add(7 * step + below(step));
    // Pages that overlap by n rows bear n new ones on top while they are read, in whatever order they come; a chain bears any number.
    const most = kind === "nothing" ? 0 : style === "chain" ? below(30) : overlap;
    const shift = { chance: chance() < 0.5 ? 0.5 : 0.02, most };
    const firstOld = Math.ceil((shop.newest + most - mark) / step);
    const target = (i: number) => (style === "chain" ? `/list/${i}` : `/list?offset=${i * step}`);
    const bad = kind === "broken" ? target(1 + below(5)) : kind === "beyond" ? target(firstOld + 2 + below(4)) : null;
    if (bad !== null) shop.fail(bad, 503);
    const longest = options.latency[1] * (style === "chain" ? 12 : 6);
    const interruptAfter = kind === "cut" ? [1, 2, 3].map(() => chance() * longest) : [];
    const limitPages = kind === "limit" ? 1 + below(12) : null;
    history.push({ kind, shift, bad, interruptAfter, limitPages, mark, newest: shop.newest });

    const run = await listing.run({ shift, interruptAfter, ...(limitPages === null ? {} : { limitPages }) });
    if (bad !== null) shop.fail(bad, 200, 0);
    parts += run.parts;
    const about = told();
    assert.equal(run.summary.finishReason, "finished", about);
    assert.equal(run.mark, mark === 0 ? null : shop.product(mark).date, `${about}: the watermark`);
    const fresh = distinct(run.out, about);
    checkBounds(options, run, mark, about);
    if (kind === "nothing") {
      const old = [...fresh].filter((id) => id <= mark).length;
      assert.ok(old <= options.olderInARow - 1 || style === "all", `${about}: ${old} details although nothing is new`);
    }
    if (mark > 0) behind += run.visits.filter((visit) => visit.kind === "list" && visit.number > run.begun - mark + 2 * perPage).length;
    for (const id of fresh) out.add(id);
    if (kind === "broken") continue;
    // What the listing had when the run began and the last good run had not met.
    for (let id = mark + 1; id <= run.begun; id++) {
      const why = run.skipped.find((line) => line.startsWith(`/item/${id} `)) ?? "it was never followed";
      assert.ok(fresh.has(id), `${about}: product ${id} of ${run.begun} did not come out of this run: ${why}`);
    }
    mark = run.met;
  }
  for (let id = 1; id <= mark; id++) if (!out.has(id)) assert.ok(id > shop.newest - 40, `${told()}: product ${id} never came out`);
  return { visits: shop.visits.length, items: out.size, parts, behind };
}
