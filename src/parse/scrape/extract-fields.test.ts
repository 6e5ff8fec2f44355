import assert from "node:assert/strict";
import { test } from "node:test";
import { CrawlError } from "../../core/errors.ts";
import type { ScrapeTask } from "../../core/scraping.ts";
import { fieldsModule } from "./module.ts";
import { runPage } from "./run.ts";
import { scrapeTask } from "./task-for-tests.ts";

const PAGE = `<base href="/shop/"><h1>  Red
  <b>apple</b> </h1><a class="more" href="more?x=1">more</a><a href="http://[">broken</a><img data-x="a@b" src="a.png" alt="">
  <ul><li>one</li><li>two</li></ul>`;

async function itemOf(extract: Readonly<Record<string, string>>, task: ScrapeTask = scrapeTask(PAGE)): Promise<unknown> {
  const outcome = await runPage(await fieldsModule(extract), task, { values: new Map(), log: () => undefined, signal: () => new AbortController().signal });
  assert.ok(outcome.kind === "scraped");
  assert.ok(outcome.scraped.items.length <= 1);
  const [item] = outcome.scraped.items;
  return item === undefined ? null : JSON.parse(item.json);
}

test("fields are text, attributes, inner HTML, one or all matches", async () => {
  const fields = {
    title: "h1",
    html: "h1@html",
    more: "a.more@href",
    picture: 'img[data-x="a@b"]@src',
    alt: "img@alt",
    "all[]": "li",
    "no[]": "dd",
    none: "dd",
    lacking: "h1@id",
  };
  assert.deepEqual(await itemOf(fields), {
    title: "Red apple",
    html: "  Red\n  <b>apple</b> ",
    more: "http://shop.test/shop/more?x=1",
    picture: "http://shop.test/shop/a.png",
    alt: "",
    all: ["one", "two"],
    no: [],
    ...{ none: null, lacking: null },
  });
});

test("an @ in brackets, quotes or after a backslash belongs to the selector", async () => {
  assert.deepEqual(await itemOf({ a: 'img[data-x="a@b"]@data-x', b: "img[data-x='a@b']", c: 'img:not([alt="@"])@src', d: ".a\\@b" }), {
    ...{ a: "a@b", b: "", c: "http://shop.test/shop/a.png", d: null },
  });
});

test("a page on which nothing matches gives no item; a URL that is none stays as it is", async () => {
  assert.equal(await itemOf({ x: "dd", "y[]": "dt@id" }), null);
  assert.deepEqual(await itemOf({ "links[]": "a@href" }), { links: ["http://shop.test/shop/more?x=1", "http://["] });
  assert.deepEqual(await itemOf({ link: "a@href" }, scrapeTask("<a href=x>", { sentAs: "http://shop.test/b/%7Ec" })), { link: "http://shop.test/b/x" });
});

test("selectors that are wrong are reported when they are read, all at once", async () => {
  await assert.rejects(fieldsModule({ good: "h1", a: "h1[", b: "@href", c: "a@hr ef", "d[]": "li:nope(" }), (error) => {
    assert.ok(error instanceof CrawlError);
    assert.equal(error.code, "invalid-options");
    assert.deepEqual(
      error.problems.map(({ option, message }) => [option, message.slice(0, message.indexOf(":"))]),
      [
        ["extract", "a=h1["],
        ["extract", "b=@href"],
        ["extract", "c=a@hr ef"],
        ["extract", "d[]=li"],
      ],
    );
    assert.match(error.message, /"h1\[" is not a CSS selector: /);
    return true;
  });
  await assert.rejects(fieldsModule({ x: "h1", "x[]": "h2" }), /the field is given twice/);
});

test("the version changes with the fields, and the columns are known", async () => {
  const [a, b] = await Promise.all([fieldsModule({ x: "h1", "y[]": "a@href" }), fieldsModule({ x: "h2" })]);
  assert.notEqual(a.version, b.version);
  assert.deepEqual([a.kind, a.first, a.itemTypes], ["items", null, [{ name: "items", key: null, columns: ["x", "y"] }]]);
});
