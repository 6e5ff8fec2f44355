/** `skein crawl` without seeds: the unfinished run of its state directory tells what it lacks. And the command that resumes a run, in words. */
import { statSync } from "node:fs";
import { CrawlError } from "../core/errors.ts";
import type { CrawlSpec } from "../core/spec.ts";
import type { CliFlags } from "./flags.ts";
import type { ConfigFile } from "./settings.ts";
import { withoutPassword } from "./store-address.ts";

export interface Standing {
  /** The options of the run, in the place of a config file; what is secret is the config file's own. */
  readonly file: ConfigFile;
  readonly inputFiles: string[];
  /** As the run knows its seeds. */
  readonly seedNames: readonly string[];
}

const FILE = "-i ";

/** Null: there is no run. Throws CrawlError `no-seeds` when its seeds must be given again, and `state-unwritable`. */
export async function standingRun(dir: string, config: ConfigFile | null): Promise<Standing | null> {
  const { readStandingRun } = await import("../standing-run.ts");
  const run = readStandingRun(dir);
  if (run === null) return null;
  const seedNames = Array.isArray(run.spec.seeds) ? run.spec.seeds.map(String) : [];
  const again = (why: string) => new CrawlError("no-seeds", `nothing to crawl: the crawl in ${dir} needs its seeds again, ${why}`);
  if (run.secrets.includes("seeds")) throw again("for the passwords in them are not kept");
  const files = seedNames.filter((name) => name.startsWith(FILE)).map((name) => name.slice(FILE.length));
  if (files.includes("-") && !run.seedsRead) throw again("for its list was not read to the end: pipe the same list into skein crawl -i -");
  const values: Record<string, unknown> = { ...run.spec, seeds: seedNames.filter((name) => !name.startsWith(FILE)) };
  for (const secret of run.secrets) {
    if (config !== null && secret in config.values) values[secret] = config.values[secret];
    else delete values[secret];
  }
  const isThere = (file: string): boolean => !run.seedsRead || statSync(file, { throwIfNoEntry: false })?.isFile() === true;
  return { file: { name: `the run in ${dir}`, values }, inputFiles: files.filter((file) => file !== "-" && isThere(file)), seedNames };
}

/** Sent to the hosts of seeds only: without these it would be sent to nobody. */
export const needsSeeds = ({ headers }: CrawlSpec): boolean => Object.keys(headers).some((name) => /^(?:authorization|cookie)$/i.test(name));

export function checkNeedsNone(spec: CrawlSpec): void {
  if (needsSeeds(spec))
    throw new CrawlError("no-seeds", "nothing to crawl: Authorization and Cookie go to the hosts of the seeds only, so that these must be given again");
}

const quoted = (text: string): string => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);

export interface Resumed {
  readonly argv: readonly string[];
  readonly spec: CrawlSpec;
  readonly flags: CliFlags;
  /** All seeds are in. */
  readonly seedsRead: boolean;
  /** npm says how it was started: `skein` alone is then on nobody's path. */
  readonly byNpm: boolean;
}

/** The line to be shown, and the command in it. */
export function howToResume(dir: string, { argv, spec, flags, seedsRead, byNpm }: Resumed): { readonly text: string; readonly command: string } {
  const args = [...(byNpm ? ["npx", "skein"] : ["skein"]), "crawl", ...argv, ...(spec.stateDir === null && spec.store === null ? ["--state", dir] : [])];
  const shown = args.map(withoutPassword);
  const piped = flags.inputFiles.includes("-");
  const whole = seedsRead && !needsSeeds(spec);
  const command = `${shown.map(quoted).join(" ")}${piped && whole ? " < /dev/null" : ""}`;
  const hint = shown.some((arg, n) => arg !== args[n]) ? " (with the password in place of ***)" : "";
  return { command, text: `to resume${piped && !whole ? ", with the same list piped in again" : ""}: ${command}${hint}` };
}
