/** Opens connections: name → checked addresses → TCP → proxy tunnel → TLS. The address that was checked is the one connected to. */
import { isIP, type Socket, connect as tcpConnect } from "node:net";
import type { SecureContext } from "node:tls";
import type { Clock, Timer } from "../core/clock.ts";
import { type AddressGuard, isLocalAddress } from "../rules/address.ts";
import type { ResolvedAddress, Resolver } from "./dns.ts";
import { FAILURES, type Failure, toFailure } from "./errors.ts";
import { openTunnel, type ProxyServer } from "./proxy.ts";

export interface DialTarget {
  readonly secure: boolean;
  /** ASCII, without brackets. */
  readonly hostname: string;
  readonly port: number;
  readonly proxy: ProxyServer | null;
  /** The last TLS session of this origin, for resumption; kept up to date here. */
  readonly resume: { session: Buffer | null };
}

export type Dialled =
  /** `local`: the socket's other end is on this machine or its network; false behind a proxy. */
  { readonly kind: "connected"; readonly socket: Socket; readonly local: boolean } | { readonly kind: "failed"; readonly failure: Failure };

/** A connection being opened. `cancel` closes what is open; the callback is then not called. */
export interface Dialling {
  cancel(): void;
}

export interface Dialler {
  dial(target: DialTarget, callback: (dialled: Dialled) => void): Dialling;
}

/** The next address is tried beside the present one after this long (RFC 8305 §5: 250 ms). */
const ATTEMPT_MS = 250;

interface Attempt {
  readonly target: DialTarget;
  readonly callback: (dialled: Dialled) => void;
  readonly sockets: Set<Socket>;
  timer: Timer | null;
  over: boolean;
}

export function createDialler(options: {
  readonly clock: Clock;
  readonly resolver: Resolver;
  readonly guard: AddressGuard;
  /** Whether the guard refuses anything at all: only then are names behind a proxy resolved here. */
  readonly guarded: boolean;
  readonly insecure: boolean;
}): Dialler {
  let context: SecureContext | null = null;

  return {
    dial(target, callback) {
      const attempt: Attempt = { target, callback, sockets: new Set(), timer: null, over: false };
      const { proxy } = target;
      if (!proxy) withAddresses(attempt, target.hostname, true, (addresses) => race(attempt, addresses, target.port));
      else if (options.guarded) withAddresses(attempt, target.hostname, true, () => viaProxy(attempt, proxy));
      else viaProxy(attempt, proxy);
      return { cancel: () => void close(attempt, null) };
    },
  };

  function withAddresses(attempt: Attempt, hostname: string, checked: boolean, next: (addresses: readonly ResolvedAddress[]) => void): void {
    options.resolver.resolve(hostname, (resolution) => {
      if (attempt.over) return;
      if (resolution.kind === "error") return fail(attempt, toFailure(resolution.error, false));
      const allowed = checked ? resolution.addresses.filter((entry) => options.guard(hostname, entry.address)) : resolution.addresses;
      if (allowed.length === 0) fail(attempt, FAILURES.blocked);
      else next(allowed);
    });
  }

  /** The proxy's own address is the operator's choice and is not checked. */
  function viaProxy(attempt: Attempt, proxy: ProxyServer): void {
    withAddresses(attempt, proxy.hostname, false, (addresses) => race(attempt, addresses, proxy.port));
  }

  /** Tries the addresses in order; the next one starts when one fails or is slow; the first to connect wins (RFC 8305). */
  function race(attempt: Attempt, addresses: readonly ResolvedAddress[], port: number): void {
    let next = 0;
    let pending = 0;
    let firstError: unknown = null;
    const start = () => {
      attempt.timer?.cancel();
      attempt.timer = null;
      const address = addresses[next++];
      if (!address) return;
      pending++;
      const socket = tcpConnect({ host: address.address, port, noDelay: true });
      attempt.sockets.add(socket);
      const onError = (error: unknown) => {
        pending--;
        firstError ??= error;
        attempt.sockets.delete(socket);
        socket.destroy();
        if (attempt.over) return;
        if (next < addresses.length) start();
        else if (pending === 0) fail(attempt, toFailure(firstError, false));
      };
      socket.once("error", onError);
      socket.once("connect", () => {
        if (attempt.over) return;
        socket.off("error", onError);
        attempt.sockets.delete(socket);
        abandon(attempt);
        connected(attempt, socket, address.address);
      });
      if (next < addresses.length) attempt.timer = options.clock.after(ATTEMPT_MS, start);
    };
    start();
  }

  function connected(attempt: Attempt, socket: Socket, address: string): void {
    attempt.sockets.add(socket);
    const { target } = attempt;
    const { proxy } = target;
    if (!proxy) {
      if (target.secure) handshake(attempt, socket, target.hostname, isLocalAddress(address));
      else succeed(attempt, socket, isLocalAddress(address));
      return;
    }
    const tunnel = (toProxy: Socket) => {
      if (!target.secure) return succeed(attempt, toProxy, false);
      openTunnel(toProxy, proxy, target, (failure) => {
        if (attempt.over) return;
        if (failure) fail(attempt, failure);
        else handshake(attempt, toProxy, target.hostname, false);
      });
    };
    if (proxy.secure) handshake(attempt, socket, proxy.hostname, false, tunnel);
    else tunnel(socket);
  }

  function handshake(attempt: Attempt, raw: Socket, hostname: string, local: boolean, then?: (socket: Socket) => void): void {
    // Loaded by the first https page: it takes as long to load as all else in this room.
    const tls = process.getBuiltinModule("node:tls");
    context ??= tls.createSecureContext();
    const { resume } = attempt.target;
    // Certificates and SNI know no trailing dot (RFC 6066 §3).
    const name = hostname.replace(/\.$/, "");
    const socket = tls.connect({
      socket: raw,
      host: name,
      servername: isIP(name) === 0 ? name : "",
      ALPNProtocols: ["http/1.1"],
      rejectUnauthorized: !options.insecure,
      secureContext: context,
      ...(resume.session && !then ? { session: resume.session } : {}),
    });
    attempt.sockets.add(socket);
    const onError = (error: unknown) => fail(attempt, toFailure(error, false, "tls"));
    socket.once("error", onError);
    if (!then) socket.on("session", (session) => void (resume.session = session));
    socket.once("secureConnect", () => {
      if (attempt.over) return;
      socket.off("error", onError);
      if (then) then(socket);
      else succeed(attempt, socket, local);
    });
  }

  function succeed(attempt: Attempt, socket: Socket, local: boolean): void {
    attempt.over = true;
    attempt.sockets.clear();
    attempt.callback({ kind: "connected", socket, local });
  }

  function fail(attempt: Attempt, failure: Failure): void {
    close(attempt, failure);
  }

  function close(attempt: Attempt, failure: Failure | null): void {
    if (attempt.over) return;
    attempt.over = true;
    abandon(attempt);
    if (failure) attempt.callback({ kind: "failed", failure });
  }

  /** Closes every socket the attempt still holds. */
  function abandon(attempt: Attempt): void {
    attempt.timer?.cancel();
    attempt.timer = null;
    for (const socket of attempt.sockets) {
      socket.on("error", ignoreLate);
      socket.destroy();
    }
    attempt.sockets.clear();
  }
}

/** A socket that was given up may still report its failure; it has been answered for. */
function ignoreLate(): void {}
