/** Where outputs go. */
import type { Output } from "./records.ts";

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
