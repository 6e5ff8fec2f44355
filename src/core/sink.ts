/** Where outputs go. */
import type { Output, PageRecord } from "./records.ts";

/** Where a sink stands: all that a resume needs to go on exactly there. Plain JSON, kept by the store in the step that it belongs to. */
export type SinkState = Readonly<Record<string, string | number | null>>;

/** Takes outputs in settle order. Synchronous: a batch is appended inside the settle step. Throws CrawlError `output-unwritable`. */
export interface Sink {
  /** Shown in messages: the path, or "stdout". */
  readonly name: string;
  write(outputs: readonly Output[]): void;
  /** Everything written so far is handed to the operating system. */
  flush(): void;
  /**
   * Hands everything written so far to the operating system and tells where it stands; `sync` asks for it to be on the disk too.
   * A sink without it cannot be part of a durable crawl's exactly-once promise (stdout, a user's own).
   */
  checkpoint?(sync: boolean): SinkState;
  /** Told after the commit of the last checkpoint; at the latest before the close of a run that ended well. */
  committed?(): void;
  /** Flush, write what the format needs at its end, release the file. Idempotent. */
  close(): Promise<void>;
}

/** Asked before every claim: whether what takes the output keeps up. */
export interface Gate {
  open(): boolean;
  /** Called once when a closed gate opens. */
  onOpen(callback: () => void): void;
}

/** An item as a sink of the user's own gets it. */
export interface BatchItem {
  readonly type: string;
  readonly key: string | null;
  /** The scraper's fields. */
  readonly item: Readonly<Record<string, unknown>>;
  /** The page it is from: null where there is none. */
  readonly url: string | null;
  readonly depth: number | null;
  readonly fetchedAt: string | null;
}

interface BatchSinkOf<Takes extends string, Record extends object> {
  /** Shown in messages; of its own among the sinks of a crawl. */
  readonly name: string;
  readonly takes: Takes;
  /** Records of a batch at most; 500. */
  readonly batchSize?: number;
  /**
   * Before the first request. Answers the checkpoint that it stored last, of whatever run, or null. A sink without it counts on the crawl's state,
   * and gets some records again after a kill.
   */
  open?(run: { readonly id: string }): Promise<string | null>;
  /**
   * A batch in settle order, one at a time. `checkpoint` is to be stored in the same transaction as the records. The crawl waits when several batches are due;
   * a rejection ends it with `output-unwritable`.
   */
  write(records: readonly Record[], checkpoint: string): Promise<void>;
  /** After the last batch, also when one failed. */
  close?(): Promise<void>;
}

/** A sink of the user's own that takes its time: a database, a queue, an HTTP service. It gets every record, whatever is listed. */
export type BatchSink = BatchSinkOf<"items", BatchItem> | BatchSinkOf<"pages", PageRecord>;
