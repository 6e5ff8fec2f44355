/** JSON Lines sinks: page records, skipped URLs, edges. Where the lines go is sinks/file.ts. */
import type { Output } from "../core/records.ts";
import type { Sink } from "../core/sink.ts";
import { appendPage, appendRecord, type LineBuffer } from "../rules/lines.ts";
import { lineFile } from "./file.ts";

/** `target`: a path (`.gz` compresses) or a file descriptor. */
function jsonlSink(target: string | number, append: (lines: LineBuffer, output: Output) => void): Sink {
  const file = lineFile(target, typeof target === "string" && /\.gz$/i.test(target));
  return {
    name: typeof target === "string" ? target : "stdout",
    write(outputs) {
      for (const output of outputs) append(file.lines, output);
      file.settle();
    },
    flush: () => file.flush(),
    // `async`: a failure rejects, as callers expect of a promise.
    close: async () => file.close(),
  };
}

/** Page records: those the `list` patterns chose, or all. `fields`: only these, in this order. */
export function pagesSink(target: string | number, options: { readonly which: "listed" | "all"; readonly fields: readonly string[] | null }): Sink {
  return jsonlSink(target, (lines, { page, listed }) => {
    if (page !== null && (listed || options.which === "all")) appendPage(lines, page, options.fields);
  });
}

/** Skipped URLs; those that are only repetitions when asked for. */
export function skippedSink(target: string | number, options: { readonly duplicates: boolean }): Sink {
  return jsonlSink(target, (lines, { skipped }) => {
    for (const { value } of skipped) if (options.duplicates || value.reason !== "duplicate") appendRecord(lines, value);
  });
}

/** Edges of the link graph. */
export function edgesSink(target: string | number): Sink {
  return jsonlSink(target, (lines, { edges }) => {
    for (const edge of edges) appendRecord(lines, edge);
  });
}
