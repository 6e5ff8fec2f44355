/** Records in pages and streams: JSON, NDJSON, CSV; cursors that stay good; readers that are slow or leave. */
import assert from "node:assert/strict";
import { get } from "node:http";
import { connect } from "node:net";
import { test } from "node:test";
import type { JobTable } from "../../src/core/jobs.ts";
import { type Bench, bench } from "./harness.ts";

function tableOf({ jobs }: Bench, table: JobTable): string[] {
  const [job] = jobs.all;
  assert.ok(job);
  return job.tables[table];
}

async function filled(at: Bench, count: number, size = 0): Promise<void> {
  await at.post("/v1/jobs", { seeds: ["http://a.example/"] });
  const pages = tableOf(at, "pages");
  for (let n = 0; n < count; n++)
    pages.push(JSON.stringify({ url: `http://a.example/${n}`, status: 200, title: 'a "b", c\n', links: ["http://x/"], pad: "p".repeat(size) }));
}

const next = (link: unknown) => /^<([^>]+)>; rel="next"$/.exec(String(link ?? ""))?.[1] ?? null;

for (const type of ["application/json", "application/x-ndjson"])
  test(`pages in ${type} follow each other by their links, each record once, while more come`, async () => {
    await using at = await bench();
    await filled(at, 250);
    let path: string | null = "/v1/jobs/0/pages";
    const urls: string[] = [];
    const sizes: number[] = [];
    while (path !== null) {
      const answer: Awaited<ReturnType<typeof at.ask>> = await at.ask("GET", path, undefined, { accept: type });
      assert.equal(answer.headers["content-type"], type);
      const records =
        type === "application/json"
          ? answer.json
          : answer.text
              .trimEnd()
              .split("\n")
              .map((line: string) => JSON.parse(line));
      sizes.push(records.length);
      urls.push(...records.map(({ url }: { url: string }) => url));
      if (urls.length === 200) for (let n = 250; n < 260; n++) at.jobs.all[0]?.tables.pages.push(`{"url":"http://a.example/${n}"}`);
      path = next(answer.headers["link"]);
    }
    assert.deepEqual(sizes, [100, 100, 60]);
    assert.deepEqual(
      urls,
      Array.from({ length: 260 }, (_, n) => `http://a.example/${n}`),
    );
  });

test("an empty table, the limits, wrong cursors, other types", async () => {
  await using at = await bench();
  await filled(at, 3);
  assert.equal((await at.ask("GET", "/v1/jobs/0/items")).text, "[]");
  assert.equal((await at.ask("GET", "/v1/jobs/0/items", undefined, { accept: "application/x-ndjson" })).text, "");
  assert.equal((await at.ask("GET", "/v1/jobs/0/pages?limit=1000")).status, 200);
  assert.equal((await at.ask("GET", "/v1/jobs/0/pages?limit=1001")).status, 400);
  assert.equal((await at.ask("GET", "/v1/jobs/0/pages?limit=100000", undefined, { accept: "text/csv" })).status, 200);
  for (const query of ["limit=100001", "limit=0", "limit=-1", "limit=1e3", "cursor=nonsense", `cursor=${"x".repeat(2_000)}`, "offset=1"])
    assert.equal((await at.ask("GET", `/v1/jobs/0/pages?${query}`, undefined, { accept: "text/csv" })).status, 400, query);
  const refused = await at.ask("GET", "/v1/jobs/0/pages", undefined, { accept: "text/html" });
  assert.deepEqual([refused.status, refused.headers["content-type"]], [406, "application/problem+json"]);
  const last = await at.ask("GET", "/v1/jobs/0/pages");
  assert.deepEqual([last.headers["link"], last.headers["skein-cursor"]], [undefined, "c3"]);
  assert.equal((await at.ask("GET", "/v1/jobs/0/pages?cursor=c3")).text, "[]");
});

test("CSV has the fixed columns of pages, and those of the first items with the rest in _extra", async () => {
  await using at = await bench();
  await filled(at, 1);
  const pages = (await at.ask("GET", "/v1/jobs/0/pages", undefined, { accept: "text/csv" })).text.split("\r\n");
  assert.match(pages[0] ?? "", /^url,status,outcome,depth,/);
  assert.match(pages[1] ?? "", /^http:\/\/a\.example\/0,200,,,.*"a ""b"", c\n"/);
  at.jobs.all[0]?.tables.images.push('"http://a/x,1.png"');
  assert.equal((await at.ask("GET", "/v1/jobs/0/images", undefined, { accept: "text/csv" })).text, 'url\r\n"http://a/x,1.png"\r\n');
  const items = tableOf(at, "items");
  const meta = { url: "http://a/", depth: 0, fetchedAt: "2026-01-01T00:00:00.000Z" };
  for (let n = 0; n < 1_000; n++) items.push(JSON.stringify({ title: "t", price: n, _meta: meta }));
  items.push(JSON.stringify({ title: "u", late: [1], _meta: meta }));
  const rows = (await at.ask("GET", "/v1/jobs/0/items?cursor=c999", undefined, { accept: "text/csv" })).text;
  assert.equal(
    rows,
    `title,price,_url,_depth,_fetchedAt,_extra\r\nt,999,http://a/,0,${meta.fetchedAt},\r\nu,,http://a/,0,${meta.fetchedAt},"{""late"":[1]}"\r\n`,
  );
});

