/** The sinks a spec names. Checks that every file can be written before any is touched. */
import type { Sink } from "../core/sink.ts";
import type { CrawlSpec } from "../core/spec.ts";
import { checkWritable } from "./file.ts";
import { edgesSink, pagesSink, skippedSink } from "./jsonl.ts";

const STDOUT = 1;

/** Throws CrawlError `output-unwritable` when a file cannot be written; nothing is replaced before the first record. The command line keeps `-` for itself. */
export function openSinks(spec: CrawlSpec): readonly Sink[] {
  const { outputs, pagesFile, skippedFile, linksFile, fields } = spec;
  const files = [...outputs.filter((file) => file !== "-"), pagesFile, skippedFile, linksFile].filter((file) => file !== null);
  for (const file of files) checkWritable(file);
  const sinks = outputs.map((file) => pagesSink(file === "-" ? STDOUT : file, { which: "listed", fields }));
  if (pagesFile !== null) sinks.push(pagesSink(pagesFile, { which: "all", fields }));
  if (skippedFile !== null) sinks.push(skippedSink(skippedFile, { duplicates: spec.skippedAll }));
  if (linksFile !== null) sinks.push(edgesSink(linksFile));
  return sinks;
}
