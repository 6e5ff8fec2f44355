/** Meta robots and X-Robots-Tag: which directives speak to this crawler. What they do to a page is decided elsewhere (rules/admit.ts). */

/** What one tag or header line says, and to whom; `agent` null: to everybody. */
export interface RobotsStatement {
  readonly agent: string | null;
  readonly content: string;
}

/** Directives that carry a value after a colon, so that the name before it is nobody's. */
const VALUED = new Set(["unavailable_after", "max-snippet", "max-image-preview", "max-video-preview", "content-signal"]);

/** Names that may stand with nothing but blanks or semicolons between them, as some pages write them. */
const PLAIN = new Set([
  "all",
  "none",
  "index",
  "noindex",
  "follow",
  "nofollow",
  "noarchive",
  "nosnippet",
  "noimageindex",
  "notranslate",
  "nocache",
  "noodp",
  "noydir",
  "indexifembedded",
]);

/** `noindex nofollow` → both; anything else that has blanks in it stays as it is. */
function splitAtBlanks(part: string): readonly string[] {
  const words = part.split(/[\s;]+/).filter((word) => word !== "");
  if (words.length < 2) return [part];
  return words.every((word) => PLAIN.has(word.toLowerCase())) ? words : [part];
}

/** Splits at commas, but a date keeps the one after its weekday (`unavailable_after: Wed, 25 Jun 2031 15:00:00 GMT`). */
function splitDirectives(content: string): readonly string[] {
  const parts: string[] = [];
  for (const raw of content.split(",")) {
    const part = raw.trim();
    const before = parts.at(-1);
    if (before !== undefined && /^\d/.test(part) && /^(?:[^:\s]+\s*:\s*)?unavailable_after\s*:\s*[a-z]+$/i.test(before))
      parts[parts.length - 1] = `${before}, ${part}`;
    else if (part !== "") parts.push(...splitAtBlanks(part));
  }
  return parts;
}

/**
 * The statements of X-Robots-Tag header lines, one string a line. `agent: directives` speaks to that agent, up to the end of the line or the next agent in it.
 */
export function parseXRobotsTag(lines: readonly string[]): RobotsStatement[] {
  const statements: RobotsStatement[] = [];
  for (const line of lines) {
    let agent: string | null = null;
    let own: string[] = [];
    const close = () => {
      if (own.length > 0) statements.push({ agent, content: own.join(", ") });
      own = [];
    };
    for (const part of splitDirectives(line)) {
      const named = /^([^\s:]+)\s*:\s*(.*)$/.exec(part);
      if (named === null || VALUED.has(named[1]!.toLowerCase())) {
        own.push(part);
        continue;
      }
      close();
      agent = named[1]!;
      if (named[2] !== "") own.push(named[2]!);
    }
    close();
  }
  return statements;
}

/**
 * The directives that hold for the crawler of this product token (lower case): lower case, distinct, in order of appearance, `none` given as noindex and nofollow.
 * For a meta tag `agent` is its name; `robots`, `*` and null address everybody, other names only their bearer. Statements add up: what forbids is never taken back.
 */
export function robotsDirectives(values: readonly RobotsStatement[], productToken: string): readonly string[] {
  const found = new Set<string>();
  for (const { agent, content } of values) {
    const name = agent?.trim().toLowerCase();
    if (name !== undefined && name !== "robots" && name !== "*" && name !== productToken.toLowerCase()) continue;
    for (const part of splitDirectives(content)) {
      const directive = part.toLowerCase().replace(/\s*:\s*/, ": ");
      if (directive !== "none") found.add(directive);
      else found.add("noindex").add("nofollow");
    }
  }
  return [...found];
}