test("a large page is whole although only a part of it is kept in memory", async () => {
  await using at = await bench();
  await filled(at, 500, 10_000);
  const { json, headers } = await at.ask("GET", "/v1/jobs/0/pages?limit=499");
  assert.deepEqual([json.length, json[498].url, next(headers["link"])], [499, "http://a.example/498", "/v1/jobs/0/pages?limit=499&cursor=c499"]);
  assert.equal(at.jobs.read.open, 0);
});

test("a reader that does not read makes the reading stop, and one that leaves ends it", async () => {
  await using at = await bench();
  await filled(at, 20_000, 2_000);
  at.jobs.read.lines = 0;
  const socket = connect(at.port, "127.0.0.1");
  socket.write("GET /v1/jobs/0/pages?limit=20000 HTTP/1.1\r\nHost: localhost\r\nAccept: application/x-ndjson\r\n\r\n");
  await new Promise<void>((resolve) => socket.once("data", () => resolve()));
  socket.pause();
  // Until nothing moves any more: buffers of the system are full.
  let before = -1;
  for (let still = 0; still < 3; still += at.jobs.read.lines === before ? 1 : -still) {
    before = at.jobs.read.lines;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  const sent = at.jobs.read.lines - 20_000; // once to look ahead
  assert.ok(sent < 10_000, `${sent} records were pulled for a reader that does not read`);
  assert.equal(at.jobs.read.open, 1);
  socket.destroy();
  while (at.jobs.read.open > 0) await new Promise((resolve) => setImmediate(resolve));
  assert.ok(at.jobs.read.lines - 20_000 < 10_000);
});

test("HEAD answers as GET would, without a body, and reads nothing on", async () => {
  await using at = await bench();
  await filled(at, 150);
  for (const path of ["/v1/jobs/0", "/v1/jobs/0/pages", "/status/0", "/result/0", "/v1/jobs/0/events", "/healthz", "/openapi.json", "/"]) {
    const { status, text } = await at.ask("HEAD", path);
    assert.deepEqual([status, text], [200, ""], path);
  }
  assert.equal(next((await at.ask("HEAD", "/v1/jobs/0/pages")).headers["link"]), "/v1/jobs/0/pages?cursor=c100");
  assert.equal(at.jobs.read.open, 0);
});

interface Stream {
  readonly status: number;
  /** Resolves with all that came once it matches. */
  until(pattern: RegExp): Promise<string>;
  readonly ended: Promise<string>;
  leave(): void;
}

function events(at: Bench, headers: Readonly<Record<string, string>> = {}): Promise<Stream> {
  return new Promise((resolve, reject) => {
    const outgoing = get({ host: "127.0.0.1", port: at.port, path: "/v1/jobs/0/events", headers, agent: false }, (incoming) => {
      let got = "";
      let check: () => void = () => undefined;
      incoming.setEncoding("utf8").on("data", (piece: string) => {
        got += piece;
        check();
      });
      resolve({
        status: incoming.statusCode ?? 0,
        until: (pattern) => new Promise((found) => (check = () => pattern.test(got) && found(got))() || undefined),
        ended: new Promise((end) => incoming.on("close", () => end(got))),
        leave: () => outgoing.destroy(),
      });
    });
    outgoing.on("error", reject);
  });
}

test("events come as they happen, go on after the last one seen, and end with the job", async () => {
  await using at = await bench();
  await filled(at, 0);
  at.jobs.tell(0, { id: "1", kind: "state", state: "running", finishReason: null });
  const stream = await events(at);
  await stream.until(/^retry: \d+\n\nid: 1\nevent: state\ndata: \{"state":"running","finishReason":null\}\n\n$/);
  at.jobs.tell(0, { id: "2", kind: "page", page: { url: "http://a.example/\n" } });
  await stream.until(/id: 2\nevent: page\ndata: \{"url":"http:\/\/a.example\/\\n"\}\n\n$/);
  const later = await events(at, { "last-event-id": "1" });
  assert.doesNotMatch(await later.until(/id: 2\n/), /id: 1\n/);
  at.jobs.tell(0, { id: "3", kind: "state", state: "completed", finishReason: "finished" });
  at.jobs.set(0, "completed");
  assert.match(await stream.ended, /"completed","finishReason":"finished"\}\n\n$/);
  await later.ended;
  assert.equal((await events(at, { "last-event-id": "3" })).status, 204);
  assert.equal((await events(at)).status, 200);
});

test("a client of events that leaves is forgotten, and too many at once are refused", async () => {
  await using at = await bench({ limits: { eventStreams: 1 } });
  await filled(at, 0);
  const first = await events(at);
  assert.equal((await events(at)).status, 503);
  first.leave();
  while (at.jobs.read.open > 0) await new Promise((resolve) => setImmediate(resolve));
  const second = await events(at);
  assert.equal(second.status, 200);
  assert.match((await at.ask("GET", "/metrics")).text, /^skein_event_streams 1$/m);
  second.leave();
});

test("the end of the service ends streams", async () => {
  const at = await bench();
  await filled(at, 0);
  const stream = await events(at);
  await at[Symbol.asyncDispose]();
  await stream.ended;
});
