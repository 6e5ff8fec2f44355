/** Content codings: the bytes of a body as they came → the bytes that were meant, never more than a limit. Does not read from sockets. */
import type { BrotliOptions, ZlibOptions, ZstdOptions } from "node:zlib";
import { errorCode } from "./errors.ts";
import { hasZstdMagic, zstdFrames } from "./zstd.ts";

export type Coding = "gzip" | "deflate" | "br" | "zstd";

/** `list`: in the order applied by the server, outermost last. `unsupported`: what cannot be undone, in words. */
export type Codings =
  | { readonly kind: "none" }
  | { readonly kind: "list"; readonly codings: readonly Coding[] }
  | { readonly kind: "unsupported"; readonly message: string };

export interface Decoded {
  readonly body: Uint8Array;
  /** There was more than the limit. */
  readonly truncated: boolean;
  /** `cut`: the stream ends before its end mark. `damaged`: it is not what the header says. `body` is what could be read before. */
  readonly problem: "cut" | "damaged" | null;
}

/** More layers than this are no accident (RFC 9110 §8.4 sets no limit). */
const MAX_LAYERS = 5;
/** Up to this much is decoded at once in memory; larger bodies in pieces beside the loop. */
const SYNC_WIRE = 256 * 1024;
/** What a body may become when decoded at once: this much, or so many times its size. Beyond it is decoded in pieces, so that a bomb cannot hold up the loop. */
const SYNC_OUTPUT = 1024 * 1024;
const SYNC_RATIO = 40;
const PIECE = 64 * 1024;

/** Loaded by the first body that is coded. */
const zlib = () => process.getBuiltinModule("node:zlib");

const NAMES: ReadonlyMap<string, Coding> = new Map([
  ["gzip", "gzip"],
  ["x-gzip", "gzip"],
  ["deflate", "deflate"],
  ["x-deflate", "deflate"],
  ["br", "br"],
  ["zstd", "zstd"],
]);
/** Registered codings that nobody may send unasked; a body in them cannot be read. */
const UNSUPPORTED: ReadonlySet<string> = new Set(["compress", "x-compress", "dcb", "dcz", "exi", "pack200-gzip", "sdch", "bzip2", "x-bzip2", "xz", "lzma"]);
const NONE: Codings = { kind: "none" };
const SINGLE: ReadonlyMap<string, Codings> = new Map([...NAMES].map(([name, coding]) => [name, { kind: "list", codings: [coding] }]));

/** Reads Content-Encoding, one entry per header line; parameters, which it does not have, are passed over. Names nobody knows (a charset, "none") are mislabels: the body is taken as not encoded. */
export function parseCodings(field: string | readonly string[] | undefined): Codings {
  if (field === undefined) return NONE;
  const text = typeof field === "string" ? field : field.join(",");
  const single = SINGLE.get(text);
  if (single) return single;
  const codings: Coding[] = [];
  for (const part of text.split(",")) {
    const name = part.replace(/;.*/, "").trim().toLowerCase();
    if (UNSUPPORTED.has(name)) return { kind: "unsupported", message: `the content coding ${name} is not supported` };
    const coding = NAMES.get(name);
    if (coding) codings.push(coding);
  }
  if (codings.length > MAX_LAYERS) return { kind: "unsupported", message: "too many content codings" };
  return codings.length === 0 ? NONE : { kind: "list", codings };
}

/**
 * Undoes `codings`, at most `limit` bytes of output in any layer. Small bodies come back at once, others as a promise; neither ever throws for bad input.
 * A layer that is announced but not there is skipped.
 */
export function decodeBody(wire: Uint8Array, codings: readonly Coding[], limit: number): Decoded | Promise<Decoded> {
  if (wire.byteLength === 0) return { body: wire, truncated: false, problem: null };
  if (wire.byteLength <= SYNC_WIRE) {
    let body: Uint8Array | null = wire;
    for (let i = codings.length - 1; i >= 0 && body; i--) body = decodeSync(body, codings[i]!, limit); // i is within the list
    if (body) return { body, truncated: false, problem: null };
  }
  return decodePieces(wire, codings, limit);
}

