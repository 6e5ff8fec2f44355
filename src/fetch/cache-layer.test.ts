/** The cache layer around a real fetcher and a loopback server: what is asked, served, kept, forgotten and aborted. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { PageCache, StoredResponse } from "../core/cache.ts";
import { realClock } from "../core/clock.ts";
import { CrawlError } from "../core/errors.ts";
import type { FetchOutcome } from "../core/outcome.ts";
import { wantsBody } from "../rules/media-type.ts";
import { type CacheLayerOptions, withCache } from "./cache-layer.ts";
import { page, type RawRequest, startRawServer } from "./raw-server.ts";
import { exchangeFor, openFetcher } from "./trial.ts";

/** A PageCache that is a map. */
function mapCache(): PageCache & { readonly kept: Map<string, StoredResponse> } {
  const kept = new Map<string, StoredResponse>();
  return {
    kept,
    get: async (key) => kept.get(key) ?? null,
    put: async (key, response) => void kept.set(key, { ...response, body: Uint8Array.from(response.body) }),
    async refresh(key, head) {
      const old = kept.get(key);
      if (old !== undefined) kept.set(key, { ...old, ...head });
    },
    delete: async (key) => void kept.delete(key),
    async *all() {
      yield* kept;
    },
    stats: async () => ({ responses: kept.size, bodyBytes: 0, diskBytes: 0, oldest: null, newest: null }),
    clear: async () => kept.clear(),
    [Symbol.asyncDispose]: async () => undefined,
  };
}

const BASE = { timeoutMs: 5_000, maxBodySize: 1_000_000, types: "text", wantsBody, userAgent: "t/1", headers: {}, hosts: {}, auth: new Map() } as const;
const REST = { seedHosts: new Set<string>(), proxy: [], insecure: false, addresses: { refusePrivate: false, allow: [] }, perHostConcurrency: 4 } as const;

async function bench(answer: (request: RawRequest) => Uint8Array | null, options: Partial<CacheLayerOptions> = {}, cache = mapCache()) {
  const server = await startRawServer(answer);
  const all: CacheLayerOptions = { ...BASE, ...REST, mode: 3_600_000, offline: false, ...options };
  const layer = withCache(openFetcher(all), cache, all, realClock);
  return {
    server,
    cache,
    layer,
    url: (path: string) => `${server.origin}${path}`,
    get: (path: string, more: Parameters<typeof exchangeFor>[1] = {}) => layer.fetch(exchangeFor(`${server.origin}${path}`, more)),
    async [Symbol.asyncDispose]() {
      await layer[Symbol.asyncDispose]();
      await server[Symbol.asyncDispose]();
    },
  };
}

function brief(outcome: FetchOutcome): string {
  if (outcome.kind === "aborted") return "aborted";
  if (outcome.kind === "failed") return `${outcome.code} ${outcome.message}`;
  const { response } = outcome;
  return `${response.status}${response.fromCache ? " cached" : ""} ${Buffer.from(response.body).toString()}`;
}

test("a served answer says that nobody was asked, and calls nobody", async () => {
  let n = 0;
  await using b = await bench(() => page(`page ${++n}`, ["Content-Type: text/html", "X-A: 1", "X-A: 2", "Set-Cookie: a=b"]));
  const first = await b.get("/");
  const exchange = exchangeFor(b.url("/"));
  const second = await b.layer.fetch(exchange);
  assert.deepEqual([brief(first), brief(second), exchange.calls], ["200 page 1", "200 cached page 1", []]);
  assert.ok(second.kind === "fetched" && first.kind === "fetched");
  assert.deepEqual([second.sinceStartMs, second.answer, second.host, second.setCookies], [null, null, null, null]);
  assert.deepEqual([...second.response.headers.all("x-a")], ["1", "2"]);
  assert.equal(second.response.contentType, "text/html");
  assert.equal(second.response.wireBytes, first.response.wireBytes);
});

test("a redirect serves as one", async () => {
  await using b = await bench(() => page("", ["Location: /to"], "302 Found"));
  await b.get("/");
  const again = await b.get("/");
  assert.ok(again.kind === "redirect" && again.response.fromCache === true && again.location === "/to");
});

