/** Random requests to every route: never a 5xx, never a hang, always a form that is documented; and parsers of bodies that agree with a plain reading. */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { formField, linesOf } from "../../src/service/bytes.ts";
import { preferred } from "../../src/service/negotiate.ts";
import { ROUTES } from "../../src/service/routes.ts";
import { bench } from "./harness.ts";

const options = [
  "seeds",
  "maxDepth",
  "scope",
  "limits",
  "headers",
  "hosts",
  "extract",
  "stopWhen",
  "traps",
  "sitemaps",
  "fields",
  "scraper",
  "stateDir",
  "perHost",
  "urls",
  "mode",
  "reason",
  "__proto__",
  "constructor",
];
const values = fc.oneof(
  fc.jsonValue({ maxDepth: 3 }),
  fc.constantFrom(
    "http://a.example/",
    -1,
    1e308,
    "1s",
    "re:(",
    "",
    null,
    [],
    {},
    [["http://a.example/"]],
    { preset: "any" },
    { pages: 1.5 },
    { toString: 1 },
    "\ud800",
    "a\u0000b",
  ),
);
const objects = fc.dictionary(fc.oneof(fc.constantFrom(...options), fc.string()), values);
const part = fc.record({
  name: fc.oneof(fc.constantFrom("urls", "spec", ""), fc.string()),
  text: fc.oneof(
    fc.string(),
    fc.constant("http://a.example/"),
    objects.map((value) => JSON.stringify(value)),
  ),
});
const multipart = fc
  .tuple(fc.array(part, { maxLength: 4 }), fc.constantFrom("--B--\r\n", "--B", "", "\r\n--B--"))
  .map(
    ([parts, end]) =>
      parts
        .map(({ name, text }) => `--B\r\nContent-Disposition: form-data; name="${name.replaceAll(/["\r\n]/g, "")}"; filename="x"\r\n\r\n${text}\r\n`)
        .join("") + end,
  );
const bodies = fc.oneof(
  objects.map((value) => ({ type: "application/json", body: Buffer.from(JSON.stringify(value)) })),
  fc.json().map((text) => ({ type: "application/json; charset=utf-8", body: Buffer.from(text) })),
  fc.uint8Array({ maxLength: 300 }).map((bytes) => ({ type: "application/json", body: Buffer.from(bytes) })),
  multipart.map((text) => ({ type: "multipart/form-data; boundary=B", body: Buffer.from(text) })),
  fc
    .tuple(
      fc.constantFrom(
        "multipart/form-data",
        "multipart/form-data; boundary=",
        'multipart/form-data; boundary="',
        "text/plain; charset=x",
        "application/x-www-form-urlencoded",
        "text/html",
        "",
        ";",
        "a/b/c",
      ),
      fc.uint8Array({ maxLength: 300 }),
    )
    .map(([type, bytes]) => ({ type, body: Buffer.from(bytes) })),
  fc.array(fc.oneof(fc.webUrl(), fc.string()), { maxLength: 20 }).map((lines) => ({ type: "text/plain", body: Buffer.from(lines.join("\n")) })),
);
const requests = fc.record({
  route: fc.constantFrom(...ROUTES),
  method: fc.oneof(
    { weight: 5, arbitrary: fc.constant(null) },
    { weight: 1, arbitrary: fc.constantFrom("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS") },
  ),
  id: fc.oneof({ weight: 6, arbitrary: fc.constantFrom("0", "1") }, { weight: 1, arbitrary: fc.string() }),
  query: fc.dictionary(
    fc.constantFrom("cursor", "limit", "state", "url", "x"),
    fc.oneof(fc.string(), fc.constantFrom("c1", "1", "running", "http://a.example/")),
  ),
  accept: fc.oneof(
    fc.constantFrom("*/*", "application/json", "text/csv", "application/x-ndjson", "text/plain;q=0.5", "text/*;q=x", "q=1;;,/,", "text/event-stream"),
    fc.string().map((text) => text.replaceAll(/[^\x20-\x7e]/g, "")),
  ),
  body: bodies,
});

