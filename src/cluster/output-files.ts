/** Output files as a store knows them: by machine and place, however they are spelt, so that two crawls cannot have one. Opens none. */
import { statSync } from "node:fs";
import { hostname } from "node:os";
import type { CrawlSpec } from "../core/spec.ts";
import { realPath } from "../sinks/open.ts";

export interface NamedFile {
  /** The flag that names it. */
  readonly option: string;
  /** As the user spelt it. */
  readonly file: string;
  /** Under which the store knows it: this machine's name, and the real path. */
  readonly name: string;
}

/** Those that a crawl has for itself: no `-`, no devices and pipes, which many may write to. */
export function namedFiles({ outputs, pagesFile, skippedFile, changesFile, linksFile }: CrawlSpec): readonly NamedFile[] {
  const all = [
    ...outputs.map((file) => ["--output", file] as const),
    ...([["--pages", pagesFile] as const, ["--skipped", skippedFile] as const, ["--changes", changesFile] as const, ["--links", linksFile] as const] as const),
  ];
  return all.flatMap(([option, file]) => {
    if (file === null || file === "-") return [];
    const path = realPath(file);
    if (statSync(path, { throwIfNoEntry: false })?.isFile() === false) return [];
    return [{ option, file, name: `${hostname()}|${path}` }];
  });
}
