/** Which network addresses a crawl may connect to, and which are this machine's own neighbourhood. Decides on parsed addresses, never on strings; does not resolve names. */
import ipaddr from "ipaddr.js";
import { CrawlError } from "../core/errors.ts";

type Address = ipaddr.IPv4 | ipaddr.IPv6;

/** Ranges of ipaddr.js that may be reached. Everything else it names is special-purpose (IANA registries of RFC 6890). */
const PUBLIC_RANGE = "unicast";
const LOCAL_RANGES: ReadonlySet<string> = new Set(["loopback", "private", "uniqueLocal", "linkLocal", "unspecified"]);

/** Special-purpose prefixes that ipaddr.js counts as unicast. */
const REFUSED_IPV6: readonly (readonly [ipaddr.IPv6, number])[] = [
  [ipaddr.IPv6.parse("::"), 96], // IPv4-compatible, deprecated (RFC 4291 §2.5.5.1): the address inside is looked at below
  [ipaddr.IPv6.parse("64:ff9b:1::"), 48], // local-use NAT64 (RFC 8215)
  [ipaddr.IPv6.parse("100::"), 64], // discard-only (RFC 6666)
  [ipaddr.IPv6.parse("100:0:0:1::"), 64], // dummy prefix (RFC 9780)
  [ipaddr.IPv6.parse("2001::"), 23], // protocol assignments (RFC 2928), Teredo and benchmarking among them
  [ipaddr.IPv6.parse("2001:db8::"), 32], // documentation (RFC 3849)
  [ipaddr.IPv6.parse("2002::"), 16], // 6to4 (RFC 3056): no crawler needs it, and it carries private addresses
  [ipaddr.IPv6.parse("3fff::"), 20], // documentation (RFC 9637)
  [ipaddr.IPv6.parse("5f00::"), 16], // segment routing (RFC 9602)
  [ipaddr.IPv6.parse("fec0::"), 10], // site-local, deprecated (RFC 3879)
];
const REFUSED_IPV4: readonly (readonly [ipaddr.IPv4, number])[] = [
  [ipaddr.IPv4.parse("192.0.0.0"), 24], // protocol assignments (RFC 6890)
  [ipaddr.IPv4.parse("198.18.0.0"), 15], // benchmarking (RFC 2544)
];

function parse(ip: string): Address | null {
  const bare = ip.startsWith("[") && ip.endsWith("]") ? ip.slice(1, -1) : ip;
  const zone = bare.indexOf("%");
  const text = zone < 0 ? bare : bare.slice(0, zone);
  // Four-part decimal only: the lax forms (0x7f.1) are the URL parser's to read, once.
  if (ipaddr.IPv4.isValidFourPartDecimal(text)) return ipaddr.IPv4.parse(text);
  return ipaddr.IPv6.isValid(text) ? ipaddr.IPv6.parse(text) : null;
}

/** The IPv4 address that a translated form carries: mapped (RFC 4291), NAT64 (RFC 6052). Null when there is none. */
function carried(address: ipaddr.IPv6): ipaddr.IPv4 | null {
  const bytes = address.toByteArray();
  const range = address.range();
  if (range === "ipv4Mapped") return address.toIPv4Address();
  return range === "rfc6052" ? new ipaddr.IPv4(bytes.slice(12)) : null;
}

function isPublic(address: Address): boolean {
  if (address.kind() === "ipv4") return address.range() === PUBLIC_RANGE && !REFUSED_IPV4.some((block) => address.match(block as [ipaddr.IPv4, number])); // kind() says it is IPv4; match only reads the pair
  const six = address as ipaddr.IPv6; // kind() is not "ipv4"
  if (REFUSED_IPV6.some((block) => six.match(block as [ipaddr.IPv6, number]))) return false; // match only reads the pair
  const inner = carried(six);
  return inner ? isPublic(inner) : six.range() === PUBLIC_RANGE;
}

/** Whether an address belongs to the public internet. IPv4 and IPv6 text, brackets and zone allowed; what cannot be read is not public. */
export function isPublicAddress(ip: string): boolean {
  const address = parse(ip);
  return address !== null && isPublic(address);
}

/** Loopback, private or link-local: this machine or its own network, whose pace `auto` need not feel out. */
export function isLocalAddress(ip: string): boolean {
  const address = parse(ip);
  if (address === null) return false;
  const inner = address.kind() === "ipv6" ? carried(address as ipaddr.IPv6) : null; // kind() was just read
  return LOCAL_RANGES.has((inner ?? address).range());
}

/** May a connection to `ip`, an address of `hostname`, be opened? Called with every address, right before it is connected to. */
export type AddressGuard = (hostname: string, ip: string) => boolean;

/**
 * The guard of `--refuse-private` and `--allow-address`. `allow` holds hostnames (exact, case does not count), addresses and CIDR blocks.
 * Throws `invalid-options` naming every entry that is none of these.
 */
export function compileAddressGuard(options: { readonly refusePrivate: boolean; readonly allow: readonly string[] }): AddressGuard {
  const hosts = new Set<string>();
  const blocks: [Address, number][] = [];
  const problems = [];
  for (const entry of options.allow) {
    const block = parseBlock(entry);
    if (block) blocks.push(block);
    else if (/^[a-z0-9._-]+$/i.test(entry) && !/^[\d.]+$/.test(entry)) hosts.add(plainHost(entry));
    else problems.push({ option: "addresses.allow", message: `${JSON.stringify(entry)}: expected a hostname, an address or a block such as 10.0.0.0/8` });
  }
  if (problems.length > 0) throw new CrawlError("invalid-options", problems.map((problem) => problem.message).join("; "), { problems });
  if (!options.refusePrivate) return () => true;
  return (hostname, ip) => {
    const address = parse(ip);
    if (address === null) return false;
    if (isPublic(address) || hosts.has(plainHost(hostname))) return true;
    const inner = address.kind() === "ipv6" ? carried(address as ipaddr.IPv6) : null; // kind() was just read
    return blocks.some((block) => inBlock(inner ?? address, block));
  };
}

function inBlock(address: Address, [network, bits]: [Address, number]): boolean {
  // Both casts: the kinds are compared first.
  return address.kind() === network.kind() && (address as ipaddr.IPv6).match(network as ipaddr.IPv6, bits);
}

function parseBlock(entry: string): [Address, number] | null {
  const slash = entry.indexOf("/");
  const address = parse(slash < 0 ? entry : entry.slice(0, slash));
  if (!address) return null;
  const most = address.kind() === "ipv4" ? 32 : 128;
  if (slash < 0) return [address, most];
  const bits = entry.slice(slash + 1);
  return /^\d{1,3}$/.test(bits) && Number(bits) <= most ? [address, Number(bits)] : null;
}

const plainHost = (host: string): string => host.toLowerCase().replace(/\.$/, "");
