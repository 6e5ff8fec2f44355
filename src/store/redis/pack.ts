/** Requests as the entries in which they lie in Redis (lua/places.lua has the layout), and back. */
import type { CrawlRequest, Hop, RequestRest } from "../../core/request.ts";
import { isLocalHost } from "../../rules/pacing.ts";
import { originOf } from "../../rules/url.ts";
import { packId, packOutputs, readOutputs } from "./packet.ts";

const HOPS: readonly Hop[] = ["seed", "link", "redirect", "sitemap", "robots"];
/** Depths from here on are told apart by the rest of an entry only. */
export const DEEPEST = 8_191;
const HTTPS = 8;
const REFERRER_PATH = 16;
const REFERRER = 32;
const HAS_REST = 64;
const HAS_HISTORY = 128;
const DETACHED = 1;
const OWES = 2;
const HAS_ORIGIN = 4;

/** What an entry's rest says to clients only. */
interface Rest {
  /** URL that is not scheme, host and path in that order. */
  readonly u?: string;
  /** Depth that the seen-map cannot tell. */
  readonly d?: number;
  /** Body in base64. */
  readonly b?: string;
  readonly r?: Omit<RequestRest, "body" | "owed">;
}

function prefixOf(url: string, host: string): string | null {
  const prefix = `${url.startsWith("https:") ? "https" : "http"}://${host}`;
  return url.startsWith(prefix) && url.charCodeAt(prefix.length) === 47 ? prefix : null;
}

function u16(n: number): Buffer {
  const bytes = Buffer.allocUnsafe(2);
  bytes.writeUInt16LE(n);
  return bytes;
}

function u32(n: number): Buffer {
  const bytes = Buffer.allocUnsafe(4);
  bytes.writeUInt32LE(n);
  return bytes;
}

function restOf(request: CrawlRequest, odd: boolean): Buffer | null {
  const { rest, depth, url } = request;
  const robots = request.hop === "robots";
  const { body, owed, ...plain } = rest ?? {};
  const { robotsFor, ...others } = plain;
  const kept: Omit<RequestRest, "body" | "owed"> = robots ? others : plain;
  const detached = rest?.reopen === true;
  const json: Rest = {
    ...(odd ? { u: url } : {}),
    ...(depth >= DEEPEST || detached ? { d: depth } : {}),
    ...(body === undefined ? {} : { b: Buffer.from(body).toString("base64") }),
    ...(rest !== null && (!robots || Object.keys(kept).length > 0) ? { r: kept } : {}),
  };
  if (owed === undefined && Object.keys(json).length === 0) return null;
  const parts: Buffer[] = [Buffer.of((detached ? DETACHED : 0) | (owed === undefined ? 0 : OWES) | (odd ? HAS_ORIGIN : 0))];
  if (detached) parts.push(u16(Math.min(depth, DEEPEST)));
  if (odd) {
    const origin = Buffer.from(originOf(url));
    parts.push(u16(origin.length), origin);
  }
  if (owed !== undefined) {
    const packets = packOutputs(owed);
    parts.push(u32(packets.length), packets);
  }
  parts.push(Buffer.from(JSON.stringify(json)));
  return Buffer.concat(parts);
}

export function packEntry(request: CrawlRequest): Buffer {
  const { url, host, referrer } = request;
  const robots = request.hop === "robots";
  const prefix = robots ? null : prefixOf(url, host);
  const rest = request.rest === null && prefix !== null && request.depth < DEEPEST ? null : restOf(request, prefix === null && !robots);
  const shown = robots ? (request.rest?.robotsFor ?? originOf(url)) : referrer;
  const nearby = !robots && shown !== null && prefix !== null && shown.startsWith(prefix) && shown.charCodeAt(prefix.length) === 47;
  const shownText = shown === null ? "" : nearby ? shown.slice(prefix.length) : shown;
  const path = robots ? url : prefix === null ? "" : url.slice(prefix.length);
  const shownLength = Buffer.byteLength(shownText);
  const pathLength = Buffer.byteLength(path);
  const flags =
    HOPS.indexOf(request.hop) |
    (url.startsWith("https:") ? HTTPS : 0) |
    (shown === null ? 0 : nearby ? REFERRER_PATH : REFERRER) |
    (rest === null ? 0 : HAS_REST);
  const bytes = Buffer.allocUnsafe(9 + (shown === null ? 0 : 2 + shownLength) + (rest === null ? 0 : 4 + rest.length) + pathLength);
  bytes.writeInt32LE(request.idLo, 0);
  bytes.writeInt32LE(request.idHi, 4);
  bytes[8] = flags;
  let at = 9;
  if (shown !== null) at = bytes.writeUInt16LE(shownLength, at);
  if (rest !== null) at = bytes.writeUInt32LE(rest.length, at);
  at += bytes.write(shownText, at);
  if (rest !== null) at += rest.copy(bytes, at);
  bytes.write(path, at);
  return bytes;
}

export interface Unpacked {
  readonly request: CrawlRequest;
  readonly attempt: number;
  readonly crashes: number;
}

