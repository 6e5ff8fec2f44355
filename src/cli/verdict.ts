/** Verdicts of robots.txt in words for people. */

import { spellDuration } from "../core/units.ts";
import type { RobotsVerdictView } from "../inspect/probe-verdict.ts";

const groupWords = (group: string | null): string =>
  group === null ? "no group speaks to this agent" : `of the group for ${group === "*" ? "every agent (*)" : group}`;

/** One line: allowed or not, and why. */
export function verdictWords(view: RobotsVerdictView): string {
  const { allowed, basis, rule, line, group, problem } = view;
  switch (basis) {
    case "rule":
      return `${allowed ? "allowed" : "disallowed"} by line ${line}, ${JSON.stringify(rule)}, ${groupWords(group)}`;
    case "no-rule":
      return `allowed: ${group === null ? groupWords(null) : `no rule ${groupWords(group)} matches`}`;
    case "no-robots":
      return "allowed: there is no robots.txt";
    case "unavailable":
      return `not to be fetched: robots.txt cannot be had (${problem ?? "unknown reason"})`;
    default:
      return basis satisfies never;
  }
}

/** "2s", "1.5s"; null when there is none. */
export function delayWords(crawlDelayMs: number | null): string | null {
  return crawlDelayMs === null ? null : crawlDelayMs % 1_000 === 0 ? spellDuration(crawlDelayMs) : `${crawlDelayMs / 1_000}s`;
}
