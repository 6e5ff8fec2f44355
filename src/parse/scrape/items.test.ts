import assert from "node:assert/strict";
import { test } from "node:test";
import { z } from "zod";
import { defineScraper } from "./define.ts";
import { moduleOf } from "./module.ts";
import { scrapeTask } from "./task-for-tests.ts";
import { refusal, scraped } from "./trial-for-tests.ts";

test("an item is taken as it is when it is given", async () => {
  const fields = { tags: ["a"], when: new Date(0), none: undefined };
  const { items } = await scraped(({ item }) => {
    item(fields);
    fields.tags.push("b");
    item(fields, "other");
  });
  assert.deepEqual(items, [
    { type: "items", key: null, json: '{"tags":["a"],"when":"1970-01-01T00:00:00.000Z"}' },
    { type: "other", key: null, json: '{"tags":["a","b"],"when":"1970-01-01T00:00:00.000Z"}' },
  ]);
});

test("what is no item is refused in words", async () => {
  const cyclic: Record<string, unknown> = {};
  cyclic["self"] = cyclic;
  const cases: readonly (readonly [unknown, RegExp])[] = [
    ["text", /^item: expected an object of fields, not the string "text"$/],
    [undefined, /not undefined$/],
    [[1], /not an array$/],
    [() => 1, /not a function$/],
    [cyclic, /^item: it cannot be written as JSON: Converting circular structure/],
    [{ n: 1n }, /^item: it cannot be written as JSON: .*BigInt/],
    [{ a: [{ "the title": Promise.resolve("x") }] }, /^item: it cannot be written as JSON: a\[0\]\.the title is a promise; await it$/],
    [{ n: 1, m: new Map([["a", 1]]) }, /JSON: m is a Map; give an object: Object\.fromEntries\(map\)$/],
    [{ tags: new Set(["a"]) }, /JSON: tags is a Set; give an array: \[\.\.\.set\]$/],
    [{ price: /\d/ }, /JSON: price is a RegExp; give its source$/],
    [{ why: new Error("x") }, /JSON: why is an Error; give its message$/],
    [new Date(0), /^item: it is written as "1970-01-01T00:00:00.000Z" in JSON; expected an object of fields$/],
  ];
  // `as`: a JavaScript author may give anything.
  for (const [fields, message] of cases) assert.match(await refusal(({ item }) => item(fields as object)), message);
});

test("no item has a field of the name under which it says of what page it is, whoever put it there", async () => {
  const why = "item: a field cannot be called _meta, which is where an item says of what page it is; give it another name";
  const adding = (wait: boolean) => {
    const value = { _meta: 1 };
    return { items: { "~standard": { version: 1 as const, vendor: "t", validate: () => (wait ? Promise.resolve({ value }) : { value }) } } };
  };
  const dropping = { items: { "~standard": { version: 1 as const, vendor: "t", validate: () => ({ value: { a: 1 } }) } } };
  assert.equal(await refusal(({ item }) => item({ a: 1, _meta: { x: 1 } })), why);
  for (const wait of [false, true]) assert.equal(await refusal(({ item }) => item({ a: 1 }), scrapeTask(""), adding(wait)), why);
  assert.deepEqual((await scraped(({ item }) => item({ _meta: 1 }), scrapeTask(""), {}, dropping)).items, [{ type: "items", key: null, json: '{"a":1}' }]);
  const harmless = { a: { _meta: 1 }, b: '"_meta":', _meta: undefined };
  assert.deepEqual((await scraped(({ item }) => item(harmless))).items, [{ type: "items", key: null, json: '{"a":{"_meta":1},"b":"\\"_meta\\":"}' }]);
});

