/** Seeds that are added to a crawl while it runs. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { crawl } from "../../src/crawl.ts";
import { fakeSite } from "../../src/testing/site.ts";

test("seeds added to a crawl under way are crawled, known ones are told apart, and it does not end in between", async () => {
  await using site = await fakeSite({ "/": { body: "x", delayMs: 50 }, "/a": "a", "/b": "b" });
  const run = crawl({ seeds: [site.url] });
  async function* slowly() {
    yield `${site.url}a`;
    await new Promise((resolve) => setTimeout(resolve, 300));
    yield* [`${site.url}b`, site.url, "ftp://no.example/"];
  }
  assert.deepEqual(await run.add(slowly()), { added: 2, known: 1, bad: 1 });
  const summary = await run.done;
  assert.deepEqual([summary.finishReason, summary.pages], ["finished", 3]);
  assert.equal(await run.add([`${site.url}c`]), null);
});

test("a crawl that stops takes no more seeds", async () => {
  await using site = await fakeSite({ "/": { body: "x", delayMs: 200 } });
  const run = crawl({ seeds: [site.url] });
  await run.stats();
  await run.stop({ mode: "flight" });
  assert.equal(await run.add([`${site.url}a`]), null);
  await run.done;
});
