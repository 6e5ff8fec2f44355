/** Where outputs go. */
import type { Output } from "./records.ts";

/** Takes outputs in settle order. Synchronous: a batch is appended inside the settle step. Throws CrawlError `output-unwritable`. */
export interface Sink {
  /** Shown in messages: the path, or "stdout". */
  readonly name: string;
  write(outputs: readonly Output[]): void;
  /** Everything written so far is handed to the operating system. */
  flush(): void;
  /** Flush, write what the format needs at its end, release the file. Idempotent. */
  close(): Promise<void>;
}
