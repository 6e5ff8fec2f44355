/** The hosts of a crawl on Redis and what it knows of robots.txt, for its workers and for those who only look. Nothing is changed. */
import type { HostView, RobotsState } from "../../core/frontier.ts";
import type { Origin } from "../../core/request.ts";
import type { Link } from "./connect.ts";
import type { ScriptName } from "./scripts.ts";
import { readRobots } from "./settle-args.ts";

/** One script on the crawl, at a moment of the caller's choice. */
export type Run = (name: ScriptName, ...args: readonly string[]) => Promise<unknown>;

const AT_ONCE = 500;
const text = (value: unknown): string => (Buffer.isBuffer(value) ? value.toString("utf8") : String(value));

/** At the server's clock. */
export function runOn(link: Link, id: number): Run {
  return (name, ...args) => link.script(name, [link.tag, `${link.tag}:${id}`], ["", String(Math.floor(Math.random() * 2 ** 31)), ...args]);
}

function viewOf(row: readonly unknown[]): HostView {
  const [host, queued, inFlight, concurrency, delay, due, settled, latency] = row;
  return {
    host: text(host),
    queued: Number(queued),
    inFlight: Number(inFlight),
    concurrency: Number(concurrency),
    delayMs: Number(text(delay)),
    dueInMs: Number(text(due)),
    settled: Number(settled),
    meanLatencyMs: Number(text(latency)),
  };
}

/** Those with most left to do first, then those that took longest. */
export async function hostViews(link: Link, id: number, max: number, run: Run = runOn(link, id)): Promise<readonly HostView[]> {
  const names = new Set<string>();
  let cursor = "0";
  do {
    const [next, flat] = (await link.command("HSCAN", `${link.tag}:${id}:h`, cursor, "COUNT", 1_000)) as [Buffer, Buffer[]]; // what HSCAN answers
    for (let i = 0; i < flat.length; i += 2) names.add(text(flat[i]));
    cursor = text(next);
  } while (cursor !== "0");
  const unique = [...names];
  const views: HostView[] = [];
  for (let from = 0; from < unique.length; from += AT_ONCE) {
    const rows = (await run("views", ...unique.slice(from, from + AT_ONCE))) as readonly (readonly unknown[])[]; // views.lua
    views.push(...rows.map(viewOf));
    views.sort((a, b) => b.queued - a.queued || b.settled * b.meanLatencyMs - a.settled * a.meanLatencyMs);
    views.length = Math.min(views.length, max);
  }
  return views;
}

/** Null of an origin that is not known, or whose rules have expired. */
export async function robotsStates(origins: readonly Origin[], run: Run): Promise<readonly (RobotsState | null)[]> {
  if (origins.length === 0) return [];
  const answers = (await run("robots", ...origins)) as readonly (readonly unknown[])[]; // what robots.lua answers
  return answers.map(readRobots);
}
