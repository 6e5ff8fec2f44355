/** URLs that redirect to each other: what becomes of each depends on how it was found (docs/records.md), never on whether the crawl ends. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { crawl } from "../../src/crawl.ts";
import { html, serve } from "./served.ts";

const NEXT: Readonly<Record<string, string>> = { "/a": "/b", "/b": "/a" };

async function outcomes(links: readonly string[], perHost: number): Promise<Record<string, string>> {
  await using server = await serve((request, response) => {
    const to = NEXT[request.url ?? ""];
    if (to !== undefined) response.writeHead(302, { location: to }).end();
    else html(response, links.map((link) => `<a href="${link}">x</a>`).join(""), request.url === "/robots.txt" ? 404 : 200);
  });
  const found: Record<string, string> = {};
  for await (const { url, outcome, error } of crawl({ seeds: server.origin, perHost: { concurrency: perHost } })) {
    const path = url.slice(server.origin.length);
    assert.equal(found[path], undefined, `${path} has one record`);
    found[path] = error === undefined ? outcome : `${outcome} ${error.code}`;
  }
  assert.ok(server.targets().length <= 4, server.targets().join(" "));
  return found;
}

test("where only one of the two is linked, the one that is reached by its redirect has failed", async () => {
  assert.deepEqual(await outcomes(["/a"], 8), { "/": "fetched", "/a": "redirected", "/b": "failed redirect" });
});

test("where pages link to both, each is a redirect to the other, whatever the order in which they are asked", async () => {
  for (const perHost of [1, 8]) {
    assert.deepEqual(await outcomes(["/a", "/b"], perHost), { "/": "fetched", "/a": "redirected", "/b": "redirected" });
    assert.deepEqual(await outcomes(["/b", "/a"], perHost), { "/": "fetched", "/a": "redirected", "/b": "redirected" });
  }
});
