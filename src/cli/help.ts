/** The help texts, made from the flag table: at most 100 columns, aligned, grouped. */
import { OPTION_GROUPS } from "../core/schema.ts";
import { spellDuration, spellSize } from "../core/units.ts";
import { type Flag, flagTable } from "./flags.ts";

const COLUMNS = 100;
const LEFT = 30;

/** Breaks a text at blanks into lines of at most `width`. */
export function wrap(text: string, width: number): string[] {
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(" ")) {
    if (line !== "" && line.length + 1 + word.length > width) {
      lines.push(line);
      line = word;
    } else line = line === "" ? word : `${line} ${word}`;
  }
  return [...lines, line];
}

/** A default as a person would write it; null when there is nothing to say. */
export function spellDefault(fallback: unknown, unit: string | undefined): string | null {
  if (fallback === undefined || fallback === null || typeof fallback === "boolean") return null;
  if (typeof fallback === "number") return unit === "ms" ? spellDuration(fallback) : unit === "bytes" ? spellSize(fallback) : String(fallback);
  return typeof fallback === "string" ? fallback : null;
}

function usage({ short, name, negated, value }: Flag): string {
  return `  ${short === null ? "    " : `-${short}, `}--${negated ? "no-" : ""}${name}${value === null ? "" : ` ${value}`}`;
}

function described(flag: Flag): string {
  const fallback = spellDefault(flag.node?.fallback, flag.node?.meta.unit);
  const sentence = flag.negated && flag.node !== null ? `Do not ${flag.description.charAt(0).toLowerCase()}${flag.description.slice(1)}` : flag.description;
  return fallback === null ? sentence : `${sentence} [${fallback}]`;
}

/** A flag and what it does, wrapped and aligned. */
export function flagLines(flag: Flag): string[] {
  const left = usage(flag);
  const lines = wrap(described(flag), COLUMNS - LEFT);
  const indent = " ".repeat(LEFT);
  if (left.length + 2 > LEFT) return [left, ...lines.map((line) => indent + line)];
  return lines.map((line, index) => (index === 0 ? left.padEnd(LEFT) : indent) + line);
}

const CRAWL_HEAD = `Usage: skein crawl URL… [options]

Crawls from the given URLs and prints the URL of each page as it arrives. A bare host is tried as
https, then http. {1..1000} in a URL stands for a thousand URLs.

Examples:
  skein crawl example.com -d 2 --list '*.html'        pages two links down, as a plain list
  skein crawl https://example.com/ -o pages.jsonl     a record of every page of the host
  skein crawl example.com --state crawl1              survives kill -9: the same command resumes it
  skein crawl -i urls.txt -d 0 -o - | jq .status      only the URLs of a file, records on stdout
  skein crawl example.com --print links               every link there is, fetched or not
`;

const CRAWL_TAIL = `
Durations: 250ms 1s 2m 1h 30d. Sizes: 500KB 10MB 1GiB. "none" lifts a limit. Values in brackets are
defaults. Patterns: without "/" the last path segment (*.html); with "/" the path (/docs/** from the
root, docs/* anywhere); with "://" the whole URL; re:… a regular expression on the whole URL.

Options also come from variables (SKEIN_DEPTH=2, SKEIN_NO_ROBOTS=1; repeatable ones a value a line)
and from skein.config.ts, .js or .json in the current folder, under their names in the spec
(docs/options.md). Flags come before variables, variables before the file.

Ctrl-C once finishes what is in flight, twice aborts. When the reader of stdout goes away (| head)
the crawl ends with status 0. Exit status: 0 finished, 1 internal error, 2 usage, 3 output or state
cannot be written, 4 no seed could be reached, 5 the store cannot be reached, 6 --max-errors passed,
7 the state is held by another process, 130 or 143 interrupted. Of a crawl with --state, running or
not, skein explain URL says why a page was or was not fetched, skein status how it stands.
`;

export function crawlHelp(): string {
  const table = flagTable();
  const groups = [...OPTION_GROUPS, "running"].map((group) => {
    const entries = table.filter((flag) => flag.group === group).flatMap(flagLines);
    return `\n${group.charAt(0).toUpperCase()}${group.slice(1)}:\n${entries.join("\n")}\n`;
  });
  return CRAWL_HEAD + groups.join("") + CRAWL_TAIL;
}

export const MAIN_HELP = `Skein crawls the web: many requests at once, polite to each host, true records.

Usage: skein COMMAND …

Commands:
  crawl URL…     crawl from these URLs (skein crawl --help lists the options)
  serve          crawls as jobs over HTTP, with a dashboard
  fetch URL      one page as the crawler sees it: redirects, headers, charset, links, robots.txt
  robots URL…    what robots.txt says of these URLs, and the line that decided
  explain URL…   why a crawl did or did not fetch these URLs (--state DIR or --store URL)
  status         how a crawl stands: pages, rate, what waits (--state DIR); what a --store has
  export         what a crawl recorded, into a file of another format (--state DIR or --store URL)
  work           works on the crawls of a store, beside others
  init           the files that a scraper starts from
  reparse        the scraper again over the pages that a crawl has stored (--state DIR)
  cache          what the response cache holds, and clearing it
  doctor         whether this machine, a state directory and a store are fit for a crawl
  help           this text; skein help crawl for a command

  --version      the version

Examples:
  skein crawl example.com                             print the URL of every page of a host
  skein crawl https://example.com/ -o pages.jsonl     write a record of every page
`;
