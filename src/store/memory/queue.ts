/**
 * Queues of requests as bytes: entries lie in fixed blocks of large slabs, so that millions of queued links are a few buffers to the
 * garbage collector. Which host, level and priority a lane stands for is hosts.ts's affair.
 *
 *     block   [link u32][end u16][2 free][entry][entry] …      link: next block (bfs) or previous block (dfs); 0xffffffff none
 *     entry   [size u16][flags u8][depth u16][id 8][referrer u32]([rest u32])([seq 6])[url as Latin-1][size u16]
 *
 * `bfs` pops at the head, `dfs` at the tail (the trailing size leads back to the entry's start).
 */
import type { CrawlRequest, Hop, RequestRest } from "../../core/request.ts";
import { UNNUMBERED } from "./journal.ts";
import { flat, type Place } from "./place.ts";
import { createStringPool } from "./string-pool.ts";

/** The requests of one host, level and priority. */
export interface Lane {
  readonly level: number;
  readonly priority: number;
  /** What came back: retries, returned and lost leases. Served first, last one in first. */
  readonly front: Place[];
  size: number;
  headBlock: number;
  headAt: number;
  tailBlock: number;
  tailAt: number;
}

export interface Arena {
  newLane(level: number, priority: number): Lane;
  /** `seq`: kept only by an arena of numbered places. */
  push(lane: Lane, request: CrawlRequest, seq: number): void;
  pushFront(lane: Lane, place: Place): void;
  pop(lane: Lane, host: string): Place | null;
  /** Everything in the lane, which is left as it is: the front as it lies, then the rest by arrival. */
  list(lane: Lane, host: string): Place[];
  /** Bytes of the slabs held. */
  readonly bytes: number;
}

const BLOCK = 512;
const HEADER = 8;
const BLOCKS_PER_SLAB = 2_048;
const NONE = 0xffffffff;
const FIXED = 17;
const HAS_REST = 8;
/** The whole request is kept aside: URL too long for a block, not Latin-1, or a depth beyond 16 bits. */
const ASIDE = 16;
const HOPS: readonly Hop[] = ["seed", "link", "redirect", "sitemap", "robots"];
const SEQ_BYTES = 6;
const NOT_LATIN1 = /[^\u0000-\u00ff]/;

interface Aside {
  readonly request: CrawlRequest | null;
  readonly rest: RequestRest | null;
}

/** Blocks by number; freed ones are used again. Slabs are not given back before the crawl ends. */
function createBlocks() {
  const slabs: Buffer[] = [];
  const free: number[] = [];
  let next = 0;
  return {
    slabs,
    take(): number {
      const freed = free.pop();
      if (freed !== undefined) return freed;
      if (next === slabs.length * BLOCKS_PER_SLAB) slabs.push(Buffer.allocUnsafeSlow(BLOCK * BLOCKS_PER_SLAB));
      return next++;
    },
    give(block: number): void {
      free.push(block);
    },
  };
}