test("an empty object is a value, and a schema may make something of a Set", async () => {
  const toList = {
    "~standard": { version: 1 as const, vendor: "t", validate: (value: unknown) => ({ value: { tags: [...(value as { tags: Set<string> }).tags] } }) },
  };
  assert.deepEqual((await scraped(({ item }) => item({ a: {}, b: new (class Empty {})() }))).items, [{ type: "items", key: null, json: '{"a":{},"b":{}}' }]);
  assert.deepEqual((await scraped(({ item }) => item({ tags: new Set(["a"]) }), scrapeTask(""), {}, { items: toList })).items, [
    { type: "items", key: null, json: '{"tags":["a"]}' },
  ]);
});

test("the only declared type is the default; undeclared ones are named", async () => {
  const one = { product: { key: "sku" } };
  assert.deepEqual((await scraped(({ item }) => item({ sku: 7 }), scrapeTask(""), {}, one)).items, [{ type: "product", key: "7", json: '{"sku":7}' }]);
  assert.equal(await refusal(({ item }) => item({}, "prodct"), scrapeTask(""), one), 'item: no item type "prodct" is declared; the item types are product');
  assert.equal(
    await refusal(({ item }) => item({}), scrapeTask(""), { ...one, offer: {} }),
    "item: say of which type it is; the item types are product, offer",
  );
});

test("an item without its key is bad, and the others stand", async () => {
  const { items, badItems } = await scraped(
    ({ item }) => {
      item({ sku: "a" });
      item({ sku: "" });
      item({ name: "x" });
      item({ sku: {} });
    },
    scrapeTask(""),
    {},
    { product: { key: "sku" } },
  );
  assert.deepEqual(
    items.map(({ key }) => key),
    ["a"],
  );
  assert.deepEqual(
    badItems.map(({ field, message, item }) => [field, message, item]),
    [
      ["sku", "the key is missing", '{"sku":""}'],
      ["sku", "the key is missing", '{"name":"x"}'],
      ["sku", "the key must be a string or a number, not an object", '{"sku":{}}'],
    ],
  );
});

test("a schema's output is the item; what it refuses is told field by field, whether it answers at once or later", async () => {
  const product = z.object({ sku: z.string(), price: z.coerce.number(), offers: z.array(z.object({ price: z.number() })).default([]) });
  const slow = { "~standard": { version: 1, vendor: "test", validate: async (value: unknown) => product["~standard"].validate(value) } } as const;
  for (const schema of [product, slow]) {
    const { items, badItems } = await scraped(
      ({ item }) => {
        item({ sku: "a", price: "1.50", dropped: true });
        item({ price: "x", offers: [{ price: "2" }] });
        item({ sku: "b", price: 2 });
      },
      scrapeTask(""),
      {},
      { product: { schema, key: "sku" } },
    );
    assert.deepEqual(
      items.map(({ json }) => json),
      ['{"sku":"a","price":1.5,"offers":[]}', '{"sku":"b","price":2,"offers":[]}'],
    );
    assert.deepEqual(
      badItems.map(({ field }) => field),
      ["sku", "price", "offers[0].price"],
    );
    assert.equal(badItems[0]?.item, '{"price":"x","offers":[{"price":"2"}]}');
  }
});

test("bad items are shown up to 1,000 characters", async () => {
  const { badItems } = await scraped(({ item }) => item({ text: "x".repeat(5000) }), scrapeTask(""), {}, { a: z.object({ text: z.number() }) });
  assert.equal(badItems[0]?.item.length, 1000);
});

test("item types tell key and columns, where their schema does", async () => {
  const described = {
    "~standard": { version: 1, vendor: "test", validate: () => ({ value: 1 }), jsonSchema: { output: () => ({ properties: { x: {}, y: {} } }) } },
  } as const;
  const module = await moduleOf(
    defineScraper({
      items: { a: { schema: z.object({ sku: z.string(), price: z.number() }), key: "sku" }, b: described, c: {}, d: z.any() },
      handlers: { x() {} },
    }),
    null,
  );
  assert.deepEqual(module.itemTypes, [
    { name: "a", key: "sku", columns: ["sku", "price"] },
    { name: "b", key: null, columns: ["x", "y"] },
    { name: "c", key: null, columns: null },
    { name: "d", key: null, columns: null },
  ]);
});
