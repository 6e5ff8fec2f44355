/** Who may ask: the token, the Host and Origin of a request (DNS rebinding, requests forged by other sites), and how often. Decides by the head alone, before a body is read. */
import { createHash, timingSafeEqual } from "node:crypto";
import type { IncomingMessage } from "node:http";
import type { Clock } from "../core/clock.ts";
import { isLocalAddress } from "../rules/address.ts";
import { HttpProblem } from "./problem.ts";

export interface Access {
  /** Null: none is asked for. */
  readonly token: string | null;
  /** What may stand in Host beside the names of this machine's loopback, when there is no token; in lower case. */
  readonly names: readonly string[];
  /** Any address and any name without a dot may stand there too: the service is open to its network. */
  readonly network: boolean;
}

const digest = (text: string) => createHash("sha256").update(text).digest();

/** Throws HttpProblem 401. The comparison takes the same time wherever the tokens differ, and whatever their lengths. */
export function checkToken(authorization: string | undefined, token: string): void {
  const given = /^Bearer +(\S+) *$/i.exec(authorization ?? "")?.[1];
  if (given !== undefined && timingSafeEqual(digest(given), digest(token))) return;
  const detail = given === undefined ? "this service asks for a token: Authorization: Bearer TOKEN" : "the token is not that of this service";
  throw new HttpProblem({ status: 401, detail, headers: { "www-authenticate": given === undefined ? "Bearer" : 'Bearer error="invalid_token"' }, close: true });
}

/** The name in a Host or Origin, in lower case, without port and brackets; null: it has none. */
function nameOf(authority: string): string | null {
  const match = /^(?:\[([0-9a-f:.]+)\]|([^\s:@/\\[\]]+?)\.?)(?::\d{1,5})?$/i.exec(authority);
  return match === null ? null : (match[1] ?? match[2] ?? "").toLowerCase();
}

const isAddress = (name: string) => name.includes(":") || /^\d{1,3}(?:\.\d{1,3}){3}$/.test(name);
const isLoopback = (name: string) =>
  name === "localhost" || name.endsWith(".localhost") || name === "::1" || /^127(?:\.\d{1,3}){3}$/.test(name) || /^(?:0{0,4}:){2,7}0{0,3}1$/.test(name);

/**
 * Throws HttpProblem 403 when the name in Host is none of this service: a page of another site whose name was made to lead here would otherwise be of our origin.
 * A token, which such a page does not have, makes the question moot.
 */
export function checkHost(host: string | undefined, access: Access): void {
  if (access.token !== null) return;
  const name = nameOf(host ?? "");
  if (name !== null && (isLoopback(name) || access.names.includes(name))) return;
  if (name !== null && access.network && (isAddress(name) || !name.includes("."))) return;
  throw new HttpProblem({
    ...{ status: 403, close: true },
    detail: "the Host of this request is no name of this service; ask it as localhost, or start it with --allow-host NAME or with a token",
  });
}

/** Throws HttpProblem 403 for what changes something and comes from a page of another origin. */
export function checkOrigin({ headers, method }: IncomingMessage): void {
  if (method === "GET" || method === "HEAD" || method === "OPTIONS") return;
  const { origin, host } = headers;
  const site = headers["sec-fetch-site"];
  const foreignSite = site !== undefined && site !== "same-origin" && site !== "none";
  const foreignOrigin =
    origin !== undefined && !/^https?:\/\//i.test(origin)
      ? true
      : origin !== undefined && origin.replace(/^https?:\/\//i, "").toLowerCase() !== host?.toLowerCase();
  if (foreignSite || foreignOrigin) throw new HttpProblem({ status: 403, detail: "requests from pages of other origins are refused", close: true });
}

/** Clients that are remembered; whoever is pushed out starts with a full bucket, so this is generous. */
const MOST_CLIENTS = 20_000;

/** Token buckets by client address. Answers null, or in how many ms the next request may come. */
export function requestMeter({
  clock,
  perSecond,
  burst,
}: {
  readonly clock: Clock;
  readonly perSecond: number;
  readonly burst: number;
}): (client: string) => number | null {
  const buckets = new Map<string, { left: number; at: number }>();
  return (client) => {
    if (perSecond === 0) return null;
    const now = clock.now();
    const bucket = buckets.get(client) ?? { left: burst, at: now };
    // Back to the end of the map: the first entry is the one not seen for longest.
    buckets.delete(client);
    buckets.set(client, bucket);
    const [oldest] = buckets.size > MOST_CLIENTS ? buckets.keys().take(1) : [];
    if (oldest !== undefined) buckets.delete(oldest);
    bucket.left = Math.min(burst, bucket.left + ((now - bucket.at) * perSecond) / 1_000);
    bucket.at = now;
    if (bucket.left < 1) return ((1 - bucket.left) * 1_000) / perSecond;
    bucket.left--;
    return null;
  };
}

/** Whose bucket a request is taken from: an IPv4 address, or the network of an IPv6 one, which a client has whole. */
export function clientOf(incoming: IncomingMessage): string {
  const address = incoming.socket.remoteAddress ?? "";
  const plain = address.startsWith("::ffff:") ? address.slice(7) : address;
  return plain.includes(":") && !isLocalAddress(plain) ? plain.split(":").slice(0, 4).join(":") : plain;
}
