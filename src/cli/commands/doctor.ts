/** `skein doctor`: whether this machine, a state directory and a shared store are fit for a crawl. */
import { resolve } from "node:path";
import { ERROR_CODES } from "../../core/errors.ts";
import type { Check, examine } from "../../inspect/doctor.ts";
import type { examineStore } from "../../inspect/store-doctor.ts";
import { harmless } from "../console.ts";
import { EXIT } from "../exit.ts";
import type { Io } from "../io.ts";
import { JSON_FLAG, readVerb, STATE_FLAG, type Verb } from "../verb.ts";

export interface DoctorParts {
  readonly examine: typeof examine;
  readonly loadStore: () => Promise<{ readonly examineStore: typeof examineStore }>;
}

export const DOCTOR: Verb = {
  name: "doctor",
  head: `Usage: skein doctor [--state DIR] [--store URL] [-c N]

Checks Node.js, the decoders of bodies, the limit of open files, the clock, SQLite and the folder;
with --state also that the state there is whole; with --store the server, its memory and what of it
is on disk, and that each crawl there is sound. Each line says ok, warn or fail, with what to do.
Nothing is changed.

Examples:
  skein doctor -c 1000
  skein doctor --state crawl1
  skein doctor --store redis://localhost:6379
`,
  own: [STATE_FLAG, JSON_FLAG],
  shared: ["concurrency", "store"],
  tail: `
Exit status: 0 nothing failed; 1 something did; 2 usage; 5 the store does not answer.
`,
};

/** Lines for people. */
export function doctorLines(checks: readonly Check[]): string[] {
  return checks.flatMap(({ name, level, text, next }) => [
    `${level.padEnd(5)} ${name.padEnd(13)} ${text}`,
    ...(next === null ? [] : [`${" ".repeat(20)}next step: ${next}`]),
  ]);
}

/** Answers the exit status. Throws CrawlError for what is ours; the caller says it. */
export async function doctorCommand(argv: readonly string[], io: Io, load: () => Promise<DoctorParts>): Promise<number> {
  const reading = await readVerb(DOCTOR, argv, io);
  if (reading === null) return EXIT.ok;
  const named = reading.text("state") ?? io.env.SKEIN_STATE ?? reading.spec.stateDir ?? "";
  const { examine, loadStore } = await load();
  const { store, concurrency } = reading.spec;
  const local = examine({ concurrency, stateDir: named === "" ? null : resolve(io.cwd, named), cwd: io.cwd });
  const stored = store === null ? null : await (await loadStore()).examineStore(store);
  const checks = [...local, ...(stored?.checks ?? [])];
  const text = reading.isOn("json") ? JSON.stringify(checks) : doctorLines(checks).map(harmless).join("\n");
  await io.stdout.write(Buffer.from(`${text}\n`));
  if (stored?.answers === false) return ERROR_CODES["store-unreachable"].exit;
  return checks.some(({ level }) => level === "fail") ? EXIT.internal : EXIT.ok;
}
