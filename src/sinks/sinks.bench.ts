/** What a page costs in each format: `node src/sinks/sinks.bench.ts`. Figures for people; no test depends on them. */
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Output, PageRecord } from "../core/records.ts";
import type { Sink } from "../core/sink.ts";
import { SUFFIXES } from "./bench-for-tests.ts";
import { sharedLines } from "./shared-lines.ts";
import { sqliteSink } from "./sqlite.ts";
import { pagesTable } from "./tables.ts";
import { textSink } from "./text.ts";

const PAGES = 10_000;
const BATCH = 16;
const BATCHES_A_CHECKPOINT = 4;
const dir = mkdtempSync(join(tmpdir(), "skein-bench-"));

function outputOf(n: number): Output {
  const page: PageRecord = {
    ...{ url: `http://127.0.0.1:8080/docs/page-${n}.html`, status: 200, outcome: "fetched", depth: 2, referrer: "http://127.0.0.1:8080/", redirects: [] },
    ...{ contentType: "text/html; charset=utf-8", charset: "utf-8", charsetSource: "header", bytes: 12_345, bytesDecoded: 12_345, title: `Page ${n}` },
    ...{ digest: `sha256:${(n * 2_654_435_761).toString(16).padStart(16, "0").repeat(4)}`, attempts: 1, fetchedAt: "2026-01-01T00:00:00.000Z", durationMs: 12 },
    links: Array.from({ length: 60 }, (_, index) => `http://127.0.0.1:8080/docs/section-${(index * 37 + n) % 991}/page-${(index * n) % 613}.html`),
  };
  return { page, listed: true, skipped: [], found: [], edges: [] };
}

const outputs = Array.from({ length: PAGES }, (_, n) => outputOf(n));

async function time(name: string, sinks: readonly Sink[], files: readonly string[]): Promise<void> {
  const start = process.cpuUsage();
  for (let n = 0; n < PAGES; n += BATCH) {
    const batch = outputs.slice(n, n + BATCH);
    for (const sink of sinks) sink.write(batch);
    if ((n / BATCH) % BATCHES_A_CHECKPOINT === 0) for (const sink of sinks) sink.checkpoint?.(false);
  }
  for (const sink of sinks) await sink.close();
  const { user, system } = process.cpuUsage(start);
  const bytes = files.reduce((sum, file) => sum + statSync(file).size, 0);
  console.log(`${name.padEnd(44)} ${((user + system) / PAGES).toFixed(1).padStart(7)} µs CPU a page, ${(bytes / PAGES).toFixed(0).padStart(6)} bytes`);
}

const table = pagesTable({ which: "all", fields: null });
for (const round of ["warm", "run"]) {
  for (const suffix of SUFFIXES) {
    const path = join(dir, `${round}.${suffix}`);
    await time(`${round} ${suffix}`, [suffix === "sqlite" ? sqliteSink(path, [table]) : textSink(path, table)], [path]);
  }
  for (const shared of [undefined, sharedLines()]) {
    const paths = ["a", "b"].map((name) => join(dir, `${round}-${name}.jsonl`));
    await time(
      `${round} two jsonl, ${shared === undefined ? "apart" : "made once"}`,
      paths.map((path) => textSink(path, table, shared === undefined ? {} : { shared })),
      paths,
    );
  }
}
rmSync(dir, { recursive: true });
