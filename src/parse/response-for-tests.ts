/** For tests only: a response as the fetch room would hand it over. */
import type { FetchedResponse } from "../core/outcome.ts";

export function htmlResponse(
  body: string | Uint8Array,
  contentType: string | null,
  headers: Readonly<Record<string, readonly string[]>> = {},
): FetchedResponse {
  const bytes = typeof body === "string" ? Buffer.from(body, "utf8") : body;
  return {
    status: 200,
    headers: { get: (name) => headers[name]?.join(", ") ?? null, all: (name) => headers[name] ?? [], names: () => Object.keys(headers) },
    contentType,
    body: bytes,
    wireBytes: bytes.length,
    truncated: false,
    bodySkipped: false,
  };
}
