/** Which proxy a connection goes through, and the CONNECT tunnel. Reads no environment: the caller passes it in. */
import type { Socket } from "node:net";
import { unescape as percentDecode } from "node:querystring";
import { CrawlError } from "../core/errors.ts";
import { FAILURES, type Failure, toFailure } from "./errors.ts";

export interface ProxyOptions {
  /** Proxies for http and https pages; several take turns. Empty: direct. */
  readonly http: readonly string[];
  readonly https: readonly string[];
  /** As in NO_PROXY: `host`, `.domain`, `host:port` or `*`, comma-separated. */
  readonly noProxy: string;
}

export interface ProxyServer {
  readonly secure: boolean;
  readonly hostname: string;
  readonly port: number;
  /** Value of Proxy-Authorization; null without credentials. */
  readonly authorization: string | null;
}

/** Proxies from `--proxy` or, when there is none, from the environment variables HTTP_PROXY, HTTPS_PROXY and ALL_PROXY (lower case too). NO_PROXY counts for both. */
export function proxyOptions(given: readonly string[], env: Readonly<Record<string, string | undefined>>): ProxyOptions {
  const read = (name: string) => env[name.toLowerCase()] || env[name] || "";
  const list = (...names: string[]) => {
    const value = names.map(read).find((found) => found !== "");
    return value === undefined ? [] : [value];
  };
  const noProxy = read("NO_PROXY");
  // HTTP_PROXY in capitals is a request header in CGI (httpoxy), so curl does not read it; a crawler is not run by one, and users expect it.
  return given.length > 0
    ? { http: given, https: given, noProxy }
    : { http: list("HTTP_PROXY", "ALL_PROXY"), https: list("HTTPS_PROXY", "ALL_PROXY"), noProxy };
}

/** Picks the proxy for a new connection, in turn; null: go direct. Throws `invalid-options` for what is not an http or https proxy. */
export function compileProxies(options: ProxyOptions): (secure: boolean, hostname: string, port: number) => ProxyServer | null {
  const http = options.http.map(parseProxy);
  const https = options.https.map(parseProxy);
  const exempt = compileNoProxy(options.noProxy);
  let turn = 0;
  return (secure, hostname, port) => {
    const proxies = secure ? https : http;
    if (proxies.length === 0 || exempt(hostname, port)) return null;
    return proxies[turn++ % proxies.length] ?? null;
  };
}

function parseProxy(text: string): ProxyServer {
  const url = URL.parse(text.includes("://") ? text : `http://${text}`);
  if (!url || (url.protocol !== "http:" && url.protocol !== "https:")) {
    const problem = { option: "proxy", message: "expected the URL of an HTTP proxy, such as http://proxy.example:3128" };
    throw new CrawlError("invalid-options", `proxy: ${problem.message}`, { problems: [problem] });
  }
  const secure = url.protocol === "https:";
  // querystring.unescape leaves alone what is not an escape, where decodeURIComponent throws.
  const credentials = `${percentDecode(url.username)}:${percentDecode(url.password)}`;
  return {
    secure,
    hostname: url.hostname.replace(/^\[|\]$/g, ""),
    port: url.port ? Number(url.port) : secure ? 443 : 80,
    authorization: credentials === ":" ? null : `Basic ${Buffer.from(credentials).toString("base64")}`,
  };
}

function compileNoProxy(list: string): (hostname: string, port: number) => boolean {
  const entries = list
    .toLowerCase()
    .split(/[\s,]+/)
    .filter((entry) => entry !== "")
    .map((entry) => {
      const [, host = "", port] = /^(.*?)(?::(\d+))?$/.exec(/^[^[]*:.*:/.test(entry) ? `[${entry}]` : entry) ?? [];
      return { host: host.replace(/^\[|\]$/g, "").replace(/^\*?\./, ""), port: port === undefined ? null : Number(port) };
    });
  return (hostname, port) =>
    entries.some((entry) => {
      if (entry.port !== null && entry.port !== port) return false;
      return entry.host === "*" || hostname === entry.host || hostname.endsWith(`.${entry.host}`);
    });
}

const MAX_TUNNEL_HEAD = 16 * 1024;

/** Asks a proxy for a tunnel (RFC 9110 §9.3.6) on a connected socket; null: the tunnel stands and nothing of it has been read. */
export function openTunnel(
  socket: Socket,
  proxy: ProxyServer,
  target: { readonly hostname: string; readonly port: number },
  callback: (failure: Failure | null) => void,
): void {
  const authority = `${target.hostname.includes(":") ? `[${target.hostname}]` : target.hostname}:${target.port}`;
  const authorization = proxy.authorization === null ? "" : `Proxy-Authorization: ${proxy.authorization}\r\n`;
  let head = "";
  const done = (failure: Failure | null) => {
    socket.off("data", onData).off("error", onError).off("end", onEnd);
    socket.pause();
    callback(failure);
  };
  const onError = (error: unknown) => done(toFailure(error, false));
  const onEnd = () => done(FAILURES.proxyRefused);
  const onData = (chunk: Buffer) => {
    head += chunk.toString("latin1");
    const end = head.indexOf("\r\n\r\n");
    if (end < 0) {
      if (head.length > MAX_TUNNEL_HEAD) done(FAILURES.proxyRefused);
      return;
    }
    const granted = /^HTTP\/1\.[01] 2\d\d/.test(head) && end + 4 === head.length;
    if (granted) done(null);
    else done(/^HTTP\/1\.[01] 407/.test(head) ? FAILURES.proxyCredentials : FAILURES.proxyRefused);
  };
  socket.on("data", onData).on("error", onError).on("end", onEnd);
  socket.write(`CONNECT ${authority} HTTP/1.1\r\nHost: ${authority}\r\n${authorization}\r\n`, "latin1");
}
