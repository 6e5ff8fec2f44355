/** Which of some URLs are new beside others, for a job that does not run and so has no frontier to ask. */
import { admitSeed } from "../rules/admit.ts";
import { createSeenTable } from "../rules/seen.ts";
import type { JobRow } from "../store/jobs/book.ts";

type Scheme = "http" | "https" | null;

/** `bare`: the scheme of bare hosts. */
export function countKnown(before: Iterable<string>, lines: Iterable<string>, bare: Scheme): { readonly added: number; readonly known: number } {
  const words = crypto.getRandomValues(new Int32Array(4));
  const seen = createSeenTable();
  const isNew = (line: string): boolean => {
    const verdict = admitSeed(line, [words[0]!, words[1]!, words[2]!, words[3]!], bare ?? "https");
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

/** By the list of seeds, which is another one whenever it changes. */
const distinct = new WeakMap<readonly string[], number>();

/** URLs that the seeds of a job come to: exact where its row has all of them (a thousand at most), otherwise the lines, of which some may be one URL. */
export function seedUrls({ seeds, seedsTotal, spec }: Pick<JobRow, "seeds" | "seedsTotal" | "spec">): number {
  if (seeds.length < seedsTotal) return seedsTotal;
  const known = distinct.get(seeds);
  if (known !== undefined) return known;
  const { defaultScheme } = JSON.parse(spec) as { defaultScheme: Scheme }; // written by intake.ts
  const { added } = countKnown([], seeds, defaultScheme);
  distinct.set(seeds, added);
  return added;
}
