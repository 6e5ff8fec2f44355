/** How long a process that is told to leave goes on waiting for its store: as long as it takes before, a few seconds from then on. Calls nothing itself. */

/** A call that gets nowhere for so long after the word to leave is the last. */
export const LEAVE_WITHIN_MS = 10_000;
/** A call that takes so long is worth a word. */
const SAY_AFTER_MS = 1_000;
const LOOK_MS = 100;

export interface Patience {
  /** A call is made, however often it has to be repeated; answers what tells of its end. */
  begin(): () => void;
  close(): void;
}

export interface PatienceInput {
  /** Resolves when the process is told to leave; absent: it is told in other ways. */
  readonly leaving: Promise<unknown> | undefined;
  /** Said once: the store is waited for, for so many seconds more. */
  readonly say: (seconds: number) => void;
  /** It was waited for long enough. */
  readonly over: () => void;
}

export function createPatience({ leaving, say, over }: PatienceInput): Patience {
  /** When each of the calls under way began; the oldest first. */
  const calls = new Set<{ readonly at: number }>();
  let leftAt = Infinity;
  let said = false;
  let closed = false;
  let timer: NodeJS.Timeout | null = null;

  function look(): void {
    timer = null;
    if (closed) return;
    const [oldest] = calls;
    const now = performance.now();
    if (oldest !== undefined) {
      const leftMs = LEAVE_WITHIN_MS - (now - Math.max(oldest.at, leftAt));
      if (leftMs <= 0) {
        over();
        return;
      }
      if (!said && now - oldest.at >= SAY_AFTER_MS) {
        said = true;
        say(Math.ceil(leftMs / 1_000));
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
      const call = { at: performance.now() };
      calls.add(call);
      return () => void calls.delete(call);
    },
    close() {
      closed = true;
      if (timer !== null) clearTimeout(timer);
    },
  };
}
