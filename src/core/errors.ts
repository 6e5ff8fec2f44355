/** The failures that are ours (a lost store, a bad option), as opposed to the web's, which are values (core/outcome.ts). */

/** Each code with its exit status (product contract, section 4) and whether trying again can help. */
export const ERROR_CODES = {
  internal: { exit: 1, retry: false },
  "invalid-options": { exit: 2, retry: false },
  "no-seeds": { exit: 2, retry: false },
  "output-unwritable": { exit: 3, retry: true },
  "state-unwritable": { exit: 3, retry: true },
  "store-unreachable": { exit: 5, retry: true },
  "state-held": { exit: 7, retry: true },
} as const;

export type CrawlErrorCode = keyof typeof ERROR_CODES;

/** One problem of an option: which, what was given, what is allowed. */
export interface OptionProblem {
  /** Name in the spec, e.g. `limits.pages`. */
  readonly option: string;
  readonly message: string;
}

export class CrawlError extends Error {
  readonly code: CrawlErrorCode;
  /** For `invalid-options`: all problems at once. */
  readonly problems: readonly OptionProblem[];
  constructor(code: CrawlErrorCode, message: string, extra: { cause?: unknown; problems?: readonly OptionProblem[] } = {}) {
    super(message, extra.cause === undefined ? undefined : { cause: extra.cause });
    this.name = "CrawlError";
    this.code = code;
    this.problems = extra.problems ?? [];
  }
}

/** A crawl that is no longer in its store: somebody has deleted it, or the store was emptied. `code`: another where it is told to who can do something about it. */
export class LostCrawl extends CrawlError {
  constructor(message: string, code: CrawlErrorCode = "internal") {
    super(code, message);
  }
}

/** Marks a branch that the types say cannot be reached. */
export function assertNever(value: never): never {
  throw new CrawlError("internal", `unexpected value: ${JSON.stringify(value)}`);
}
