/** The body of a request that brings URLs, whatever its form: multipart, plain lines, a form of curl -d, JSON. Says what it holds, not what becomes of it. */
import type { IncomingMessage } from "node:http";
import { asUtf8, type Bytes, bounded, formField, jsonOf, peeked } from "./bytes.ts";
import { plainBody } from "./coded.ts";
import type { ServiceLimits } from "./limits.ts";
import { partsOf } from "./multipart.ts";
import { HttpProblem } from "./problem.ts";

export const UPLOAD_TYPES = ["multipart/form-data", "text/plain", "application/json", "application/x-www-form-urlencoded"] as const;

export type Upload =
  | { readonly kind: "json"; readonly value: unknown }
  /** `spec`: the JSON of a multipart field of that name, before the URLs; undefined: there is none. Lines are bytes, so that they can be kept as they came. */
  | { readonly kind: "lines"; readonly spec: unknown; readonly bytes: Bytes };

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
  if (first === "{" || first === "[") return { kind: "json", value: await jsonOf(bounded(bytes, jsonBytes, "the body")) };
  return { kind: "lines", spec: undefined, bytes: formField(bytes, FIELD) };
}

const LINE_END = Buffer.from("\n");

async function* restOfUrls(first: Bytes, parts: AsyncIterator<{ name: string; chunks: Bytes }>): AsyncGenerator<Uint8Array> {
  try {
    yield* asUtf8(first, null);
    for (let next = await parts.next(); !next.done; next = await parts.next()) {
      const { name, chunks } = next.value;
      if (name === "spec") throw new HttpProblem({ status: 400, detail: "the field spec must stand before the field urls", close: true });
      if (name !== FIELD) throw unknownField(name);
      // Fields one after the other: the last line of the one before may lack its end.
      yield LINE_END;
      yield* asUtf8(chunks, null);
    }
  } finally {
    await parts.return?.();
  }
}

function unknownField(name: string): HttpProblem {
  const shown = JSON.stringify(name.slice(0, 40));
  return new HttpProblem({
    status: 400,
    detail: `unknown multipart field ${shown}; URLs stand in the field urls`,
    errors: [{ option: name.slice(0, 40), message: "no such field" }],
    close: true,
  });
}

async function multipart(body: Bytes, contentType: string, takesSpec: boolean, jsonBytes: number): Promise<Upload> {
  const parts = partsOf(body, contentType);
  let spec: unknown;
  try {
    for (let next = await parts.next(); !next.done; next = await parts.next()) {
      const { name, chunks } = next.value;
      if (name === FIELD) return { kind: "lines", spec, bytes: restOfUrls(chunks, parts) };
      if (name !== "spec" || !takesSpec || spec !== undefined) throw unknownField(name);
      spec = await jsonOf(bounded(chunks, jsonBytes, "the field spec"));
    }
  } catch (error) {
    await parts.return(undefined);
    throw error;
  }
  // Seeds may stand in the spec.
  if (spec !== undefined) return { kind: "json", value: spec };
  throw new HttpProblem({
    status: 400,
    detail: "the multipart body has no field urls",
    errors: [{ option: FIELD, message: "expected a field with one URL a line" }],
  });
}

/** Reads the body as far as must be to know what it is; the lines are yet to be pulled. `takesSpec`: a multipart body may bring options. */
export async function readUpload(incoming: IncomingMessage, limits: ServiceLimits, takesSpec: boolean): Promise<Upload> {
  const type = mediaTypeOf(incoming);
  const body = (limit: number) => plainBody(incoming, limit);
  switch (type) {
    case "application/json":
      return { kind: "json", value: await jsonOf(body(limits.jsonBytes)) };
    case "multipart/form-data":
      return multipart(body(limits.uploadBytes), incoming.headers["content-type"] ?? "", takesSpec, limits.jsonBytes);
    case "application/x-www-form-urlencoded":
      return formUpload(body(limits.uploadBytes), limits.jsonBytes);
    case "text/plain":
    case "text/uri-list":
    case "application/octet-stream":
    case "": // curl -T says nothing
      return { kind: "lines", spec: undefined, bytes: asUtf8(body(limits.uploadBytes), charsetOf(incoming)) };
    default:
      throw unsupported(UPLOAD_TYPES);
  }
}

/** A list of URLs in JSON, each text as it stands. Throws HttpProblem 400 that names every entry that is no text, the first hundred at least. */
export function urlList(value: unknown, pointer: string): readonly string[] {
  if (!Array.isArray(value))
    throw new HttpProblem({
      status: 400,
      detail: "expected a list of URLs",
      errors: [{ option: pointer.slice(2), pointer, message: "expected a list of URLs" }],
    });
  const list: readonly unknown[] = value;
  const errors = list.flatMap((entry, index) =>
    typeof entry === "string" ? [] : [{ option: pointer.slice(2), pointer: `${pointer}/${index}`, message: "expected a text" }],
  );
  if (errors.length > 0) throw new HttpProblem({ status: 400, detail: "expected a list of URLs", errors: errors.slice(0, 100) });
  return list.filter((entry) => typeof entry === "string");
}
