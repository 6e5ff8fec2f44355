/** Pulled bytes as the body of an answer: nothing is read that the client does not take, and a client that leaves ends the reading. */

/** The source is started by the first pull, so that an answer to HEAD costs nothing. */
export function streamOf(source: AsyncIterable<Uint8Array>, gone: AbortSignal): ReadableStream<Uint8Array> {
  let iterator: AsyncIterator<Uint8Array> | null = null;
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        iterator ??= source[Symbol.asyncIterator]();
        if (gone.aborted) {
          // Not returned while a step of it is under way: this is between steps.
          await iterator.return?.();
          controller.error(new Error("the client is gone"));
          return;
        }
        const next = await iterator.next();
        if (next.done) controller.close();
        else controller.enqueue(next.value);
      },
      async cancel() {
        await iterator?.return?.();
      },
    },
    { highWaterMark: 0 },
  );
}
