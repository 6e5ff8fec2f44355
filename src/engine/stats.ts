/** From counters to what people read: stats, and what limits the speed now. */
import type { Bottleneck, CrawlStats } from "../core/events.ts";
import type { FrontierCounts } from "../core/frontier.ts";
import type { LoopView } from "./run.ts";

interface Moment extends LoopView {
  readonly elapsedMs: number;
  readonly loopCpuShare: number;
  readonly bottleneck: Bottleneck;
  /** What a limit or stop left queued, by skip reason. */
  readonly leftOver: ReadonlyMap<string, number>;
}

/** Sorts the named counters of a store (`outcome:…`, `status:…`, `error:…`, `skip:…`) into their groups. */
export function foldTally(counts: FrontierCounts | null, moment: Moment): CrawlStats {
  const groups: Record<string, Record<string, number>> = { outcome: {}, status: {}, error: {}, skip: {} };
  const plain: Record<string, number> = {};
  for (const [name, n] of counts?.tally ?? []) {
    const colon = name.indexOf(":");
    const group = colon < 0 ? undefined : groups[name.slice(0, colon)];
    if (group === undefined) plain[name] = n;
    else group[name.slice(colon + 1)] = n;
  }
  const skips = groups["skip"]!;
  for (const [reason, n] of moment.leftOver) skips[reason] = n;
  const byOutcome = groups["outcome"]!;
  const pages = (byOutcome["fetched"] ?? 0) + (byOutcome["unchanged"] ?? 0);
  return {
    elapsedMs: moment.elapsedMs,
    pages,
    pagesPerSecond: moment.elapsedMs > 0 ? pages / (moment.elapsedMs / 1000) : 0,
    queued: (counts?.queued ?? 0) + (counts?.delayed ?? 0),
    inFlight: moment.inFlight,
    failed: byOutcome["failed"] ?? 0,
    items: plain["items"] ?? 0,
    badItems: plain["badItems"] ?? 0,
    bytes: plain["bytes"] ?? 0,
    bytesDecoded: plain["bytesDecoded"] ?? 0,
    byStatus: groups["status"]!,
    byOutcome,
    byError: groups["error"]!,
    bySkipReason: skips,
    duplicates: plain["duplicates"] ?? 0,
    retries: plain["retries"] ?? 0,
    requests: moment.requests,
    loopCpuShare: moment.loopCpuShare,
    parseCpuShare: moment.scraping === null || moment.scraping.workers === 0 ? null : moment.scraping.cpuShare,
    waitingForParse: moment.scraping?.waiting ?? 0,
    bottleneck: moment.bottleneck,
  };
}

/** What would have to change for the crawl to go faster, as far as the loop can tell. */
export function bottleneckOf(view: LoopView, concurrency: number, loopCpuShare: number): Bottleneck {
  if (view.waitingFor === "output") return "output";
  if (view.waitingFor === "parse") return "parse";
  if (loopCpuShare > 0.9) return "cpu";
  if (view.inFlight >= concurrency) return "concurrency";
  switch (view.waitingFor) {
    case "delay":
      return "delay";
    case "host-slots":
      return "per-host";
    case "retry":
      return "back-off";
    case "robots":
      return "robots";
    case "rate":
      return "rate";
    case "leased":
    case "level":
      return "network";
    case "limit":
    case "seeds":
    case "paused":
    case null:
      return "nothing";
    default:
      return view.waitingFor satisfies never;
  }
}
