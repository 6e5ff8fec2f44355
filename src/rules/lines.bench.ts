/** How fast page records become lines: `node src/rules/lines.bench.ts`. Figures for people; no test depends on them. */
import type { PageRecord } from "../core/records.ts";
import { appendPage, lineBuffer } from "./lines.ts";

const ROUNDS = 50_000;

function time(name: string, run: () => void): void {
  for (let i = 0; i < ROUNDS / 10; i++) run();
  const start = performance.now();
  for (let i = 0; i < ROUNDS; i++) run();
  console.log(`${name.padEnd(52)} ${(((performance.now() - start) / ROUNDS) * 1_000).toFixed(2).padStart(8)} µs`);
}

const target = Buffer.allocUnsafe(1 << 20);
for (const title of ["A page of the manual", "Eine Seite — übersetzt"]) {
  const page: PageRecord = {
    ...{ url: "http://127.0.0.1:8080/docs/index.html", status: 200, outcome: "fetched", depth: 2, referrer: "http://127.0.0.1:8080/", redirects: [] },
    ...{ contentType: "text/html; charset=utf-8", charset: "utf-8", charsetSource: "header", bytes: 12_345, bytesDecoded: 12_345, title },
    ...{ digest: `sha256:${"ab".repeat(32)}`, attempts: 1, fetchedAt: "2026-01-01T00:00:00.000Z", durationMs: 12 },
    links: Array.from({ length: 60 }, (_, index) => Buffer.from(`http://127.0.0.1:8080/docs/section-${index * 37}/page-${index}.html`).toString("latin1")),
  };
  const lines = lineBuffer();
  time(`appendPage, 60 links, title "${title}"`, () => {
    appendPage(lines, page, null);
    if (lines.size > 65_536) lines.take();
  });
  time(`JSON.stringify and one write, same`, () => void target.write(`${JSON.stringify(page)}\n`));
}