/** `numbered`: places have a number in a journal, which their entries keep (6 bytes more). */
export function createArena(order: "bfs" | "dfs", numbered: boolean): Arena {
  const seqBytes = numbered ? SEQ_BYTES : 0;
  const blocks = createBlocks();
  const slabs = blocks.slabs;
  const referrers = createStringPool();
  const asides = new Map<number, Aside>();
  let nextAside = 0;

  const slabOf = (block: number): Buffer => slabs[Math.floor(block / BLOCKS_PER_SLAB)]!;
  const startOf = (block: number): number => (block % BLOCKS_PER_SLAB) * BLOCK;

  function keepAside(request: CrawlRequest | null, rest: RequestRest | null): number {
    while (asides.has(nextAside)) nextAside = (nextAside + 1) >>> 0;
    asides.set(nextAside, { request, rest });
    return nextAside++;
  }

  /** Makes room for `size` bytes at the tail. */
  function extend(lane: Lane, size: number): void {
    if (lane.tailBlock !== NONE && lane.tailAt + size <= BLOCK) return;
    const block = blocks.take();
    const slab = slabOf(block);
    const start = startOf(block);
    slab.writeUInt32LE(order === "dfs" ? lane.tailBlock : NONE, start);
    if (lane.tailBlock === NONE) {
      lane.headBlock = block;
      lane.headAt = HEADER;
    } else {
      const oldSlab = slabOf(lane.tailBlock);
      const oldStart = startOf(lane.tailBlock);
      if (order === "bfs") oldSlab.writeUInt32LE(block, oldStart);
      oldSlab.writeUInt16LE(lane.tailAt, oldStart + 4);
    }
    lane.tailBlock = block;
    lane.tailAt = HEADER;
  }

  function push(lane: Lane, request: CrawlRequest, seq: number): void {
    const aside = request.url.length > BLOCK - HEADER - FIXED - 6 - SEQ_BYTES || request.depth > 0xffff || NOT_LATIN1.test(request.url);
    const url = aside ? "" : request.url;
    const rest = request.rest !== null || aside;
    const size = FIXED + (rest ? 4 : 0) + seqBytes + url.length + 2;
    extend(lane, size);
    const slab = slabOf(lane.tailBlock);
    let at = startOf(lane.tailBlock) + lane.tailAt;
    slab.writeUInt16LE(size, at);
    slab[at + 2] = HOPS.indexOf(request.hop) | (rest ? HAS_REST : 0) | (aside ? ASIDE : 0);
    slab.writeUInt16LE(aside ? 0 : request.depth, at + 3);
    slab.writeInt32LE(request.idHi, at + 5);
    slab.writeInt32LE(request.idLo, at + 9);
    slab.writeUInt32LE(aside || request.referrer === null ? 0 : referrers.hold(request.referrer), at + 13);
    at += FIXED;
    if (rest) {
      slab.writeUInt32LE(aside ? keepAside(flatRequest(request), request.rest) : keepAside(null, request.rest), at);
      at += 4;
    }
    if (numbered) {
      slab.writeUIntLE(seq, at, SEQ_BYTES);
      at += SEQ_BYTES;
    }
    slab.write(url, at, url.length, "latin1");
    slab.writeUInt16LE(size, at + url.length);
    lane.tailAt += size;
    lane.size++;
  }

  /** Reads the entry at `at`; `keep` leaves what it refers to in place. */
  function read(lane: Lane, host: string, at: { slab: Buffer; offset: number }, keep: boolean): Place {
    const { slab, offset } = at;
    const size = slab.readUInt16LE(offset);
    const flags = slab[offset + 2]!;
    let from = offset + FIXED;
    let rest: RequestRest | null = null;
    const seq = numbered ? slab.readUIntLE(from + ((flags & HAS_REST) === 0 ? 0 : 4), SEQ_BYTES) : UNNUMBERED;
    if ((flags & HAS_REST) !== 0) {
      const id = slab.readUInt32LE(from);
      const aside = asides.get(id)!;
      if (!keep) asides.delete(id);
      if (aside.request !== null) return { request: { ...aside.request, rest: aside.rest }, attempt: 0, crashes: 0, seq };
      rest = aside.rest;
      from += 4;
    }
    from += seqBytes;
    const referrer = slab.readUInt32LE(offset + 13);
    const request: CrawlRequest = {
      idHi: slab.readInt32LE(offset + 5),
      idLo: slab.readInt32LE(offset + 9),
      url: slab.toString("latin1", from, offset + size - 2),
      host,
      hop: HOPS[flags & 7]!,
      depth: slab.readUInt16LE(offset + 3),
      priority: lane.priority,
      referrer: referrer === 0 ? null : keep ? referrers.get(referrer) : referrers.release(referrer),
      rest,
    };
    return { request, attempt: 0, crashes: 0, seq };
  }

  const cursor: { slab: Buffer; offset: number } = { slab: Buffer.alloc(0), offset: 0 };

  /** The next entry by arrival; blocks that are used up go back. */
  function popHead(lane: Lane, host: string): Place | null {
    while (lane.headBlock !== lane.tailBlock && lane.headAt >= slabOf(lane.headBlock).readUInt16LE(startOf(lane.headBlock) + 4)) {
      const next = slabOf(lane.headBlock).readUInt32LE(startOf(lane.headBlock));
      blocks.give(lane.headBlock);
      lane.headBlock = next;
      lane.headAt = HEADER;
    }
    if (lane.headBlock === NONE || (lane.headBlock === lane.tailBlock && lane.headAt >= lane.tailAt)) return null;
    cursor.slab = slabOf(lane.headBlock);
    cursor.offset = startOf(lane.headBlock) + lane.headAt;
    lane.headAt += cursor.slab.readUInt16LE(cursor.offset);
    return read(lane, host, cursor, false);
  }

  /** The newest entry. */
  function popTail(lane: Lane, host: string): Place | null {
    while (lane.tailBlock !== NONE && lane.tailAt === HEADER) {
      const previous = slabOf(lane.tailBlock).readUInt32LE(startOf(lane.tailBlock));
      blocks.give(lane.tailBlock);
      lane.tailBlock = previous;
      if (previous !== NONE) lane.tailAt = slabOf(previous).readUInt16LE(startOf(previous) + 4);
    }
    if (lane.tailBlock === NONE) return null;
    cursor.slab = slabOf(lane.tailBlock);
    const end = startOf(lane.tailBlock) + lane.tailAt;
    const size = cursor.slab.readUInt16LE(end - 2);
    cursor.offset = end - size;
    lane.tailAt -= size;
    return read(lane, host, cursor, false);
  }

  function releaseLane(lane: Lane): void {
    if (lane.tailBlock !== NONE) blocks.give(lane.tailBlock);
    lane.headBlock = lane.tailBlock = NONE;
  }

  /** The blocks of a lane, oldest entries first. */
  function blocksOf(lane: Lane): number[] {
    const numbers: number[] = [];
    let block = order === "bfs" ? lane.headBlock : lane.tailBlock;
    while (block !== NONE) {
      numbers.push(block);
      block = block === lane.tailBlock && order === "bfs" ? NONE : slabOf(block).readUInt32LE(startOf(block));
    }
    return order === "bfs" ? numbers : numbers.reverse();
  }

  function listStored(lane: Lane, host: string, into: Place[]): void {
    for (const block of blocksOf(lane)) {
      const start = startOf(block);
      const slab = slabOf(block);
      let at = order === "bfs" && block === lane.headBlock ? lane.headAt : HEADER;
      const end = block === lane.tailBlock ? lane.tailAt : slab.readUInt16LE(start + 4);
      while (at < end) {
        into.push(read(lane, host, { slab, offset: start + at }, true));
        at += slab.readUInt16LE(start + at);
      }
    }
  }

  return {
    newLane: (level, priority) => ({ level, priority, front: [], size: 0, headBlock: NONE, headAt: HEADER, tailBlock: NONE, tailAt: HEADER }),
    push,
    pushFront(lane, place) {
      lane.front.push(place);
      lane.size++;
    },
    pop(lane, host) {
      const place = lane.front.pop() ?? (order === "bfs" ? popHead(lane, host) : popTail(lane, host));
      if (place !== null && --lane.size === 0) releaseLane(lane);
      return place;
    },
    list(lane, host) {
      const places = [...lane.front];
      listStored(lane, host, places);
      return places;
    },
    get bytes() {
      return slabs.length * BLOCK * BLOCKS_PER_SLAB;
    },
  };
}

function flatRequest(request: CrawlRequest): CrawlRequest {
  return { ...request, url: flat(request.url), referrer: request.referrer === null ? null : flat(request.referrer), rest: null };
}
