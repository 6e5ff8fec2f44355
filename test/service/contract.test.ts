/** The OpenAPI document is what the service does: every route, every status it documents and every media type is asked for, and every answer fits its schema. */
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { CrawlError } from "../../src/core/errors.ts";
import type { JobService } from "../../src/core/jobs.ts";
import { SERVICE_LIMITS } from "../../src/service/limits.ts";
import { STARTING } from "../../src/service/open.ts";
import { listen } from "../../src/service/server.ts";
import { fakeJobs } from "./fake-jobs.ts";
import { type Answered, askOn, type Bench, bench } from "./harness.ts";
import { faultsOf, type Schema } from "./json-schema.ts";

interface Operation {
  readonly operationId: string;
  readonly parameters?: readonly { readonly name: string; readonly in: string; readonly required: boolean }[];
  readonly requestBody?: { readonly content: Readonly<Record<string, unknown>> };
  readonly responses: Readonly<Record<string, { readonly content?: Readonly<Record<string, { readonly schema: Schema }>>; readonly headers?: object }>>;
  readonly security: readonly object[];
}

interface Place {
  readonly method: string;
  readonly path: string;
  readonly operation: Operation;
}

await using first = await bench();
const starting = await listen(
  STARTING,
  { host: "127.0.0.1", port: 0 },
  SERVICE_LIMITS,
  () => undefined,
  () => undefined,
);
const document = (await first.ask("GET", "/openapi.json")).json;
const components: Readonly<Record<string, Schema>> = document.components.schemas;
const places: Place[] = Object.entries<Record<string, Operation>>(document.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({ method: method.toUpperCase(), path, operation })),
);

/** `operation status type`, as they are shown by some answer. */
const shown = new Set<string>();

/** What the headers of the document look like. One that is documented for a status is there, unless it is one of `SOMETIMES`; no other of these is. */
const HEADERS: Readonly<Record<string, RegExp>> = {
  link: /^<\/v1\/jobs[^<>\s]*[?&]cursor=[^<>\s]+>; rel="next"$/,
  location: /^\/(?:v1\/jobs\/\d+|\?thumbnails)?$/,
  "retry-after": /^[1-9]\d*$/,
  etag: /^"[\w-]+"$/,
  "skein-cursor": /^\S+$/,
  "www-authenticate": /^Bearer\b/,
};
/** A list may be at its end, or empty. */
const SOMETIMES = new Set(["link", "skein-cursor"]);
const headersShown = new Set<string>();

function holdHeaders({ operationId, responses }: Operation, { status, headers }: Answered): void {
  const documented = new Set(Object.keys(responses[status]?.headers ?? {}).map((name) => name.toLowerCase()));
  for (const name of documented) assert.ok(name in HEADERS, `${operationId} ${status}: ${name} is unknown to this test`);
  for (const [name, form] of Object.entries(HEADERS)) {
    const value = headers[name];
    if (value === undefined) assert.ok(!documented.has(name) || SOMETIMES.has(name), `${operationId} ${status} lacks ${name}`);
    // Files of the dashboard have their tags too; what a browser makes of them is no part of the interface.
    else if (documented.has(name)) assert.match(String(value), form, `${operationId} ${status}: ${name}`);
    else assert.equal(operationId, "dashboard", `${operationId} ${status}: ${name} is not documented`);
    if (value !== undefined && documented.has(name)) headersShown.add(`${operationId} ${status} ${name}`);
  }
}

/** Notes an answer and holds it to the document: a status, a media type, a header or a member that is not documented is a failure. */
function held({ operation }: Place, answer: Answered): Answered {
  const { operationId } = operation;
  const response = operation.responses[answer.status];
  assert.ok(response, `${operationId} answered ${answer.status}, which is not documented: ${answer.text.slice(0, 300)}`);
  const type = String(answer.headers["content-type"] ?? "").split(";")[0] ?? "";
  shown.add(`${operationId} ${answer.status} ${type}`);
  holdHeaders(operation, answer);
  if (type === "application/problem+json") {
    const { status, title, detail } = answer.json;
    assert.deepEqual([status, typeof title, typeof detail], [answer.status, "string", "string"], operationId);
  }
  if (response.content === undefined) {
    assert.equal(answer.text, "", `${operationId} ${answer.status} has a body`);
    return answer;
  }
  const described = response.content[type];
  assert.ok(described, `${operationId} ${answer.status}: ${type} is not documented`);
  if (/[/+]json$/.test(type))
    assert.deepEqual(faultsOf(answer.json, described.schema, components), [], `${operationId} ${answer.status}: ${answer.text.slice(0, 500)}`);
  return answer;
}

