import assert from "node:assert/strict";
import { test } from "node:test";
import type { CrawlError } from "../core/errors.ts";
import type { Output, PageRecord } from "../core/records.ts";
import { type StdoutOptions, stdoutSink } from "./stdout.ts";

function output(url: string, more: Partial<PageRecord> = {}, rest: Partial<Output> = {}): Output {
  const facts = { status: 200, outcome: "fetched", depth: 0, referrer: null, redirects: [], contentType: null, bytes: 0, bytesDecoded: 0, links: [] } as const;
  return {
    page: { url, ...facts, attempts: 1, fetchedAt: "2026-01-01T00:00:00.000Z", durationMs: 0, ...more },
    listed: true,
    skipped: [],
    found: [],
    edges: [],
    ...rest,
  };
}

/** A stdout whose writes end when the test says so. */
function slowStdout() {
  const written: string[] = [];
  let release: (() => void) | null = null;
  let held = false;
  return {
    written,
    hold: () => void (held = true),
    release() {
      held = false;
      release?.();
    },
    isTerminal: false,
    async write(bytes: Uint8Array) {
      if (held) await new Promise<void>((resolve) => (release = resolve));
      written.push(Buffer.from(bytes).toString());
    },
  };
}

const calls = (options: Partial<StdoutOptions> = {}) => {
  const told: string[] = [];
  const tell = (name: string) => () => void told.push(name);
  return {
    told,
    options: {
      what: () => "pages" as const,
      meta: true,
      fields: null,
      beforeWrite: () => undefined,
      afterWrite: () => undefined,
      onFull: tell("full"),
      onSpace: tell("space"),
      onClosed: tell("closed"),
      ...options,
    } satisfies StdoutOptions as StdoutOptions,
  };
};

test("pages: the URL of each listed page that was fetched with 2xx", async () => {
  const stdout = slowStdout();
  const sink = stdoutSink(stdout, calls().options);
  const none: Output = { ...output("http://a/none"), page: null };
  sink.write([output("http://a/"), output("http://a/404", { status: 404 }), output("http://a/moved", { outcome: "redirected", status: 301 }), none]);
  sink.write([
    output("http://a/hidden", {}, { listed: false }),
    output("http://a/204", { status: 204 }),
    output("http://a/off", { outcome: "failed", status: null }),
  ]);
  await sink.close();
  assert.equal(stdout.written.join(""), "http://a/\nhttp://a/204\n");
});

test("links: what was found, whatever became of the page", async () => {
  const stdout = slowStdout();
  const sink = stdoutSink(stdout, calls({ what: () => "links" }).options);
  const found = ["http://a/1", "http://b/2"].map((value, index) => ({ idHi: index, idLo: 0, value }));
  sink.write([output("http://a/", {}, { found, listed: false })]);
  await sink.close();
  assert.equal(stdout.written.join(""), "http://a/1\nhttp://b/2\n");
});

test("items: the scraper's text with its page as _meta", async () => {
  for (const meta of [true, false]) {
    const stdout = slowStdout();
    const sink = stdoutSink(stdout, calls({ what: () => "items", meta }).options);
    const items = ['{"a":1}', "{}"].map((json) => ({ type: "items", key: null, json }));
    sink.write([output("http://a/", {}, { items }), output("http://b/", {}, { items, listed: false })]);
    await sink.close();
    const of = '"_meta":{"url":"http://a/","depth":0,"fetchedAt":"2026-01-01T00:00:00.000Z"}';
    assert.equal(stdout.written.join(""), meta ? `{"a":1,${of}}\n{${of}}\n` : '{"a":1}\n{}\n');
  }
});

test("records: JSON Lines of the chosen fields, failed pages too", async () => {
  const stdout = slowStdout();
  const sink = stdoutSink(stdout, calls({ what: () => "records", fields: ["url", "outcome"] }).options);
  sink.write([output("http://a/"), output("http://a/off", { outcome: "failed", status: null })]);
  await sink.close();
  assert.equal(stdout.written.join(""), '{"url":"http://a/","outcome":"fetched"}\n{"url":"http://a/off","outcome":"failed"}\n');
});

test("a reader that is slow makes the crawl pause once and go on once, and gets every line in order", async () => {
  const stdout = slowStdout();
  const { told, options } = calls();
  const sink = stdoutSink(stdout, options);
  stdout.hold();
  let expected = "";
  for (let index = 0; index < 60_000; index++) {
    const url = `http://a.example/some/rather/long/path/${index}`;
    expected += `${url}\n`;
    sink.write([output(url)]);
  }
  assert.deepEqual(told, ["full"]);
  stdout.release();
  await sink.close();
  assert.deepEqual(told, ["full", "space"]);
  assert.equal(stdout.written.join(""), expected);
});

test("a reader that goes away is told once and is no error", async () => {
  const { told, options } = calls();
  const sink = stdoutSink({ isTerminal: false, write: () => Promise.reject(Object.assign(new Error("EPIPE"), { code: "EPIPE" })) }, options);
  sink.write([output("http://a/")]);
  sink.flush();
  await sink.close();
  sink.write([output("http://b/")]);
  await sink.close();
  assert.deepEqual(told, ["closed"]);
});

test("a stdout that is full is output-unwritable", async () => {
  const sink = stdoutSink(
    { isTerminal: false, write: () => Promise.reject(Object.assign(new Error("ENOSPC: no space left"), { code: "ENOSPC" })) },
    calls().options,
  );
  const unwritable = (error: unknown) => (error as CrawlError).code === "output-unwritable"; // `as`: anything else fails the assertion
  sink.write([output("http://a/")]);
  await assert.rejects(sink.close(), unwritable);
  assert.throws(() => sink.write([output("http://b/")]), unwritable);
});
