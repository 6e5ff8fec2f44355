/** Files of a command as a store knows them: by machine and place, however they are spelt, so that two crawls cannot have one and a crawl is found again by its own. Opens none. */
import { statSync } from "node:fs";
import { hostname } from "node:os";
import type { SinkState } from "../core/sink.ts";
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

/** Where files lie that a crawl's commands have named: the real path by how it was spelt. */
export interface Places {
  /** Of the machine on which they were named. */
  readonly host: string;
  readonly paths: Readonly<Record<string, string>>;
}

/** Seeds that are read from a file, by the name that the command line gives them. */
const SEEDS_OF = "-i ";

/** The spec with every file name that it holds, `-` apart, as `respell` gives it. */
function withFiles(spec: CrawlSpec, respell: (file: string) => string): CrawlSpec {
  const one = (file: string | null): string | null => (file === null || file === "-" ? file : respell(file));
  const { outputs, pagesFile, skippedFile, changesFile, linksFile, scraper, cookies, seeds } = spec;
  const seed = (text: string): string => (text.startsWith(SEEDS_OF) ? SEEDS_OF + (one(text.slice(SEEDS_OF.length)) ?? "") : text);
  return {
    ...spec,
    outputs: outputs.map((file) => one(file) ?? file),
    ...{ pagesFile: one(pagesFile), skippedFile: one(skippedFile), changesFile: one(changesFile), linksFile: one(linksFile) },
    ...{ scraper: one(scraper), cookies: one(cookies) },
    seeds: Array.isArray(seeds) ? seeds.map((text) => seed(String(text))) : seeds,
  };
}

function filesOf(spec: CrawlSpec): readonly string[] {
  const files: string[] = [];
  withFiles(spec, (file) => {
    files.push(file);
    return file;
  });
  return files;
}

/** With those that were known before: what the store keeps by an earlier spelling is found by it. */
export function placesOf(spec: CrawlSpec, before: Places | null): Places {
  const now = Object.fromEntries(filesOf(spec).map((file) => [file, realPath(file)]));
  return { host: hostname(), paths: { ...(before?.host === hostname() ? before.paths : {}), ...now } };
}

/** Of another machine nothing is known: there a name means what it means here. */
const placeOf = (file: string, known: Places | null): string => (known?.host === hostname() ? known.paths[file] : undefined) ?? realPath(file);

/** An earlier command's spec: files that `now` names too are spelt as there. */
export function spelledAs(before: CrawlSpec, now: CrawlSpec, known: Places | null): CrawlSpec {
  const here = filesOf(now);
  const byPlace = new Map(here.map((file) => [realPath(file), file]));
  // The same words for a file that lies elsewhere, such as on a machine with other folders, are the same command.
  return withFiles(before, (file) => byPlace.get(placeOf(file, known)) ?? file);
}

/** Where the files stood at the last checkpoint, under their names in `now`. */
export function statesAs(states: ReadonlyMap<string, SinkState>, now: CrawlSpec, known: Places | null): ReadonlyMap<string, SinkState> {
  const byPlace = new Map(namedFiles(now).map(({ file }) => [realPath(file), file]));
  const moved = new Map<string, SinkState>();
  const rest = new Map<string, SinkState>();
  for (const [name, state] of states) {
    const file = /^export\|/.test(name) ? undefined : byPlace.get(placeOf(name, known));
    if (file === undefined) rest.set(name, state);
    else moved.set(file, state);
  }
  return new Map([...rest, ...moved]);
}
