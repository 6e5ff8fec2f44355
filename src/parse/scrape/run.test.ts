import assert from "node:assert/strict";
import { test } from "node:test";
import { threw } from "./run.ts";
import { refusal } from "./trial-for-tests.ts";

test("whatever is thrown is told in words, also what cannot be read", async () => {
  const evil = new Error("x");
  Object.defineProperty(evil, "message", {
    get() {
      throw new Error("read me not");
    },
  });
  const cases: readonly (readonly [unknown, RegExp])[] = [
    [undefined, /^undefined$/],
    [null, /^null$/],
    [Object.create(null), /^\[Object: null prototype\] \{\}$/],
    [{ code: 7 }, /^\{ code: 7 \}$/],
    [Object.assign(new Error("x"), { message: 5 }), /^5$/],
    [new RangeError(""), /^RangeError$/],
    [evil, /^an error that cannot be read was thrown$/],
  ];
  for (const [thrown, message] of cases) assert.match(await refusal(() => Promise.reject(thrown)), message);
});

test("a page in an error's message is cut, and its stack too", () => {
  const { message, stack } = threw(new Error(`no price in ${"<p>".repeat(100_000)}`));
  assert.match(message, /^no price in (<p>)+.*… \(300012 characters\)$/);
  assert.ok(message.length < 2_100);
  assert.ok((stack ?? "").length < 21_000);
});

test("a handler that is a generator is refused: its code would never run", async () => {
  const mark = /is a generator, whose code never runs: give items with item\(\)/;
  assert.match(
    await refusal(async function* ({ item }) {
      yield item({ a: 1 });
    }),
    mark,
  );
  assert.match(
    await refusal(function* ({ item }) {
      yield item({ a: 1 });
    }),
    mark,
  );
});

test("an unknown option of a watermark is refused, as those of follow and stop are", async () => {
  // `as`: a JavaScript author may give anything.
  const wrong = { oldInARow: 3 } as { olderInARow?: number };
  assert.match(await refusal(({ watermark }) => void watermark("date", wrong)), /watermark: there is no option "oldInARow"; there is olderInARow/);
  assert.match(await refusal(({ watermark }) => void watermark("date", 5 as typeof wrong)), /watermark: expected \{ olderInARow \}, not number 5/);
});
