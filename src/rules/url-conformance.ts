/** For tests only: reads the conformance data that lies beside a checkout (one JSON object a line), or says that it is absent. */
import { existsSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";

/** A case of the conformance data, as far as all kinds share it. */
export interface ConformanceCase {
  readonly id: string;
  readonly kind: string;
  // biome-ignore lint/suspicious/noExplicitAny: the shape of input and answer differs from kind to kind and is read by one test each
  readonly input: any;
  // biome-ignore lint/suspicious/noExplicitAny: see above
  readonly expected: any;
  readonly taste?: boolean;
  readonly tier?: string;
  readonly options?: Readonly<Record<string, unknown>>;
  readonly elements?: string;
  readonly note?: string;
}

const root = resolve(import.meta.dirname, "../..");
const directory = resolve(root, process.env.SKEIN_CONFORMANCE_DIR ?? "../shared/conformance");

/** True where SKEIN_REQUIRE (a comma list) says that tests of this kind must not be skipped. */
export function isRequired(what: string): boolean {
  return (process.env.SKEIN_REQUIRE ?? "").split(",").includes(what);
}

let said = false;

/** The cases of one topic; null where the data is absent, which is an error if SKEIN_REQUIRE names "conformance". */
export function conformanceCases(topic: string): readonly ConformanceCase[] | null {
  const file = join(directory, `${topic}.jsonl`);
  if (!existsSync(file)) {
    if (isRequired("conformance")) throw new Error(`conformance data is required but absent: ${file}`);
    if (!said) process.stderr.write(`conformance data absent: ${directory}\n`);
    said = true;
    return null;
  }
  return readFileSync(file, "utf8")
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line)); // any: given its shape by the return type
}
