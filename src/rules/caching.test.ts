/** Caching by RFC 9111 and by a duration: cases of our own making. The published ones run through the whole layer in test/cache/. */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { StoredResponse } from "../core/cache.ts";
import {
  type AskedRequest,
  asksFor,
  type CacheMode,
  conditionsFor,
  confirms,
  currentAge,
  freshnessLifetime,
  isCacheable,
  isStorable,
  keptHeaders,
  mergedHeaders,
  servedHeaders,
  useOf,
  variedFields,
} from "./caching.ts";
import { ageMs, cacheDate, directivesOf, type Fields, membersOf, variedNames } from "./caching-fields.ts";

const NOW = Date.UTC(2026, 0, 1);
const http = (offsetSeconds: number) => new Date(NOW + offsetSeconds * 1_000).toUTCString();
const digest = (text: string) => `digest of ${text.length}`;

function asked(fields: Readonly<Record<string, string>> = {}, method = "GET"): AskedRequest {
  return { method, field: (name) => fields[name] ?? null };
}

/** Stored at NOW, by a request that said `fields`. */
function stored(headers: Fields, more: Partial<StoredResponse> = {}, fields: Readonly<Record<string, string>> = {}, mode: CacheMode = "auto"): StoredResponse {
  const varied = variedFields(headers, asked(fields), mode, digest);
  return { url: "http://a/", status: 200, headers, body: Buffer.alloc(0), wireBytes: 0, truncated: false, requestedAt: NOW, respondedAt: NOW, varied, ...more };
}

/** `seconds` after it came. */
function use(response: StoredResponse, seconds: number, more: { mode?: CacheMode; offline?: boolean; fields?: Readonly<Record<string, string>> } = {}) {
  const { mode = "auto", offline = false, fields = {} } = more;
  return useOf(response, asked(fields), { mode, offline, now: NOW + seconds * 1_000, digest }).kind;
}

const lifetime = (...headers: Fields) => freshnessLifetime({ status: 200, headers, respondedAt: NOW }, NOW) / 1_000;

test("lists are cut at commas outside of quotes, directives are read once and without regard to case", () => {
  assert.deepEqual(membersOf(` a , ,"b,\\"c" ,d="e,f"`), ["a", `"b,\\"c"`, `d="e,f"`]);
  assert.deepEqual(membersOf(`a, "b, c`), ["a", `"b, c`]);
  assert.deepEqual(
    [...directivesOf(`Max-Age=1, x="a, max-age=2\\"", MAX-AGE=3, no-store, =5, b`)],
    [
      ["max-age", "1"],
      ["x", 'a, max-age=2"'],
      ["no-store", null],
      ["b", null],
    ],
  );
  assert.equal(directivesOf(null).size, 0);
});

