/** Which rule of a robots.txt group decides over a path (RFC 9309 §2.2.2, §2.2.3). Not how the file is read (robots.ts). */
import { hexValue, isUnreserved } from "./url.ts";

export interface RobotsVerdict {
  readonly allowed: boolean;
  /** The deciding line, e.g. `Disallow: /private/`; null when no rule matched. */
  readonly rule: string | null;
  /** Its number in the file, from 1. */
  readonly line: number | null;
}

/** An Allow or Disallow line. */
export interface RuleLine {
  readonly allow: boolean;
  readonly pattern: string;
  readonly text: string;
  readonly line: number;
}

/** The rules of one agent, ready to be asked. `path` comes from robotsPath. */
export interface RuleSet {
  verdict(path: string): RobotsVerdict;
}

/** A rule in comparable form. `rest` is what follows the literal beginning: the pieces between stars; null for a mere prefix. */
interface Rule {
  /** Octets of the pattern, and half an octet more for Allow: the greater rank decides. */
  readonly rank: number;
  readonly prefix: string;
  readonly rest: readonly string[] | null;
  /** The last piece must end the path. */
  readonly anchored: boolean;
  readonly verdict: RobotsVerdict;
}

/** All rules with the same literal beginning. `parent`: the longest other beginning that starts this one, or −1. */
interface Node {
  readonly prefix: string;
  readonly parent: number;
  readonly plain: Rule | null;
  /** Greatest rank first. */
  readonly wild: readonly Rule[];
}

const FREE: RobotsVerdict = { allowed: true, rule: null, line: null };

/** 0: stands for itself. 1: is compared as a percent form. 2: "%". */
const KIND = new Uint8Array(128).fill(1);
const PLAIN = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~:/?#[]@!$&()*+,;=";
for (let i = 0; i < PLAIN.length; i++) KIND[PLAIN.charCodeAt(i)] = 0;
KIND[37] = 2;

const HEX = "0123456789ABCDEF";
const percent = (byte: number): string => `%${HEX[byte >> 4]}${HEX[byte & 15]}`;

/** UTF-8 of one code point in percent forms; half a surrogate pair is written as U+FFFD, as the URL standard has it. */
function percentUtf8(point: number): string {
  const code = point >= 0xd800 && point <= 0xdfff ? 0xfffd : point;
  if (code < 0x80) return percent(code);
  if (code < 0x800) return percent(0xc0 | (code >> 6)) + percent(0x80 | (code & 63));
  if (code < 0x10000) return percent(0xe0 | (code >> 12)) + percent(0x80 | ((code >> 6) & 63)) + percent(0x80 | (code & 63));
  return percent(0xf0 | (code >> 18)) + percent(0x80 | ((code >> 12) & 63)) + percent(0x80 | ((code >> 6) & 63)) + percent(0x80 | (code & 63));
}

/**
 * The form in which paths and patterns are compared (RFC 9309 §2.2.2): escaped unreserved characters are decoded, other escapes written in upper case,
 * what is neither unreserved nor reserved is escaped. So is "'", which the URL standard escapes in queries though rules do not.
 * One pass: every request is asked for.
 */
function comparable(text: string): string {
  let out = "";
  let from = 0;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    const kind = code < 128 ? KIND[code] : 1;
    if (kind === 0) continue;
    if (kind === 1) {
      const point = text.codePointAt(i) ?? code;
      out += text.slice(from, i) + percentUtf8(point);
      if (point > 0xffff) i++;
      from = i + 1;
      continue;
    }
    const high = hexValue(text.charCodeAt(i + 1));
    const low = hexValue(text.charCodeAt(i + 2));
    if (high < 0 || low < 0) continue;
    const byte = high * 16 + low;
    out += text.slice(from, i) + (isUnreserved(byte) ? String.fromCharCode(byte) : percent(byte));
    i += 2;
    from = i + 1;
  }
  return from === 0 ? text : out + text.slice(from);
}

/** Path and query of an absolute URL in comparable form. */
export function robotsPath(url: string): string {
  const scheme = url.indexOf("://");
  let start = scheme < 0 ? 0 : scheme + 3;
  while (start < url.length) {
    const code = url.charCodeAt(start);
    if (code === 47 || code === 63 || code === 35) break;
    start++;
  }
  const hash = url.indexOf("#", start);
  const path = comparable(url.slice(start, hash < 0 ? url.length : hash));
  return path.charCodeAt(0) === 47 ? path : `/${path}`;
}