/** One layer at once; null when it is too large, damaged, cut or in several frames: the slow way then tells which. */
function decodeSync(wire: Uint8Array, announced: Coding, limit: number): Uint8Array | null {
  if (wire.byteLength === 0 || isPlain(wire, announced)) return wire;
  const coding = toldByBytes(wire, announced);
  const maxOutputLength = Math.min(limit, Math.max(SYNC_OUTPUT, wire.byteLength * SYNC_RATIO));
  const options = { maxOutputLength, chunkSize: Math.min(Math.max(wire.byteLength * 6, 4096), 256 * 1024) };
  try {
    switch (coding) {
      case "gzip":
        return zlib().gunzipSync(wire, options);
      case "deflate":
        return hasZlibHeader(wire) ? zlib().inflateSync(wire, options) : zlib().inflateRawSync(wire, options);
      case "br":
        return zlib().brotliDecompressSync(wire, options);
      case "zstd":
        return zstdFrames(wire)[0]?.byteLength === wire.byteLength ? zlib().zstdDecompressSync(wire, options) : null;
    }
  } catch (error) {
    if (isInputError(error)) return null;
    throw error;
  }
}

async function decodePieces(wire: Uint8Array, codings: readonly Coding[], limit: number): Promise<Decoded> {
  let body = wire;
  let truncated = false;
  for (let i = codings.length - 1; i >= 0; i--) {
    const coding = codings[i]!; // i is within the list
    if (body.byteLength === 0 || isPlain(body, coding)) continue;
    const layer = await decodeLayer(body, coding, limit);
    if (layer.problem && !truncated) {
      if (looksLikePage(body)) continue;
      return layer;
    }
    body = layer.body;
    truncated ||= layer.truncated;
  }
  return { body, truncated, problem: null };
}

async function decodeLayer(wire: Uint8Array, announced: Coding, limit: number): Promise<Decoded> {
  const coding = toldByBytes(wire, announced);
  if (coding === "gzip") return decodeGzip(wire, limit);
  if (coding === "zstd") return decodeFrames(wire, limit);
  if (coding !== "deflate" || !hasZlibHeader(wire)) return inflatePieces(wire, coding, limit, true);
  const wrapped = await inflatePieces(wire, coding, limit, false);
  // Raw data may start like a zlib header by chance.
  if (wrapped.problem !== "damaged" || wrapped.body.byteLength > 0) return wrapped;
  const raw = await inflatePieces(wire, coding, limit, true);
  return raw.problem ? wrapped : raw;
}

/** zlib takes bytes behind the end of a member for a further, damaged member; browsers ignore them. The checksum tells whether the first one was whole. */
async function decodeGzip(wire: Uint8Array, limit: number): Promise<Decoded> {
  const whole = await inflatePieces(wire, "gzip", limit, true);
  const start = whole.problem === "damaged" ? gzipHeaderLength(wire) : 0;
  if (start === 0) return whole;
  const member = await inflatePieces(wire.subarray(start), "deflate", limit, true);
  if (member.problem || member.truncated) return { ...member, problem: "damaged" };
  const trailer = Buffer.alloc(8);
  trailer.writeUInt32LE(zlib().crc32(member.body), 0);
  trailer.writeUInt32LE(member.body.byteLength, 4);
  return Buffer.from(wire.buffer, wire.byteOffset, wire.byteLength).includes(trailer, start) ? member : { ...member, problem: "damaged" };
}

/** One zstd frame after the other, until one is not whole or the limit is reached. */
async function decodeFrames(wire: Uint8Array, limit: number): Promise<Decoded> {
  const frames = zstdFrames(wire);
  if (frames.length < 2) return inflatePieces(frames[0] ?? wire, "zstd", limit, true);
  const bodies: Uint8Array[] = [];
  let left = limit;
  for (const frame of frames) {
    const { body, truncated, problem } = await inflatePieces(frame, "zstd", left, true);
    bodies.push(body);
    left -= body.byteLength;
    if (problem !== null || truncated) return { body: Buffer.concat(bodies), truncated, problem };
  }
  return { body: Buffer.concat(bodies), truncated: false, problem: null };
}

/** Length of the header of a gzip member (RFC 1952 §2.3); 0 when it is cut. */
function gzipHeaderLength(wire: Uint8Array): number {
  const flags = wire[3] ?? 0;
  let at = 10;
  if (flags & 4) at += 2 + (wire[at] ?? 0) + ((wire[at + 1] ?? 0) << 8);
  for (const text of [8, 16]) {
    if (flags & text) at = wire.indexOf(0, at) + 1 || wire.byteLength;
  }
  if (flags & 2) at += 2;
  return at < wire.byteLength ? at : 0;
}

