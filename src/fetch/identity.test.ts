/** What is sent of what the user gave: credentials, headers, cookies, and to whom. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { page, startRawServer } from "./raw-server.ts";
import { bodyOf, exchangeFor, fetchOnce, openFetcher } from "./trial.ts";

const OK = page("<p>well");

test("F044 credentials of the URL go out as Basic authorization", async () => {
  await using server = await startRawServer((request) =>
    request.headers.get("authorization") === `Basic ${btoa("user:p@ss")}` ? OK : page("", [], "401 Who"),
  );
  assert.equal(bodyOf(await fetchOnce(`${server.origin}/`, {}, { rest: { credentials: "user:p@ss" } })), "<p>well");
  assert.equal(bodyOf(await fetchOnce(`${server.origin}/in`, { auth: new Map([[`127.0.0.1:${server.port}`, "user:p@ss"]]) })), "<p>well");
  assert.equal(bodyOf(await fetchOnce(`${server.origin}/in`, { auth: new Map([["127.0.0.1", "user:p@ss"]]) })), "<p>well");
});

test("F030 Authorization and Cookie given by the user go to the seeds' hosts only", async () => {
  await using seed = await startRawServer(() => OK);
  await using other = await startRawServer(() => OK);
  await using fetcher = openFetcher({
    headers: { Authorization: "Bearer T", Cookie: "a=1", "X-Team": "blue", "user-agent": "mine/1" },
    seedHosts: new Set([`127.0.0.1:${seed.port}`]),
    auth: new Map([["elsewhere.example", "u:p"]]),
  });
  await fetcher.fetch(exchangeFor(`${seed.origin}/`));
  await fetcher.fetch(exchangeFor(`${other.origin}/`));
  const of = (headers: ReadonlyMap<string, string> | undefined) =>
    ["authorization", "cookie", "x-team", "user-agent"].map((name) => headers?.get(name) ?? null);
  assert.deepEqual(of(seed.requests[0]?.headers), ["Bearer T", "a=1", "blue", "mine/1"]);
  assert.deepEqual(of(other.requests[0]?.headers), [null, null, "blue", "mine/1"]);
});

test("what was given for a host whose seeds are all https is not sent to it over http", async () => {
  await using server = await startRawServer(() => OK);
  const host = `127.0.0.1:${server.port}`;
  const given = { headers: { Authorization: "Bearer T", Cookie: "a=1" }, seedHosts: new Set([host]), auth: new Map([[host, "u:p"]]) };
  const secureHosts = new Set([host]);
  await using fetcher = openFetcher({ ...given, secureHosts });
  await fetcher.fetch(exchangeFor(`${server.origin}/`));
  secureHosts.delete(host);
  await fetcher.fetch(exchangeFor(`${server.origin}/`));
  const sent = server.requests.map(({ headers }) => [headers.get("authorization"), headers.get("cookie")]);
  assert.deepEqual(sent, [
    [undefined, undefined],
    [`Basic ${btoa("u:p")}`, "a=1"],
  ]);
});

test("seeds and credentials that become known later count from then on", async () => {
  await using server = await startRawServer(() => OK);
  const seedHosts = new Set<string>();
  await using fetcher = openFetcher({ headers: { Cookie: "a=1" }, seedHosts });
  await fetcher.fetch(exchangeFor(`${server.origin}/`));
  seedHosts.add(`127.0.0.1:${server.port}`);
  await fetcher.fetch(exchangeFor(`${server.origin}/`));
  assert.deepEqual(
    server.requests.map((request) => request.headers.get("cookie") ?? null),
    [null, "a=1"],
  );
});

test("a request's own method, headers and body are sent, and headers by host win over those for all", async () => {
  await using server = await startRawServer(() => OK);
  const host = `127.0.0.1:${server.port}`;
  const rest = { method: "POST", headers: { "Content-Type": "application/json", Accept: "application/json" }, body: Buffer.from("{}") };
  await fetchOnce(`${server.origin}/`, { headers: { "X-A": "all" }, hosts: { [host]: { headers: { "X-A": "host" } } } }, { rest });
  const request = server.requests[0]!; // one request was made
  assert.equal(request.method, "POST");
  assert.equal(request.body.toString(), "{}");
  assert.equal(request.headers.get("accept"), "application/json");
  assert.equal(request.headers.get("content-type"), "application/json");
  assert.equal(request.headers.get("x-a"), "host");
});

test("headers that HTTP cannot carry are refused at once, all in one error", () => {
  assert.throws(() => openFetcher({ headers: { "bad name": "x", "X-A": "line\r\nbreak", Connection: "close" } }), {
    code: "invalid-options",
    message: /bad name.*Connection|X-A/s,
  });
});

test("cookies of the jar are sent where they belong, after those the user gave, and received ones are reported", async () => {
  await using server = await startRawServer(() =>
    page("<p>well", ["Set-Cookie: b=2; Path=/", "Set-Cookie: c=3; Path=/", "Set-Cookie: evil=1; Domain=elsewhere.example"]),
  );
  const jar = [
    { name: "a", value: "1", domain: "127.0.0.1", hostOnly: true, path: "/", secure: false, expiresAt: null },
    { name: "deep", value: "1", domain: "127.0.0.1", hostOnly: true, path: "/deep", secure: false, expiresAt: null },
    { name: "safe", value: "1", domain: "127.0.0.1", hostOnly: true, path: "/", secure: true, expiresAt: null },
  ];
  const options = { headers: { Cookie: "own=0" }, seedHosts: new Set([`127.0.0.1:${server.port}`]) };
  const outcome = await fetchOnce(`${server.origin}/?q=/deep`, options, { cookies: jar });
  assert.equal(server.requests[0]?.headers.get("cookie"), "own=0; a=1");
  assert.deepEqual(
    outcome.setCookies?.map(({ name, value }) => `${name}=${value}`),
    ["b=2", "c=3"],
  );
});
