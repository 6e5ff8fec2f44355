/** Forms that a scraper sends: what a redirect makes of them, and rules that need what is not there. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { crawl } from "../../src/crawl.ts";
import { defineScraper } from "../../src/parse/scrape/define.ts";
import { html, serve } from "../crawl/served.ts";

test("a form that redirects to its own URL is answered with that page, once", async () => {
  await using server = await serve((request, response) => {
    if (request.url === "/form" && request.method === "POST") response.writeHead(303, { location: "/form" }).end();
    else html(response, `<h1>${request.method} ${request.url}</h1>`);
  });
  const scraper = defineScraper({
    handlers: {
      start: ({ follow }) => follow("/form", { handler: "result", method: "POST", body: "a=1" }),
      result: ({ $, item }) => item({ heading: $("h1").text() }),
    },
  });
  const run = crawl({ seeds: [`${server.origin}/`] }, { scraper });
  const headings: unknown[] = [];
  for await (const { heading } of run.items()) headings.push(heading);
  assert.deepEqual(headings, ["GET /form"]);
  const { byOutcome } = await run.done;
  // A URL has one record: that of the answer takes the place of the redirect's.
  assert.deepEqual([byOutcome["fetched"], byOutcome["redirected"] ?? 0], [2, 0]);
});

test("a stop rule without items, and one that compares with a last run that is kept nowhere, are refused", async () => {
  const refused = (spec: object) => {
    try {
      crawl({ seeds: ["http://a.test/"], ...spec }).done.catch(() => undefined);
    } catch (error) {
      return error instanceof Error ? error.message : String(error);
    }
    return "accepted";
  };
  assert.match(refused({ stopWhen: ["date<2026"] }), /^stopWhen: looks at items, and nothing gives any/);
  assert.match(refused({ stopWhen: ["date<=last"], extract: { date: "time" } }), /^stopWhen: "date<=last" compares with the last run/);
});

test("F099 requests to one URL are told apart by method and body, and the same one is made once", async () => {
  const asked: string[] = [];
  await using server = await serve(async (request, response) => {
    let body = "";
    for await (const part of request) body += part;
    if (request.url !== "/robots.txt") asked.push(`${request.method} ${request.url} ${body}`);
    html(response, "<p>answer");
  });
  const scraper = defineScraper({
    handlers: {
      start({ follow }) {
        for (const p of [1, 2, 1]) follow("/api", { handler: "answer", body: { p } });
        follow("/api", { handler: "answer" });
      },
      answer: () => undefined,
    },
  });
  await crawl({ seeds: [server.origin] }, { scraper }).done;
  assert.deepEqual(asked.sort(), ["GET / ", "GET /api ", 'POST /api {"p":1}', 'POST /api {"p":2}']);
});
