/** What came of pages, as the arguments of lua/settle.lua. */
import { zstdCompressSync, zstdDecompressSync } from "node:zlib";
import type { Cookie, HostAnswer, HostTuning, RobotsAnswer, RobotsState, Settled, Settlement, ValueChange } from "../../core/frontier.ts";
import { type HostWords, packRobotsHop } from "./pack.ts";
import { packOutputs } from "./packet.ts";

type Arg = string | Buffer;

const NONE = 0xffff_ffff;
const LEAST_COMPRESSED = 1_024;

const f64 = (n: number): Buffer => {
  const bytes = Buffer.allocUnsafe(8);
  bytes.writeDoubleLE(n);
  return bytes;
};
const u16 = (n: number): Buffer => {
  const bytes = Buffer.allocUnsafe(2);
  bytes.writeUInt16LE(n);
  return bytes;
};
const u32 = (n: number): Buffer => {
  const bytes = Buffer.allocUnsafe(4);
  bytes.writeUInt32LE(n);
  return bytes;
};

const KIND: Readonly<Record<Settlement["kind"], string>> = { done: "d", retry: "r", dropped: "x", returned: "b", robots: "o" };
const OPS: Readonly<Record<ValueChange["op"], string>> = { set: "s", max: ">", min: "<" };

/** crawlDelay,notBefore,local,concurrency,paused,patchedDelay,patchedConcurrency. Empty: says nothing; n: lifts what was set. */
export function packTuning({ crawlDelayMs, notBeforeMs, local, concurrency, patch }: HostTuning): string {
  const lifted = (n: number | null | undefined): string => (n === undefined ? "" : n === null ? "n" : String(n));
  const paused = patch?.paused === undefined ? "" : patch.paused ? "1" : "0";
  return [crawlDelayMs ?? "", notBeforeMs ?? "", local === true ? "1" : "", concurrency ?? "", paused, lifted(patch?.delayMs), lifted(patch?.concurrency)].join(
    ",",
  );
}

export function packCookies(cookies: readonly Cookie[]): Buffer {
  const parts: Buffer[] = [];
  for (const cookie of cookies) {
    const key = Buffer.from(JSON.stringify([cookie.name, cookie.domain, cookie.path]));
    const domain = Buffer.from(cookie.domain);
    const json = Buffer.from(JSON.stringify(cookie));
    parts.push(u16(key.length), key, u16(domain.length), domain, f64(cookie.expiresAt ?? -1), u32(json.length), json);
  }
  return Buffer.concat(parts);
}

/** Null when the jar is empty. */
export function readJar(bytes: Buffer): readonly Cookie[] | null {
  if (bytes.length === 0) return null;
  const cookies: Cookie[] = [];
  for (let at = 0; at < bytes.length; ) {
    at += 2 + bytes.readUInt16LE(at);
    at += 2 + bytes.readUInt16LE(at) + 8;
    const length = bytes.readUInt32LE(at);
    cookies.push(JSON.parse(bytes.toString("utf8", at + 4, at + 4 + length)) as Cookie); // written by packCookies
    at += 4 + length;
  }
  return cookies;
}

function packTally(tally: Settled["tally"]): Buffer {
  const parts: Buffer[] = [];
  for (const [name, by] of tally) {
    const text = Buffer.from(name);
    parts.push(f64(by), u16(text.length), text);
  }
  return Buffer.concat(parts);
}

export function packValues(changes: readonly ValueChange[]): Buffer {
  const parts: Buffer[] = [];
  for (const { op, key, value } of changes) {
    const name = Buffer.from(key);
    parts.push(Buffer.from(OPS[op]), u32(name.length), name);
    if (value === null) parts.push(u32(NONE));
    else parts.push(u32(Buffer.byteLength(value)), Buffer.from(value));
  }
  return Buffer.concat(parts);
}

/** Equal texts are equal bytes: the script compares them to tell whether an answer has changed. */
function packText(text: string): Buffer {
  const bytes = Buffer.from(text);
  return bytes.length < LEAST_COMPRESSED ? Buffer.concat([Buffer.of(0), bytes]) : Buffer.concat([Buffer.of(1), zstdCompressSync(bytes)]);
}

function packRobots(answer: RobotsAnswer, words: (host: string) => HostWords): Buffer {
  switch (answer.kind) {
    case "rules":
      return Buffer.concat([Buffer.from("r"), f64(answer.ttlMs), packText(answer.text)]);
    case "allow-all":
      return Buffer.concat([Buffer.from("a"), f64(answer.ttlMs)]);
    case "unavailable":
      return Buffer.concat([Buffer.from("u"), f64(answer.ttlMs), Buffer.from(JSON.stringify({ code: answer.code, why: answer.why }))]);
    case "redirect": {
      const request = { ...answer.request, hop: "robots" as const, depth: 0, priority: 0 };
      return Buffer.concat([Buffer.from(">"), f64(0), packRobotsHop(request, words(request.host))]);
    }
  }
}

/** An origin's state as lua/robots.lua answers it; null: not known, or expired. */
export function readRobots(answer: readonly unknown[]): RobotsState | null {
  const [kind, version, more, text] = answer as [Buffer | undefined, number, Buffer, Buffer]; // what robots.lua answers
  if (kind === undefined) return null;
  switch (kind.toString("latin1")) {
    case "r":
      return { version, kind: "rules", text: (text[0] === 1 ? zstdDecompressSync(text.subarray(1)) : text.subarray(1)).toString("utf8") };
    case "a":
      return { version, kind: "allow-all" };
    default:
      return { version, kind: "unavailable", ...(JSON.parse(more.toString("utf8")) as { code: "robots-unavailable"; why: string }) }; // written by packRobots
  }
}

function packAnswer(answer: HostAnswer | null): string {
  return answer === null || answer.kind === "none" ? "" : `${answer.kind === "good" ? "g" : "p"}${answer.latencyMs}`;
}

/** `robotsFor` of a redirect's next hop is whose robots.txt was asked for: `origin` of the lease. */
export function packSettled(page: Settled, words: (host: string) => HostWords, origin: (token: string) => string | null): readonly Arg[] {
  const { settlement } = page;
  const kind = settlement.kind === "done" && !settlement.counted ? "u" : KIND[settlement.kind];
  const output = settlement.kind === "done" || settlement.kind === "dropped" ? settlement.output : null;
  let robots: Arg = "";
  if (settlement.kind === "robots") {
    const { answer } = settlement;
    if (answer.kind === "redirect") {
      const robotsFor = origin(page.token) ?? answer.request.rest?.robotsFor ?? "";
      robots = packRobots({ ...answer, request: { ...answer.request, rest: { ...answer.request.rest, robotsFor } } }, words);
    } else robots = packRobots(answer, words);
  }
  return [
    page.token,
    kind,
    settlement.kind === "retry" ? String(settlement.afterMs) : "",
    page.sinceStartMs === null ? "" : String(page.sinceStartMs),
    packAnswer(page.answer),
    page.host === null ? "" : packTuning(page.host),
    page.setCookies === null || page.setCookies.length === 0 ? "" : packCookies(page.setCookies),
    page.newSeeds === null ? "" : page.newSeeds.join("\n"),
    page.tally.length === 0 ? "" : packTally(page.tally),
    page.values === undefined || page.values.length === 0 ? "" : packValues(page.values),
    output === null ? "" : packOutputs([output]),
    robots,
  ];
}