const pathOf = ({ path }: Place, id: number | string = 0) => path.replace("{id}", String(id)) + (path.endsWith("/explain") ? "?url=http://a.example/" : "");
const seeds = '{"seeds":["http://a.example/"]}';
const JSON_TYPE = { "content-type": "application/json" };

async function filled(options: Parameters<typeof bench>[0] = {}): Promise<Bench> {
  const at = await bench(options);
  const made = await at.ask("POST", "/", "http://a.example/\nx", { "content-type": "text/plain" });
  assert.equal(made.status, 200);
  const tables = at.jobs.all[0]?.tables;
  tables?.pages.push('{"url":"http://a.example/","status":200,"outcome":"fetched","depth":0}');
  tables?.items.push('{"title":"t","_meta":{"url":"http://a.example/","depth":0,"fetchedAt":"2026-01-01T00:00:00.000Z"}}');
  tables?.skipped.push('{"url":"http://b.example/","referrer":null,"depth":1,"reason":"out-of-scope"}');
  tables?.images.push('"http://a.example/x.png"');
  return at;
}

const part = (name: string, text: string) => `--B\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${text}\r\n--B--\r\n`;

/** A good body of each media type. */
function goodBody(place: Place, type: string): string {
  if (type === "multipart/form-data") return part("urls", "http://a.example/");
  if (type !== "application/json") return "http://a.example/\n";
  switch (place.operation.operationId) {
    case "createJob":
      return seeds;
    case "stop":
      return '{"mode":"flight"}';
    case "patchHosts":
      return '{"a.example":{"paused":true}}';
    default:
      return '{"urls":["http://a.example/"]}';
  }
}

const contentType = (type: string) => ({ "content-type": type === "multipart/form-data" ? `${type}; boundary=B` : type });

for (const place of places) {
  const { operation, method, path } = place;
  const good = Object.keys(operation.responses).filter((status) => Number(status) < 300);
  const documented = (status: number) => operation.responses[status] !== undefined;
  const bodies = Object.keys(operation.requestBody?.content ?? {});
  const ask = (at: Bench, body?: string, headers: Readonly<Record<string, string>> = {}, target = pathOf(place)) => at.ask(method, target, body, headers);

  test(`${method} ${path}: what it is for, in every media type`, async () => {
    await using at = await filled();
    // A job that was paused can be resumed; events end with the job.
    if (operation.operationId === "resume") at.jobs.set(0, "paused");
    if (operation.operationId === "events") at.jobs.tell(0, { id: "1", kind: "state", state: "completed", finishReason: "finished" });
    if (operation.operationId === "events") at.jobs.set(0, "completed");
    for (const type of bodies.length > 0 ? bodies : [null]) {
      const answer = held(place, type === null ? await ask(at) : await ask(at, goodBody(place, type), contentType(type)));
      assert.ok(answer.status < 400, `${type}: ${answer.status} ${answer.text}`);
      if (operation.operationId === "stop") at.jobs.set(0, "running");
    }
    for (const status of good)
      for (const type of Object.keys(operation.responses[status]?.content ?? {}))
        if (method === "GET")
          assert.equal(
            held(place, await ask(at, undefined, { accept: type }))
              .headers["content-type"]?.toString()
              .split(";")[0],
            type,
          );
  });

  test(`${method} ${path}: what it refuses`, async () => {
    await using at = await filled({ limits: { uploadBytes: 100_000, jsonBytes: 100_000, lingerMs: 50 } });
    held(place, await ask(at, undefined, { host: "evil.example" }));
    const [body, headers] = bodies.length > 0 ? [goodBody(place, "application/json"), JSON_TYPE] : [undefined, {}];
    if (path.includes("{id}")) for (const id of ["9", "x", "00"]) assert.equal(held(place, await ask(at, body, headers, pathOf(place, id))).status, 404);
    if (documented(406)) assert.equal(held(place, await ask(at, undefined, { accept: "image/png" })).status, 406);
    if (documented(400) && bodies.length > 0)
      for (const wrong of ["{", "[]", '{"nonsense":1}']) assert.equal(held(place, await ask(at, wrong, JSON_TYPE)).status, 400);
    if (documented(400)) {
      const before = JSON.stringify(at.jobs.all);
      const { status, json } = held(place, await ask(at, body, headers, `${pathOf(place)}${path.endsWith("/explain") ? "&" : "?"}foo=1`));
      assert.deepEqual([status, json.errors?.[0].option], [400, "foo"]);
      for (const { name, in: where } of operation.parameters ?? []) if (where === "query") assert.match(json.errors[0].message, new RegExp(`\\b${name}\\b`));
      assert.equal(JSON.stringify(at.jobs.all), before);
    } else assert.match(operation.operationId, /^dashboard/);
    if (documented(400) && method === "POST" && bodies.length === 0) assert.equal(held(place, await ask(at, '{"x":1}', JSON_TYPE)).status, 400);
    if (documented(413)) assert.equal(held(place, await ask(at, `{"a":"${"a".repeat(200_000)}"}`, JSON_TYPE)).status, 413);
    if (documented(415)) assert.equal(held(place, await ask(at, "<a/>", { "content-type": "text/xml" })).status, 415);
    if (documented(422)) {
      const key = { ...JSON_TYPE, "idempotency-key": "k" };
      await ask(at, goodBody(place, "application/json"), key);
      assert.equal(held(place, await ask(at, goodBody(place, "application/json").replace("a.example", "b.example"), key)).status, 422);
    }
    if (documented(409) && operation.operationId !== "deleteJob") {
      at.jobs.set(0, "completed");
      assert.equal(held(place, await ask(at, body, headers)).status, 409);
    }
  });

  test(`${method} ${path}: strangers, crowds and faults`, async () => {
    const access = { token: "t0ken", names: [], network: false };
    await using closed = await bench({ access });
    if (operation.security.length > 0) assert.equal(held(place, await ask(closed)).status, 401);
    await using busy = await bench({ limits: { requestsPerSecond: 1, requestBurst: 0 } });
    assert.equal(held(place, await ask(busy)).status, 429);
    assert.equal(held(place, await askOn(starting.port)(method, pathOf(place))).status, 503);
    if (["healthz", "openapi", "dashboard", "dashboardPlace"].includes(operation.operationId)) return;
    const body = bodies.length > 0 ? goodBody(place, "application/json") : undefined;
    for (const [error, status] of [
      [new Error("broken"), 500],
      [new CrawlError("state-unwritable", "the disk is full"), 503],
      [new CrawlError("store-unreachable", "the store does not answer"), 503],
    ] as const) {
      const fail = async () => {
        throw error;
      };
      // `as`: whatever is called, it fails.
      const broken = new Proxy({}, { get: () => fail }) as JobService;
      await using faulty = await bench({ jobs: broken });
      assert.equal(held(place, await ask(faulty, body, body === undefined ? {} : JSON_TYPE)).status, status);
    }
  });
}

