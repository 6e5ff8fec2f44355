/** The trap rules for what the threads of a crawl have found: they count over all of it, so that they are asked where everything comes together, and once for each link. */
import type { Lease, Settled, Token } from "../core/frontier.ts";
import type { Once, Output, SkippedRecord } from "../core/records.ts";
import type { CrawlRequest } from "../core/request.ts";
import type { AdmitRules } from "../rules/admit.ts";

export interface Judged {
  readonly settled: readonly Settled[];
  readonly links: readonly CrawlRequest[];
  readonly refused: readonly CrawlRequest[];
}

/** As if `rules.traps` had been asked when the page was read (rules/admit.ts): a refused link is a skipped record of its page, a refused redirect the end of its chain. */
export function judgeLinks(
  rules: AdmitRules,
  batch: { readonly settled: readonly Settled[]; readonly links: readonly CrawlRequest[] },
  held: ReadonlyMap<Token, Lease>,
): Judged {
  const { traps, passed } = rules;
  const { settled, links } = batch;
  if (traps === null) return { settled, links, refused: [] };
  const refused: CrawlRequest[] = [];
  const skips = new Map<string, Once<SkippedRecord>[]>();
  const ends = new Map<string, CrawlRequest>();
  for (const link of links) {
    const { url, idHi, idLo, referrer, depth, hop, rest } = link;
    if ((hop !== "link" && hop !== "redirect") || (rest === null && passed.has(idHi, idLo))) continue;
    const trap = traps.verdict(url, referrer, depth);
    if (trap === null) {
      if (rest === null) passed.add(idHi, idLo);
      continue;
    }
    refused.push(link);
    const from = hop === "redirect" ? rest?.redirects?.at(-1)?.url : referrer;
    if (from === undefined || from === null) continue;
    const skip = { idHi, idLo, value: { url, referrer: from, depth, reason: "trap", rule: trap.rule } } as const;
    const of = skips.get(from);
    if (of === undefined) skips.set(from, [skip]);
    else of.push(skip);
    if (hop === "redirect") ends.set(from, link);
  }
  if (refused.length === 0) return { settled, links, refused };
  const gone = new Set(refused);
  return {
    settled: settled.map((page) => {
      const url = held.get(page.token)?.request.url;
      const skipped = url === undefined ? undefined : skips.get(url);
      return url === undefined || skipped === undefined ? page : withSkips(page, skipped, ends.get(url) ?? null);
    }),
    links: links.filter((link) => !gone.has(link)),
    refused,
  };
}

/** `end`: the target that is refused; what its chain owes, the page's own record last, is due now. */
function withSkips(page: Settled, skipped: readonly Once<SkippedRecord>[], end: CrawlRequest | null): Settled {
  const { settlement } = page;
  if (settlement.kind !== "done" && settlement.kind !== "dropped") return page;
  const owed = end?.rest?.owed ?? [];
  const own: Output = owed.at(-1) ?? settlement.output ?? NOTHING;
  const before = owed.slice(0, -1);
  const output: Output = { ...own, skipped: [...own.skipped, ...skipped], ...(before.length > 0 ? { owed: before } : {}) };
  return { ...page, settlement: { ...settlement, output } };
}

const NOTHING: Output = { page: null, listed: false, skipped: [], found: [], edges: [] };
