/** What a robots.txt says of a URL, with the line and group that decided. Pure: the file is fetched elsewhere (the crawl's loop, probe-robots.ts). */
import { assertNever } from "../core/errors.ts";
import type { RobotsState } from "../core/frontier.ts";
import { crawlDelayMs, groupFor, parseRobots, type Robots, verdict } from "../rules/robots.ts";
import { originOf } from "../rules/url.ts";

/** Why it is so: a rule; no rule matched; no rules at all; or the file cannot be had, which forbids (RFC 9309 §2.3.1.4). */
export type VerdictBasis = "rule" | "no-rule" | "no-robots" | "unavailable";

export interface RobotsVerdictView {
  readonly url: string;
  /** Where the file lies (before redirects), or its name. */
  readonly robotsUrl: string;
  readonly allowed: boolean;
  readonly basis: VerdictBasis;
  /** The deciding line as written, without its comment, and its number from 1. */
  readonly rule: string | null;
  readonly line: number | null;
  /** The User-agent whose groups hold: the agent's own name or `*`; null when none does. */
  readonly group: string | null;
  readonly crawlDelayMs: number | null;
  /** Why it cannot be had. */
  readonly problem: string | null;
}

/** The verdict of a parsed file. */
export function verdictOfFile(url: string, robotsUrl: string, robots: Robots, token: string): RobotsVerdictView {
  const { allowed, rule, line } = verdict(robots, token, url);
  const group = groupFor(robots, token);
  return { url, robotsUrl, allowed, basis: rule === null ? "no-rule" : "rule", rule, line, group, crawlDelayMs: crawlDelayMs(robots, token), problem: null };
}

/** The verdict of what a crawl knows of the URL's origin. */
export function verdictOf(url: string, state: RobotsState, token: string): RobotsVerdictView {
  const robotsUrl = `${originOf(url)}/robots.txt`;
  const none = { url, robotsUrl, rule: null, line: null, group: null, crawlDelayMs: null };
  switch (state.kind) {
    case "rules":
      return verdictOfFile(url, robotsUrl, parseRobots(state.text), token);
    case "allow-all":
      return { ...none, allowed: true, basis: "no-robots", problem: null };
    case "unavailable":
      return { ...none, allowed: false, basis: "unavailable", problem: state.why };
    default:
      return assertNever(state);
  }
}
