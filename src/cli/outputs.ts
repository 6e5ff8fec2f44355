/** Which of the files that a spec names a run has written. Does not write itself. */
import { statSync } from "node:fs";
import { resolve } from "node:path";
import type { CrawlSpec } from "../core/spec.ts";

/** Every file that the spec names, each once; `-` is none. */
export function outputFiles(spec: CrawlSpec): string[] {
  const named = [...spec.outputs, spec.pagesFile, spec.skippedFile, spec.changesFile, spec.linksFile];
  return [...new Set(named.filter((file) => file !== null).filter((file) => file !== "-"))];
}

/** By what a file is told from one that was there before; null: there is none. */
function faceOf(path: string): string | null {
  const known = statSync(path, { bigint: true, throwIfNoEntry: false });
  return known === undefined ? null : `${known.dev} ${known.ino} ${known.mtimeNs} ${known.size}`;
}

/** To be called before the run: answers, when it is over, which of its files are there. One from before that the run did not touch is not among them; with a state it may be of an earlier part of the run. */
export function watchFiles(spec: CrawlSpec, cwd: string): (files: readonly string[]) => string[] {
  const before = new Map(outputFiles(spec).map((file) => [file, faceOf(resolve(cwd, file))]));
  return (files) =>
    files.filter((file) => {
      if (!before.has(file)) return true;
      const face = faceOf(resolve(cwd, file));
      return face !== null && (spec.stateDir !== null || face !== before.get(file));
    });
}
