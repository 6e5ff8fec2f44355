/** Connections by origin: each origin has at most so many slots, a slot is one undici Client with one connection and makes one exchange at a time. */

import type { Socket } from "node:net";
import type { Dialler, Dialling, DialTarget } from "./dial.ts";
import type { Failure } from "./errors.ts";
import { createHeadFilter, type HeadFilter } from "./head.ts";
import type { HeaderList } from "./headers.ts";
import type { Job } from "./job.ts";
import { allowOddChunks } from "./lenient.ts";
import type { ProxyServer } from "./proxy.ts";
import type { Client, ClientConstructor, Dispatcher } from "./undici.ts";

/** One origin: where its connections lead, and the headers of its plain requests. */
export interface Host {
  /** `scheme://host[:port]`. */
  readonly origin: string;
  readonly secure: boolean;
  readonly hostname: string;
  readonly port: number;
  readonly limit: number;
  readonly resume: { session: Buffer | null };
  /** Worked out at the first request and again when what it was made of has changed: being a seed's host, and the credentials. */
  headers: HeaderList | null;
  seed: boolean;
  credentials: string | undefined;
  slots: number;
  /** Jobs that hold a slot or wait for one. */
  busy: number;
  idle: Slot[];
  waiting: Job[];
}

export interface Slot {
  readonly host: Host;
  readonly client: Client;
  readonly handler: Dispatcher.DispatchHandler;
  readonly proxy: ProxyServer | null;
  job: Job | null;
  /** Exchanges that ended well on the present connection. */
  served: number;
  local: boolean;
  /** What the present connection's bytes pass through; null before the first one stands. */
  head: HeadFilter | null;
  dialling: Dialling | null;
}

/** undici takes what a socket has read by `socket.read()`: that is where the filter stands. */
function filterHeads(socket: Socket): HeadFilter {
  const filter = createHeadFilter();
  const read = socket.read.bind(socket);
  let taken = false;
  socket.read = () => {
    if (!taken) allowOddChunks(socket);
    taken = true;
    for (;;) {
      const piece: Buffer | null = read();
      if (piece === null) return null;
      const passed = filter.pass(piece);
      if (passed) return passed;
    }
  };
  return filter;
}

export interface Connections {
  /** Gives the job a slot, now or when one is free. */
  place(job: Job): void;
  /** The job is over: its slot is free for the next one (`reusable`), or its connection is closed. */
  release(job: Job, reusable: boolean): void;
  /** Closes the connection the job has and gives it a new one. */
  replace(job: Job): void;
  /** Closes everything; resolves once no socket is left. */
  close(): Promise<void>;
  host(origin: string): Host | undefined;
  addHost(host: Host): void;
}

export interface ConnectionOptions {
  readonly client: () => ClientConstructor;
  readonly dialler: Dialler;
  readonly selectProxy: (secure: boolean, hostname: string, port: number) => ProxyServer | null;
  /** How many proxies take turns; slots are then used in turn too. */
  readonly proxies: number;
  /** Starts the exchange of `slot.job`. */
  start(slot: Slot): void;
  handler(slot: () => Slot): Dispatcher.DispatchHandler;
  /** No connection could be opened for the slot's job. */
  failed(job: Job, failure: Failure): void;
}

/** Largest header block that is read; browsers take about as much. */
const MAX_HEADER_BYTES = 256 * 1024;
/** An idle connection is closed after this, or 1 s before the server says it would. */
const KEEP_ALIVE_MS = 15_000;
/** Origins without work whose connections and headers are kept. */
const MAX_IDLE_HOSTS = 128;

/** A host without connections. `origin`: `scheme://host[:port]`; `limit`: most connections. */
export function createHost(origin: string, limit: number): Host {
  const { protocol, hostname, port } = new URL(origin);
  const secure = protocol === "https:";
  return {
    origin,
    secure,
    hostname: hostname.replace(/^\[|\]$/g, ""),
    port: port ? Number(port) : secure ? 443 : 80,
    limit,
    resume: { session: null },
    headers: null,
    seed: false,
    credentials: undefined,
    slots: 0,
    busy: 0,
    idle: [],
    waiting: [],
  };
}