function inflatePieces(wire: Uint8Array, coding: Coding, limit: number, raw: boolean): Promise<Decoded> {
  return new Promise((resolve, reject) => {
    const stream = openStream(coding, raw);
    const pieces: Uint8Array[] = [];
    let length = 0;
    const finish = (truncated: boolean, problem: Decoded["problem"]) => {
      stream.removeAllListeners("data");
      resolve({ body: pieces.length === 1 ? pieces[0]! : Buffer.concat(pieces, length), truncated, problem }); // one piece is there
    };
    stream.on("data", (piece: Buffer) => {
      if (length + piece.byteLength > limit) {
        pieces.push(piece.subarray(0, limit - length));
        length = limit;
        finish(true, null);
        stream.destroy();
        return;
      }
      pieces.push(piece);
      length += piece.byteLength;
    });
    stream.on("end", () => finish(false, null));
    stream.on("error", (error) => {
      if (isInputError(error)) finish(false, errorCode(error) === "Z_BUF_ERROR" ? "cut" : "damaged");
      else reject(error);
    });
    stream.end(wire);
  });
}

function openStream(coding: Coding, raw: boolean) {
  const options: ZlibOptions & BrotliOptions & ZstdOptions = { chunkSize: PIECE };
  switch (coding) {
    case "gzip":
      return zlib().createGunzip(options);
    case "deflate":
      return raw ? zlib().createInflateRaw(options) : zlib().createInflate(options);
    case "br":
      return zlib().createBrotliDecompress(options);
    case "zstd":
      return zlib().createZstdDecompress(options);
  }
}

/** The codes zlib, brotli and zstd give for input they do not like, and for output over the limit. */
function isInputError(error: unknown): boolean {
  const code = errorCode(error);
  return (
    code.startsWith("Z_") || code.startsWith("ERR__ERROR_") || code.startsWith("ERR_BROTLI") || code.startsWith("ZSTD_") || code === "ERR_BUFFER_TOO_LARGE"
  );
}

/** CMF and FLG of RFC 1950 §2.2: method 8 and a checksum. */
function hasZlibHeader(wire: Uint8Array): boolean {
  const [first = 0, second = 0] = wire;
  return (first & 0x0f) === 8 && ((first << 8) | second) % 31 === 0;
}

/** Servers mix up gzip and deflate. The first bytes of neither can begin the other: as raw data, those of gzip would be a block of the reserved kind. */
function toldByBytes(wire: Uint8Array, announced: Coding): Coding {
  const isGzip = wire[0] === 0x1f && wire[1] === 0x8b && wire[2] === 8;
  if (announced === "deflate" && isGzip) return "gzip";
  return announced === "gzip" && wire[0] !== 0x1f && hasZlibHeader(wire) ? "deflate" : announced;
}

/** gzip and zstd begin with fixed bytes: without them, what reads as text was never encoded, whatever the header says. */
function isPlain(wire: Uint8Array, coding: Coding): boolean {
  if (coding === "gzip") return (wire[0] !== 0x1f || (wire[1] ?? 0x8b) !== 0x8b) && looksLikeText(wire);
  return coding === "zstd" && wire.byteLength >= 4 && !hasZstdMagic(wire) && looksLikeText(wire);
}

/** No control characters but white space (and ESC, for ISO-2022) among the first 512 bytes, or a byte order mark in front. */
function looksLikeText(wire: Uint8Array): boolean {
  if ((wire[0] === 0xff && wire[1] === 0xfe) || (wire[0] === 0xfe && wire[1] === 0xff)) return true;
  const end = Math.min(wire.byteLength, 512);
  for (let i = 0; i < end; i++) {
    const byte = wire[i]!; // i < end
    if (byte < 0x20 && byte !== 0x09 && byte !== 0x0a && byte !== 0x0c && byte !== 0x0d && byte !== 0x1b) return false;
    if (byte === 0x7f) return false;
  }
  return true;
}

/** Markup or JSON begins in plain ASCII for so many bytes. */
const MARKUP_BYTES = 16;

/** Markup or JSON for sure: what deflate and brotli, which have no fixed first bytes, failed to read was then never encoded. */
function looksLikePage(wire: Uint8Array): boolean {
  let i = wire[0] === 0xef && wire[1] === 0xbb && wire[2] === 0xbf ? 3 : 0;
  while (i < wire.byteLength && wire[i]! <= 0x20) i++; // i is within
  if (wire.byteLength < i + MARKUP_BYTES || !looksLikeText(wire)) return false;
  if (wire.subarray(i, i + MARKUP_BYTES).some((byte) => byte > 0x7e)) return false;
  return wire[i] === 0x3c || wire[i] === 0x7b || wire[i] === 0x5b;
}
