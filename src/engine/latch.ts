/** A promise that somebody resolves once, and whether it has been. */
export function createLatch(): { readonly yes: boolean; readonly promise: Promise<void>; set(): void } {
  const { promise, resolve } = Promise.withResolvers<void>();
  let yes = false;
  return {
    get yes() {
      return yes;
    },
    promise,
    set() {
      yes = true;
      resolve();
    },
  };
}
