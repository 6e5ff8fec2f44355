/** docs/options.md, made from the schema and the flag table. `npm run docs` writes it, a test compares. */
import { OPTION_GROUPS } from "../core/schema.ts";
import { options } from "../core/spec.ts";
import { type Flag, flagTable } from "./flags.ts";
import { spellDefault } from "./help.ts";
import { envName } from "./settings.ts";

const INTRO = `<!-- Made by \`npm run docs\` from src/core/spec.ts and src/cli/flags.ts. Do not edit. -->

# Options

Every option of \`skein crawl\` and of \`crawl(spec)\` in the library, from one schema.

- **Flags** come before **variables**, variables before the **config file**, the file before the defaults. Each source replaces the option whole: a list given by flags does not grow the file's.
- The **variable** of a flag is \`SKEIN_\` and its name in capitals, with \`_\` for \`-\`. Options that may be repeated take one value a line. An empty variable counts as not set; an unknown \`SKEIN_…\` is warned of and does nothing. Switches take \`1 true yes on\` or \`0 false no off\`;
  each has an opposite (\`SKEIN_NO_ROBOTS=1\` is \`SKEIN_ROBOTS=0\`, \`--no-images\` is \`--images=false\`).
- The **config file** is \`skein.config.ts\`, \`skein.config.js\` (default export) or \`skein.config.json\` in the current folder, with the names of the left column: \`{ "maxDepth": 2, "limits": { "pages": 100 } }\`. Seeds on the command line replace those of the file.
- **Durations** are \`250ms\`, \`1s\`, \`2m\`, \`1h\`, \`30d\` or a number of milliseconds; **sizes** \`500KB\`, \`10MB\`, \`1GiB\` or a number of bytes. \`none\` lifts a limit.
- A wrong value, an unknown option or an unknown key ends the command with status 2 before anything is fetched; all problems are named at once.
- A value that starts with a dash is joined with \`=\`: \`--include=-draft-*\`. After \`--\` everything is a URL. Of a flag that takes one value the last one counts.
- *Job*: may also stand in the body of a job of a crawl service; the other options belong to whoever runs Skein.
`;

const SEEDS = `
## Seeds

URLs are arguments, lines of input files, or \`seeds\` in the spec. A bare host as argument (\`example.com/docs\`) is tried as https, then as http. \`{1..1000}\` stands for a thousand URLs and expands as the crawl goes; leading zeros keep the width
(\`{001..100}\`), several braces give every combination.

An input file holds one URL a line. Blank lines and what follows a \`#\` (at the start of a line or after a blank) are ignored. CRLF, a byte order mark and gzip are understood; \`-\` is stdin. In a \`.csv\` file the last column that holds a URL counts, or else
the last that holds a host; a heading is passed over. Bare hosts in files need \`--default-scheme\`. A bad line is reported by its number and skipped; the command ends with status 2 only if no line is good.

## Patterns

Of \`--include\`, \`--exclude\`, \`--follow\` and \`--list\`: without \`/\` the last path segment (\`*.html\`); with \`/\` the path (\`/docs/**\` from the root, \`docs/*\` anywhere); with \`://\` the whole URL. These ignore the query. \`re:…\` is a regular expression on the
whole URL. \`-v\` prints how each was read.

## Output

stdout has the URL of each page answered with 2xx, as it arrives; with \`--print links\` each distinct link once; with \`-o -\` JSON Lines of page records instead. Diagnostics go to stderr. An existing file is replaced when the first record is written;
a start that fails leaves it untouched. When a disk is full the crawl ends with status 3, says what to do, and the file ends with a whole line. A slow reader of stdout makes the crawl wait; one that goes away (\`| head\`) ends it with status 0.

Progress is drawn only on a terminal. \`NO_COLOR\` is respected. With \`--log-format json\` each diagnostic is a JSON object with \`time\`, \`level\`, \`message\` and fields; the last one has \`message\` "summary".
`;

const escaped = (text: string) => text.replaceAll("|", "\\|").replaceAll("<", "&lt;");
const code = (text: string) => `\`${text.replaceAll("|", "\\|")}\``;

function spelt({ name, short, negated, value }: Flag): string {
  const long = `--${negated ? "no-" : ""}${name}${value === null ? "" : ` ${value}`}`;
  return code(short === null ? long : `-${short}, ${long}`);
}

function row(cells: readonly string[]): string {
  return `| ${cells.join(" | ")} |`;
}

function optionRows(group: string, table: readonly Flag[]): string[] {
  return options().flatMap((node) => {
    if (node.meta.group !== group) return [];
    const flag = table.find((known) => known.node?.path === node.path);
    const fallback = typeof node.fallback === "boolean" ? String(node.fallback) : spellDefault(node.fallback, node.meta.unit);
    const unit = node.meta.unit === undefined ? "" : ` Unit: ${node.meta.unit}.`;
    const variable = flag === undefined ? "" : code(envName(node.meta.flag ?? flag.name));
    const sentence = `${escaped(node.meta.description)} Expected: ${escaped(node.allowed)}.${unit}`;
    return [
      row([code(node.path), flag === undefined ? "" : spelt(flag), variable, fallback === null ? "" : code(fallback), sentence, node.meta.job ? "yes" : ""]),
    ];
  });
}

/** The whole page. */
export function optionsPage(): string {
  const table = flagTable();
  const groups = OPTION_GROUPS.map((group) => {
    const head = [row(["spec", "flag", "variable", "default", "meaning", "job"]), row(["---", "---", "---", "---", "---", "---"])];
    return `\n## ${group.charAt(0).toUpperCase()}${group.slice(1)}\n\n${[...head, ...optionRows(group, table)].join("\n")}\n`;
  });
  const own = table.filter(({ node, name }) => node === null && name !== "help");
  const ownRows = own.map((flag) => row([spelt(flag), code(envName(flag.negated ? `no-${flag.name}` : flag.name)), escaped(flag.description)]));
  const running = `\n## Of the command line only\n\n${[row(["flag", "variable", "meaning"]), row(["---", "---", "---"]), ...ownRows].join("\n")}\n`;
  return INTRO + groups.join("") + running + SEEDS;
}
