/** The body of a request that brings URLs, whatever its form: multipart, plain lines, a form of curl -d, JSON. Says what it holds, not what becomes of it. */
import type { IncomingMessage } from "node:http";
import { asUtf8, type Bytes, bounded, formField, jsonOf, peeked } from "./bytes.ts";
import { plainBody } from "./coded.ts";
import type { ServiceLimits } from "./limits.ts";
import { partsOf } from "./multipart.ts";
import { HttpProblem, type ProblemEntry } from "./problem.ts";

export const UPLOAD_TYPES = ["multipart/form-data", "text/plain", "application/json", "application/x-www-form-urlencoded"] as const;

/** `faults`: what is wrong with its form; whoever reads it tells of them beside what else is wrong. */
export type Upload = { readonly faults: readonly ProblemEntry[] } & (
  | { readonly kind: "json"; readonly value: unknown }
  /**
   * `spec`: the JSON of a multipart field of that name, before the URLs; undefined: there is none; null: it cannot be read. Lines are bytes, so that they can be kept
   * as they came.
   */
  | { readonly kind: "lines"; readonly spec: unknown; readonly bytes: Bytes }
);

const NO_FAULTS: readonly ProblemEntry[] = [];

const FIELD = "urls";

/** The media type without parameters, in lower case; empty: none was given. */
export function mediaTypeOf(incoming: IncomingMessage): string {
  return (incoming.headers["content-type"] ?? "").split(";", 1)[0]?.trim().toLowerCase() ?? "";
}

export function unsupported(accepted: readonly string[]): HttpProblem {
  return new HttpProblem({ status: 415, detail: `expected a body of type ${accepted.join(", ")}`, headers: { accept: accepted.join(", ") }, close: true });
}

/** The charset that the head names for a text; null: none. Throws HttpProblem 415 for one that nobody knows. */
function charsetOf(incoming: IncomingMessage): string | null {
  const label = /;\s*charset\s*=\s*"?([^\s;"]+)/i.exec(incoming.headers["content-type"] ?? "")?.[1] ?? null;
  try {
    return label === null ? null : new TextDecoder(label).encoding;
  } catch {
    throw new HttpProblem({
      status: 415,
      detail: "the charset of the body is not known here; UTF-8 is",
      headers: { accept: UPLOAD_TYPES.join(", ") },
      close: true,
    });
  }
}

/** What curl -d sends says that it is a form, whatever it is. */
async function formUpload(body: Bytes, jsonBytes: number): Promise<Upload> {
  const { first, bytes } = await peeked(body);
  if (first === "{" || first === "[") return { kind: "json", value: await jsonOf(bounded(bytes, jsonBytes, "the body")), faults: NO_FAULTS };
  return { kind: "lines", spec: undefined, faults: NO_FAULTS, bytes: formField(bytes, FIELD) };
}

const LINE_END = Buffer.from("\n");

const spelt = (faults: readonly ProblemEntry[]): string => faults.map(({ option, message }) => `${option}: ${message}`).join("; ");

const unknownField = (name: string): ProblemEntry => ({ option: name.slice(0, 40), message: "unknown multipart field; URLs stand in the field urls" });

/** Fails at its end with every field that should not stand there. */
async function* restOfUrls(first: Bytes, parts: AsyncIterator<{ name: string; chunks: Bytes }>): AsyncGenerator<Uint8Array> {
  const faults: ProblemEntry[] = [];
  try {
    yield* asUtf8(first, null);
    for (let next = await parts.next(); !next.done; next = await parts.next()) {
      const { name, chunks } = next.value;
      if (name === FIELD) {
        // Fields one after the other: the last line of the one before may lack its end.
        yield LINE_END;
        yield* asUtf8(chunks, null);
      } else faults.push(name === "spec" ? { option: name, message: "the field spec must stand before the field urls" } : unknownField(name));
    }
  } finally {
    await parts.return?.();
  }
  if (faults.length > 0) throw new HttpProblem({ status: 400, detail: spelt(faults), errors: faults, close: true });
}

async function multipart(body: Bytes, contentType: string, takesSpec: boolean, jsonBytes: number): Promise<Upload> {
  const parts = partsOf(body, contentType);
  const faults: ProblemEntry[] = [];
  let spec: unknown;
  try {
    for (let next = await parts.next(); !next.done; next = await parts.next()) {
      const { name, chunks } = next.value;
      if (name === FIELD) return { kind: "lines", spec, faults, bytes: restOfUrls(chunks, parts) };
      if (name !== "spec" || !takesSpec) faults.push(unknownField(name));
      else if (spec !== undefined) faults.push({ option: name, message: "is given more than once" });
      else spec = await specOf(bounded(chunks, jsonBytes, "the field spec"), faults);
    }
  } catch (error) {
    await parts.return(undefined);
    throw error;
  }
  // Seeds may stand in the spec.
  if (spec !== undefined) return { kind: "json", value: spec, faults };
  const errors = [...faults, { option: FIELD, message: "expected a field with one URL a line" }];
  throw new HttpProblem({ status: 400, detail: [...faults.map((fault) => spelt([fault])), "the multipart body has no field urls"].join("; "), errors });
}

/** Null: it is no JSON, which is noted. */
async function specOf(chunks: Bytes, faults: ProblemEntry[]): Promise<unknown> {
  try {
    return await jsonOf(chunks);
  } catch (error) {
    if (!(error instanceof HttpProblem) || error.details.status !== 400 || error.details.errors === undefined) throw error;
    faults.push(...error.details.errors.map((entry) => ({ ...entry, option: "spec" })));
    return null;
  }
}

/** Reads the body as far as must be to know what it is; the lines are yet to be pulled. `takesSpec`: a multipart body may bring options. */
export async function readUpload(incoming: IncomingMessage, limits: ServiceLimits, takesSpec: boolean): Promise<Upload> {
  const type = mediaTypeOf(incoming);
  const body = (limit: number) => plainBody(incoming, limit);
  switch (type) {
    case "application/json":
      return { kind: "json", value: await jsonOf(body(limits.jsonBytes)), faults: NO_FAULTS };
    case "multipart/form-data":
      return multipart(body(limits.uploadBytes), incoming.headers["content-type"] ?? "", takesSpec, limits.jsonBytes);
    case "application/x-www-form-urlencoded":
      return formUpload(body(limits.uploadBytes), limits.jsonBytes);
    case "text/plain":
    case "text/uri-list":
    case "application/octet-stream":
    case "": // curl -T says nothing
      return { kind: "lines", spec: undefined, faults: NO_FAULTS, bytes: asUtf8(body(limits.uploadBytes), charsetOf(incoming)) };
    default:
      throw unsupported(UPLOAD_TYPES);
  }
}
