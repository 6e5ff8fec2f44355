/** Outputs as the packets in which they pass through Redis (lua/out.lua): what the scripts must look at lies apart, the rest is JSON, compressed when it is long. */
import { constants, zstdCompressSync, zstdDecompressSync } from "node:zlib";
import type { ItemRecord, Once, Output, SkippedRecord } from "../../core/records.ts";

const NONE = 0xffff_ffff;
/** Shorter heads do not gain by it. */
const LEAST_COMPRESSED = 2_048;
const FAST = { params: { [constants.ZSTD_c_compressionLevel]: 1 } };
/** Of a skip: it speaks of one link, not of its URL (another link to it may have been followed); it is a repetition. */
const OF_THE_LINK: ReadonlySet<string> = new Set(["depth", "nofollow", "not-followed"]);

type Head = Omit<Output, "skipped" | "found" | "items" | "owed">;

function headOf({ page, listed, edges, visit, changes }: Output): Buffer {
  const text = Buffer.from(JSON.stringify({ page, listed, edges, visit, changes }));
  if (text.length < LEAST_COMPRESSED) return Buffer.concat([Buffer.of(0), text]);
  return Buffer.concat([Buffer.of(1), zstdCompressSync(text, FAST)]);
}

function readHead(bytes: Buffer): Head {
  const text = bytes.subarray(1);
  return JSON.parse((bytes[0] === 1 ? zstdDecompressSync(text) : text).toString("utf8")) as Head; // written by headOf
}

function u32(n: number): Buffer {
  const bytes = Buffer.allocUnsafe(4);
  bytes.writeUInt32LE(n);
  return bytes;
}

const sized = (bytes: Buffer): Buffer => Buffer.concat([u32(bytes.length), bytes]);
const sizedJson = (value: unknown): Buffer => sized(Buffer.from(JSON.stringify(value)));

export function packId(idHi: number, idLo: number): Buffer {
  const bytes = Buffer.allocUnsafe(8);
  bytes.writeInt32LE(idLo, 0);
  bytes.writeInt32LE(idHi, 4);
  return bytes;
}

function skipEntry({ idHi, idLo, value }: Once<SkippedRecord>): Buffer {
  const flags = value.reason === "duplicate" ? 2 : OF_THE_LINK.has(value.reason) ? 1 : 0;
  const reason = Buffer.from(value.reason);
  return Buffer.concat([packId(idHi, idLo), Buffer.of(flags, reason.length), reason, sizedJson(value)]);
}

function listOf(entries: readonly Buffer[]): Buffer {
  return Buffer.concat([u32(entries.length), ...entries]);
}

function packetOf(output: Output): Buffer {
  const skipped = listOf(output.skipped.map(skipEntry));
  const found = listOf(output.found.map(({ idHi, idLo, value }) => Buffer.concat([packId(idHi, idLo), sizedJson(value)])));
  const items = output.items === undefined ? u32(NONE) : listOf(output.items.map(sizedJson));
  return Buffer.concat([Buffer.from("o"), sized(headOf(output)), skipped, found, items]);
}

/** Nothing would be written for it. */
function isEmpty(output: Output): boolean {
  const { page, skipped, found, edges, items, visit, changes } = output;
  return page === null && skipped.length + found.length + edges.length + (items?.length ?? 0) + (changes?.length ?? 0) === 0 && visit === undefined;
}

/** Each behind its length, those that another owes before it. */
export function packOutputs(outputs: readonly Output[]): Buffer {
  const parts: Buffer[] = [];
  const add = (output: Output): void => {
    for (const owed of output.owed ?? []) add(owed);
    if (!isEmpty(output)) parts.push(sized(packetOf(output)));
  };
  for (const output of outputs) add(output);
  return Buffer.concat(parts);
}

/** A link that was known, as a packet without its length. */
export function packDuplicate(entry: Once<SkippedRecord>): Buffer {
  return packetOf({ page: null, listed: false, skipped: [entry], found: [], edges: [] });
}

/** What is made of bytes that were written here. */
function createReader(bytes: Buffer) {
  let at = 0;
  const take = (n: number): Buffer => bytes.subarray(at, (at += n));
  return {
    get done() {
      return at >= bytes.length;
    },
    take,
    u8: () => take(1).readUInt8(),
    u16: () => take(2).readUInt16LE(),
    u32: () => take(4).readUInt32LE(),
    i32: () => take(4).readInt32LE(),
    sized: () => take(take(4).readUInt32LE()),
    rest: () => bytes.subarray(at),
  };
}

function readOutput(packet: Buffer): Output {
  const from = createReader(packet);
  from.take(1);
  const head = readHead(from.sized());
  const id = () => {
    const idLo = from.i32();
    return { idHi: from.i32(), idLo };
  };
  const skipped = Array.from({ length: from.u32() }, () => {
    const of = id();
    from.take(1);
    from.take(from.u8());
    return { ...of, value: JSON.parse(from.sized().toString("utf8")) as SkippedRecord }; // written by skipEntry
  });
  const found = Array.from({ length: from.u32() }, () => ({ ...id(), value: JSON.parse(from.sized().toString("utf8")) as string })); // written by packetOf
  const count = from.u32();
  if (count === NONE) return { ...head, skipped, found };
  const items = Array.from({ length: count }, () => JSON.parse(from.sized().toString("utf8")) as ItemRecord); // written by packetOf
  return { ...head, skipped, found, items };
}

/** A request that crashed its workers, for which no record is made yet. */
export interface CrashPacket {
  readonly crashes: number;
  readonly priority: number;
  readonly depth: number;
  readonly host: string;
  readonly entry: Buffer;
}

function readCrash(packet: Buffer): CrashPacket {
  const from = createReader(packet);
  from.take(1);
  const crashes = from.u8();
  const priority = from.take(1).readInt8();
  const depth = from.u16();
  const host = from.take(from.u16()).toString("utf8");
  return { crashes, priority, depth, host, entry: from.rest() };
}

/** Outputs of packets that lie behind their lengths; `crashed` makes those of crash packets. */
export function readOutputs(packets: Buffer, crashed: (crash: CrashPacket) => Output): Output[] {
  const outputs: Output[] = [];
  for (const from = createReader(packets); !from.done; ) {
    const packet = from.sized();
    outputs.push(packet[0] === 99 /* c */ ? crashed(readCrash(packet)) : readOutput(packet));
  }
  return outputs;
}