test("no text makes the readers fail or take long", () => {
  fc.assert(
    fc.property(fc.string({ unit: fc.constantFrom('"', "\\", ",", " ", "=", "a", "max-age", "1", "*"), maxLength: 60 }), (text) => {
      directivesOf(text);
      for (const name of variedNames([["vary", text]]) ?? []) assert.equal(name, name.trim().toLowerCase());
      assert.ok(ageMs([["age", text]]) >= 0);
      assert.ok(lifetime(["cache-control", text]) >= 0);
    }),
  );
  const startedAt = performance.now();
  membersOf(`${`"`.repeat(100_001)}\\`);
  assert.ok(performance.now() - startedAt < 2_000);
});

test("dates must have one of the three forms", () => {
  for (const text of ["Thu, 01 Jan 2026 00:00:00 GMT", "thursday, 01-JAN-26 00:00:00 gmt", "Thu Jan  1 00:00:00 2026"])
    assert.equal(cacheDate(text, NOW), NOW, text);
  for (const text of [
    "0",
    "-1",
    "",
    "Thu, 1 Jan 2026 00:00:00 GMT",
    "Thu, 01 Jan 2026 00:00:00 UTC",
    "Thu, 01 Jan 2026 00:00:00 +0000",
    "2026-01-01",
    "Thu, 31 Feb 2026 00:00:00 GMT",
  ])
    assert.equal(cacheDate(text, NOW), null, text);
  assert.equal(cacheDate(undefined, NOW), null);
});

test("how long an answer is fresh: s-maxage, max-age, Expires, a tenth of its age; what cannot be read is stale", () => {
  assert.equal(lifetime(["cache-control", "max-age=5, s-maxage=9"], ["expires", http(99)]), 9);
  assert.equal(lifetime(["cache-control", "max-age=5"], ["expires", http(99)]), 5);
  assert.equal(lifetime(["cache-control", `max-age="5"`]), 5);
  assert.equal(lifetime(["cache-control", "max-age=999999999999"]), 2 ** 31);
  for (const bad of ["-1", "5.0", "'5'", `""`, `" 5"`, "5 s", "a5"]) assert.equal(lifetime(["cache-control", `max-age=${bad}`]), 0, bad);
  assert.equal(lifetime(["expires", http(99)], ["date", http(-1)]), 100);
  assert.equal(lifetime(["expires", http(99)]), 99);
  assert.equal(lifetime(["expires", "0"], ["last-modified", http(-9_000)]), 0);
  assert.equal(lifetime(["expires", "0"], ["expires", http(99)]), 0);
  assert.equal(lifetime(["last-modified", http(-1_000)]), 100);
  assert.equal(lifetime(["last-modified", http(-1e8)]), 24 * 3_600);
  assert.equal(lifetime(["last-modified", http(50)]), 0);
  assert.equal(lifetime(), 0);
  const headers: Fields = [["last-modified", http(-1_000)]];
  assert.equal(freshnessLifetime({ status: 302, headers, respondedAt: NOW }, NOW), 0);
  assert.equal(freshnessLifetime({ status: 302, headers: [...headers, ["cache-control", "public"]], respondedAt: NOW }, NOW), 100_000);
});

test("age counts what caches on the way say, how long the answer was on its way, and the time since", () => {
  const at = (headers: Fields, seconds: number) => currentAge({ headers, requestedAt: NOW - 2_000, respondedAt: NOW }, NOW + seconds * 1_000) / 1_000;
  assert.equal(
    at(
      [
        ["age", "30"],
        ["date", http(0)],
      ],
      5,
    ),
    37,
  );
  assert.equal(at([["date", http(-60)]], 5), 65);
  assert.equal(at([["date", "never"]], 5), 7);
  assert.equal(at([["date", http(60)]], 0), 2);
  assert.equal(at([["age", "x, 30"]], 0), 2);
  assert.equal(at([], -3_600), 2, "a clock set back makes nothing younger");
});

test("auto keeps what a shared cache may keep, and no more", () => {
  const keeps = (status: number, cacheControl: string, fields = {}) =>
    isStorable({ status, headers: [["cache-control", cacheControl]] }, asked(fields), "auto");
  assert.ok(keeps(200, "") && keeps(404, "") && keeps(301, "") && keeps(302, "max-age=1") && keeps(403, "s-maxage=1") && keeps(201, "public"));
  assert.ok(!keeps(302, "") && !keeps(201, "") && !keeps(403, "no-cache"));
  assert.ok(!keeps(200, "No-Store") && !keeps(200, "max-age=9, private") && !keeps(200, `private="x"`));
  assert.ok(!keeps(206, "max-age=9") && !keeps(304, "max-age=9") && !keeps(599, "max-age=9"));
  assert.ok(keeps(200, "no-store, must-understand, max-age=9") && !keeps(299, "must-understand, max-age=9"));
  const secret = { authorization: "Basic eA==" };
  assert.ok(!keeps(200, "max-age=9", secret));
  assert.ok(keeps(200, "public, max-age=9", secret) && keeps(200, "s-maxage=9", secret) && keeps(200, "must-revalidate, max-age=9", secret));
  assert.ok(!keeps(200, "max-age=9", { "cache-control": "no-store" }));
  assert.ok(isStorable({ status: 201, headers: [["expires", "0"]] }, asked(), "auto"));
});

test("with a duration everything but errors and rounds for a cookie is kept", () => {
  const keeps = (status: number, headers: Fields = [["cache-control", "no-store, private"]]) => isStorable({ status, headers }, asked(), 1_000);
  for (const status of [200, 201, 204, 299, 300, 301, 302, 308, 404, 410]) assert.ok(keeps(status), `${status}`);
  for (const status of [206, 304, 400, 401, 403, 405, 408, 425, 429, 451, 500, 503, 999]) assert.ok(!keeps(status), `${status}`);
  assert.ok(keeps(200, [["set-cookie", "a=b"]]));
  assert.ok(!keeps(302, [["set-cookie", "a=b"]]));
});

test("a duration counts from when the answer came, whatever it says of itself", () => {
  const response = stored([
    ["cache-control", "no-store, max-age=0"],
    ["vary", "*"],
  ]);
  assert.deepEqual([use(response, 59, { mode: 60_000 }), use(response, 60, { mode: 60_000 })], ["serve", "none"]);
  assert.equal(use(response, -59, { mode: 60_000 }), "serve");
  assert.equal(use(response, -61, { mode: 60_000 }), "none", "an answer from the future is not served for ever");
  assert.equal(use(stored([["etag", "x"]]), 61, { mode: 60_000 }), "validate");
  assert.equal(
    use(
      stored([
        ["etag", "x"],
        ["cache-control", "max-age=99"],
      ]),
      0,
      { mode: null },
    ),
    "validate",
  );
});

test("auto: fresh serves, stale is asked about, no-cache always, and what a duration kept against the rules too", () => {
  const etag = ["etag", "x"] as const;
  assert.deepEqual([use(stored([["cache-control", "max-age=9"]]), 8), use(stored([["cache-control", "max-age=9"]]), 9)], ["serve", "none"]);
  assert.equal(use(stored([["cache-control", "max-age=9"], etag]), 9), "validate");
  assert.equal(use(stored([["cache-control", "no-cache, max-age=9"], etag]), 1), "validate");
  for (const rule of ["no-store", "private"]) assert.equal(use(stored([["cache-control", `${rule}, max-age=9`], etag]), 1), "validate");
  const fresh = stored([["cache-control", "max-age=9"], etag]);
  for (const wish of ["no-cache", "max-age=0", "min-fresh=9"]) assert.equal(use(fresh, 1, { fields: { "cache-control": wish } }), "validate");
  assert.equal(use(fresh, 1, { fields: { pragma: "no-cache" } }), "validate");
  assert.equal(use(fresh, 1, { fields: { pragma: "no-cache", "cache-control": "max-age=5" } }), "serve");
});

test("Vary: the request must say the same; with a duration cookies and * do not count, offline nothing but credentials", () => {
  const fields = { "accept-language": "en,  de", cookie: "a=1" };
  const response = stored(
    [
      ["vary", "Accept-Language, cookie"],
      ["cache-control", "max-age=99"],
    ],
    {},
    fields,
  );
  assert.deepEqual(response.varied, { "accept-language": "en,de", cookie: "digest of 3" });
  const other = { ...fields, "accept-language": "fr" };
  const visitor = { "accept-language": "en,de", cookie: "another" };
  assert.equal(use(response, 1, { fields }), "serve");
  for (const [against, auto, day] of [
    [other, "none", "none"],
    [visitor, "none", "serve"],
    [{}, "none", "none"],
  ] as const) {
    assert.equal(use(response, 1, { fields: against }), auto);
    assert.equal(use(response, 1, { fields: against, mode: 86_400_000 }), day);
    assert.equal(use(response, 1, { fields: against, offline: true }), "serve");
  }
  assert.equal(
    use(
      stored([
        ["vary", "accept, *"],
        ["cache-control", "max-age=99"],
      ]),
      1,
    ),
    "none",
  );
});

test("what came for credentials serves only those, except where it is for all by the rules", () => {
  const secret = { authorization: "Basic c2VjcmV0" };
  const kept = stored([], {}, secret, 1_000_000);
  assert.ok(!JSON.stringify(kept).includes("c2VjcmV0"));
  for (const offline of [false, true]) {
    assert.equal(use(kept, 1, { mode: 1_000_000, offline, fields: secret }), "serve");
    assert.equal(use(kept, 1, { mode: 1_000_000, offline }), "none");
    assert.equal(use(kept, 1, { mode: 1_000_000, offline, fields: { authorization: "Basic eA==" } }), "none");
  }
  assert.equal(use(kept, 1), "none");
  assert.equal(use(stored([]), 1, { mode: 1_000_000, fields: secret }), "none", "without credentials it may have been another page");
  const forAll = stored([["cache-control", "public, max-age=9"]], {}, secret, "auto");
  assert.equal(use(forAll, 1), "serve");
});

test("only plain requests are the cache's", () => {
  assert.ok(isCacheable(asked()) && isCacheable(asked({}, "HEAD")));
  assert.ok(!isCacheable(asked({}, "POST")) && !isCacheable(asked({ range: "bytes=0-1" })) && !isCacheable(asked({ "if-match": "x" })));
  const response = stored([["etag", "x"]]);
  assert.ok(asksFor(response, asked({ "if-none-match": "x" })) && !asksFor(response, asked({ "if-none-match": "y" })) && !asksFor(stored([]), asked()));
});

test("validators are sent as the server wrote them", () => {
  assert.equal(conditionsFor({ headers: [] }), null);
  const headers: Fields = [
    ["etag", `W/"x"`],
    ["last-modified", "yesterday"],
  ];
  assert.deepEqual(conditionsFor({ headers }), { "If-None-Match": `W/"x"`, "If-Modified-Since": "yesterday" });
});

test("fields of the connection are not kept, nor those that it names", () => {
  const headers: Fields = [
    ["connection", "close, X-Hop"],
    ["x-hop", "1"],
    ["keep-alive", "5"],
    ["transfer-encoding", "chunked"],
    ["x-end", "2"],
    ["set-cookie", "a=b"],
  ];
  assert.deepEqual(keptHeaders(headers), [
    ["x-end", "2"],
    ["set-cookie", "a=b"],
  ]);
});

test("a 304 replaces the fields it has, line for line, but not those of the body", () => {
  const old: Fields = [
    ["date", "old"],
    ["age", "9"],
    ["a", "1"],
    ["a", "2"],
    ["b", "3"],
    ["content-length", "10"],
    ["content-encoding", "gzip"],
  ];
  const news: Fields = [
    ["a", "4"],
    ["content-length", "0"],
    ["content-encoding", "br"],
    ["connection", "x"],
    ["x", "y"],
    ["content-type", "t"],
  ];
  assert.deepEqual(mergedHeaders(old, news), [
    ["b", "3"],
    ["content-length", "10"],
    ["content-encoding", "gzip"],
    ["a", "4"],
    ["content-type", "t"],
  ]);
  assert.ok(confirms([["etag", `"x"`]], []) && confirms([["etag", `"x"`]], [["etag", `W/"x"`]]) && confirms([], [["etag", `"x"`]]));
  assert.ok(!confirms([["etag", `"x"`]], [["etag", `"y"`]]));
});

test("a stored answer serves with the age it has now", () => {
  assert.deepEqual(
    servedHeaders(
      stored([
        ["age", "10"],
        ["a", "b"],
      ]),
      NOW + 2_900,
    ),
    [
      ["a", "b"],
      ["age", "12"],
    ],
  );
});
