/** /v1: jobs made, listed, steered; options judged; repetitions told from mistakes. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { bench } from "./harness.ts";

const SEEDS = { seeds: ["http://a.example/"] };

test("a job is made from options: 202, Location, the job with its options in full", async () => {
  await using at = await bench();
  const { status, headers, text, json } = await at.post("/v1/jobs", { ...SEEDS, maxDepth: 2, limits: { time: "2m" } });
  assert.deepEqual([status, headers["location"], headers["content-type"]], [202, "/v1/jobs/0", "application/json"]);
  assert.deepEqual(Object.keys(json).slice(0, 5), ["id", "state", "spec", "counts", "finishReason"]);
  assert.deepEqual(
    [json.id, json.state, json.finishReason, json.spec.maxDepth, json.spec.limits.time, json.seeds],
    [0, "queued", null, 2, 120_000, ["http://a.example/"]],
  );
  assert.equal("stateDir" in json.spec, false);
  assert.equal(text, JSON.stringify(json), "compact");
  assert.deepEqual((await at.ask("GET", "/v1/jobs/0")).json, json);
  assert.equal((await at.ask("GET", "/status/0")).json.job_id, 0);
});

test("every option that may not stand in a job is refused, all at once, with its place", async () => {
  await using at = await bench();
  const { status, headers, json } = await at.post("/v1/jobs", {
    ...SEEDS,
    ...{ stateDir: "/etc", proxy: ["http://p/"], addresses: { allow: ["127.0.0.1"] }, outputs: ["x.jsonl"], auth: { a: "u:secret" }, cookies: "/etc/passwd" },
    ...{ scraper: "../x.ts", threads: 4, maxDepht: 1, maxDepth: -1, limits: { pages: 0 }, scope: { include: ["re:("] }, headers: { "X Y": "secret" } },
  });
  assert.deepEqual([status, headers["content-type"]], [400, "application/problem+json"]);
  const named = json.errors.map(({ option }: { option: string }) => option).sort();
  const wanted = [
    "addresses.allow",
    "auth",
    "cookies",
    "headers.X Y",
    "limits.pages",
    "maxDepht",
    "maxDepth",
    "outputs",
    "proxy",
    "scraper",
    "stateDir",
    "threads",
  ];
  for (const option of wanted) assert.ok(named.includes(option), `${option} in ${named}`);
  assert.equal(json.errors.find(({ option }: { option: string }) => option === "limits.pages").pointer, "#/limits/pages");
  assert.match(json.errors.find(({ option }: { option: string }) => option === "maxDepht").message, /did you mean maxDepth/);
  assert.doesNotMatch(JSON.stringify(json), /secret|passwd/);
  assert.equal(at.jobs.all.length, 0);
});

test("patterns are judged before the job is made; expressions that could run away are refused", async () => {
  await using at = await bench();
  for (const pattern of ["re:(", "re:(a+)+$", "re:(a|aa)*b", "re:(?=x)", "re:(x)\\1", " "]) {
    const { status, json } = await at.post("/v1/jobs", { ...SEEDS, scope: { exclude: [pattern] } });
    assert.deepEqual([status, json.errors[0].option], [400, "scope.exclude"], pattern);
  }
  for (const pattern of ["re:^https?://[^/]+/news/\\d+(\\.html)?$", "*.html", "/docs/**", "re:(foo|bar)/"])
    assert.equal((await at.post("/v1/jobs", { ...SEEDS, scope: { exclude: [pattern] } })).status, 202, pattern);
});

test("a scraper is a bare name, and only where the service has scrapers", async () => {
  await using without = await bench();
  assert.equal((await without.post("/v1/jobs", { ...SEEDS, scraper: "shop" })).status, 400);
  await using at = await bench({ scrapers: true });
  assert.equal((await at.post("/v1/jobs", { ...SEEDS, scraper: "shop" })).status, 202);
  for (const name of ["../shop", "/etc/shop", "a/b", "..", ".hidden", "C:\\x", "data:text/javascript,1", "a\0b", 7])
    assert.equal((await at.post("/v1/jobs", { ...SEEDS, scraper: name })).status, 400, String(name));
});

test("credentials are not shown again: not in the job, not in lists, not in the log", async () => {
  await using at = await bench();
  await at.post("/v1/jobs", {
    seeds: ["http://user:s3cret@a.example/"],
    headers: { Authorization: "Bearer s3cret" },
    hosts: { "b.example": { delay: "2s", headers: { Cookie: "s3cret" } } },
  });
  assert.equal(at.jobs.all[0]?.view.spec.headers["Authorization"], "Bearer s3cret");
  for (const path of ["/v1/jobs/0", "/v1/jobs", "/status/0"]) {
    const { text } = await at.ask("GET", path);
    assert.doesNotMatch(text, /s3cret/, path);
    assert.match(text, /http:\/\/a\.example\//);
  }
  assert.equal((await at.ask("GET", "/v1/jobs/0")).json.spec.hosts["b.example"].delay, 2_000);
  await at.ask("GET", "/v1/jobs/0/explain?url=http://u:s3cret@a.example/");
  assert.doesNotMatch(JSON.stringify(at.logged), /s3cret/);
});

test("URLs are uploaded as text, or as multipart after the options", async () => {
  await using at = await bench();
  const plain = await at.ask("POST", "/v1/jobs", "http://a.example/\nx\n", { "content-type": "text/plain" });
  assert.deepEqual([plain.status, plain.json.seedsTotal, plain.json.rejected.length], [202, 1, 1]);
  const part = (name: string, text: string) => `--B\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${text}\r\n`;
  const multipart = (body: string) => at.ask("POST", "/v1/jobs", `${body}--B--\r\n`, { "content-type": "multipart/form-data; boundary=B" });
  const both = await multipart(part("spec", '{"maxDepth":3}') + part("urls", "http://a.example/\nhttp://b.example/"));
  assert.deepEqual([both.status, both.json.spec.maxDepth, both.json.seedsTotal], [202, 3, 2]);
  assert.equal((await multipart(part("spec", '{"seeds":["http://a.example/"]}'))).status, 202);
  for (const [body, said] of [
    [part("urls", "http://a.example/") + part("spec", "{}"), /must stand before/],
    [part("spec", '{"maxDepth":-1}') + part("urls", "http://a.example/"), /option is wrong/],
    [part("spec", "{") + part("urls", "http://a.example/"), /no JSON/],
    [part("spec", '{"seeds":["http://a.example/"]}') + part("urls", "http://b.example/"), /option is wrong/],
    [part("url", "http://a.example/"), /unknown multipart field/],
    ["", /cannot be read|no field urls/],
  ] as const) {
    const { status, json } = await multipart(body);
    assert.equal(status, 400, body);
    assert.match(json.detail, said, body);
  }
  assert.equal(at.jobs.all.length, 3);
});

test("an Idempotency-Key gives the same job again, and refuses another body", async () => {
  await using at = await bench();
  const headers = { "idempotency-key": "k1" };
  const first = await at.post("/v1/jobs", SEEDS, headers);
  const again = await at.post("/v1/jobs", SEEDS, headers);
  assert.deepEqual([again.status, again.headers["location"], again.json.id], [first.status, "/v1/jobs/0", 0]);
  const other = await at.post("/v1/jobs", { seeds: ["http://b.example/"] }, headers);
  assert.deepEqual([other.status, other.json.job.id], [422, 0]);
  const upload = { "idempotency-key": "k2", "content-type": "text/plain" };
  assert.equal((await at.ask("POST", "/", "http://a.example/\n", upload)).json.job_id, 1);
  assert.equal((await at.ask("POST", "/", "http://a.example/\n", upload)).json.job_id, 1);
  assert.equal((await at.ask("POST", "/", "http://b.example/\n", upload)).status, 422);
  assert.equal((await at.post("/v1/jobs", SEEDS, { "idempotency-key": "a b" })).status, 400);
  assert.equal(at.jobs.all.length, 2);
});

test("lists are newest first, in pages, by state", async () => {
  await using at = await bench();
  for (let n = 0; n < 5; n++) await at.post("/v1/jobs", SEEDS);
  at.jobs.set(1, "running");
  const ids = (json: { id: number }[]) => json.map(({ id }) => id);
  let path: string | null = "/v1/jobs?limit=2";
  const pages: number[][] = [];
  while (path !== null) {
    const answer: Awaited<ReturnType<typeof at.ask>> = await at.ask("GET", path);
    pages.push(ids(answer.json));
    path = /^<([^>]+)>; rel="next"$/.exec(String(answer.headers["link"] ?? ""))?.[1] ?? null;
  }
  assert.deepEqual(pages, [[4, 3], [2, 1], [0]]);
  assert.deepEqual(ids((await at.ask("GET", "/v1/jobs?state=running")).json), [1]);
  assert.deepEqual(ids((await at.ask("GET", "/v1/jobs?state=running,queued&limit=1")).json), [4]);
  const wrong = await at.ask("GET", "/v1/jobs?state=busy&limit=0&cursor=x&foo=1&limit=3");
  assert.equal(wrong.status, 400);
  assert.deepEqual(wrong.json.errors.map(({ option }: { option: string }) => option).sort(), ["cursor", "foo", "limit", "limit", "state"]);
});

test("stop, pause, resume, cancel, delete, and what they refuse", async () => {
  await using at = await bench();
  await at.post("/v1/jobs", SEEDS);
  assert.equal((await at.ask("POST", "/v1/jobs/0/pause")).json.state, "paused");
  assert.equal((await at.ask("GET", "/status/0")).json.status, "paused");
  assert.equal((await at.ask("POST", "/v1/jobs/0/resume", "{}", { "content-type": "application/json" })).json.state, "running");
  const conflict = await at.ask("POST", "/v1/jobs/0/resume");
  assert.deepEqual([conflict.status, conflict.json.job.id], [409, 0]);
  assert.deepEqual((await at.post("/v1/jobs/0/stop", { mode: "later", reason: 5, force: true })).json.errors.length, 3);
  assert.equal((await at.post("/v1/jobs/0/stop", [])).status, 400);
  assert.equal((await at.post("/v1/jobs/0/stop", { mode: "queue", reason: "enough" })).json.state, "stopping");
  assert.equal((await at.ask("GET", "/status/0")).json.status, "running");
  assert.equal((await at.ask("DELETE", "/v1/jobs/0")).json.state, "cancelled");
  const deleted = await at.ask("DELETE", "/v1/jobs/0");
  assert.deepEqual([deleted.status, deleted.text], [204, ""]);
  for (const [method, path] of [
    ["DELETE", ""],
    ["POST", "/stop"],
    ["POST", "/pause"],
    ["POST", "/resume"],
    ["POST", "/urls"],
    ["GET", "/hosts"],
    ["GET", "/pages"],
    ["GET", "/events"],
    ["GET", "/explain?url=x"],
  ] as const)
    assert.equal((await at.ask(method, `/v1/jobs/0${path}`)).status, 404, path);
});

test("more URLs for a job, hosts paused and slowed, an explanation", async () => {
  await using at = await bench();
  await at.post("/v1/jobs", SEEDS);
  assert.deepEqual((await at.post("/v1/jobs/0/urls", { urls: ["http://b.example/", "x"] })).json, {
    ...{ added: 1, known: 0 },
    rejected: [{ line: 2, text: "x", reason: "invalid-url" }],
  });
  assert.equal((await at.post("/v1/jobs/0/urls", { urls: ["x"] })).status, 400);
  assert.equal((await at.ask("POST", "/v1/jobs/0/urls", "http://c.example/", { "content-type": "text/plain" })).json.added, 1);
  const patch = (value: unknown) => at.ask("PATCH", "/v1/jobs/0/hosts", JSON.stringify(value), { "content-type": "application/json" });
  assert.equal((await patch({ "a.example": { paused: true, delay: "2s", concurrency: null } })).status, 200);
  const wrong = await patch({ "a.example": { paused: 1, delay: "x", concurrency: 0, rate: 1 }, "b/c": { paused: true }, d: {} });
  assert.equal(wrong.status, 400);
  assert.deepEqual(
    wrong.json.errors.map(({ pointer }: { pointer: string }) => pointer),
    ["#/a.example/rate", "#/a.example/paused", "#/a.example/delay", "#/a.example/concurrency", "#/b~1c", "#/d"],
  );
  assert.equal((await patch({})).status, 400);
  assert.equal((await at.ask("GET", "/v1/jobs/0/hosts")).json[0].host, "a.example");
  assert.deepEqual((await at.ask("GET", "/v1/jobs/0/explain?url=http://a.example/")).json.lines, ["It was fetched."]);
  assert.equal((await at.ask("GET", "/v1/jobs/0/explain?url=x", undefined, { accept: "text/plain" })).text, "It was fetched.\n");
  assert.equal((await at.ask("GET", "/v1/jobs/0/explain")).status, 400);
});

const part = (name: string, text: string) => `--B\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${text}\r\n`;
const FORM = { "content-type": "multipart/form-data; boundary=B" };
const places = (errors: { option?: string; line?: number }[]) => errors.map(({ option, line }) => option ?? `line ${line}`).sort();

test("faults of the head, the options, the form and the lines of an upload are told at once", async () => {
  await using at = await bench();
  const options = '{"maxDepht":1,"limits":{"pages":0}}';
  const body = `${part("x", "1")}${part("spec", options)}${part("urls", "nope\nhttp://[bad\n")}--B--\r\n`;
  const { status, json } = await at.ask("POST", "/v1/jobs", body, { ...FORM, "idempotency-key": "a b" });
  assert.equal(status, 400);
  assert.deepEqual(places(json.errors), ["Idempotency-Key", "limits.pages", "line 1", "line 2", "maxDepht", "x"]);
  assert.match(json.detail, /2 options are wrong; none of the 2 lines is a URL$/);
  // Lines beside good ones would not keep a job from being made: they are told of as they would be then.
  const some = await at.ask("POST", "/v1/jobs", `${part("spec", options)}${part("urls", "nope\nhttp://a.example/")}--B--\r\n`, FORM);
  assert.deepEqual([some.json.errors.length, some.json.rejected.map(({ line }: { line: number }) => line)], [2, [1]]);
  const broken = await at.ask("POST", "/v1/jobs", `${part("spec", "{")}${part("urls", "ftp://a/")}--B--\r\n`, FORM);
  assert.deepEqual(places(broken.json.errors), ["line 1", "spec"]);
  assert.equal(at.jobs.all.length, 0);
});

test("a long list beside a wrong option is judged as it comes, and none of it is held", async () => {
  await using at = await bench();
  async function* upload() {
    yield part("spec", '{"maxDepht":1}') + part("urls", "nope").slice(0, -2);
    for (let block = 0; block < 300; block++) yield `\n${"http://a.example/path\n".repeat(1_000)}`;
    yield "\r\n--B--\r\n";
  }
  const before = process.memoryUsage().rss;
  const { status, json } = await at.ask("POST", "/v1/jobs", upload(), FORM);
  assert.deepEqual([status, places(json.errors), json.rejected.length], [400, ["maxDepht"], 1]);
  assert.ok(process.memoryUsage().rss - before < 150e6);
});

test("the spec of a job, posted again, makes the same job", async () => {
  await using at = await bench();
  const wanted = {
    seeds: ["http://a.example/", "http://b.example/x", "http://a.example/"],
    ...{ maxDepth: 2, limits: { time: "2m" }, scope: { preset: "domain", exclude: ["*.pdf"] }, hosts: { "a.example": { delay: "1s" } } },
    ...{ extract: { title: "h1" }, perHost: { delay: "2s" }, robots: false, sitemaps: ["auto"], traps: { all: null } },
  };
  const first = await at.post("/v1/jobs", wanted);
  assert.deepEqual(first.json.spec.seeds, wanted.seeds);
  const second = await at.post("/v1/jobs", first.json.spec);
  assert.equal(second.status, 202, second.text);
  assert.deepEqual([second.json.spec, second.json.seeds], [first.json.spec, first.json.seeds]);
  const uploaded = await at.ask("POST", "/", Array.from({ length: 1_200 }, (_, n) => `http://a.example/${n}\n`).join(""), { "content-type": "text/plain" });
  const { json } = await at.ask("GET", `/v1/jobs/${uploaded.json.job_id}`);
  assert.deepEqual([json.spec.seeds.length, json.seedsTotal], [1_000, 1_200]);
  const [listed] = (await at.ask("GET", "/v1/jobs?limit=1")).json;
  assert.deepEqual(listed.spec.seeds, listed.seeds);
  // Headers are hidden: the spec says nothing of them that could be taken for their values.
  const secret = await at.post("/v1/jobs", { ...wanted, headers: { Cookie: "s3cret" } });
  const refused = await at.post("/v1/jobs", secret.json.spec);
  assert.deepEqual([refused.status, refused.json.errors[0].option], [400, "headers.Cookie"]);
});

test("lines that were rejected are in every answer about the job, but for lists", async () => {
  await using at = await bench();
  const made = await at.ask("POST", "/", "http://a.example/\nnope\n", { "content-type": "text/plain" });
  assert.equal(made.json.rejected.length, 1);
  assert.deepEqual((await at.ask("GET", "/status/0")).json, made.json);
  assert.deepEqual((await at.ask("GET", "/v1/jobs/0")).json.rejected, made.json.rejected);
  assert.equal("rejected" in (await at.ask("GET", "/v1/jobs")).json[0], false);
});
