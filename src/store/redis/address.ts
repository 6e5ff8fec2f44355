/** Store URLs: which Redis, which database, and how it is named in messages (never with the password). */
import { CrawlError } from "../../core/errors.ts";

export interface RedisAddress {
  readonly host: string;
  readonly port: number;
  readonly username: string | null;
  readonly password: string | null;
  readonly db: number;
  readonly tls: boolean;
  /** First part of every key; null: the usual one. */
  readonly prefix: string | null;
  /** Sentinels that know where the master is; null: the server itself is given. */
  readonly sentinels: { readonly nodes: readonly { readonly host: string; readonly port: number }[]; readonly name: string } | null;
  /** Host and port, for messages; database and prefix too where they are not the usual ones. */
  readonly shown: string;
}

const SCHEME = /^(rediss?|redis\+sentinel|rediss\+sentinel):\/\//;
const PORT = 6_379;
const SENTINEL_PORT = 26_379;
/** As connect.ts has it. */
const USUAL_PREFIX = "skein";

function fail(message: string): never {
  throw new CrawlError("invalid-options", message, { problems: [{ option: "store", message }] });
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return fail("a name or password in the store's URL is not percent-encoded");
  }
}

function nodeOf(text: string, port: number): { readonly host: string; readonly port: number } {
  const match = /^(\[[^\]]+\]|[^:]*)(?::(\d+))?$/.exec(text);
  const host = match?.[1]?.replaceAll(/[[\]]/g, "") ?? "";
  const given = match?.[2] === undefined ? port : Number(match[2]);
  if (host === "" || given < 1 || given > 65_535) fail(`the store's URL names no host and port: ${text}`);
  return { host, port: given };
}

function databaseOf(text: string | undefined): number {
  if (text === undefined || text === "") return 0;
  if (!/^\d{1,5}$/.test(text)) fail(`the store's URL ends in a database number, not in ${text}`);
  return Number(text);
}

function prefixOf(query: string | undefined): string | null {
  if (query === undefined) return null;
  const name = /^prefix=([\w.:-]{1,64})$/.exec(query)?.[1];
  return name ?? fail("after ? the store's URL takes prefix=NAME only, of up to 64 letters, digits and . : _ -");
}

/** One server has many stores: which of them, as the URL says it. */
function whereThere(db: number, prefix: string | null): string {
  return (db === 0 ? "" : `/${db}`) + (prefix === null || prefix === USUAL_PREFIX ? "" : `?prefix=${prefix}`);
}

/**
 * `redis://[user:password@]host[:port][/db][?prefix=NAME]`, `rediss://…` over TLS (certificate and name are checked), and
 * `redis+sentinel://[user:password@]host[:port],host[:port]…/name[/db]` (`rediss+sentinel://` with TLS to the master and the sentinels).
 * Throws `invalid-options`; messages never hold the password.
 */
export function parseRedisUrl(url: string): RedisAddress {
  const scheme = SCHEME.exec(url)?.[1];
  if (scheme === undefined) fail("a store is redis://host:port/db, rediss://… or redis+sentinel://host,host/name/db");
  const [rest = "", query, ...more] = url.slice(scheme.length + 3).split("?");
  const slash = rest.indexOf("/");
  const authority = slash < 0 ? rest : rest.slice(0, slash);
  const path = slash < 0 ? [] : rest.slice(slash + 1).split("/");
  if (more.length > 0 || /#/.test(url)) fail("the store's URL takes one ? and no #: both are percent-encoded in names and passwords");
  const at = authority.lastIndexOf("@");
  const [user, ...password] = at < 0 ? [""] : authority.slice(0, at).split(":");
  const common = {
    username: user === undefined || user === "" ? null : decode(user),
    password: password.length === 0 ? null : decode(password.join(":")),
    tls: scheme.startsWith("rediss"),
    prefix: prefixOf(query),
  };
  const hosts = authority.slice(at + 1);
  if (scheme.endsWith("+sentinel")) {
    const nodes = hosts.split(",").map((node) => nodeOf(node, SENTINEL_PORT));
    const name = path[0] === undefined || path[0] === "" ? fail("a store behind sentinels names its master: redis+sentinel://host,host/name") : decode(path[0]);
    if (path.length > 2) fail("a store behind sentinels ends in /name or /name/db");
    const first = nodes[0]!; // split answers at least one
    const db = databaseOf(path[1]);
    return { ...common, ...first, db, sentinels: { nodes, name }, shown: `${name} of the sentinels ${hosts}${whereThere(db, common.prefix)}` };
  }
  if (path.length > 1) fail("the store's URL ends in /db");
  const node = nodeOf(hosts, PORT);
  const db = databaseOf(path[0]);
  const host = node.host.includes(":") ? `[${node.host}]` : node.host;
  return { ...common, ...node, db, sentinels: null, shown: `${host}:${node.port}${whereThere(db, common.prefix)}` };
}