export function createConnections(options: ConnectionOptions): Connections {
  const hosts = new Map<string, Host>();
  /** Hosts without work, least recently used first. */
  const resting = new Map<string, Host>();
  const slots = new Set<Slot>();
  const closing = new Set<Promise<void>>();

  function openSlot(host: Host): Slot {
    const proxy = options.selectProxy(host.secure, host.hostname, host.port);
    const Client = options.client();
    const client = new Client(host.origin, {
      connect: (_, callback) => connect(slot, callback),
      pipelining: 1,
      headersTimeout: 0,
      bodyTimeout: 0,
      maxHeaderSize: MAX_HEADER_BYTES,
      keepAliveTimeout: KEEP_ALIVE_MS,
      keepAliveMaxTimeout: 60_000,
      keepAliveTimeoutThreshold: 1_000,
      allowH2: false,
    });
    const slot: Slot = { host, client, handler: options.handler(() => slot), proxy, job: null, served: 0, local: false, head: null, dialling: null };
    host.slots++;
    slots.add(slot);
    return slot;
  }

  function connect(slot: Slot, callback: (...result: [null, Socket] | [Error, null]) => void): void {
    slot.served = 0;
    const { host } = slot;
    const target: DialTarget = { secure: host.secure, hostname: host.hostname, port: host.port, proxy: slot.proxy, resume: host.resume };
    let ended = false;
    let returned = false;
    const refuse = (failure: Failure) => {
      const { job } = slot;
      if (job) options.failed(job, failure);
      callback(new Error(failure.message), null);
    };
    const dialling = options.dialler.dial(target, (dialled) => {
      ended = true;
      slot.dialling = null;
      if (dialled.kind === "connected") {
        slot.local = dialled.local;
        slot.head = filterHeads(dialled.socket);
        callback(null, dialled.socket);
      } else if (returned) refuse(dialled.failure);
      // A refusal at once is put off, else a queue behind it would be refused by ever deeper calls.
      else queueMicrotask(() => refuse(dialled.failure));
    });
    returned = true;
    if (!ended) slot.dialling = dialling;
  }

  function run(slot: Slot, job: Job): void {
    slot.job = job;
    job.slot = slot;
    options.start(slot);
  }

  function freeSlot(host: Host): Slot | null {
    const turns = options.proxies > 1;
    if (turns && host.slots < Math.min(options.proxies, host.limit)) return openSlot(host);
    const idle = turns ? host.idle.shift() : host.idle.pop();
    return idle ?? (host.slots < host.limit ? openSlot(host) : null);
  }

  function serveWaiting(host: Host): void {
    while (host.waiting.length > 0) {
      const slot = freeSlot(host);
      if (!slot) return;
      const job = host.waiting.shift();
      if (job && !job.over) run(slot, job);
      else host.idle.push(slot);
    }
  }

  function discard(slot: Slot): void {
    slots.delete(slot);
    slot.host.slots--;
    slot.dialling?.cancel();
    slot.dialling = null;
    const closed = slot.client.destroy().finally(() => closing.delete(closed));
    closing.add(closed);
  }

  function rest(host: Host): void {
    resting.set(host.origin, host);
    if (resting.size <= MAX_IDLE_HOSTS) return;
    for (const oldest of resting.values()) {
      resting.delete(oldest.origin);
      hosts.delete(oldest.origin);
      for (const slot of oldest.idle.splice(0)) discard(slot);
      return;
    }
  }

  return {
    place(job) {
      const { host } = job;
      job.placed = true;
      if (host.busy++ === 0) {
        resting.delete(host.origin);
        // A host evicted between the making of its job and now comes back.
        hosts.set(host.origin, host);
      }
      const slot = freeSlot(host);
      if (slot) run(slot, job);
      else host.waiting.push(job);
    },
    release(job, reusable) {
      const { host, slot } = job;
      if (!job.placed) return;
      job.slot = null;
      host.busy--;
      if (slot) {
        slot.job = null;
        if (reusable) host.idle.push(slot);
        else discard(slot);
      }
      if (host.waiting.length > 0) serveWaiting(host);
      if (host.busy === 0) rest(host);
    },
    replace(job) {
      if (job.slot) {
        job.slot.job = null;
        discard(job.slot);
      }
      run(openSlot(job.host), job);
    },
    async close() {
      for (const slot of [...slots]) discard(slot);
      hosts.clear();
      resting.clear();
      await Promise.all(closing);
    },
    host: (origin) => hosts.get(origin),
    addHost: (host) => void hosts.set(host.origin, host),
  };
}