test("deleting: a job that runs is cancelled, one that has ended is gone, one that cannot be stays", async () => {
  const jobs = fakeJobs();
  await using at = await bench({}, jobs);
  const place = places.find(({ operation }) => operation.operationId === "deleteJob");
  assert.ok(place);
  await at.ask("POST", "/v1/jobs", seeds, JSON_TYPE);
  assert.equal(held(place, await at.ask("DELETE", "/v1/jobs/0")).status, 200);
  assert.equal(held(place, await at.ask("DELETE", "/v1/jobs/0")).status, 204);
  await at.ask("POST", "/v1/jobs", seeds, JSON_TYPE);
  const [job] = jobs.all;
  assert.ok(job);
  jobs.cancel = async () => ({ kind: "conflict", job: job.view, why: "not now" });
  assert.equal(held(place, await at.ask("DELETE", "/v1/jobs/0")).status, 409);
});

test("events: nothing left to tell, and too many streams", async () => {
  const place = places.find(({ operation }) => operation.operationId === "events");
  assert.ok(place);
  await using at = await filled({ limits: { eventStreams: 0 } });
  assert.equal(held(place, await at.ask("GET", "/v1/jobs/0/events")).status, 503);
  await using ended = await filled();
  ended.jobs.set(0, "completed");
  assert.equal(held(place, await ended.ask("GET", "/v1/jobs/0/events")).status, 204);
});

