/** What went wrong with a request, as problem details (RFC 9457). Says nothing of the machine inside: no path, address or stack. */
import { STATUS_CODES } from "node:http";

/** One thing that is wrong: an option of the body, a parameter of the query, a line of an upload. */
export interface ProblemEntry {
  /** Name of the option or parameter, e.g. `limits.pages`; empty: the body as a whole. */
  readonly option?: string;
  /** Place in a JSON body (RFC 6901), with `#` before it. */
  readonly pointer?: string;
  /** Line of an upload, from 1. */
  readonly line?: number;
  readonly text?: string;
  readonly message: string;
}

export interface ProblemDetails {
  readonly status: number;
  /** One sentence for people, of this occurrence. */
  readonly detail: string;
  readonly errors?: readonly ProblemEntry[];
  readonly headers?: Readonly<Record<string, string>>;
  /** Further members, e.g. `rejected`. */
  readonly more?: Readonly<Record<string, unknown>>;
  /** The rest of the body is not read: the connection ends with the answer. */
  readonly close?: boolean;
}

/** Thrown by whatever reads a request; answered as it stands. */
export class HttpProblem extends Error {
  readonly details: ProblemDetails;
  constructor(details: ProblemDetails) {
    super(details.detail);
    this.name = "HttpProblem";
    this.details = details;
  }
}

export const PROBLEM_TYPE = "application/problem+json";

export function problemResponse({ status, detail, errors, headers, more, close }: ProblemDetails): Response {
  const body = { type: "about:blank", title: STATUS_CODES[status] ?? "Error", status, detail, ...(errors === undefined ? {} : { errors }), ...more };
  const bytes = Buffer.from(JSON.stringify(body));
  return new Response(bytes, {
    status,
    headers: { "content-type": PROBLEM_TYPE, "content-length": String(bytes.length), ...headers, ...(close ? { connection: "close" } : {}) },
  });
}

/** A dot path of an option as a JSON pointer: `limits.pages` is `#/limits/pages`. */
export function pointerOf(option: string): string {
  const steps = option === "" || option === "spec" ? [] : option.split(".");
  return ["#", ...steps.map((step) => step.replaceAll("~", "~0").replaceAll("/", "~1"))].join("/");
}

export function notFound(what: string): HttpProblem {
  return new HttpProblem({ status: 404, detail: what });
}
