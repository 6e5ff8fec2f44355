/** Answers and addresses that public projects and standards have pinned down (conformance topics http, redirect and ssrf). */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { isIP } from "node:net";
import { test } from "node:test";
import { inflateSync } from "node:zlib";
import type { FetchedResponse, FetchOutcome } from "../core/outcome.ts";
import { compileAddressGuard } from "../rules/address.ts";
import { type ConformanceCase, conformanceCases } from "../rules/url-conformance.ts";
import type { FetcherOptions } from "./options.ts";
import { startRawServer } from "./raw-server.ts";
import { fetchOnce } from "./trial.ts";

/** Serves the bytes once the request head is there, then closes. */
async function answerWith(bytes: Uint8Array, options: Partial<FetcherOptions>): Promise<FetchOutcome> {
  await using server = await startRawServer((_, socket) => void socket.end(bytes));
  const outcome = await fetchOnce(`${server.origin}/`, { types: "all", timeoutMs: 10_000, ...options });
  await server.idle();
  return outcome;
}

/** The answer when it is a whole one. */
function wholeResponse(outcome: FetchOutcome): FetchedResponse | null {
  if (outcome.kind === "fetched" || outcome.kind === "redirect") return outcome.response.truncated ? null : outcome.response;
  // A 5xx is a failure with its whole answer.
  return outcome.kind === "failed" && (outcome.code === "http" || outcome.code === "rate-limited") ? outcome.response : null;
}

function bytesOf(input: Record<string, unknown>, name: string): Buffer | null {
  if (typeof input[name] === "string") return Buffer.from(input[name], "utf8");
  if (typeof input[`${name}Base64`] === "string") return Buffer.from(String(input[`${name}Base64`]), "base64");
  return typeof input[`${name}DeflateBase64`] === "string" ? inflateSync(Buffer.from(String(input[`${name}DeflateBase64`]), "base64")) : null;
}

/** What is wrong with the outcome; null: nothing. */
async function httpFault({ kind, input, expected }: ConformanceCase): Promise<string | null> {
  const options = { maxBodySize: input.maxBytes ?? 10_000_000 };
  if (kind === "content-length") {
    const bytes = Buffer.from(`HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n${input.headers}\r\n\r\n${"x".repeat(input.sentBytes)}`);
    const got = wholeResponse(await answerWith(bytes, options));
    return expected.error ? (got ? "accepted" : null) : got?.body.byteLength === expected.bytes ? null : `got ${got?.body.byteLength} bytes`;
  }
  if (kind === "content-coding") {
    const body = bytesOf(input, "body") ?? Buffer.alloc(0);
    const head = `HTTP/1.1 200 OK\r\nContent-Encoding: ${input.contentEncoding}\r\nContent-Length: ${body.byteLength}\r\n\r\n`;
    const got = wholeResponse(await answerWith(Buffer.concat([Buffer.from(head), body]), options));
    if (expected.error) return got ? "accepted" : null;
    return got && createHash("sha256").update(got.body).digest("hex") === expected.sha256 ? null : "another body";
  }
  const outcome = await answerWith(bytesOf(input, "response") ?? Buffer.alloc(0), options);
  const got = wholeResponse(outcome);
  if (expected.outcome === "error") return got ? "accepted" : null;
  if (!got) return `refused: ${outcome.kind === "failed" ? `${outcome.code} ${outcome.message}` : outcome.kind}`;
  if (expected.status !== undefined && got.status !== expected.status) return `status ${got.status}`;
  const body = bytesOf(expected, "body");
  return body === null || outcome.kind === "redirect" || body.equals(got.body) ? null : `another body of ${got.body.byteLength} bytes`;
}

async function check(topic: string, kinds: readonly string[], fault: (given: ConformanceCase) => Promise<string | null>): Promise<void> {
  const cases = conformanceCases(topic)?.filter((given) => kinds.includes(given.kind)) ?? [];
  const faults: string[] = [];
  let choices = 0;
  for (const given of cases) {
    const found = await fault(given);
    if (found === null) continue;
    if (given.taste) choices++;
    else faults.push(`${given.id} ${given.note ?? ""}: ${found}`);
  }
  if (choices > 0) process.stderr.write(`${topic}: ${choices} of ${cases.filter((given) => given.taste).length} cases of taste decided the other way\n`);
  assert.deepEqual(faults, []);
}

test("http: whole answers are read, damaged ones are never taken for whole", () => check("http", ["response", "content-length", "content-coding"], httpFault));

test("redirect: a Location is handed on byte for byte; without one the answer stands", () =>
  check("redirect", ["location"], async ({ input }) => {
    const line = typeof input.location === "string" ? `Location: ${input.location}\r\n` : "";
    const outcome = await answerWith(Buffer.from(`HTTP/1.1 ${input.status} M\r\n${line}Content-Length: 0\r\n\r\n`), {});
    if (line === "" || input.location === "") return outcome.kind === "fetched" ? null : outcome.kind;
    return outcome.kind === "redirect" && outcome.location === Buffer.from(input.location).toString("latin1").trim() ? null : outcome.kind;
  }));

test("ssrf: URLs that lead to an address that is not public are refused before any connection", () =>
  check("ssrf", ["url"], async ({ input, expected }) => {
    const url = URL.parse(input.url);
    if (!url) return expected.invalidUrl ? null : "not a URL";
    return (await blocked(`${url.origin}/`, input.dns ?? ["127.0.0.1"])) === expected.blocked ? null : `blocked is not ${expected.blocked}`;
  }));

test("ssrf: each hop of a chain is checked", () =>
  check("ssrf", ["redirect"], async ({ input, expected }) => {
    const stops = [];
    for (const hop of input.chain) stops.push(await blocked(hop, input.dns[new URL(hop).hostname] ?? []));
    return stops.indexOf(true) === expected.blockedAt ? null : `stopped at ${stops.indexOf(true)}`;
  }));

/** Whether the fetcher refuses. What the guard would let pass is not fetched: tests do not connect to strangers. */
async function blocked(url: string, addresses: readonly string[]): Promise<boolean> {
  const { hostname } = new URL(url);
  const options = { refusePrivate: true, allow: [] };
  const resolved = isIP(hostname.replace(/^\[|\]$/g, "")) ? [hostname] : addresses;
  if (resolved.some((address) => compileAddressGuard(options)(hostname, address))) return false;
  const outcome = await fetchOnce(url, {
    addresses: options,
    lookup: (_, callback) =>
      callback(
        null,
        addresses.map((address) => ({ address, family: isIP(address) })),
      ),
  });
  return outcome.kind === "failed" && outcome.code === "blocked-address";
}
