/** `skein explain`: why a URL was, or was not, crawled. */
import { realClock } from "../../core/clock.ts";
import { CrawlError } from "../../core/errors.ts";
import type { Explanation, explain } from "../../inspect/explain.ts";
import type { openStateView } from "../../inspect/inspect.ts";
import type { connectStore } from "../../inspect/store.ts";
import type { openJobView } from "../../inspect/store-explain.ts";
import type { explanationLines, Telling } from "../../inspect/words.ts";
import { parseUrl } from "../../rules/url.ts";
import { harmless } from "../console.ts";
import { EXIT } from "../exit.ts";
import type { Io } from "../io.ts";
import { argumentFault } from "../seeds.ts";
import { JSON_FLAG, logOf, type Reading, readVerb, STATE_FLAG, type Verb } from "../verb.ts";
import { JOB_FLAG, neededJob, type Where, whereOf } from "../where.ts";

export interface ExplainParts {
  readonly openStateView: typeof openStateView;
  readonly explain: typeof explain;
  readonly explanationLines: typeof explanationLines;
}

export interface StoreExplainParts {
  readonly connectStore: typeof connectStore;
  readonly openJobView: typeof openJobView;
  readonly explanationLines: typeof explanationLines;
}

export const EXPLAIN: Verb = {
  name: "explain",
  head: `Usage: skein explain URL… --state DIR
       skein explain URL… --store URL --job ID

Says why a crawl did or did not fetch a URL: where it was found, page by page back to the seed, and
what decided: a pattern, a line of robots.txt, a limit, a mark on the link. Of a URL that the crawl
never met it says what the crawl's rules would make of it. The crawl may be running. Of a crawl on a
store: at which worker it is in flight, and of its record also where that was written; the crawl's
JSON Lines files are looked into when they are on this machine.

Examples:
  skein explain https://example.com/private/ --state crawl1
  skein explain https://example.com/a --state crawl1 --json | jq .skipped.rule
`,
  own: [STATE_FLAG, JOB_FLAG, JSON_FLAG],
  shared: ["store"],
  tail: `
With --json, one object a line: the facts, and the sentences under "text".

Exit status: 0 all URLs are known to the crawl; 8 one is not; 2 usage, no crawl in DIR, or no such
job; 5 the store does not answer.
`,
};

/** A crawl as it is asked here, wherever it lies. */
interface Asked {
  readonly telling: Telling;
  isKnown(url: string): Promise<boolean>;
  explain(url: string): Promise<Explanation>;
}

/** Canonical where it is a URL, so that spelling does not matter; else as it stands, for what pages wrote that is no URL. A bare host: the scheme that the crawl knows. */
async function askedUrl(text: string, { isKnown }: Asked): Promise<string> {
  const trimmed = text.trim();
  const bare = argumentFault(trimmed) === null && !/^[a-z][a-z0-9+.-]*:(?!\d+(?:[/?#]|$))/i.test(trimmed);
  const forms = (bare ? [`https://${trimmed}`, `http://${trimmed}`] : [trimmed]).flatMap((form) => {
    const parsed = parseUrl(form);
    return "reject" in parsed ? [] : [parsed.url];
  });
  for (const form of forms) if (await isKnown(form)) return form;
  return forms[0] ?? text;
}

async function tell(asked: Asked, reading: Reading, io: Io, explanationLines: ExplainParts["explanationLines"]): Promise<number> {
  let status: number = EXIT.ok;
  for (const [index, text] of reading.args.entries()) {
    const explanation = await asked.explain(await askedUrl(text, asked));
    const { outlook } = explanation;
    if (explanation.kind === "unknown" && outlook?.sitemap !== true && outlook?.passedOver !== true) status = EXIT.no;
    const lines = explanationLines(explanation, asked.telling);
    const json = () => JSON.stringify({ ...explanation, text: lines.slice(1) });
    const words = () => `${index > 0 ? "\n" : ""}${lines.map(harmless).join("\n")}`;
    await io.stdout.write(Buffer.from(`${reading.isOn("json") ? json() : words()}\n`));
  }
  return status;
}

async function tellOfJob({ url, job }: Where & { kind: "store" }, reading: Reading, io: Io, load: () => Promise<StoreExplainParts>): Promise<number> {
  const id = neededJob(job);
  const { connectStore, openJobView, explanationLines } = await load();
  const link = await connectStore(url, logOf(io));
  try {
    const view = await openJobView(link, id, io.cwd);
    return await tell(view, reading, io, explanationLines);
  } finally {
    await link.close();
  }
}

/** Answers the exit status. Throws CrawlError for what is ours; the caller says it. */
export async function explainCommand(
  argv: readonly string[],
  io: Io,
  load: () => Promise<ExplainParts>,
  loadStore: () => Promise<StoreExplainParts>,
): Promise<number> {
  const reading = await readVerb(EXPLAIN, argv, io);
  if (reading === null) return EXIT.ok;
  if (reading.args.length === 0) throw new CrawlError("invalid-options", "nothing to explain: give a URL");
  const where = whereOf(reading, argv, io);
  if (where.kind === "store") return tellOfJob(where, reading, io, loadStore);
  const { openStateView, explain, explanationLines } = await load();
  using view = openStateView(where.dir);
  const telling = { spec: view.spec, finishReason: view.finishReason, now: realClock.epoch() };
  return await tell({ telling, isKnown: async (url) => view.lookUp(url) !== null, explain: (url) => explain(view, url) }, reading, io, explanationLines);
}
