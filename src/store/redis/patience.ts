/** How long a process that is told to leave goes on waiting for its store: as long as it takes before, a few seconds from then on. Calls nothing itself. */

/** A call that gets nowhere for so long after the word to leave is the last. */
export const LEAVE_WITHIN_MS = 10_000;
/** A call that takes so long is worth a word. */
const SAY_AFTER_MS = 1_000;
const LOOK_MS = 100;

/** One call, however often it has to be repeated. */
export interface PatientCall {
  /** It goes out, once more. */
  sent(): void;
  /** It came to nothing, and is repeated. */
  failed(why: string): void;
  end(): void;
}

export interface Patience {
  begin(): PatientCall;
  close(): void;
}

export interface PatienceInput {
  /** Resolves when the process is told to leave; absent: it is told in other ways. */
  readonly leaving: Promise<unknown> | undefined;
  /** Said once: the store is waited for, for so many seconds more. `why`: what the calls under way were last told; null: they were told nothing. */
  readonly say: (seconds: number, why: string | null) => void;
  /** It was waited for long enough. */
  readonly over: (why: string | null) => void;
}

export function createPatience({ leaving, say, over }: PatienceInput): Patience {
  /** When each of the calls under way began, and when it last went out (Infinity: it waits to do so); the oldest first. */
  const calls = new Set<{ readonly at: number; sentAt: number; why: string | null }>();
  let leftAt = Infinity;
  let said = false;
  let closed = false;
  let timer: NodeJS.Timeout | null = null;

  /** What a call that has ended was told counts no more, nor what one was told before it went out again and hung. */
  function reason(now: number): string | null {
    let found: string | null = null;
    for (const { why, sentAt } of calls) if (why !== null && !(now - sentAt > SAY_AFTER_MS)) found = why;
    return found;
  }

  function look(): void {
    timer = null;
    if (closed) return;
    const [oldest] = calls;
    const now = performance.now();
    if (oldest !== undefined) {
      const leftMs = LEAVE_WITHIN_MS - (now - Math.max(oldest.at, leftAt));
      if (leftMs <= 0) {
        over(reason(now));
        return;
      }
      if (!said && now - oldest.at >= SAY_AFTER_MS) {
        said = true;
        say(Math.ceil(leftMs / 1_000), reason(now));
      }
    }
    timer = setTimeout(look, LOOK_MS);
  }

  void leaving?.then(() => {
    leftAt = performance.now();
    look();
  });

  return {
    begin() {
      const call = { at: performance.now(), sentAt: Infinity, why: null as string | null };
      calls.add(call);
      return {
        sent() {
          call.sentAt = performance.now();
        },
        failed(why) {
          call.sentAt = Infinity;
          call.why = why;
        },
        end: () => void calls.delete(call),
      };
    },
    close() {
      closed = true;
      if (timer !== null) clearTimeout(timer);
    },
  };
}
