/** Which of some URLs are new beside others, for a job that does not run and so has no frontier to ask. */
import { admitSeed } from "../rules/admit.ts";
import { createSeenTable } from "../rules/seen.ts";

export function countKnown(before: Iterable<string>, lines: Iterable<string>): { readonly added: number; readonly known: number } {
  const words = crypto.getRandomValues(new Int32Array(4));
  const seen = createSeenTable();
  const isNew = (line: string): boolean => {
    const verdict = admitSeed(line, [words[0]!, words[1]!, words[2]!, words[3]!], "https");
    return verdict.kind === "seed" && seen.putIfAbsent(verdict.request.idHi, verdict.request.idLo, 0) < 0;
  };
  for (const line of before) isNew(line);
  let added = 0;
  let known = 0;
  for (const line of lines) {
    if (isNew(line)) added++;
    else known++;
  }
  return { added, known };
}
