/** Who answers at a store's address when no connection comes about: Redis, TLS, something else, Sentinels that know no such master. Asks by a socket of its own, once. */
import { connect, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import type { RedisAddress } from "./address.ts";
import { adviceFor, PASSING, troubleOf } from "./trouble.ts";

/** Why there is no connection. `final`: waiting does not help. */
export interface Diagnosis {
  readonly final: boolean;
  /** Follows "the store at HOST:PORT". */
  readonly text: string;
}

const WITHIN_MS = 1_000;
const LISTEN_FIRST_MS = 30;
const PING = ["PING"] as const;

interface Node {
  readonly host: string;
  readonly port: number;
}

/** `said`: first bytes as Latin-1; empty: it closed, or said nothing in time. `secured`: TLS came about. `failed`: code of the failure. */
interface Answer {
  readonly said: string;
  readonly secured: boolean;
  readonly failed: string | null;
}

const packed = (words: readonly string[]): string => `*${words.length}\r\n${words.map((word) => `$${Buffer.byteLength(word)}\r\n${word}\r\n`).join("")}`;
const isRedis = ({ said }: Answer): boolean => /^(?:\+PONG|-[A-Z]+ |\*)/.test(said);
/** A TLS alert or handshake record (RFC 8446 §5.1). */
const isTlsRecord = ({ said }: Answer): boolean => /^[\x15\x16]\x03/.test(said);

/** Says the words and reads what comes first. Certificates are not looked at: no secret is sent. */
function ask({ host, port }: Node, tls: boolean, words: readonly string[]): Promise<Answer> {
  return new Promise((resolve) => {
    const socket: Socket = tls ? connectTls({ host, port, rejectUnauthorized: false }) : connect({ host, port });
    let secured = false;
    let said = "";
    let speaking: NodeJS.Timeout | undefined;
    const done = (failed: string | null): void => {
      clearTimeout(timer);
      clearTimeout(speaking);
      socket.destroy();
      resolve({ said, secured, failed });
    };
    const timer = setTimeout(() => done("ETIMEDOUT"), WITHIN_MS);
    socket.once(tls ? "secureConnect" : "connect", () => {
      secured = tls;
      // Who turns everybody away says so first and closes; a write would lose it.
      speaking = setTimeout(() => socket.write(packed(words)), LISTEN_FIRST_MS);
    });
    socket.on("data", (bytes) => {
      said += bytes.toString("latin1");
      // One line tells; of an array its first two elements may be wanted.
      if (said.includes("\n") && (!said.startsWith("*") || said.split("\r\n").length > 5 || said === "*-1\r\n")) done(null);
      else if (isTlsRecord({ said, secured, failed: null })) done(null);
    });
    socket.once("error", (error: Error & { readonly code?: string }) => done(error.code ?? error.message));
    socket.once("close", () => done("it closed the connection"));
  });
}

const notRedis = ({ said }: Answer): string => {
  const begin = /^[ -~]{1,40}/.exec(said)?.[0].trim() ?? "";
  return `cannot be used: what answers there is not Redis${begin === "" ? "" : ` (it says ${JSON.stringify(begin)})`}. Check host and port, or name another store with --store (or SKEIN_STORE)`;
};

const speaks = (what: string, right: string, wrong: string): string =>
  `cannot be used: what answers there ${what}. Write ${right} in place of ${wrong} (--store, SKEIN_STORE), or name another port`;

/** A Redis that closes a connection before it is asked anything. */
function turnedAway({ said }: Answer): Diagnosis | null {
  const word = /^-([^\r\n]+)/.exec(said)?.[1] ?? "";
  if (word.startsWith("DENIED")) return { final: true, text: `lets nobody in: ${troubleOf(word)}` };
  return PASSING.test(word) ? { final: false, text: `did not let this process in: ${word}. ${adviceFor(word)}` } : null;
}

async function ofServer(node: Node, tls: boolean): Promise<Diagnosis | null> {
  const plain = await ask(node, false, PING);
  const away = turnedAway(plain);
  if (away !== null) return away;
  if (isRedis(plain)) return tls ? { final: true, text: speaks("is Redis without TLS", "redis://", "rediss://") } : null;
  if (plain.said !== "" && !isTlsRecord(plain)) return { final: true, text: notRedis(plain) };
  const secured = await ask(node, true, PING);
  if (!secured.secured) return null;
  if (secured.said !== "" && !isRedis(secured)) return { final: true, text: notRedis(secured) };
  return tls ? null : { final: true, text: speaks("speaks TLS", "rediss://", "redis://") };
}

const shown = ({ host, port }: Node): string => `${host.includes(":") ? `[${host}]` : host}:${port}`;

/** What one of them says of the name: null, when it knows the master; whether waiting may help. */
async function ofSentinel(node: Node, tls: boolean, name: string): Promise<{ readonly why: string; readonly final: boolean } | null> {
  const answer = await ask(node, tls, ["SENTINEL", "get-master-addr-by-name", name]);
  const { said, failed } = answer;
  if (said.startsWith("*-1")) return { why: `${shown(node)} knows no master of that name`, final: true };
  if (/^\*\d/.test(said)) return null;
  if (/^-(?:NOAUTH|NOPERM)/.test(said)) return { why: `${shown(node)} asks for a password, and none is offered to Sentinels`, final: true };
  if (said.startsWith("-ERR unknown command")) return { why: `${shown(node)} is a Redis, not a Sentinel (name it as redis://HOST:PORT)`, final: true };
  if (said !== "" && !isRedis(answer))
    return { why: `${shown(node)} is ${isTlsRecord(answer) ? "one that speaks TLS (rediss+sentinel://)" : "not a Sentinel"}`, final: true };
  if (tls && (await ask(node, false, PING)).said.startsWith("+PONG")) return { why: `${shown(node)} speaks no TLS (redis+sentinel://)`, final: true };
  return { why: `${shown(node)} does not answer (${failed ?? "no answer"})`, final: false };
}

async function ofSentinels(nodes: readonly Node[], tls: boolean, name: string): Promise<Diagnosis | null> {
  const found = await Promise.all(nodes.map((node) => ofSentinel(node, tls, name)));
  const faults = found.filter((one) => one !== null);
  // One that knows the master is enough.
  if (faults.length < found.length) return null;
  const final = faults.every((fault) => fault.final);
  const text =
    `cannot be found: ${faults.map(({ why }) => why).join("; ")}. ` +
    "The store's URL names Sentinels and master: redis+sentinel://HOST:26379,HOST/NAME (--store, SKEIN_STORE)";
  return { final, text };
}

/** Null: nothing was found that explains it. Takes two seconds at most. */
export function diagnose({ host, port, tls, sentinels }: RedisAddress): Promise<Diagnosis | null> {
  return sentinels === null ? ofServer({ host, port }, tls) : ofSentinels(sentinels.nodes, tls, sentinels.name);
}
