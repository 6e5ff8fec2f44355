/** Where the program's own files lie, for what is loaded by address: the parse worker's thread, and the library that a scraper file imports. */

export interface OwnFiles {
  /** What `import "skein"` and `import "skein/testing"` stand for in a scraper file. */
  readonly skein: string;
  readonly testing: string;
  readonly worker: string;
}

/** In the checkout the sources; in the build the entries of scripts/build.mjs, beside the folder of chunks that this code may lie in. */
export function ownFiles(here: string = import.meta.url): OwnFiles {
  const at = (path: string) => new URL(path, here).href;
  if (here.endsWith(".ts")) return { skein: at("../../index.ts"), testing: at("../../testing.ts"), worker: at("worker.ts") };
  const dist = new URL(".", here).pathname.endsWith("/chunks/") ? "../" : "./";
  return { skein: at(`${dist}index.js`), testing: at(`${dist}testing.js`), worker: at(`${dist}worker.js`) };
}
