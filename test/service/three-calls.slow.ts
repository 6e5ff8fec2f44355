/** The three-call API as curl speaks to it. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { text } from "node:stream/consumers";
import { test } from "node:test";
import { fakeJobs } from "./fake-jobs.ts";
import { bench } from "./harness.ts";

async function curl(args: readonly string[], stdin = ""): Promise<string> {
  const child = spawn("curl", ["-sS", "--noproxy", "*", ...args], { stdio: ["pipe", "pipe", "inherit"] });
  child.stdin.on("error", () => undefined).end(stdin);
  return text(child.stdout);
}

const TWO = "http://www.example.com/\nhttp://www2.example.com/\n";
const FIRST = '{"job_id":0,"urls":["http://www.example.com/","http://www2.example.com/"],"completed":0,"inprogress":0,"status":"queued","total":2}';

test("the script of the README works as it stands", async () => {
  await using at = await bench();
  assert.equal(await curl(["-X", "POST", "-F", "urls=@-", at.url], TWO), FIRST);
  at.jobs.set(0, "running", { completed: 1, inProgress: 1, total: 7 });
  assert.match(await curl([`${at.url}/status/0`]), /"completed":1,"inprogress":1,"status":"running","total":7\}$/);
  at.jobs.all[0]?.tables.images.push('"http://a/1.png"', '"http://a/2.png"');
  assert.equal(await curl([`${at.url}/result/0`]), "http://a/1.png\nhttp://a/2.png\n");
  assert.equal(await curl(["-H", "Accept: application/json", `${at.url}/result/0`]), '["http://a/1.png","http://a/2.png"]');
  at.jobs.set(0, "completed", { completed: 7, inProgress: 0 });
  assert.match(await curl([`${at.url}/status/0`]), /"completed":7,"inprogress":0,"status":"done","total":7\}$/);
});

test("such a job has two levels, any host, and images", async () => {
  await using at = await bench();
  await at.post("/", { urls: ["http://a.example/"] });
  const spec = at.jobs.all[0]?.view.spec;
  assert.deepEqual([spec?.maxDepth, spec?.scope.preset, spec?.images], [1, "any", true]);
});

for (const [name, args, stdin] of [
  ["a plain multipart field", ["-F", "urls=http://a.example/\nhttp://b.example/"], ""],
  ["two multipart fields", ["-F", "urls=http://a.example/", "-F", "urls=http://b.example/"], ""],
  ["text/plain", ["-H", "Content-Type: text/plain", "--data-binary", "@-"], "http://a.example/\r\nhttp://b.example/"],
  ["--data-binary alone", ["--data-binary", "@-"], "http://a.example/\nhttp://b.example/\n"],
  ["-d urls=", ["-d", "urls=http://a.example/", "-d", "urls=http://b.example/"], ""],
  ["--data-urlencode", ["--data-urlencode", "urls@-"], "http://a.example/\nhttp://b.example/\n"],
  ["-T -", ["-T", "-"], "http://a.example/\nhttp://b.example/\n"],
  ["JSON under -d alone", ["-d", ' {"urls":["http://a.example/","http://b.example/"]}'], ""],
  ["a list alone under -d", ["-d", '["http://a.example/","http://b.example/"]'], ""],
  ["a file without a name", ["-F", "urls=@-;filename="], "http://a.example/\nhttp://b.example/\n"],
  [
    "a large body's question first",
    ["-H", "Content-Type: text/plain", "-H", "Expect: 100-continue", "--data-binary", "@-"],
    "http://a.example/\nhttp://b.example/\n",
  ],
  ["a body in chunks", ["-H", "Content-Type: text/plain", "-H", "Transfer-Encoding: chunked", "--data-binary", "@-"], "http://a.example/\nhttp://b.example/"],
  ["JSON", ["-H", "Content-Type: application/json", "-d", '{"urls":["http://a.example/","http://b.example/"]}'], ""],
] as const) {
  test(`curl with ${name}`, async () => {
    await using at = await bench();
    const answer = JSON.parse(await curl(["-X", "POST", ...args, at.url], stdin));
    assert.deepEqual([answer.job_id, answer.urls], [0, ["http://a.example/", "http://b.example/"]]);
  });
}

test("F122 bad lines are named by number, and the good ones make a job", async () => {
  await using at = await bench();
  const body = "http://127.0.0.1:9/\nsite.example\n\nhttp://[bad\n# note\nhttp://u:secret@b.example/";
  const { status, json } = await at.ask("POST", "/", body, { "content-type": "text/plain" });
  assert.equal(status, 200);
  assert.deepEqual(json.urls, ["http://127.0.0.1:9/", "http://b.example/"]);
  assert.deepEqual(
    json.rejected.map(({ line, text }: { line: number; text: string }) => [line, text]),
    [
      [2, "site.example"],
      [4, "http://[bad"],
    ],
  );
  assert.deepEqual(Object.keys(json), ["job_id", "urls", "completed", "inprogress", "status", "total", "rejected"]);
});

test("no good line: 400 that names them all, and no job", async () => {
  await using at = await bench();
  for (const [body, type] of [
    ["x\nhttp://[bad\n", "text/plain"],
    ['{"urls":["x",""]}', "application/json"],
    ['{"urls":[]}', "application/json"],
    ["", "text/plain"],
  ] as const) {
    const { status, headers, json } = await at.ask("POST", "/", body, { "content-type": type });
    assert.deepEqual([status, headers["content-type"], json.status], [400, "application/problem+json", 400], body);
    assert.ok(json.errors.length > 0, body);
  }
  assert.equal(at.jobs.all.length, 0);
});

test("urls is cut at 1,000, and urlsTotal says how many there were", async () => {
  await using at = await bench();
  const urls = Array.from({ length: 1_500 }, (_, n) => `http://a.example/${n}`);
  const { json } = await at.post("/", { urls });
  assert.deepEqual([json.urls.length, json.urlsTotal, json.total], [1_000, 1_500, 1_500]);
});

test("unknown ids are 404 in problem+json, whatever they look like", async () => {
  await using at = await bench();
  await at.post("/", { urls: ["http://a.example/"] });
  for (const id of ["7", "00", "-1", "0x0", "1e0", "%30x", "null", "99999999999999999999", "0.0", "0%00"])
    for (const path of [`/status/${id}`, `/result/${id}`, `/v1/jobs/${id}`]) {
      const { status, headers } = await at.ask("GET", path);
      assert.deepEqual([status, headers["content-type"]], [404, "application/problem+json"], path);
    }
});

test("F120 status is there the moment the id is", async () => {
  await using at = await bench();
  for (let n = 0; n < 100; n++) {
    const { json } = await at.post("/", { urls: ["http://a.example/"] });
    const status = await at.ask("GET", `/status/${json.job_id}`);
    assert.deepEqual([status.status, status.json.status, status.json.job_id], [200, "queued", n]);
  }
});

test("a million URLs are streamed: memory does not hold them", async () => {
  const jobs = fakeJobs();
  await using at = await bench({}, jobs);
  async function* million() {
    for (let block = 0; block < 1_000; block++) yield Array.from({ length: 1_000 }, (_, n) => `http://h${block}.example/path/${n}\n`).join("");
  }
  const before = process.memoryUsage().rss;
  const { json } = await at.ask("POST", "/", million(), { "content-type": "text/plain" });
  assert.equal(json.urlsTotal, 1_000_000);
  assert.ok(process.memoryUsage().rss - before < 200e6, `${(process.memoryUsage().rss - before) / 1e6} MB`);
});
