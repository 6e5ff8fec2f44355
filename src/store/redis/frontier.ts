/** The frontier on Redis: each call is one script on the server, so that any number of workers share a crawl. What the calls mean is core/frontier.ts; the steps are in lua/. */
import { randomBytes } from "node:crypto";
import { CrawlError } from "../../core/errors.ts";
import {
  type Claim,
  type Control,
  type Frontier,
  type FrontierConfig,
  type FrontierCounts,
  type Lease,
  type RobotsState,
  returned,
  type Settled,
  type WaitCause,
} from "../../core/frontier.ts";
import type { CrawlRequest, FingerprintSeed, Origin } from "../../core/request.ts";
import { makeSkip } from "../../rules/admit.ts";
import { createKnownLinks } from "../../rules/known-links.ts";
import { fingerprintOf, originOf } from "../../rules/url.ts";
import type { Link } from "./connect.ts";
import { type HostWords, hostnameOfKey, hostWords, type LinkExtra, packGroups, packId, readEntry } from "./pack.ts";
import { packDuplicate } from "./packet.ts";
import { remainingOf } from "./remaining.ts";
import type { ScriptName } from "./scripts.ts";
import { packCookies, packSettled, packTuning, packValues, readJar } from "./settle-args.ts";
import { createTold } from "./told.ts";
import { hostViews, robotsStates } from "./views.ts";

export interface RedisFrontierEnv {
  readonly link: Link;
  readonly id: number;
  /** Seed of the crawl's fingerprints, when this worker is the first; random by default. */
  readonly seed?: FingerprintSeed;
  /** What shares cookies with a host; default: the hostname alone. */
  readonly siteOf?: (hostname: string) => string;
  /** A claim says to wait no longer than this, since other workers bring work; 250 ms. */
  readonly pollMs?: number;
  /** Bounds of the outbox, in outputs and bytes; FULL_OUTBOX. */
  readonly outbox?: { readonly most: number; readonly bytes: number };
  /** The moment that the scripts are to take for now, in tests. */
  readonly nowMs?: () => number;
  /** Told at once when somebody pauses or stops the crawl; `renew` tells of it too. */
  readonly onControl?: (control: Control) => void;
}

/** Outputs that wait, and their bytes, at which claims are answered `outbox-full`. */
export const FULL_OUTBOX = { most: 10_000, bytes: 64 * 1_024 * 1_024 } as const;
/** Links of one call, and hosts that they are on: more would hold up the server for other callers, and a host costs it more than a link. */
const LINKS_PER_CALL = 250;
const HOSTS_PER_CALL = 100;

/** What one call takes of the requests from `from` on. */
function onePart(requests: readonly CrawlRequest[], from: number): readonly CrawlRequest[] {
  const hosts = new Set<string>();
  let to = from;
  for (; to < requests.length && to - from < LINKS_PER_CALL; to++) {
    hosts.add(requests[to]!.host);
    if (hosts.size > HOSTS_PER_CALL) break;
  }
  return requests.slice(from, to);
}

const ROBOTS_KEPT = 5_000;
const NOTHING: LinkExtra = { hop: null, listing: null };

type Arg = string | Buffer;
const text = (value: unknown): string => (Buffer.isBuffer(value) ? value.toString("utf8") : String(value));

function configFields(config: FrontierConfig, { outbox }: RedisFrontierEnv): readonly string[] {
  const auto = config.perHostDelayMs === "auto";
  const fields: Readonly<Record<string, string | number | null>> = {
    limit: config.limitPages ?? "",
    items: config.limitItems ?? null,
    levels: config.levels ? 1 : 0,
    dfs: config.order === "dfs" ? 1 : 0,
    conc: config.perHostConcurrency,
    delay: auto ? -1 : config.perHostDelayMs,
    jitter: config.jitter,
    hosts: config.hosts.size > 0 ? 1 : 0,
    rpm: config.ratePerMinute,
    robots: config.robots ? 1 : 0,
    maxWait: config.maxWaitMs,
    lease: config.leaseMs,
    outMax: outbox?.most ?? FULL_OUTBOX.most,
    outBytes: outbox?.bytes ?? FULL_OUTBOX.bytes,
  };
  return Object.entries(fields).flatMap(([name, value]) => (value === null ? [] : [name, String(value)]));
}

