/** The Link header field (RFC 8288): its targets and relation types, in order. */
import { trimBlanks } from "../rules/field-value.ts";

export interface HeaderLink {
  /** As written between the angle brackets. */
  readonly href: string;
  /** Relation types, lower case. */
  readonly rels: readonly string[];
}

/** One entry per link-value of all the field's lines. What is malformed is passed over up to the next comma. */
export function parseLinkHeader(lines: readonly string[]): HeaderLink[] {
  const links: HeaderLink[] = [];
  for (const line of lines) {
    let at = 0;
    while (at < line.length) {
      const open = line.indexOf("<", at);
      if (open < 0) break;
      const close = line.indexOf(">", open);
      if (close < 0) break;
      const { rel, anchored, end } = readParameters(line, close + 1);
      // A link with another context (`anchor`) is not one of this page.
      if (rel !== null && !anchored)
        links.push({
          href: trimBlanks(line.slice(open + 1, close)),
          rels: rel
            .toLowerCase()
            .split(/[\t ]+/)
            .filter(Boolean),
        });
      at = end;
    }
  }
  return links;
}

/** From after ">" to after the comma that ends the link-value. Of several `rel` the first counts (RFC 8288 §3.3). */
function readParameters(line: string, from: number): { readonly rel: string | null; readonly anchored: boolean; readonly end: number } {
  const parameter = /[\t ]*;?[\t ]*(?:([^\t ;,="]+)[\t ]*(?:=[\t ]*(?:"((?:[^"\\]|\\.)*)"?|([^\t ;,"]*)))?)?/y;
  let at = from;
  let rel: string | null = null;
  let anchored = false;
  while (at < line.length && line[at] !== ",") {
    parameter.lastIndex = at;
    const found = parameter.exec(line);
    const length = found?.[0].length ?? 0;
    if (found === null || length === 0) {
      at++;
      continue;
    }
    const name = found[1]?.toLowerCase();
    if (name === "rel") rel ??= found[2]?.replace(/\\(.)/g, "$1") ?? found[3] ?? "";
    else if (name === "anchor") anchored = true;
    at += length;
  }
  return { rel, anchored, end: at + 1 };
}
