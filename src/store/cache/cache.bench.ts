/** Puts and gets of 20 KB pages, bytes they take, and what the size cap costs: `node src/store/cache/cache.bench.ts [pages]`. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { StoredResponse } from "../../core/cache.ts";
import { realClock } from "../../core/clock.ts";
import { openCache } from "./open.ts";

const pages = Number(process.argv[2] ?? 5_000);
const dir = mkdtempSync(join(tmpdir(), "skein-cache-bench-"));
const words = Array.from({ length: 4_000 }, (_, n) => ((n * 2_654_435_761) % 2 ** 32).toString(36).slice(0, 3 + (n % 6)));
let state = 7;
const chance = (below: number): number => {
  state = (state * 1_103_515_245 + 12_345) % 2 ** 31;
  return state % below;
};

/** HTML like that of a shop: a frame that repeats, and words that do not. */
function pageOf(n: number): Buffer {
  const parts = [`<!doctype html><html><head><title>Page ${n}</title></head><body>`];
  for (let length = 0; length < 20_000; ) {
    const sentence = Array.from({ length: 12 }, () => words[chance(words.length)]).join(" ");
    const part = `<div class="item"><a href="/item/${chance(1_000_000)}.html">${sentence}</a><span class="price">${chance(99_999) / 100}</span></div>\n`;
    parts.push(part);
    length += part.length;
  }
  return Buffer.from(parts.join(""));
}

const HEADERS: StoredResponse["headers"] = [
  ["content-type", "text/html; charset=utf-8"],
  ["date", "Thu, 01 Jan 2026 00:00:00 GMT"],
  ["server", "nginx"],
  ["cache-control", "max-age=600"],
  ["etag", '"6a7b8c9d0e1f"'],
  ["vary", "Accept-Encoding"],
];
const bodies = Array.from({ length: Math.min(pages, 500) }, (_, n) => pageOf(n));
const mean = bodies.reduce((sum, { length }) => sum + length, 0) / bodies.length;

function spent(since: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(since);
  return (user + system) / pages;
}

async function measure(name: string, maxBytes: number): Promise<void> {
  await using cache = openCache(join(dir, name), { maxBytes, clock: realClock });
  const key = (n: number) => `GET http://shop.example/list/category-${n % 31}/item-${n}.html`;
  let cpu = process.cpuUsage();
  for (let n = 0; n < pages; n++) {
    const body = bodies[n % bodies.length] ?? Buffer.alloc(0);
    // A body of its own for each, or they would be kept once.
    body.writeUInt32LE(n, 30);
    const times = { requestedAt: n, respondedAt: n };
    await cache.put(key(n), {
      url: key(n).slice(4),
      status: 200,
      headers: HEADERS,
      body,
      wireBytes: 5_000,
      truncated: false,
      ...times,
      varied: { "accept-encoding": "gzip" },
    });
  }
  const { responses, bodyBytes } = await cache.stats();
  const putUs = spent(cpu);
  cpu = process.cpuUsage();
  let hits = 0;
  for (let n = 0; n < pages; n++) if ((await cache.get(key(chance(pages)))) !== null) hits++;
  const getUs = spent(cpu);
  const { diskBytes } = await cache.stats();
  console.log(
    `${name}: ${Math.round(putUs)} µs CPU a put, ${Math.round(getUs)} µs a get (${hits} of ${pages} there), ${responses} kept, ` +
      `${Math.round(bodyBytes / responses)} B a body of ${Math.round(mean)}, ${Math.round(diskBytes / responses)} B a response on disk, ${(diskBytes / 1e6).toFixed(1)} MB`,
  );
}

await measure("uncapped", 10_000_000_000);
await measure("capped", 8_000_000);
rmSync(dir, { recursive: true, force: true });
