/** `skein explain`: why a URL was, or was not, crawled. */
import { realClock } from "../../core/clock.ts";
import { CrawlError } from "../../core/errors.ts";
import type { openStateView, StateView } from "../../inspect.ts";
import type { Explanation, explain } from "../../inspect-explain.ts";
import type { explanationLines } from "../../inspect-words.ts";
import { parseUrl } from "../../rules/url.ts";
import { harmless } from "../console.ts";
import { EXIT } from "../exit.ts";
import type { Io } from "../io.ts";
import { argumentFault } from "../seeds.ts";
import { JSON_FLAG, readVerb, STATE_FLAG, stateOf, type Verb } from "../verb.ts";

export interface ExplainParts {
  readonly openStateView: typeof openStateView;
  readonly explain: typeof explain;
  readonly explanationLines: typeof explanationLines;
}

export const EXPLAIN: Verb = {
  name: "explain",
  head: `Usage: skein explain URL… --state DIR

Says why a crawl did or did not fetch a URL: where it was found, page by page back to the seed, and
what decided: a pattern, a line of robots.txt, a limit, a mark on the link. Of a URL that the crawl
never met it says what the crawl's rules would make of it. The crawl may be running.

Examples:
  skein explain https://example.com/private/ --state crawl1
  skein explain https://example.com/a --state crawl1 --json | jq .skipped.rule
`,
  own: [STATE_FLAG, JSON_FLAG],
  shared: [],
  tail: `
With --json, one object a line: the facts, and the sentences under "text".

Exit status: 0 all URLs are known to the crawl; 8 one is not; 2 usage, or no crawl in DIR.
`,
};

/** Canonical where it is a URL, so that spelling does not matter; else as it stands, for what pages wrote that is no URL. A bare host: the scheme that the crawl knows. */
function askedUrl(text: string, view: StateView): string {
  const trimmed = text.trim();
  const bare = argumentFault(trimmed) === null && !/^[a-z][a-z0-9+.-]*:(?!\d+(?:[/?#]|$))/i.test(trimmed);
  const forms = (bare ? [`https://${trimmed}`, `http://${trimmed}`] : [trimmed]).flatMap((form) => {
    const parsed = parseUrl(form);
    return "reject" in parsed ? [] : [parsed.url];
  });
  return forms.find((form) => view.lookUp(form) !== null) ?? forms[0] ?? text;
}

/** Answers the exit status. Throws CrawlError for what is ours; the caller says it. */
export async function explainCommand(argv: readonly string[], io: Io, load: () => Promise<ExplainParts>): Promise<number> {
  const reading = await readVerb(EXPLAIN, argv, io);
  if (reading === null) return EXIT.ok;
  if (reading.args.length === 0) throw new CrawlError("invalid-options", "nothing to explain: give a URL");
  const dir = stateOf(reading, io);
  const { openStateView, explain, explanationLines } = await load();
  using view = openStateView(dir);
  let status: number = EXIT.ok;
  for (const [index, text] of reading.args.entries()) {
    const explanation: Explanation = await explain(view, askedUrl(text, view));
    const { outlook } = explanation;
    if (explanation.kind === "unknown" && outlook?.sitemap !== true && outlook?.passedOver !== true) status = EXIT.no;
    const lines = explanationLines(explanation, { spec: view.spec, finishReason: view.finishReason, now: realClock.epoch() });
    const json = () => JSON.stringify({ ...explanation, text: lines.slice(1) });
    const words = () => `${index > 0 ? "\n" : ""}${lines.map(harmless).join("\n")}`;
    await io.stdout.write(Buffer.from(`${reading.isOn("json") ? json() : words()}\n`));
  }
  return status;
}