test("limits on bodies are those of now", async () => {
  const cache = mapCache();
  await using b = await bench(({ target }) => page("0123456789", [`Content-Type: ${target === "/t" ? "text/plain" : "text/html"}`]), {}, cache);
  await b.get("/h");
  await b.get("/t");
  await using narrow = await bench(() => null, { maxBodySize: 4, types: "html", offline: true }, cache);
  const ask = (path: string) => narrow.layer.fetch(exchangeFor(b.url(path)));
  const [html, text] = [await ask("/h"), await ask("/t")];
  assert.ok(html.kind === "fetched" && text.kind === "fetched");
  assert.deepEqual([brief(html), html.response.truncated], ["200 cached 0123", true]);
  assert.deepEqual([brief(text), text.response.bodySkipped, text.response.wireBytes], ["200 cached ", true, 0]);
});

test("cut, unwanted and failing answers are not kept", async () => {
  const answers: Record<string, Buffer> = {
    "/long": page("0123456789"),
    "/image": page("x", ["Content-Type: image/png"]),
    "/503": page("x", [], "503 Busy"),
    "/429": page("x", [], "429 Slow"),
    "/403": page("x", [], "403 No"),
    "/404": page("x", [], "404 No"),
  };
  await using b = await bench(({ target }) => answers[target] ?? page(""), { maxBodySize: 5 });
  for (const path of Object.keys(answers)) await b.get(path);
  assert.deepEqual([...b.cache.kept.keys()], [`GET ${b.url("/404")}`]);
});

test("GET and HEAD are kept apart; a POST goes through, and makes what is kept of its URL out of date", async () => {
  await using b = await bench(({ method }) => page(method === "HEAD" ? "" : method, ["Content-Length: 0", "Location: /other"].slice(1)));
  await b.get("/");
  await b.get("/other");
  await b.get("/third");
  await b.get("/", { rest: { method: "HEAD" } });
  assert.deepEqual(b.cache.kept.size, 4);
  assert.equal(brief(await b.get("/", { rest: { method: "POST", body: Buffer.from("x") } })), "200 POST");
  assert.deepEqual([...b.cache.kept.keys()], [`GET ${b.url("/third")}`]);
});

test("requests for a range are not the cache's affair", async () => {
  let n = 0;
  await using b = await bench(() => page(`${++n}`));
  await b.get("/", { rest: { headers: { Range: "bytes=0-3" } } });
  assert.equal(b.cache.kept.size, 0);
  await b.get("/");
  assert.equal(brief(await b.get("/", { rest: { headers: { Range: "bytes=0-3" } } })), "200 3");
});

test("who asks what changed is served while the answer serves; then the question is passed on, and a 304 renews what is stored", async () => {
  const asked: (string | undefined)[] = [];
  const kept = mapCache();
  const answer = ({ headers }: RawRequest) => {
    asked.push(headers.get("if-none-match"));
    return headers.get("if-none-match") === '"1"' ? page("", ['ETag: "1"', "X-New: yes"], "304 Not Modified") : page("page", ['ETag: "1"']);
  };
  const rest = { headers: { "If-None-Match": '"1"' } };
  await using b = await bench(answer, {}, kept);
  await b.get("/");
  assert.equal(brief(await b.get("/", { rest })), "200 cached page");
  await using stale = await bench(() => null, { mode: 0 }, kept);
  assert.equal(brief(await stale.layer.fetch(exchangeFor(b.url("/"), { rest }))), "304 ");
  assert.ok([...kept.kept.values()][0]?.headers.some(([name]) => name === "x-new"));
  assert.equal(brief(await stale.layer.fetch(exchangeFor(b.url("/"), { rest: { headers: { "If-None-Match": '"0"' } } }))), "200 page");
  assert.deepEqual(asked, [undefined, '"1"', '"0"']);
});

test("Vary is judged by the very fields that are sent, those of the crawler and of the user included", async () => {
  await using b = await bench(() => page("x", ["Vary: Accept-Language, X-Mine, User-Agent", "Cache-Control: max-age=60"]), {
    mode: "auto",
    headers: { "X-Mine": "1" },
  });
  await b.get("/");
  assert.deepEqual(
    [...b.cache.kept.values()].map(({ varied }) => varied),
    [{ "accept-language": "en", "x-mine": "1", "user-agent": "t/1" }],
  );
  assert.equal(brief(await b.get("/")), "200 cached x");
  assert.equal(brief(await b.get("/", { rest: { headers: { "x-mine": "2" } } })), "200 x");
});

