/** Limits of errors, bytes and items: once an outcome has crossed one, no further request begins, and what was claimed ahead goes back uncounted. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import type { ServerResponse } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { type CrawlInput, crawl } from "../../src/crawl.ts";
import { html, serve } from "./served.ts";

const SEEDS = 30;

/** Answers to pages come when `most` of them have been asked for, all at once. Requests that come later than that are answered at once. */
async function together(most: number, answer: (response: ServerResponse) => void) {
  const waiting: ServerResponse[] = [];
  let released = false;
  let asked = 0;
  const server = await serve((request, response) => {
    if (request.url === "/robots.txt") return void response.writeHead(404).end();
    asked++;
    if (released) return answer(response);
    waiting.push(response);
    if (waiting.length < most) return;
    released = true;
    for (const one of waiting) answer(one);
  });
  return { server, asked: () => asked, seeds: Array.from({ length: SEEDS }, (_, i) => `${server.origin}/${i}`) };
}

const broken = (response: ServerResponse): void => void response.writeHead(500).end("no");
const base = { retry: { max: 0 }, perHost: { concurrency: 8 } } satisfies Partial<CrawlInput>;

for (const concurrency of [1, 4]) {
  test(`--max-errors 0 with ${concurrency} in flight: none but these is asked for`, async () => {
    const { server, asked, seeds } = await together(concurrency, broken);
    await using _ = server;
    const summary = await crawl({ ...base, seeds, concurrency, limits: { errors: 0 } }).done;
    assert.deepEqual([summary.finishReason, asked(), summary.failed, summary.requests - 1], ["limit-errors", concurrency, concurrency, concurrency]);
    assert.equal(summary.queued, SEEDS - concurrency);
  });

  test(`--max-bytes with ${concurrency} in flight: none but these is asked for`, async () => {
    const { server, asked, seeds } = await together(concurrency, (response) => html(response, "x".repeat(1_300)));
    await using _ = server;
    const summary = await crawl({ ...base, seeds, concurrency, limits: { bytes: 1_000 } }).done;
    assert.deepEqual([summary.finishReason, asked(), summary.pages], ["limit-bytes", concurrency, concurrency]);
  });
}

test("a limit that the second page crosses lets the second page go out, and no third", async () => {
  const { server, asked, seeds } = await together(1, (response) => html(response, "x".repeat(1_300)));
  await using _ = server;
  const summary = await crawl({ ...base, seeds, concurrency: 1, limits: { bytes: 1_500 } }).done;
  assert.deepEqual([summary.finishReason, asked(), summary.pages], ["limit-bytes", 2, 2]);
});

test("--max-items: the page that gives the last of them is the last one asked for", async () => {
  const { server, asked, seeds } = await together(4, (response) => html(response, "<h1>a</h1>"));
  await using _ = server;
  const summary = await crawl({ ...base, seeds, concurrency: 4, limits: { items: 2 }, extract: { title: "h1" } }).done;
  assert.deepEqual([summary.finishReason, asked(), summary.items], ["limit-items", 4, 2]);
});

test("what a limit left is done by a resume with a larger one, each page once", async () => {
  const { server, asked, seeds } = await together(4, broken);
  await using _ = server;
  const dir = mkdtempSync(join(tmpdir(), "skein-limits-"));
  try {
    const spec = { ...base, seeds, concurrency: 4, stateDir: join(dir, "state") };
    const first = await crawl({ ...spec, limits: { errors: 0 } }).done;
    assert.deepEqual([first.finishReason, first.failed, asked()], ["limit-errors", 4, 4]);
    const second = await crawl({ ...spec, limits: { errors: 1_000 } }).done;
    assert.deepEqual([second.finishReason, second.failed, asked()], ["finished", SEEDS, SEEDS]);
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
});

test("a limit holds while what is queued is done after a stop", async () => {
  const { server, asked, seeds } = await together(4, broken);
  await using _ = server;
  const run = crawl({ ...base, seeds, concurrency: 4, limits: { errors: 0 } });
  await run.stop({ mode: "queue" });
  assert.equal((await run.done).finishReason, "stop-condition");
  assert.equal(asked(), 4);
});