test("lists: the next page is linked to, and what has not changed is not sent again", async () => {
  await using at = await filled();
  await at.ask("POST", "/v1/jobs", seeds, JSON_TYPE);
  for (const job of at.jobs.all) for (const list of Object.values(job.tables)) list.push(...list);
  const listing = places.filter(({ operation, method }) => method === "GET" && operation.parameters?.some(({ name }) => name === "cursor"));
  assert.equal(listing.length, 5);
  for (const place of listing) {
    const { headers, status } = held(place, await at.ask("GET", `${pathOf(place)}?limit=1`));
    assert.deepEqual([status, typeof headers["link"]], [200, "string"], place.path);
    const next = /<(.*)>/.exec(String(headers["link"]))?.[1] ?? "";
    assert.equal(held(place, await at.ask("GET", next)).headers["link"], undefined, place.path);
  }
  const place = listing.find(({ operation }) => operation.operationId === "listJobs");
  assert.ok(place);
  const { etag } = (await at.ask("GET", "/v1/jobs?limit=1")).headers;
  const again = () => at.ask("GET", "/v1/jobs?limit=1", undefined, { "if-none-match": `"x", W/${etag}` });
  assert.equal(held(place, await again()).status, 304);
  at.jobs.set(1, "running", { completed: 1 });
  assert.equal(held(place, await again()).status, 200);
});

test("what is wrong with a body is said all at once", async () => {
  await using at = await filled();
  for (const [method, path, body, wrong] of [
    [
      "POST",
      "/v1/jobs",
      { seeds: 5, maxDepht: 1, stateDir: "/x", limits: { pages: -1 }, follow: ["re:("] },
      ["follow", "limits.pages", "maxDepht", "seeds", "stateDir"],
    ],
    ["POST", "/v1/jobs/0/stop", { mode: "soon", reason: 5, x: 1 }, ["mode", "reason", "x"]],
    ["POST", "/v1/jobs/0/pause", { a: 1, b: 2 }, ["a", "b"]],
    ["PATCH", "/v1/jobs/0/hosts", { a: { delay: "x", paused: 1 }, b: {} }, ["a.delay", "a.paused", "b"]],
    ["POST", "/", { urls: [1, "http://a/", null] }, ["urls", "urls"]],
    ["GET", "/v1/jobs?limit=0&state=x&y=1", null, ["limit", "state", "y"]],
    ["GET", "/v1/jobs/0/pages?limit=1001&z=1", null, ["limit", "z"]],
    ["GET", "/v1/jobs/0/pages?limit=0&cursor=zzz", null, ["cursor", "limit"]],
    ["POST", "/v1/jobs", { seeds: ["nope"], maxDepht: 1, limits: { pages: 0 } }, ["limits.pages", "maxDepht", "seeds"]],
    ["POST", "/v1/jobs", { seeds: [], maxDepht: 1, stateDir: "/x" }, ["maxDepht", "seeds", "stateDir"]],
    ["POST", "/v1/jobs", { seeds: [7, "nope"] }, ["seeds", "seeds"]],
    ["POST", "/v1/jobs?z=1", { seeds: ["http://a.example/"], headers: { Cookie: "(hidden)" } }, ["headers.Cookie", "z"]],
    ["POST", "/?z=1", { urls: ["nope"], x: 1 }, ["urls", "x", "z"]],
    ["POST", "/v1/jobs/0/urls?z=1", { urls: ["http://[bad"], x: 1 }, ["urls", "x", "z"]],
    ["POST", "/v1/jobs/0/stop?z=1", { mode: "soon" }, ["mode", "z"]],
    ["PATCH", "/v1/jobs/0/hosts?z=1", { "b/c": 5 }, ["b/c", "b/c", "z"]],
  ] as const) {
    const answer = await at.ask(method, path, body === null ? undefined : JSON.stringify(body), body === null ? {} : JSON_TYPE);
    assert.equal(answer.status, 400, path);
    const named: { option: string }[] = answer.json.errors;
    assert.deepEqual(named.map(({ option }) => option).sort(), wrong, path);
  }
});

test("readyz: not now", async () => {
  const place = places.find(({ operation }) => operation.operationId === "readyz");
  assert.ok(place);
  await using at = await bench();
  at.jobs.failure = new Error("away");
  assert.equal(held(place, await at.ask("GET", "/readyz")).status, 503);
});

test("other methods on every path are 405 with Allow, and OPTIONS says the same", async () => {
  await using at = await filled();
  for (const path of Object.keys(document.paths)) {
    const methods = Object.keys(document.paths[path]).map((name) => name.toUpperCase());
    const allow = (answer: Answered) => String(answer.headers["allow"]).split(", ").sort();
    const expected = [...new Set([...methods, ...(methods.includes("GET") ? ["HEAD"] : []), "OPTIONS"])].sort();
    const target = path.replace("{id}", "0");
    const options = await at.ask("OPTIONS", target);
    assert.deepEqual([options.status, allow(options)], [204, expected], path);
    for (const method of ["GET", "POST", "PUT", "PATCH", "DELETE"]) {
      if (methods.includes(method)) continue;
      const answer = await at.ask(method, target);
      assert.deepEqual([answer.status, answer.headers["content-type"], allow(answer)], [405, "application/problem+json", expected], `${method} ${path}`);
    }
  }
});

