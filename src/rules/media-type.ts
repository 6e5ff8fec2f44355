/** Content-Type values: what kind of document a body is said to be, and whether it is wanted. Bytes are looked at in parse/. */
import { MIMEType } from "whatwg-mimetype";

/** `xml` is any XML but XHTML; `text` is read by people or programs as characters; `none`: no usable type was given, so that the bytes decide. */
export type MediaKind = "html" | "xhtml" | "xml" | "text" | "binary" | "none";

export interface MediaType {
  readonly kind: MediaKind;
  /** `type/subtype` in lower case; null without a usable type. */
  readonly essence: string | null;
  /** The charset parameter as written; null when absent. Not yet looked up. */
  readonly charset: string | null;
}

const NONE: MediaType = { kind: "none", essence: null, charset: null };

/** Servers send few different values. Bounded, because a hostile one may send many. */
const cache = new Map<string, MediaType>();
const MAX_CACHED = 500;

/** Reads a Content-Type by the MIME Sniffing Standard (§4.4); several values joined by commas count as Fetch says: the last usable one. */
export function mediaTypeOf(contentType: string | null): MediaType {
  if (contentType === null) return NONE;
  const known = cache.get(contentType);
  if (known !== undefined) return known;
  const type = readMediaType(contentType);
  if (cache.size >= MAX_CACHED) cache.clear();
  cache.set(contentType, type);
  return type;
}

/** One value: text up to a comma that stands in no quotes. */
const VALUE = /(?:[^,"]|"(?:[^"\\]|\\.)*"?)+/g;

/** Fetch, "extract a MIME type": the last usable value counts, and keeps the charset of those before it that name the same type. */
function readMediaType(contentType: string): MediaType {
  let type = NONE;
  for (const [value] of contentType.matchAll(VALUE)) {
    const mime = MIMEType.parse(value);
    if (mime === null || mime.essence === "*/*") continue;
    const { essence } = mime;
    const charset = mime.parameters.get("charset") ?? (essence === type.essence ? type.charset : null);
    type = { kind: kindOf(essence), essence, charset };
  }
  return type;
}

/** Types that say nothing (MIME Sniffing §7). */
const UNKNOWN = new Set(["unknown/unknown", "application/unknown", "*/*"]);

const TEXT =
  /^(?:text\/.*|application\/(?:.*\+)?(?:json|x-ndjson|jsonl|json5|javascript|x-javascript|ecmascript|typescript|yaml|x-yaml|toml|rtf|x-tex|x-latex|sql|graphql|x-sh|x-httpd-php|x-subrip))$/;

function kindOf(essence: string): MediaKind {
  if (essence === "text/html") return "html";
  if (essence === "application/xhtml+xml" || essence === "application/vnd.wap.xhtml+xml") return "xhtml";
  if (UNKNOWN.has(essence)) return "none";
  if (essence === "text/xml" || essence === "application/xml") return "xml";
  if (/^(?:text|application)\/.+\+xml$/.test(essence)) return "xml";
  return TEXT.test(essence) ? "text" : "binary";
}

/** Whether a body of that Content-Type is downloaded under the `types` option. Without a usable type it is, since only its bytes can tell. */
export function wantsBody(contentType: string | null, types: "text" | "html" | "all"): boolean {
  if (types === "all") return true;
  const kind = mediaTypeOf(contentType).kind;
  if (kind === "html" || kind === "xhtml" || kind === "none") return true;
  return types === "text" && kind !== "binary";
}
