/** Broken sinks, one for each way to lose or double a record, that the cases must reject. */
import assert from "node:assert/strict";
import { appendFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { CrawlError } from "../core/errors.ts";
import type { Output } from "../core/records.ts";
import type { Sink, SinkState } from "../core/sink.ts";
import { type SinkBench, type SinkCase, sinkCases } from "../testing/sink-cases.ts";
import { ITEMS, sinkPlaces, TABLES } from "./bench-for-tests.ts";

const root = mkdtempSync(join(tmpdir(), "skein-mutants-"));
after(() => rmSync(root, { recursive: true }));

const FAULTS = [
  "none",
  "keeps the tail",
  "counts what it did not write",
  "cuts too much",
  "appends to the last run",
  "replaces at once",
  "believes any state",
  "drops at close",
  "torn record",
] as const;
type Fault = (typeof FAULTS)[number];

const pagesOf = (output: Output) => (output.page === null ? [] : [output.page]);

/** A plain JSON Lines sink, kept as simple as can be, with one fault. */
function faultySink(path: string, state: SinkState | null, fault: Fault): Sink {
  const begun = state !== null && Number(state.bytes) > 0;
  let held = "";
  let fresh = !begun;
  let settled = state?.settled === 1;
  let bytes = begun ? Number(state.bytes) : 0;
  const refuse = (why: string) => new CrawlError("output-unwritable", `${why}: --fresh`);
  if (fault === "replaces at once" && fresh) writeFileSync(path, "");
  if (begun) {
    if (!existsSync(path)) throw refuse("gone");
    const text = readFileSync(path);
    const wrong = text.length < bytes || !text.subarray(0, bytes).toString().endsWith(String(state.last));
    if (wrong && fault !== "believes any state") throw refuse("changed");
    if (fault !== "keeps the tail") writeFileSync(path, text.subarray(0, fault === "cuts too much" ? bytes - 1 : bytes));
  }
  let last = begun ? String(state.last) : "";
  function flush(): void {
    if (!settled) return;
    if (fresh && (fault !== "appends to the last run" || !existsSync(path))) writeFileSync(path, "");
    fresh = false;
    appendFileSync(path, held);
    bytes += Buffer.byteLength(held);
    if (held !== "") last = held.slice(held.lastIndexOf("\n", held.length - 2) + 1);
    held = "";
  }
  return {
    name: path,
    write(outputs) {
      settled = true;
      for (const page of outputs.flatMap(pagesOf)) held += `${JSON.stringify(page)}\n`;
    },
    flush,
    checkpoint() {
      if (fault === "counts what it did not write") return { bytes: bytes + Buffer.byteLength(held), last, settled: settled ? 1 : 0 };
      if (held !== "") flush();
      return { bytes, last, settled: settled ? 1 : 0 };
    },
    async close() {
      if (fault === "torn record") held = held.slice(0, -2);
      if (fault === "drops at close") held = "";
      flush();
    },
  };
}

function openBench(fault: Fault): SinkBench {
  let dir = mkdtempSync(join(root, "bench-"));
  const path = () => join(dir, "out.jsonl");
  const read = () =>
    readFileSync(path(), "utf8")
      .split("\n")
      .slice(0, -1)
      .map((line): object => JSON.parse(line));
  return {
    open: (state) => faultySink(path(), state, fault),
    kill() {
      const copy = mkdtempSync(join(root, "bench-"));
      if (existsSync(path())) writeFileSync(join(copy, "out.jsonl"), readFileSync(path()));
      dir = copy;
    },
    remove() {
      rmSync(dir, { recursive: true });
      mkdirSync(dir);
    },
    read,
    content: () => readFileSync(path(), "utf8"),
    wanted: (outputs) => outputs.flatMap(pagesOf),
  };
}

async function rejections(fault: Fault): Promise<readonly SinkCase[]> {
  const rejecting: SinkCase[] = [];
  for (const one of sinkCases) {
    try {
      await one.run(openBench(fault), () => openBench(fault));
    } catch {
      // What a case rejects is what is counted here; the sink without a fault shows that none rejects for another reason.
      rejecting.push(one);
    }
  }
  return rejecting;
}

for (const fault of FAULTS) {
  test(`a sink with the fault "${fault}" is ${fault === "none" ? "accepted" : "rejected"}`, async () => {
    const names = (await rejections(fault)).map(({ name }) => name);
    if (fault === "none") assert.deepEqual(names, []);
    else assert.notEqual(names.length, 0);
  });
}

/** Faults of items, each put around a sink that has none: what comes in is changed, or the state that it is opened with. */
interface ItemFault {
  readonly suffix: "jsonl" | "csv" | "sqlite";
  /** Of outputs; `resumed` once, for the first batch after a resume. */
  outputs?(outputs: readonly Output[], first: readonly Output[], resumed: boolean): readonly Output[];
  state?(state: SinkState): SinkState;
}

const withFields = (output: Output, change: (fields: Record<string, unknown>) => object): Output => ({
  ...output,
  ...(output.items === undefined ? {} : { items: output.items.map((item) => ({ ...item, json: JSON.stringify(change(JSON.parse(item.json))) })) }),
});
const itemsOf = (outputs: readonly Output[]) => outputs.flatMap(({ items = [] }) => items);
const ofOneType = (output: Output): Output => ({
  ...output,
  ...(output.items === undefined ? {} : { items: output.items.map((item) => ({ ...item, type: "product" })) }),
});

const ITEM_FAULTS: Readonly<Record<string, ItemFault>> = {
  none: { suffix: "jsonl" },
  "what was replaced is not put back": {
    suffix: "sqlite",
    state: (state) => ({ ...state, items: String(state.items).replace(/"step":\d+/, '"step":1000000') }),
  },
  "columns are those of the first items": {
    suffix: "csv",
    outputs(outputs, first) {
      const known = new Set(itemsOf(first).flatMap(({ json }) => Object.keys(JSON.parse(json))));
      return outputs.map((output) => withFields(output, (fields) => Object.fromEntries(Object.entries(fields).filter(([name]) => known.has(name)))));
    },
  },
  "cells go by position": {
    suffix: "csv",
    outputs: (outputs) =>
      outputs.map((output) =>
        withFields(output, (fields) =>
          Object.fromEntries(
            Object.keys(fields)
              .sort()
              .map((name, n) => [name, Object.values(fields)[n]]),
          ),
        ),
      ),
  },
  "all types are one": { suffix: "sqlite", outputs: (outputs) => outputs.map(ofOneType) },
  "the first page after a resume is written twice": {
    suffix: "jsonl",
    outputs: (outputs, _, resumed) => (resumed ? [...outputs.slice(0, 1), ...outputs] : outputs),
  },
  "items say the page before": {
    suffix: "jsonl",
    outputs: (outputs) => outputs.map((output, n) => ({ ...output, page: outputs[n - 1]?.page ?? output.page })),
  },
  "the last item of a page is lost": {
    suffix: "jsonl",
    outputs: (outputs) => outputs.map((output) => ({ ...output, items: output.items?.slice(0, -1) ?? [] })),
  },
};

/** Not its thousands of records: what they show, the others do too. */
const quickCases = sinkCases.filter(({ name }) => !name.startsWith("10,000"));

for (const [name, fault] of Object.entries(ITEM_FAULTS)) {
  test(`a sink of items with the fault "${name}" is ${name === "none" ? "accepted" : "rejected"}`, async () => {
    const places = sinkPlaces(mkdtempSync(join(root, "items-")));
    const open = (): SinkBench => {
      const bench = places.open(fault.suffix, TABLES[ITEMS]!);
      return {
        ...bench,
        open(state) {
          const sink = bench.open(state === null ? null : (fault.state?.(state) ?? state));
          let first: readonly Output[] | null = null;
          const write = (outputs: readonly Output[]) => {
            const resumed = state !== null && first === null;
            first ??= outputs;
            sink.write(fault.outputs?.(outputs, first, resumed) ?? outputs);
          };
          return { ...sink, write };
        },
      };
    };
    let rejected = 0;
    for (const one of quickCases) {
      try {
        await one.run(open(), open);
      } catch {
        // That the sink without a fault passes shows sinks.test.ts.
        rejected++;
        break;
      }
    }
    await places.close();
    assert.equal(rejected, name === "none" ? 0 : 1);
  });
}
