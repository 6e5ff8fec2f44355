/** The cases of sinks that take their time, with the kinds of records that sinks.test.ts leaves out. */
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { sinkCases } from "../testing/sink-cases.ts";
import { isLong, sinkPlaces, tablesInFormats } from "./bench-for-tests.ts";

const places = sinkPlaces(mkdtempSync(join(tmpdir(), "skein-sinks-")));
after(() => places.close());

for (const { suffix, table, label, first } of tablesInFormats()) {
  for (const one of sinkCases)
    if (!first && isLong(one)) test(`${label}: ${one.name}`, () => one.run(places.open(suffix, table), () => places.open(suffix, table)));
}
