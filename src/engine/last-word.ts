/** Of several words to somebody who may be slow to answer the last one counts: they are said one at a time, and what has not been said yet makes way for what came after it. */

/**
 * `say` says what is true when it is called. The call it returns asks for that: it resolves once something has been said since; rejects as that does.
 */
export function createLastWord(say: () => Promise<void>): () => Promise<void> {
  let next: PromiseWithResolvers<void> | null = null;
  let saying = false;

  async function work(): Promise<void> {
    saying = true;
    for (let asked = next; asked !== null; asked = next) {
      next = null;
      await say().then(asked.resolve, asked.reject);
    }
    saying = false;
  }

  return () => {
    next ??= Promise.withResolvers<void>();
    const { promise } = next;
    if (!saying) void work();
    return promise;
  };
}
