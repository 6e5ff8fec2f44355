/** For tests only: kills processes that write an output, and checks what a resume makes of it. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { SinkState } from "../core/sink.ts";
import { outputAt } from "../testing/sink-cases.ts";
import { openAt, readOutput, TABLES, wantedOf } from "./bench-for-tests.ts";

export const writer = join(import.meta.dirname, "writer-for-tests.ts");

export interface Told {
  readonly done: number;
  readonly state: SinkState | null;
  readonly error?: string;
  readonly message?: string;
}

/** `as`: the lines are those of writer-for-tests.ts. */
export const told = (line: string): Told => JSON.parse(line) as Told;
/** Goes on from the last commit and ends cleanly; the records are then those of the first `count` outputs. `index`: of the table. */
export async function resumeAndCheck(path: string, { done, state }: Told, count: number, index = 0): Promise<void> {
  const table = TABLES[index]!;
  const sink = openAt(path, table, state);
  for (let n = done; n < count; n++) sink.write([outputAt(n)]);
  await sink.close();
  const names = (records: readonly object[]) => records.map((record) => ("url" in record ? record.url : JSON.stringify(Object.entries(record).sort())));
  const found = names(readOutput(path, table));
  const wanted = names(
    wantedOf(
      table,
      path,
      Array.from({ length: count }, (_, n) => outputAt(n)),
    ),
  );
  assert.equal(found.length, wanted.length);
  if (index === 0) assert.deepEqual(found, wanted);
  // Text formats hold an absent field as an empty one.
  else for (const [n, name] of found.entries()) assert.equal(withoutNulls(name), withoutNulls(wanted[n]), `item ${n}`);
}

const withoutNulls = (name: unknown): string =>
  String(name)
    .replace(/,?\["[^"]*",null\]/g, "")
    .replace("[[", "[")
    .replace("[,", "[");

/** Lets a process write until it has told so many checkpoints, and kills it; answers the last one it told. */
export async function killed(path: string, from: Told, checkpoints: number, index = 0): Promise<Told> {
  const args = [writer, path, String(index), JSON.stringify(from.state), String(from.done)];
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
  let last = from;
  let seen = 0;
  for await (const line of createInterface({ input: child.stdout })) {
    // A line that was cut by the kill is a commit that did not happen.
    if (!line.endsWith("}")) break;
    last = told(line);
    if (++seen === checkpoints) child.kill("SIGKILL");
  }
  return last;
}
