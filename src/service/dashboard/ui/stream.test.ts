/** Server-sent events as they are parsed, and what a job's page makes of them. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { applied, type Live } from "./live.ts";
import { eventParser, type ServerEvent } from "./stream.ts";
import type { Job } from "./types.ts";

function parsed(pieces: readonly string[]): readonly ServerEvent[] {
  const events: ServerEvent[] = [];
  const parse = eventParser((event) => events.push(event));
  for (const piece of pieces) parse(piece);
  return events;
}

test("events are whole however the stream is cut", () => {
  const text = 'retry: 2000\n\n: still here\n\nid: 7\nevent: state\ndata: {"a":1}\n\nid: 8\r\nevent:page\r\ndata: x\r\ndata: y\r\n\r\ndata: z\n\n';
  const expected = [
    { id: "7", kind: "state", data: '{"a":1}' },
    { id: "8", kind: "page", data: "x\ny" },
    { id: "8", kind: "message", data: "z" },
  ];
  assert.deepEqual(parsed([text]), expected);
  for (let at = 1; at < text.length; at++) assert.deepEqual(parsed([text.slice(0, at), text.slice(at)]), expected, `cut at ${at}`);
  assert.deepEqual(parsed([...text]), expected);
});

test("an event that was cut off is none", () => {
  assert.deepEqual(parsed(["id: 1\nevent: page\ndata: x\n"]), []);
});

const job = { id: 0, state: "running", counts: {}, finishReason: null } as unknown as Job;
const nothing: Live = { job, samples: [], newest: [], errors: [], problem: null };
const counts = (elapsedMs: number) => ({ id: String(elapsedMs), kind: "counts", data: JSON.stringify({ elapsedMs, pagesPerSecond: 5, queued: 2 }) });

test("the course of a long job is thinned out, from its start to now", () => {
  let live = nothing;
  for (let at = 1; at <= 20_000; at++) live = applied(live, counts(at * 500));
  assert.ok(live.samples.length <= 400 && live.samples.length >= 150, String(live.samples.length));
  assert.equal(live.samples[0]?.atMs, 500);
  assert.equal(live.samples.at(-1)?.atMs, 10_000_000);
  assert.equal(applied(live, counts(3)).samples, live.samples);
});

test("pages are kept newest first, errors apart, both bounded", () => {
  let live = nothing;
  for (let at = 0; at < 100; at++)
    live = applied(live, { id: String(at), kind: "page", data: JSON.stringify({ url: `u${at}`, outcome: at % 2 ? "failed" : "fetched" }) });
  assert.deepEqual([live.newest.length, live.newest[0]?.page.url, live.errors.length, live.errors[0]?.page.url], [12, "u99", 8, "u99"]);
});

test("what comes after the end changes the state no more than it says", () => {
  const ended = applied(nothing, { id: "9", kind: "state", data: '{"state":"completed","finishReason":"finished"}' });
  assert.deepEqual([ended.job?.state, ended.job?.finishReason], ["completed", "finished"]);
  assert.equal(applied(ended, counts(9)).job, ended.job);
});
