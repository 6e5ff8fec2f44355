/** What a crawl has spent of its limits, as far as this process knows: a page that ended here counts before it is settled. Which limit that reaches: rules/limits.ts. */
import type { FinishReason } from "../core/events.ts";
import type { Settled } from "../core/frontier.ts";
import type { CrawlSpec } from "../core/spec.ts";
import { limitReached, type Spent } from "../rules/limits.ts";

export interface LimitWatch {
  /** A page ended here, and is to be settled. True: by all that is known here a limit is reached. */
  ended(page: Settled): boolean;
  /** By all that is known here a limit is reached: no request may be begun. */
  over(): boolean;
  /** They are settled. Null: the crawl goes on; else it is found out whether it is to be stopped, and done. */
  settled(pages: readonly Settled[]): Promise<void> | null;
  /** Null: there are no limits but those of pages and time. */
  known(): Spent | null;
}

/** For a loop whose crawl is looked after elsewhere. */
export const NO_LIMITS: LimitWatch = { ended: () => false, over: () => false, settled: () => null, known: () => null };

export interface WatchInput {
  readonly limits: CrawlSpec["limits"];
  /** As the outputs that were written tell it. In a store that others share they come later than the settle. */
  readonly written: Spent;
  /** The counters of a store that others share; null: `written` is exact once a page is settled. */
  readonly ask: (() => Promise<Spent>) | null;
  /** By what is written, and by the time. */
  readonly reached: () => FinishReason | null;
  readonly stop: (reason: FinishReason) => Promise<void>;
}

interface Sum {
  bytes: number;
  failed: number;
  items: number;
}

export const nothingSpent = (): Sum => ({ bytes: 0, failed: 0, items: 0 });

/** Adds what the page spends, or with `by` −1 takes it away. */
export function addSpent(sum: Sum, { tally, settlement }: Settled, by: 1 | -1 = 1): void {
  for (const [name, n] of tally) {
    if (name === "bytes") sum.bytes += by * n;
    else if (name === "outcome:failed") sum.failed += by * n;
  }
  if (settlement.kind === "done" || settlement.kind === "dropped") sum.items += by * (settlement.output?.items?.length ?? 0);
}

const isSet = ({ bytes, errors, items }: CrawlSpec["limits"]): boolean => bytes !== null || errors !== null || items !== null;
/** That of time is looked after by a timer (work-time.ts). */
const withoutTime = (limits: CrawlSpec["limits"]): CrawlSpec["limits"] => ({ ...limits, time: null });

export function createLimitWatch({ limits, written, ask, reached, stop }: WatchInput): LimitWatch {
  const counts = isSet(limits);
  const counted = withoutTime(limits);
  /** Ended and not settled. */
  const pending = nothingSpent();
  /** What the store said last, and what was settled here since. May be too much, as where a page was fetched again for its links: then the store is asked once more. */
  const told: Sum = { ...written };
  const all = nothingSpent();
  let isOver = false;

  const knownOf = (isWritten: number, isTold: number, isPending: number): number =>
    ask === null ? isWritten + isPending : Math.max(isWritten, isTold + isPending);

  /** One object for all answers: this is asked for each page. */
  function known(): Spent {
    all.bytes = knownOf(written.bytes, told.bytes, pending.bytes);
    all.failed = knownOf(written.failed, told.failed, pending.failed);
    all.items = knownOf(written.items, told.items, pending.items);
    return all;
  }

  function look(): boolean {
    isOver = limitReached(counted, known(), 0) !== null;
    return isOver;
  }

  async function lookUp(from: () => Promise<Spent>): Promise<void> {
    Object.assign(told, await from());
    look();
    const reason = reached() ?? limitReached(counted, told, 0);
    if (reason !== null) await stop(reason);
  }

  return {
    ended(page) {
      if (!counts) return false;
      addSpent(pending, page);
      return look();
    },
    over: () => isOver,
    settled(pages) {
      if (counts) {
        for (const page of pages) {
          addSpent(pending, page, -1);
          if (ask !== null) addSpent(told, page);
        }
        look();
      }
      const reason = reached();
      if (reason !== null) return stop(reason);
      return ask !== null && isOver ? lookUp(ask) : null;
    },
    known: () => (counts ? known() : null),
  };
}

/** In a thread of a crawl: what others have spent it is told now and then (`others`); who tells it stops the crawl. */
export function createThreadLimits(limits: CrawlSpec["limits"], others: () => Spent): LimitWatch {
  if (!isSet(limits)) return NO_LIMITS;
  const counted = withoutTime(limits);
  const own = nothingSpent();
  function over(): boolean {
    const { bytes, failed, items } = others();
    return limitReached(counted, { bytes: bytes + own.bytes, failed: failed + own.failed, items: items + own.items }, 0) !== null;
  }
  return {
    ended(page) {
      addSpent(own, page);
      return over();
    },
    over,
    settled: () => null,
    known: () => null,
  };
}