/** Null for a rule that can match nothing: an empty one, or one that starts with neither "/" nor "*". */
function compileRule(line: RuleLine): Rule | null {
  const first = line.pattern.charCodeAt(0);
  if (first !== 47 && first !== 42) return null;
  const anchored = line.pattern.endsWith("$");
  const pattern = comparable(anchored ? line.pattern.slice(0, -1) : line.pattern);
  const pieces = pattern.split(/\*+/);
  // A star at the end adds nothing but rank: "/a*" is the prefix "/a".
  if (!anchored && pieces.length > 1 && pieces.at(-1) === "") pieces.pop();
  return {
    rank: pattern.length + (anchored ? 1 : 0) + (line.allow ? 0.5 : 0),
    prefix: pieces[0] ?? "",
    rest: pieces.length === 1 && !anchored ? null : pieces.slice(1),
    anchored,
    verdict: { allowed: line.allow, rule: line.text, line: line.line },
  };
}

/** Leftmost search piece by piece: with stars alone the first place is never worse than a later one, so nothing is tried twice. */
function matchesRest(rule: Rule, rest: readonly string[], path: string): boolean {
  let at = rule.prefix.length;
  const last = rule.anchored ? rest.length - 1 : rest.length;
  for (let i = 0; i < last; i++) {
    const piece = rest[i]!;
    const found = path.indexOf(piece, at);
    if (found < 0) return false;
    at = found + piece.length;
  }
  if (!rule.anchored) return true;
  const tail = rest[last];
  return tail === undefined ? at === path.length : path.length - tail.length >= at && path.endsWith(tail);
}

/** Nodes sorted by prefix, so that every node stands after those it starts with. */
function buildNodes(rules: readonly Rule[]): readonly Node[] {
  const byPrefix = Map.groupBy(rules, (rule) => rule.prefix);
  const prefixes = [...byPrefix.keys()].sort((a, b) => (a < b ? -1 : 1));
  const nodes: Node[] = [];
  for (const prefix of prefixes) {
    let parent = nodes.length - 1;
    while (parent >= 0 && !prefix.startsWith(nodes[parent]!.prefix)) parent = nodes[parent]!.parent;
    // Stable sort: of two equal lines the first is named.
    const own = byPrefix.get(prefix)!.sort((a, b) => b.rank - a.rank);
    nodes.push({ prefix, parent, plain: own.find((rule) => rule.rest === null) ?? null, wild: own.filter((rule) => rule.rest !== null) });
  }
  return nodes;
}

/** The last node that does not sort after the path. If any prefix starts the path, the longest such is this node or one of its ancestors. */
function lastNotAfter(nodes: readonly Node[], path: string): number {
  let low = 0;
  let high = nodes.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (nodes[middle]!.prefix <= path) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

/** The rule of greatest rank that matches; null when none does. */
function bestMatch(nodes: readonly Node[], path: string): Rule | null {
  let best: Rule | null = null;
  for (let at = lastNotAfter(nodes, path); at >= 0; at = nodes[at]!.parent) {
    const node = nodes[at]!;
    if (!path.startsWith(node.prefix)) continue;
    if (node.plain && (best === null || node.plain.rank > best.rank)) best = node.plain;
    for (const rule of node.wild) {
      if (best !== null && rule.rank <= best.rank) break;
      if (rule.rest !== null && matchesRest(rule, rule.rest, path)) {
        best = rule;
        break;
      }
    }
  }
  return best;
}

/** Compiles the rules of one agent. A question then costs a binary search, one step per prefix that starts the path, and the wildcard rules found on the way. */
export function compileRules(lines: readonly RuleLine[]): RuleSet {
  const nodes = buildNodes(lines.map(compileRule).filter((rule) => rule !== null));
  return {
    verdict(path) {
      if (path === "/robots.txt") return FREE;
      let best = bestMatch(nodes, path);
      if (path.includes("$") || path.includes("*")) {
        // "%24" and "%2A" in a rule stand for the characters themselves (§2.2.3); the other way round a literal "$" in a rule is not "%24" in a path.
        const escaped = bestMatch(nodes, path.replaceAll("$", "%24").replaceAll("*", "%2A"));
        if (escaped !== null && (best === null || escaped.rank > best.rank)) best = escaped;
      }
      return best === null ? FREE : best.verdict;
    },
  };
}
