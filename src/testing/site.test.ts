/** The fake site: pages of the author's own, named faults, robots.txt in its variants. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { type FakeRobots, fakeSite } from "./site.ts";

test("pages are HTML, answers or functions of the request; the requests are kept", async () => {
  await using site = await fakeSite({
    "/": "<h1>Hello</h1>",
    "/data": { status: 201, headers: { "content-type": "application/json", "x-a": "b" }, body: '{"a":1}' },
    "/echo": ({ method, body, query, before }) => `${method} ${body} ${query.get("q")} ${before}`,
    "/echo?q=own": "exactly this query",
    "/throws": () => {
      throw new Error("oh");
    },
  });
  const home = await fetch(site.url);
  assert.equal(home.headers.get("content-type"), "text/html; charset=utf-8");
  assert.equal(await home.text(), "<h1>Hello</h1>");
  const data = await fetch(new URL("data", site.url));
  assert.equal(data.status, 201);
  assert.equal(data.headers.get("x-a"), "b");
  assert.deepEqual(await data.json(), { a: 1 });
  const post = { method: "POST", body: "hello" };
  assert.equal(await (await fetch(new URL("echo?q=1", site.url), post)).text(), "POST hello 1 0");
  assert.equal(await (await fetch(new URL("echo?q=1", site.url), post)).text(), "POST hello 1 1");
  assert.equal(await (await fetch(new URL("echo?q=own", site.url))).text(), "exactly this query");
  assert.equal((await fetch(new URL("throws", site.url))).status, 500);
  assert.equal((await fetch(new URL("nothing", site.url))).status, 404);
  assert.deepEqual(
    site.requests.map(({ method, target }) => `${method} ${target}`),
    ["GET /", "GET /data", "POST /echo?q=1", "POST /echo?q=1", "GET /echo?q=own", "GET /throws", "GET /nothing"],
  );
});

test("named faults are what they say", async () => {
  await using site = await fakeSite();
  const get = (path: string, init: RequestInit = {}) => fetch(new URL(path, site.url), init);
  const begun = performance.now();
  assert.equal((await get("slow?ms=30")).status, 200);
  assert.ok(performance.now() - begun >= 29);
  await assert.rejects((await get("cut")).text());
  assert.equal((await get("lying-length")).headers.get("content-length"), "100");
  await assert.rejects((await get("gzip-broken")).text());
  await assert.rejects(get("reset"));
  await assert.rejects(get("loop"), ({ cause }) => /redirect count/.test(String(cause)));
  assert.ok((await (await get("wrong-charset")).text()).includes("Caf\ufffd"));
  const endless = await get("endless");
  const reader = endless.body!.getReader();
  let bytes = 0;
  while (bytes < 1_000_000) bytes += (await reader.read()).value?.byteLength ?? 0;
  await reader.cancel();
  const statuses = async (path: string) => [(await get(path)).status, (await get(path)).status, (await get(path)).status];
  assert.deepEqual(await statuses("status/503?times=2"), [503, 503, 200]);
  assert.deepEqual(await statuses("status/404"), [404, 404, 404]);
  const limited = await get("retry-after?seconds=3");
  assert.equal(limited.headers.get("retry-after"), "3");
  assert.equal(limited.status, 429);
  assert.equal((await get("retry-after?seconds=3")).status, 200);
});

test("a page of the author's own comes before a fault and before robots.txt", async () => {
  await using site = await fakeSite({ "/cut": "whole", "/robots.txt": { headers: { "content-type": "text/plain" }, body: "mine" } }, { robots: "error" });
  assert.equal(await (await fetch(new URL("cut", site.url))).text(), "whole");
  assert.equal(await (await fetch(new URL("robots.txt", site.url))).text(), "mine");
});

test("robots.txt comes in its variants", async () => {
  const seen: string[] = [];
  for (const robots of ["missing", "allow", "disallow", "private", "delay", "error", "html", "redirect"] satisfies FakeRobots[]) {
    await using site = await fakeSite({}, { robots });
    const response = await fetch(new URL("robots.txt", site.url));
    seen.push(`${robots} ${response.status} ${(await response.text()).split("\n")[1] ?? ""}`);
  }
  assert.deepEqual(seen, [
    "missing 404 ",
    "allow 200 Allow: /",
    "disallow 200 Disallow: /",
    "private 200 Disallow: /private/",
    "delay 200 Crawl-delay: 1",
    "error 503 ",
    "html 200 ",
    "redirect 200 Disallow: /private/",
  ]);
  await using hanging = await fakeSite({}, { robots: "hang" });
  await assert.rejects(fetch(new URL("robots.txt", hanging.url), { signal: AbortSignal.timeout(50) }));
});