test("what is no request for a route is answered as the document says of all paths", async () => {
  const strays: Readonly<Record<string, { "x-status": number; headers?: object; content: Record<string, { schema: Schema }> }>> = document.components.responses;
  await using at = await bench({ limits: { headersMs: 100, lingerMs: 50 } });
  const raw = (text: string) => at.raw(text.replaceAll("\n", "\r\n"));
  const seen = new Map<number, string>();
  for (const [status, answer] of [
    [404, raw("GET /nowhere HTTP/1.1\nHost: localhost\nConnection: close\n\n")],
    [405, raw("PUT /v1/jobs HTTP/1.1\nHost: localhost\nConnection: close\n\n")],
    [408, raw("GET / HTTP/1.1\nHost: loc")],
    [417, raw("POST / HTTP/1.1\nHost: localhost\nExpect: a miracle\nContent-Length: 1\n\n")],
    [431, raw(`GET / HTTP/1.1\nHost: localhost\nX: ${"x".repeat(20_000)}\n\n`)],
    [501, raw("LOCK / HTTP/1.1\nHost: localhost\n\n")],
    [400, raw("GET / HTTP/1.1\nHost: localhost\nX Y: z\n\n")],
  ] as const)
    seen.set(status, await answer);
  for (const { "x-status": status, headers = {} } of [...Object.values(strays), { "x-status": 400 }]) {
    const [head = "", body = ""] = (seen.get(status) ?? "").split("\r\n\r\n");
    assert.match(head, new RegExp(`^HTTP/1.1 ${status} `));
    assert.match(head, /^content-type: application\/problem\+json$/im);
    for (const name of Object.keys(headers)) assert.match(head, new RegExp(`^${name}: `, "im"), String(status));
    assert.deepEqual(faultsOf(JSON.parse(body), { $ref: "#/components/schemas/Problem" }, components), []);
    seen.delete(status);
  }
  assert.deepEqual([...seen.keys()], []);
});

test("/dashboard leads to the dashboard, with what stands in the query", async () => {
  await using at = await bench();
  for (const [path, location] of [
    ["/dashboard", "/"],
    ["/dashboard?thumbnails", "/?thumbnails"],
    ["/dashboard?x=//evil.example/", "/?x=//evil.example/"],
  ] as const)
    for (const method of ["GET", "HEAD"]) {
      const { status, headers } = await at.ask(method, path);
      assert.deepEqual([status, headers.location], [308, location]);
    }
});

test("no field of any object or body of the document lacks a description, nor does a parameter", () => {
  const bare: string[] = [];
  const walk = (value: unknown, place: string): void => {
    if (typeof value !== "object" || value === null) return;
    for (const [key, inner] of Object.entries(value)) {
      walk(inner, `${place}/${key}`);
      if (key !== "properties" && key !== "parameters") continue;
      for (const [name, field] of Object.entries<{ description?: string }>(inner)) if (!field.description) bare.push(`${place}/${key}/${name}`);
    }
  };
  walk(document, "#");
  assert.deepEqual(bare, []);
});

test("the document has no reference that leads nowhere, and every parameter is described", () => {
  const text = JSON.stringify(document);
  for (const [, name = ""] of text.matchAll(/"#\/components\/schemas\/(\w+)"/g)) assert.ok(name in components, name);
  for (const { operation, path } of places) assert.equal(operation.parameters?.some(({ in: where }) => where === "path") ?? false, path.includes("{id}"));
});

after(async () => {
  await starting.close(0);
  const missing = places.flatMap(({ operation: { operationId, responses } }) =>
    Object.entries(responses).flatMap(([status, { content }]) =>
      (content === undefined ? [""] : Object.keys(content)).map((type) => `${operationId} ${status} ${type}`).filter((key) => !shown.has(key)),
    ),
  );
  // Answers that do not depend on the jobs never fail.
  const expected = ["dashboard 500", "dashboardPlace 500", "healthz 500", "openapi 500"].map((key) => `${key} application/problem+json`);
  assert.deepEqual(missing.sort(), expected);
  const headers = places.flatMap(({ operation: { operationId, responses } }) =>
    Object.entries(responses).flatMap(([status, answer]) => Object.keys(answer.headers ?? {}).map((name) => `${operationId} ${status} ${name.toLowerCase()}`)),
  );
  assert.deepEqual(headers.filter((key) => !headersShown.has(key)).sort(), []);
});