function readRest(bytes: Buffer): { readonly json: Rest; readonly owed: RequestRest["owed"] } {
  const kind = bytes.readUInt8(0);
  let at = 1;
  if ((kind & DETACHED) !== 0) at += 2;
  if ((kind & HAS_ORIGIN) !== 0) at += 2 + bytes.readUInt16LE(at);
  let owed: RequestRest["owed"];
  if ((kind & OWES) !== 0) {
    const length = bytes.readUInt32LE(at);
    // What a request owes are records that have been made: none is of a crash.
    owed = readOutputs(bytes.subarray(at + 4, at + 4 + length), () => ({ page: null, listed: false, skipped: [], found: [], edges: [] }));
    at += 4 + length;
  }
  return { json: JSON.parse(bytes.toString("utf8", at)) as Rest, owed }; // written by restOf
}

/** `depth`: the smallest known, as the seen-map has it. */
export function readEntry(bytes: Buffer, host: string, priority: number, depth: number): Unpacked {
  const idLo = bytes.readInt32LE(0);
  const idHi = bytes.readInt32LE(4);
  const flags = bytes.readUInt8(8);
  const history = (flags & HAS_HISTORY) !== 0;
  let at = history ? 11 : 9;
  const hop = HOPS[flags & 7] ?? "link";
  const shownLength = (flags & (REFERRER | REFERRER_PATH)) === 0 ? -1 : bytes.readUInt16LE(at);
  if (shownLength >= 0) at += 2;
  const restLength = (flags & HAS_REST) === 0 ? -1 : bytes.readUInt32LE(at);
  if (restLength >= 0) at += 4;
  const shown = shownLength < 0 ? null : bytes.toString("utf8", at, at + shownLength);
  at += Math.max(0, shownLength);
  const parts = restLength < 0 ? null : readRest(bytes.subarray(at, at + restLength));
  at += Math.max(0, restLength);
  const path = bytes.toString("utf8", at);
  const prefix = `${(flags & HTTPS) === 0 ? "http" : "https"}://${host}`;
  const robots = hop === "robots";
  const json = parts?.json ?? {};
  let rest: RequestRest | null = json.r ?? null;
  if (robots) rest = { ...json.r, robotsFor: shown ?? "" };
  if (json.b !== undefined) rest = { ...rest, body: new Uint8Array(Buffer.from(json.b, "base64")) };
  if (parts?.owed !== undefined) rest = { ...rest, owed: parts.owed };
  const request: CrawlRequest = {
    idHi,
    idLo,
    url: json.u ?? (robots ? path : prefix + path),
    host,
    hop,
    depth: json.d !== undefined && (depth >= DEEPEST || rest?.reopen === true) ? json.d : depth,
    priority,
    referrer: robots || shown === null ? null : (flags & REFERRER_PATH) === 0 ? shown : prefix + shown,
    rest,
  };
  return { request, attempt: history ? bytes.readUInt8(9) : 0, crashes: history ? bytes.readUInt8(10) : 0 };
}

/** What a script must know of a link beside its entry. */
export interface LinkExtra {
  /** Fingerprint of the hop that led here, of a redirect's target that owes its record. */
  readonly hop: Buffer | null;
  /** How it is listed when it was known (packDuplicate). */
  readonly listing: Buffer | null;
}

function packLink(request: CrawlRequest, { hop, listing }: LinkExtra): Buffer {
  const head = Buffer.allocUnsafe(4);
  head[0] = (hop === null ? 0 : 1) | (listing === null ? 0 : 2);
  head.writeUInt16LE(Math.min(request.depth, DEEPEST), 1);
  head.writeInt8(request.priority, 3);
  const parts: Buffer[] = [head];
  if (hop !== null) parts.push(hop);
  if (listing !== null) parts.push(u32(listing.length), listing);
  parts.push(packEntry(request));
  return Buffer.concat(parts);
}

/** What of a host's name the scripts cannot tell: whether it is local, and the length of the site that its cookies belong to (0: the name itself). */
export interface HostWords {
  readonly local: 0 | 1;
  readonly site: number;
}

export function hostWords(host: string, siteOf: ((hostname: string) => string) | undefined): HostWords {
  const name = hostnameOfKey(host);
  const site = siteOf?.(name) ?? name;
  return { local: isLocalHost(host) ? 1 : 0, site: site !== name && name.endsWith(site) && site.length < 256 ? site.length : 0 };
}

/** A host's name without its port. */
export function hostnameOfKey(host: string): string {
  const port = host.lastIndexOf(":");
  return port > 0 && !host.endsWith("]") ? host.slice(0, port) : host;
}

export interface Groups {
  readonly count: number;
  readonly args: readonly (string | Buffer)[];
}

/** Links by host, in the order of the first of each. */
export function packGroups(requests: readonly CrawlRequest[], words: (host: string) => HostWords, extra: (request: CrawlRequest) => LinkExtra): Groups {
  const byHost = new Map<string, Buffer[]>();
  for (const request of requests) {
    const packed = packLink(request, extra(request));
    const list = byHost.get(request.host);
    if (list === undefined) byHost.set(request.host, [packed]);
    else list.push(packed);
  }
  const args: (string | Buffer)[] = [];
  for (const [host, links] of byHost) {
    const { local, site } = words(host);
    args.push(host, Buffer.concat([u16(links.length), Buffer.of(local, site)]), ...links);
  }
  return { count: byHost.size, args };
}

/** The next hop of a robots.txt, as lua/settle.lua reads it. */
export function packRobotsHop(request: CrawlRequest, { local, site }: HostWords): Buffer {
  const host = Buffer.from(request.host);
  return Buffer.concat([Buffer.of(local, site), u16(host.length), host, packEntry(request)]);
}

export { packId };