test("credentials in the URL keep answers apart, and stand nowhere", async () => {
  await using b = await bench(() => page("private"));
  await b.get("/", { rest: { credentials: "me:secret" } });
  assert.equal(brief(await b.get("/", { rest: { credentials: "me:secret" } })), "200 cached private");
  const [kept] = b.cache.kept.values();
  assert.ok(!JSON.stringify(kept).includes(Buffer.from("me:secret").toString("base64")));
  assert.equal(brief(await b.get("/")), "200 private");
});

test("a stale answer is asked about with its validators; the 304 renews it, another answer replaces it", async () => {
  let changed = false;
  const conditions: (string | undefined)[] = [];
  await using b = await bench(
    ({ head }) => {
      conditions.push(/if-none-match: (.*)/i.exec(head)?.[1]?.trim());
      return conditions.at(-1) === '"1"' && !changed ? page("", ['ETag: "1"', "X-New: yes"], "304 Not Modified") : page(changed ? "new" : "old", ['ETag: "1"']);
    },
    { mode: null },
  );
  assert.equal(brief(await b.get("/")), "200 old");
  const confirmed = await b.get("/");
  assert.equal(brief(confirmed), "200 cached old");
  assert.ok(confirmed.kind === "fetched" && confirmed.sinceStartMs !== null && confirmed.answer?.kind === "good");
  assert.equal(confirmed.response.headers.get("x-new"), "yes");
  changed = true;
  assert.equal(brief(await b.get("/")), "200 new");
  assert.deepEqual(conditions, [undefined, '"1"', '"1"']);
});

test("robots.txt is asked for whatever the cache holds, but not offline; unknown there it forbids nothing", async () => {
  let n = 0;
  const cache = mapCache();
  await using b = await bench(() => page(`# ${++n}`, ["Content-Type: text/plain"]), {}, cache);
  const robots = (path: string) => {
    const exchange = exchangeFor(b.url(path), { maxBytes: 1_000 });
    return { ...exchange, request: { ...exchange.request, hop: "robots" as const } };
  };
  await b.layer.fetch(robots("/robots.txt"));
  assert.equal(brief(await b.layer.fetch(robots("/robots.txt"))), "200 # 2");
  await using off = await bench(() => null, { offline: true }, cache);
  assert.equal(brief(await off.layer.fetch(robots("/robots.txt"))), "200 cached # 2");
  assert.equal(brief(await off.layer.fetch(robots("/other/robots.txt"))), "404 ");
  assert.equal(brief(await off.layer.fetch(exchangeFor(b.url("/page")))), "connect offline: not in the cache");
  assert.equal(brief(await off.layer.fetch(exchangeFor(b.url("/form"), { rest: { method: "POST" } }))), "connect offline: not in the cache");
  assert.equal(n, 2);
});

test("an exchange is aborted while the cache is asked, and while the host is", async () => {
  await using b = await bench(() => null);
  const one = exchangeFor(b.url("/"));
  const early = b.layer.fetch(one);
  b.layer.abort(one);
  assert.equal(brief(await early), "aborted");
  const started = Promise.withResolvers<void>();
  const two = exchangeFor(b.url("/"), { onStart: () => started.resolve() });
  const late = b.layer.fetch(two);
  await started.promise;
  b.layer.abort(two);
  assert.equal(brief(await late), "aborted");
  const three = b.layer.fetch(exchangeFor(b.url("/")));
  b.layer.abortAll();
  assert.equal(brief(await three), "aborted");
});

test("a conditional exchange is aborted by the exchange it came from", async () => {
  let answers = 0;
  await using b = await bench(() => (answers++ === 0 ? page("x", ["ETag: 1"]) : null), { mode: null });
  await b.get("/");
  const started = Promise.withResolvers<void>();
  const exchange = exchangeFor(b.url("/"), { onStart: () => started.resolve() });
  const under = b.layer.fetch(exchange);
  await started.promise;
  b.layer.abort(exchange);
  assert.equal(brief(await under), "aborted");
  assert.deepEqual(exchange.calls, ["start", "end"]);
});

test("what the cache throws comes out: no page goes on as if it had been kept", async () => {
  const broken = { ...mapCache(), put: () => Promise.reject(new CrawlError("state-unwritable", "the disk is full")) };
  await using b = await bench(() => page("x"), {}, broken);
  await assert.rejects(b.get("/"), { code: "state-unwritable" });
});
