/** Every format and kind of record walks the cases that every sink must pass. */
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { sinkCases } from "../testing/sink-cases.ts";
import { SUFFIXES, sinkPlaces, TABLES } from "./bench-for-tests.ts";
import { isItems } from "./tables.ts";

const places = sinkPlaces(mkdtempSync(join(tmpdir(), "skein-sinks-")));
after(() => places.close());

for (const suffix of SUFFIXES) {
  // Other kinds of record in the two formats that have columns; the rest differ by what stands around a record.
  for (const [index, table] of TABLES.entries()) {
    if (index > 0 && suffix !== "sqlite" && suffix !== "csv" && !(isItems(table) && suffix !== "json.gz" && suffix !== "jsonl.gz")) continue;
    const label = `${index === 1 ? "listed " : ""}${table.name}.${suffix}`;
    for (const one of sinkCases) test(`${label}: ${one.name}`, () => one.run(places.open(suffix, table), () => places.open(suffix, table)));
  }
}