test("random requests never give a 5xx, and errors are problems", { timeout: 100_000 }, async () => {
  await using at = await bench({ limits: { requestsPerSecond: 0, lingerMs: 20 }, scrapers: true });
  const make = async () => {
    if (at.jobs.all.length < 2) await at.post("/v1/jobs", { seeds: ["http://a.example/"] });
    // Streams of events end with their job.
    for (const { view } of at.jobs.all) at.jobs.set(view.id, "completed");
    const tables = at.jobs.all[0]?.tables;
    if (tables?.pages.length === 0)
      for (const name of ["pages", "items", "skipped"] as const) tables[name].push('{"url":"http://a.example/","_meta":5,"a":[1]}', "{}");
  };
  await fc.assert(
    fc.asyncProperty(requests, async ({ route, method, id, query, accept, body: { type, body } }) => {
      await make();
      const path = route.path.replace("{id}", encodeURIComponent(id.toWellFormed()));
      const search = new URLSearchParams(query).toString();
      const asked = method ?? route.method;
      const bare = asked === "GET" || asked === "HEAD" || asked === "OPTIONS";
      const answer = await at.ask(
        asked,
        `${path}${search === "" ? "" : `?${search}`}`,
        bare ? undefined : body,
        bare ? { accept } : { accept, "content-type": type, "content-length": String(body.length) },
      );
      assert.ok(answer.status < 500, `${asked} ${path}?${search} ${type}: ${answer.status} ${answer.text} ${JSON.stringify(at.logged.at(-1))}`);
      if (answer.status >= 400 && asked !== "HEAD") assert.equal(answer.headers["content-type"], "application/problem+json");
    }),
    { numRuns: 600 },
  );
});

async function* pieces(bytes: Uint8Array, cuts: readonly number[]): AsyncGenerator<Uint8Array> {
  let from = 0;
  for (const cut of [...cuts].sort((a, b) => a - b)) {
    const at = Math.min(bytes.length, Math.max(from, cut));
    yield bytes.subarray(from, at);
    from = at;
  }
  yield bytes.subarray(from);
}

async function all<T>(source: AsyncIterable<T>): Promise<T[]> {
  const list: T[] = [];
  for await (const each of source) list.push(each);
  return list;
}

const cuts = fc.array(fc.nat(60), { maxLength: 6 });

test("lines are the same wherever the body is cut", async () => {
  const text = fc.array(fc.constantFrom("a", "é", "😀", "\n", "\r", "\r\n", "\ufeff", " "), { maxLength: 30 }).map((list) => list.join(""));
  await fc.assert(
    fc.asyncProperty(text, cuts, async (body, at) => {
      const wanted = body.replace(/^\ufeff/, "").split(/\r\n|\n|\r/);
      if (wanted.at(-1) === "") wanted.pop();
      assert.deepEqual(await all(linesOf(pieces(Buffer.from(body), at))), wanted);
    }),
    { numRuns: 2_000 },
  );
});

test("the fields of a form are decoded as the URL Standard does, wherever it is cut", async () => {
  const value = fc.array(fc.constantFrom("a", "&", "=", "%", "+", " ", "é", "http://a/?b=c", "\n"), { maxLength: 12 }).map((list) => list.join(""));
  const fields = fc.array(fc.tuple(fc.constantFrom("urls", "other", "url", "urlsx"), value), { minLength: 1, maxLength: 4 });
  await fc.assert(
    fc.asyncProperty(fields, cuts, async (list, at) => {
      const body = new URLSearchParams(list).toString();
      const got = Buffer.concat(await all(formField(pieces(Buffer.from(body), at), "urls"))).toString();
      const wanted = list.filter(([name]) => name === "urls").map(([, text]) => text);
      assert.equal(got.replace(/\n+$/, ""), wanted.join("\n").replace(/\n+$/, ""));
    }),
    { numRuns: 2_000 },
  );
});

test("what a client would rather have", () => {
  const offers = ["application/json", "application/x-ndjson", "text/csv"] as const;
  for (const [accept, wanted] of [
    [null, "application/json"],
    ["", "application/json"],
    ["*/*", "application/json"],
    ["text/csv", "text/csv"],
    ["text/*", "text/csv"],
    ["text/html, */*;q=0.1", "application/json"],
    ["application/json;q=0.2, application/x-ndjson;q=0.9", "application/x-ndjson"],
    ["application/json;q=0, */*", "application/x-ndjson"],
    ["TEXT/CSV;header=present", "text/csv"],
    ["text/html", null],
    ["application/json;q=0", null],
  ] as const)
    assert.equal(preferred(accept, offers), wanted, String(accept));
});
