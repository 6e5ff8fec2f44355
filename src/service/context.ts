/** What every route of the service works with, and small readers of a request's head. */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Context } from "hono";
import type { Clock } from "../core/clock.ts";
import type { JobService, JobView } from "../core/jobs.ts";
import type { Logger } from "../core/log.ts";
import type { Access } from "./guard.ts";
import type { ServiceLimits } from "./limits.ts";
import { preferred } from "./negotiate.ts";
import { HttpProblem, notFound, type ProblemEntry } from "./problem.ts";

export interface Service {
  readonly jobs: JobService;
  readonly clock: Clock;
  readonly log: Logger;
  readonly access: Access;
  readonly limits: ServiceLimits;
  /** Whether jobs may name scrapers of the service. */
  readonly scrapers: boolean;
  /** Files of the dashboard by path; empty: it was not built. */
  readonly assets: ReadonlyMap<string, Asset>;
  /** Aborted when the service goes down: streams of events end. */
  readonly closing: AbortSignal;
}

export interface Asset {
  readonly type: string;
  readonly body: Uint8Array<ArrayBuffer>;
  readonly etag: string;
}

export interface Env {
  Bindings: { readonly incoming: IncomingMessage; readonly outgoing: ServerResponse };
}
export type Ask = Context<Env>;

export const incomingOf = (ask: Ask): IncomingMessage => ask.env.incoming;

/** Aborted when the client is gone. */
export function goneSignal(ask: Ask): AbortSignal {
  const gone = new AbortController();
  const { outgoing } = ask.env;
  if (outgoing.destroyed) gone.abort();
  else outgoing.once("close", () => gone.abort());
  return gone.signal;
}

/** Compact JSON. */
export function jsonAnswer(value: unknown, status = 200, headers: Readonly<Record<string, string>> = {}): Response {
  const body = Buffer.from(JSON.stringify(value));
  return new Response(body, { status, headers: { "content-type": "application/json", "content-length": String(body.length), ...headers } });
}

/** The id of a path: digits only, without leading zeros, since two spellings of one job would be two resources. */
export function idOf(ask: Ask): number {
  const given = ask.req.param("id") ?? "";
  if (!/^(?:0|[1-9]\d{0,14})$/.test(given)) throw notFound("there is no such job");
  return Number(given);
}

export async function jobOf(ask: Ask, { jobs }: Service): Promise<JobView> {
  const job = await jobs.get(idOf(ask));
  if (job === null) throw notFound("there is no such job");
  return job;
}

export function typeOf<T extends string>(ask: Ask, offers: readonly T[]): T {
  const type = preferred(ask.req.header("accept") ?? null, offers);
  if (type === null) throw new HttpProblem({ status: 406, detail: `this is given as ${offers.join(", ")}` });
  return type;
}

export interface Query {
  text(name: string): string | null;
  /** A whole number from 1; the default where it is absent. */
  limit(most: number, usual: number): number;
  wrong(name: string, message: string): void;
  /** What was wrong so far. */
  readonly faults: readonly ProblemEntry[];
  /** Throws HttpProblem 400 with everything that was wrong. */
  check(): void;
}

/** Parameters of the query, each at most once, and no others than these. */
export function queryOf(ask: Ask, names: readonly string[]): Query {
  const given = ask.req.queries();
  const errors: ProblemEntry[] = [];
  const wrong = (option: string, message: string) => void errors.push({ option, message });
  for (const [name, values] of Object.entries(given)) {
    if (!names.includes(name))
      wrong(name.slice(0, 40), names.length === 0 ? "no such parameter; there are none here" : `no such parameter; there are ${names.join(", ")}`);
    else if (values.length > 1) wrong(name, "is given more than once");
  }
  // An empty one counts as absent: `?state=&cursor=`.
  const textOf = (name: string) => (Object.hasOwn(given, name) ? given[name]?.[0] || null : null);
  return {
    text: textOf,
    limit(most, usual) {
      const value = textOf("limit");
      if (value === null) return usual;
      const count = /^\d{1,9}$/.test(value) ? Number(value) : 0;
      if (count >= 1 && count <= most) return count;
      wrong("limit", `expected a whole number from 1 to ${most}`);
      return usual;
    },
    wrong,
    faults: errors,
    check() {
      if (errors.length > 0) throw new HttpProblem({ status: 400, detail: errors.map(({ option, message }) => `${option}: ${message}`).join("; "), errors });
    },
  };
}

/** Of a route with a body and without parameters: those that were given all the same. */
export function queryFaults(ask: Ask): readonly ProblemEntry[] {
  return ask.req.url.includes("?") ? queryOf(ask, []).faults : [];
}

/** The same address with another cursor, relative to the service: whatever name and path it has outside. */
export function linkNext(ask: Ask, cursor: string): string {
  const url = new URL(ask.req.url);
  url.searchParams.set("cursor", cursor);
  return `<${url.pathname}${url.search}>; rel="next"`;
}
