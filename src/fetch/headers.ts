/** Header fields of requests, worked out once per origin, and of responses. */
import { CrawlError } from "../core/errors.ts";
import type { ResponseHeaders } from "../core/outcome.ts";
import type { CrawlRequest } from "../core/request.ts";

/** Names and values in turn, as undici takes them. */
export type HeaderList = string[];

/** What decides the headers of an origin. */
export interface HeaderOptions {
  readonly userAgent: string;
  /** For every request; Authorization and Cookie go to `seedHosts` only. */
  readonly headers: Readonly<Record<string, string>>;
  readonly hosts: Readonly<Record<string, { readonly headers?: Readonly<Record<string, string>> | undefined }>>;
  /** Host (with or without port) → `user:password`. */
  readonly auth: ReadonlyMap<string, string>;
  /** Host keys of the crawl's seeds. */
  readonly seedHosts: ReadonlySet<string>;
}

const ACCEPT = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";
const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;
/** Fields of the connection, not of the request: this room sets them. */
const RESERVED: ReadonlySet<string> = new Set(["connection", "keep-alive", "transfer-encoding", "upgrade", "expect", "content-length", "te", "trailer"]);
/** Go to the seeds' hosts only. */
const PRIVATE: ReadonlySet<string> = new Set(["authorization", "cookie", "proxy-authorization"]);

/** Throws `invalid-options` for header names and values that HTTP cannot carry (RFC 9110 §5.1, §5.5) and for fields that belong to the connection. */
export function checkHeaders(options: HeaderOptions): void {
  const problems = [];
  for (const [name, value] of [...Object.entries(options.headers), ...Object.values(options.hosts).flatMap((host) => Object.entries(host.headers ?? {}))]) {
    if (!TOKEN.test(name)) problems.push({ option: "headers", message: `${JSON.stringify(name)} is not a header name` });
    else if (RESERVED.has(name.toLowerCase())) problems.push({ option: "headers", message: `${name} is set by the crawler itself` });
    else if (!VALUE.test(value)) problems.push({ option: "headers", message: `the value of ${name} holds a character that a header cannot carry` });
  }
  if (!VALUE.test(options.userAgent)) problems.push({ option: "userAgent", message: "holds a character that a header cannot carry" });
  if (problems.length > 0) throw new CrawlError("invalid-options", problems.map((problem) => `${problem.option}: ${problem.message}`).join("; "), { problems });
}

/** `user:password` → the value of an Authorization field (RFC 7617, UTF-8). */
export function basic(credentials: string): string {
  return `Basic ${Buffer.from(credentials, "utf8").toString("base64")}`;
}

/** `user:password` for a host: the entry with its port goes before the one without. */
export function hostCredentials(options: HeaderOptions, hostKey: string, hostname: string): string | undefined {
  return options.auth.get(hostKey) ?? options.auth.get(hostname);
}

/** Headers of every plain request to an origin. */
export function originHeaders(options: HeaderOptions, hostKey: string, { seed, credentials }: { seed: boolean; credentials: string | undefined }): HeaderList {
  const fields = new Map<string, readonly [string, string]>();
  const set = (name: string, value: string) => void fields.set(name.toLowerCase(), [name, value]);
  set("User-Agent", options.userAgent);
  set("Accept", ACCEPT);
  set("Accept-Encoding", "gzip, deflate, br, zstd");
  set("Accept-Language", "en");
  for (const [name, value] of Object.entries(options.headers)) {
    if (seed || !PRIVATE.has(name.toLowerCase())) set(name, value);
  }
  if (credentials !== undefined) set("Authorization", basic(credentials));
  for (const [name, value] of Object.entries(options.hosts[hostKey]?.headers ?? {})) set(name, value);
  return [...fields.values()].flat();
}

/** Headers of a request that is not plain: its own fields win, cookies of the jar follow those the user gave. */
export function requestHeaders(base: HeaderList, request: CrawlRequest, jarCookies: string): HeaderList {
  const own = request.rest?.headers ?? {};
  const list: HeaderList = [];
  const taken = new Set(Object.keys(own).map((name) => name.toLowerCase()));
  const credentials = request.rest?.credentials;
  if (credentials !== undefined && !taken.has("authorization")) {
    taken.add("authorization");
    list.push("Authorization", basic(credentials));
  }
  let cookies = jarCookies;
  const add = (name: string, value: string) => {
    if (name.toLowerCase() === "cookie") cookies = cookies === "" ? value : `${value}; ${cookies}`;
    else list.push(name, value);
  };
  for (let i = 0; i < base.length; i += 2) {
    const [name = "", value = ""] = [base[i], base[i + 1]];
    if (!taken.has(name.toLowerCase())) add(name, value);
  }
  for (const [name, value] of Object.entries(own)) {
    if (!RESERVED.has(name.toLowerCase())) add(name, value);
  }
  if (cookies !== "") list.push("Cookie", cookies);
  return list;
}

/** Header fields as undici parses them: lower-case names; one line a string, several an array; bytes as Latin-1. */
export type RawHeaders = Readonly<Record<string, string | string[] | undefined>>;

interface HeldHeaders extends ResponseHeaders {
  readonly raw: RawHeaders;
}

/** Field by name, or undefined; never something inherited. */
export function rawField(raw: RawHeaders, name: string): string | string[] | undefined {
  return Object.hasOwn(raw, name) ? raw[name] : undefined;
}

function get(this: HeldHeaders, name: string): string | null {
  const value = rawField(this.raw, name);
  return value === undefined ? null : typeof value === "string" ? value : value.join(", ");
}

function all(this: HeldHeaders, name: string): readonly string[] {
  const value = rawField(this.raw, name);
  return value === undefined ? [] : typeof value === "string" ? [value] : value;
}

function names(this: HeldHeaders): readonly string[] {
  return Object.keys(this.raw);
}

/** A view of the parsed fields; shares its functions, so that a response costs one small object. */
export function responseHeaders(raw: RawHeaders): ResponseHeaders {
  const held: HeldHeaders = { raw, get, all, names };
  return held;
}