/** Opens a crawl that the registry knows (crawls.ts). The rules are kept with the crawl: those of the first worker hold for all. */
export async function openRedisFrontier(config: FrontierConfig, env: RedisFrontierEnv): Promise<Frontier> {
  const { link } = env;
  const keys = [link.tag, `${link.tag}:${env.id}`] as const;
  const random = (): string => String(randomBytes(4).readUInt32LE() >>> 1);
  const begin = (): readonly string[] => [env.nowMs === undefined ? "" : String(env.nowMs()), random()];
  const run = (name: ScriptName, ...args: readonly Arg[]): Promise<unknown> => link.script(name, keys, [...begin(), ...args]);

  const fresh = env.seed ?? Array.from({ length: 4 }, () => randomBytes(4).readInt32LE());
  const fields = configFields(config, env);
  const hosts = [...config.hosts].flatMap(([host, own]) => [host, `${own.delayMs ?? ""},${own.concurrency ?? ""}`]);
  const kept = text(await run("configure", fresh.join(","), String(fields.length / 2), ...fields, ...hosts));
  const [s0 = 0, s1 = 0, s2 = 0, s3 = 0] = kept.split(",").map(Number);
  const seed: FingerprintSeed = [s0, s1, s2, s3];

  const known = createKnownLinks();
  const words = new Map<string, HostWords>();
  const robotsKnown = new Map<number, RobotsState>();
  /** Leases held, with the origin whose robots.txt they ask for. */
  const held = new Map<string, Origin | null>();
  let connection = link.connections;
  let seedsKnown = 0;
  let disposed = false;
  const unsubscribe = env.onControl === undefined ? null : await link.subscribe(`${keys[1]}:control`, (to) => env.onControl?.(to as Control)); // control.lua publishes control states

  /** Another server, or the same one after it lost its last second, may not know what this worker remembers. */
  function heedConnection(): void {
    if (link.connections === connection) return;
    connection = link.connections;
    known.clear();
    robotsKnown.clear();
  }

  const told = createTold(() => link.connections);

  function wordsOf(host: string): HostWords {
    const now = words.get(host);
    if (now !== undefined) return now;
    if (words.size >= 10_000) words.clear();
    const made = hostWords(host, env.siteOf);
    words.set(host, made);
    return made;
  }

  function extraOf(request: CrawlRequest): LinkExtra {
    const owes = request.rest?.owed !== undefined;
    const listed = config.listDuplicates === true && request.hop === "link";
    if (!owes && !listed) return NOTHING;
    const hop = owes ? request.rest.redirects?.at(-1)?.url : undefined;
    const { url, referrer, depth } = request;
    const id = hop === undefined ? null : fingerprintOf(hop, seed);
    return {
      hop: id === null ? null : packId(id.idHi, id.idLo),
      listing: listed ? packDuplicate({ ...makeSkip(seed, { url, referrer, depth, reason: "duplicate" }), idHi: request.idHi, idLo: request.idLo }) : null,
    };
  }

  const isPlain = (request: CrawlRequest): boolean => request.rest === null && config.listDuplicates !== true;

  /** What the store does not know yet, as far as this worker can tell. */
  function unknownOf(requests: readonly CrawlRequest[]): readonly CrawlRequest[] {
    return requests.filter((request) => !isPlain(request) || !known.has(request, request.depth));
  }

  function noteKnown(requests: readonly CrawlRequest[], at: number): void {
    // Of a connection that broke meanwhile it is not sure what it left behind.
    if (link.connections !== at) return;
    for (const request of requests) if (isPlain(request)) known.note(request, request.depth);
  }

  async function add(requests: readonly CrawlRequest[]) {
    told.note(async () => void (await addNow(requests)));
    return addNow(requests);
  }

  async function addNow(requests: readonly CrawlRequest[]) {
    const counts = { added: 0, known: 0, lowered: 0 };
    for (let from = 0, part = onePart(requests, 0); part.length > 0; from += part.length, part = onePart(requests, from)) {
      heedConnection();
      const at = link.connections;
      const groups = packGroups(part, wordsOf, extraOf);
      const [added, repeated, lowered, taken] = (await run("add", String(groups.count), ...groups.args)) as number[]; // what add.lua answers
      counts.added += added ?? 0;
      counts.known += repeated ?? 0;
      counts.lowered += lowered ?? 0;
      if (taken === 1) noteKnown(part, at);
    }
    return counts;
  }

  async function leasesOf(flat: readonly unknown[]): Promise<Lease[]> {
    const rows = Array.from({ length: flat.length / 7 }, (_, n) => flat.slice(n * 7, n * 7 + 7) as [Buffer, Buffer, number, number, Buffer, number, Buffer]); // claim.lua
    const unread = new Map<Origin, number>();
    const opened = rows.map(([token, host, priority, depth, entry, version, jar]) => {
      const { request, attempt, crashes } = readEntry(entry, host.toString("utf8"), priority, depth);
      const origin = originOf(request.url);
      if (version > 0 && !robotsKnown.has(version)) unread.set(origin, version);
      return { token: token.toString("latin1"), request, attempt, crashes, version, origin, jar };
    });
    const origins = [...unread.keys()];
    const states = await robotsStates(origins, run);
    if (robotsKnown.size > ROBOTS_KEPT) robotsKnown.clear();
    for (const [n, origin] of origins.entries()) {
      const state = states[n] ?? null;
      // It expired, or was asked for again, between the two calls: what the lease was given under still holds for it.
      robotsKnown.set(unread.get(origin) ?? 0, state ?? { version: 0, kind: "unavailable", code: "robots-unavailable", why: "expired" });
      if (state === null) unread.delete(origin);
    }
    return opened.map(({ token, request, attempt, crashes, version, jar }) => {
      held.set(token, request.hop === "robots" ? (request.rest?.robotsFor ?? null) : null);
      return {
        request,
        token,
        attempt,
        crashes,
        startWithinMs: config.startWithinMs,
        expiresInMs: config.leaseMs,
        robots: version === 0 ? null : (robotsKnown.get(version) ?? null),
        cookies: readJar(jar),
      };
    });
  }

  async function claim(max: number): Promise<Claim> {
    await told.again();
    heedConnection();
    // A nonce for each time it is sent: were the answer lost, the tokens of the repetition must be others (I4).
    const args = () => [...begin(), String(max), `${randomBytes(9).toString("base64url")}-`, String(seedsKnown)];
    const [kind, first, second, third] = (await link.script("claim", keys, args)) as unknown[]; // what claim.lua answers
    switch (text(kind)) {
      case "leases": {
        const leases = await leasesOf(first as unknown[]); // seven of each
        seedsKnown = Number(second);
        return { kind: "leases", leases, seeds: (third as Buffer[]).map(text) }; // URLs
      }
      case "wait": {
        const ms = Number(text(first));
        return { kind: "wait", waitMs: Math.min(ms < 0 ? Infinity : ms, env.pollMs ?? 250), cause: text(second) as WaitCause }; // claim.lua names no other
      }
      case "held":
        return { kind: "held", why: text(first) as "paused" }; // claim.lua names no other
      default:
        return { kind: "drained" };
    }
  }

  async function settle(pages: readonly Settled[], links: readonly CrawlRequest[]): Promise<readonly ("applied" | "stale")[]> {
    heedConnection();
    const at = connection;
    let unknown = unknownOf(links);
    const elsewhere = links.length - unknown.length;
    // A page with very many links sends the surplus before: a link is a fact, adding it twice is a no-op (I5).
    for (let part = onePart(unknown, 0); part.length < unknown.length && part.every(({ rest }) => rest === null); part = onePart(unknown, 0)) {
      unknown = unknown.slice(part.length);
      const groups = packGroups(part, wordsOf, extraOf);
      await run("settle", "0", String(groups.count), "0", ...groups.args);
      noteKnown(part, at);
    }
    const packed = pages.flatMap((page) => packSettled(page, wordsOf, (token) => held.get(token) ?? null));
    const args = (): readonly Arg[] => {
      // Repeated on a new connection, it leaves nothing out: the server may have lost what it knew.
      const all = link.connections !== at;
      const groups = packGroups(all ? links : unknown, wordsOf, extraOf);
      return [...begin(), String(pages.length), String(groups.count), String(all ? 0 : elsewhere), ...groups.args, ...packed];
    };
    const [answers, taken] = (await link.script("settle", keys, args)) as [number[], number]; // settle.lua
    if (taken === 1) noteKnown(unknown, at);
    for (const { token } of pages) held.delete(token);
    return answers.map((answer) => (answer === 1 ? "applied" : "stale"));
  }

  async function counts(): Promise<FrontierCounts> {
    const [n, control, over, tally] = (await run("counts")) as [number[], Buffer, number, Buffer[]]; // counts.lua
    const [queued = 0, delayed = 0, leased = 0, done = 0, dropped = 0, seen = 0, counted = 0, robotsLeased = 0, hostsWaiting = 0, level = 0] = n;
    const named = new Map<string, number>();
    for (let i = 0; i < tally.length; i += 2) named.set(text(tally[i]), Number(text(tally[i + 1])));
    const to = text(control) as Control; // control.lua takes no other
    return { queued, delayed, leased, done, dropped, seen, counted, robotsLeased, hostsWaiting, level, control: to, completed: over === 1, tally: named };
  }

  const alive = <A extends readonly unknown[], R>(step: (...args: A) => Promise<R>) => {
    return async (...args: A): Promise<R> => {
      if (disposed) throw new CrawlError("internal", "the frontier was disposed of");
      return step(...args);
    };
  };

  return {
    seed,
    add: alive(add),
    seedsComplete: alive(async (complete = true) => {
      const tell = async (): Promise<void> => void (await run("control", "seeds", complete ? "1" : "0"));
      told.note(tell);
      await tell();
    }),
    claim: alive(claim),
    progress: alive(async (started, ended) => {
      if (started.length + ended.length === 0) return;
      await run("progress", String(started.length), ...started.flatMap(({ token, sinceMs }) => [token, String(sinceMs)]), ...ended);
    }),
    renew: alive(async (tokens) => {
      const [control, lost] = (await run("renew", ...tokens)) as [Buffer, Buffer[]]; // renew.lua
      for (const token of lost) held.delete(text(token));
      return { lost: lost.map(text), control: text(control) as Control }; // control.lua takes no other
    }),
    settle: alive(settle),
    tune: alive(async (host, tuning) => {
      const { local, site } = wordsOf(host);
      await run("tune", "host", host, Buffer.of(local, site), packTuning(tuning));
    }),
    noteSeeds: alive(async (urls) => {
      const tell = async (): Promise<void> => void (await link.command("RPUSH", `${keys[1]}:ns`, ...urls));
      if (urls.length === 0) return;
      told.note(tell);
      await tell();
    }),
    addCookies: alive(async (cookies) => {
      for (const cookie of cookies) {
        const name = hostnameOfKey(cookie.domain);
        await run("tune", "cookies", env.siteOf?.(name) ?? name, packCookies([cookie]));
      }
    }),
    control: alive(async (to) => void (await run("control", "control", to))),
    setPageLimit: alive(async (limit) => void (await run("control", "limit", limit === null ? "" : String(limit)))),
    setItemLimit: alive(async (limit) => void (await run("control", "items", limit === null ? "" : String(limit)))),
    values: alive(async () => {
      const flat = (await link.command("HGETALL", `${keys[1]}:val`)) as Buffer[]; // what HGETALL answers
      return new Map(Array.from({ length: flat.length / 2 }, (_, n) => [text(flat[2 * n]), text(flat[2 * n + 1])]));
    }),
    setValues: alive(async (changes) => {
      if (changes.length > 0) await run("tune", "values", packValues(changes));
    }),
    counts: alive(counts),
    hosts: alive((max: number) => hostViews(link, env.id, max, run)),
    robotsOf: alive(async (origin) => (await robotsStates([origin], run))[0] ?? null),
    remaining: () => remainingOf(link, keys[1], run),
    async [Symbol.asyncDispose]() {
      if (disposed) return;
      disposed = true;
      await unsubscribe?.();
      // Who leaves in good order hands back what he holds: to the front, so the first one last.
      const back = [...held.keys()].reverse().map(returned);
      held.clear();
      for (let from = 0; from < back.length; from += 64) {
        const args = back.slice(from, from + 64).flatMap((page) => packSettled(page, wordsOf, () => null));
        // Untold, the leases run out.
        if (!(await link.parting("settle", keys, [...begin(), String(args.length / 12), "0", "0", ...args]))) break;
      }
    },
  };
}
