/** A full scan of a crawl for what must always hold (frontier design, I1 to I3): for `doctor` and for tests after kills. Only meaningful while no worker is at it. */
import type { Link } from "./connect.ts";

export interface ScanReport {
  /** Each invariant that is broken, in words; empty: the crawl is sound. */
  readonly faults: readonly string[];
  readonly queued: number;
  readonly delayed: number;
  readonly leased: number;
  readonly seen: number;
  readonly hosts: number;
}

const HEAD = 18;
const WHOLE = 88;
const text = (value: unknown): string => (Buffer.isBuffer(value) ? value.toString("utf8") : String(value));

interface HostRow {
  readonly name: string;
  readonly leased: number;
  readonly pos: number;
  readonly lanes: readonly Buffer[];
}

/** lua/hosts.lua has the layout. */
function readHost(name: string, bytes: Buffer): HostRow {
  const from = HEAD + ((bytes.readUInt8(0) & 32) === 0 ? 0 : WHOLE);
  const lanes = Array.from({ length: (bytes.length - from) / 4 }, (_, n) => bytes.subarray(from + n * 4, from + n * 4 + 4));
  return { name, leased: bytes.readUInt16LE(2), pos: bytes.readUInt16LE(4), lanes };
}

function laneKey(crawl: string, host: string, lane: Buffer): string {
  const level = lane.readUInt16BE(0);
  return level === 0 ? `${crawl}:q:r:${host}` : `${crawl}:q:${level - 1}:${99 - lane.readUInt8(2)}${lane.readUInt8(3) === 0 ? "f" : ""}:${host}`;
}

export async function scanInvariants(link: Link, id: number): Promise<ScanReport> {
  const crawl = `${link.tag}:${id}`;
  const faults: string[] = [];
  const expect = (what: string, found: number, told: number): void => {
    if (found !== told) faults.push(`${what}: ${found} found, ${told} told`);
  };
  const flat = (await link.command("HGETALL", `${crawl}:m`)) as Buffer[]; // HGETALL
  const numbers = new Map(Array.from({ length: flat.length / 2 }, (_, n) => [text(flat[2 * n]), text(flat[2 * n + 1])]));
  const number = (name: string): number => Number(numbers.get(name) ?? 0);

  async function* hash(name: string): AsyncGenerator<readonly [Buffer, Buffer]> {
    let cursor = "0";
    const met = new Set<string>();
    do {
      const [next, pairs] = (await link.command("HSCAN", `${crawl}:${name}`, cursor, "COUNT", 500)) as [Buffer, Buffer[]]; // HSCAN
      for (let i = 0; i + 1 < pairs.length; i += 2) {
        const field = pairs[i]!; // i + 1 < length
        const key = field.toString("latin1");
        if (!met.has(key)) yield [field, pairs[i + 1]!]; // i + 1 < length
        met.add(key);
      }
      cursor = text(next);
    } while (cursor !== "0");
  }

  // I1: a host with something queued is in one waiting place, one without is in none.
  let hosts = 0;
  let waiting = 0;
  let parked = 0;
  let listed = 0;
  const leasedOf = new Map<string, number>();
  for await (const [name, bytes] of hash("h")) {
    const host = readHost(text(name), bytes);
    hosts++;
    leasedOf.set(host.name, host.leased);
    let entries = 0;
    for (const lane of host.lanes) {
      const length = Number(await link.command("LLEN", laneKey(crawl, host.name, lane)));
      if (length === 0) faults.push(`I1: ${host.name} names an empty queue`);
      if (lane.readUInt16BE(0) !== 0) entries += length;
    }
    listed += entries;
    const score = await link.command("ZSCORE", `${crawl}:w`, host.name);
    const isParked = host.pos > 1 && (await link.command("ZSCORE", `${crawl}:pk:${host.pos - 2}`, host.name)) !== null;
    if ((score !== null) !== (host.pos === 1)) faults.push(`I1: ${host.name} ${score === null ? "is missing from" : "should not be in"} the waiting set`);
    if (host.pos > 1 && !isParked) faults.push(`I1: ${host.name} is not parked where it says`);
    if (host.lanes.length > 0 !== host.pos > 0) faults.push(`I1: ${host.name} ${host.lanes.length > 0 ? "waits nowhere" : "waits for nothing"}`);
    if (host.pos === 1) waiting++;
    if (host.pos > 1) parked++;
  }
  expect("I1: hosts in the waiting set", Number(await link.command("ZCARD", `${crawl}:w`)), waiting);
  expect("I1: parked hosts", parked, number("parked"));

  // I3: each lease has its deadline, and its host counts it.
  const byHost = new Map<string, number>();
  let leases = 0;
  for await (const [token, bytes] of hash("L")) {
    leases++;
    const length = bytes.readUInt16LE(8);
    const name = bytes.toString("utf8", 10, 10 + length);
    byHost.set(name, (byHost.get(name) ?? 0) + 1);
    if ((await link.command("ZSCORE", `${crawl}:x`, token)) === null) faults.push(`I3: lease ${text(token)} never ends`);
  }
  expect("I3: deadlines", Number(await link.command("ZCARD", `${crawl}:x`)), leases);
  expect("I3: leases", leases, number("leased") + number("rleased"));
  for (const [name, told] of leasedOf) expect(`I3: leases of ${name}`, byHost.get(name) ?? 0, told);
  for (const name of byHost.keys()) if (!leasedOf.has(name)) faults.push(`I3: ${name} has leases and is not known`);

  // I2: seen = queued + delayed + leased + done + dropped.
  let seen = 0;
  const buckets = 2 ** number("vb") + number("vp");
  for (let n = 0; n < buckets; n++) seen += Number(await link.command("HLEN", `${crawl}:v${n}`));
  expect("I2: entries of the seen-map", seen, number("vn"));
  const delayed = Number(await link.command("ZCARD", `${crawl}:rt`));
  if (delayed < number("delayed")) faults.push(`I2: ${delayed} retries found, ${number("delayed")} told`);
  // Entries that were lowered lie in their old queue until they are met.
  if (number("levels") === 1 ? listed < number("queued") : listed !== number("queued")) faults.push(`I2: ${listed} entries queued, ${number("queued")} told`);
  const sum = number("queued") + number("delayed") + number("leased") + number("done") + number("dropped");
  expect("I2: places", sum, number("places"));
  if (seen > number("places")) faults.push(`I2: ${seen} URLs seen, ${number("places")} places`);
  return { faults, queued: number("queued"), delayed: number("delayed"), leased: leases, seen, hosts };
}
