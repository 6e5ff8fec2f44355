/** What a handler asks to follow: options checked, references found, everything copied out of the page. Where a reference leads is decided by the crawl. */
import type { CheerioAPI } from "cheerio";
import type { Follow } from "../../core/scraping.ts";
import { type FollowOptions, isRecord, type Reference, whatIs } from "./define.ts";
import { detached } from "./detach.ts";
import { jsonOf } from "./json.ts";

/** A follow before the page has ended: what a watermark has counted is known only then. */
export type PendingFollow = Omit<Follow, "oldRuns">;

const OPTIONS = ["handler", "priority", "data", "series", "index", "method", "body", "headers", "dontDedupe"];
const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;

/** Null: nothing to follow. Throws TypeError, RangeError or Error that says which option is wrong. */
export function readFollow(href: Reference, options: FollowOptions | undefined, handlers: ReadonlySet<string>): PendingFollow | null {
  const rest = readOptions(options, handlers);
  const reference = href instanceof URL ? href.href : href;
  if (reference === undefined || reference === null || reference === "") return null;
  if (typeof reference !== "string") throw new TypeError(`follow: expected a URL, not ${whatIs(reference)}`);
  return { href: detached(reference), ...rest };
}

type Rest = Omit<PendingFollow, "href">;
const PLAIN: Rest = { handler: null, priority: 0, data: null, series: null, index: null, method: null, body: null, headers: null, dontDedupe: false };

function readOptions(options: FollowOptions | undefined, handlers: ReadonlySet<string>): Rest {
  if (options === undefined) return PLAIN;
  if (typeof options !== "object" || options === null || Array.isArray(options)) throw new TypeError(`follow: expected options, not ${whatIs(options)}`);
  for (const key of Object.keys(options)) {
    if (!OPTIONS.includes(key)) throw new TypeError(`follow: there is no option ${JSON.stringify(key)}; there are ${OPTIONS.join(", ")}`);
  }
  const { handler, priority = 0, series, index, dontDedupe = false } = options;
  if (handler !== undefined && !handlers.has(handler)) {
    throw new Error(`follow: there is no handler ${JSON.stringify(handler)}; the handlers are ${[...handlers].join(", ")}`);
  }
  if (!Number.isInteger(priority) || priority < -99 || priority > 99)
    throw new RangeError(`follow: priority must be an integer from -99 to 99, not ${whatIs(priority)}`);
  if (series !== undefined && (typeof series !== "string" || series === "")) throw new TypeError(`follow: series must be a name, not ${whatIs(series)}`);
  if (index !== undefined && (!Number.isSafeInteger(index) || index < 0))
    throw new RangeError(`follow: index must be an integer, 0 or more, not ${whatIs(index)}`);
  if (index !== undefined && series === undefined) throw new TypeError("follow: an index is a place in a series: name the series too");
  if (typeof dontDedupe !== "boolean") throw new TypeError(`follow: dontDedupe must be true or false, not ${whatIs(dontDedupe)}`);
  return {
    handler: handler === undefined ? null : detached(handler),
    priority,
    data: dataOf(options.data),
    series: series === undefined ? null : detached(series),
    index: index ?? null,
    ...readMessage(options),
    dontDedupe,
  };
}

function dataOf(data: unknown): string | null {
  if (data === undefined) return null;
  if (typeof data !== "object" || data === null) throw new TypeError(`follow: data must be an object, not ${whatIs(data)}`);
  return jsonOf("follow: data", data);
}

function readMessage(options: FollowOptions): Pick<Follow, "method" | "body" | "headers"> {
  const { method } = options;
  if (method !== undefined && (typeof method !== "string" || !TOKEN.test(method)))
    throw new TypeError(`follow: method must be a name such as POST, not ${whatIs(method)}`);
  const upper = method?.toUpperCase();
  if (upper === "CONNECT" || upper === "TRACE") throw new TypeError(`follow: a crawl makes no ${upper} requests`);
  const headers = headersOf(options.headers);
  const sent = options.body === undefined ? null : bodyOf(options.body);
  if (sent !== null && (upper === "GET" || upper === "HEAD")) throw new TypeError(`follow: a ${upper} request has no body`);
  const typed = sent?.type == null || Object.keys(headers ?? {}).some((name) => name.toLowerCase() === "content-type");
  return {
    method: upper !== undefined ? (upper === "GET" ? null : detached(upper)) : sent === null ? null : "POST",
    body: sent?.bytes ?? null,
    headers: typed ? headers : { ...headers, "content-type": sent?.type ?? "" },
  };
}

function bodyOf(body: NonNullable<FollowOptions["body"]>): { readonly bytes: Uint8Array; readonly type: string | null } {
  if (typeof body === "string") return { bytes: utf8(body), type: "text/plain;charset=UTF-8" };
  if (body instanceof Uint8Array) return { bytes: new Uint8Array(body), type: null };
  if (body instanceof URLSearchParams) return { bytes: utf8(body.toString()), type: "application/x-www-form-urlencoded;charset=UTF-8" };
  if (typeof body === "object" && body !== null) return { bytes: utf8(jsonOf("follow: body", body)), type: "application/json" };
  throw new TypeError(`follow: body must be a string, bytes, URLSearchParams or an object, not ${whatIs(body)}`);
}

function utf8(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

function headersOf(headers: unknown): Readonly<Record<string, string>> | null {
  if (headers === undefined) return null;
  if (!isRecord(headers)) throw new TypeError(`follow: headers must be an object, not ${whatIs(headers)}`);
  const read: Record<string, string> = {};
  for (const [name, value] of Object.entries(headers)) {
    if (!TOKEN.test(name)) throw new TypeError(`follow: ${JSON.stringify(name)} is not the name of a header`);
    if (typeof value !== "string" || /[\r\n\0]/.test(value)) throw new TypeError(`follow: header ${name} must be one line of text, not ${whatIs(value)}`);
    read[detached(name)] = detached(value);
  }
  return read;
}

/** References by CSS selector, or of several references and elements. Throws for what is neither. */
export function referencesOf(target: string | Iterable<Reference | object>, document: { readonly $: CheerioAPI }): Reference[] {
  const found: Reference[] = [];
  if (typeof target === "string") {
    for (const element of document.$(target)) addReferences(element, document.$, found);
    return found;
  }
  if (typeof target !== "object" || target === null || !(Symbol.iterator in target))
    throw new TypeError(`followAll: expected a selector or several URLs, not ${whatIs(target)}`);
  for (const one of target) {
    if (one === undefined || one === null || typeof one === "string" || one instanceof URL) found.push(one);
    else if (typeof one === "object" && "attribs" in one) addReferences(one, document.$, found);
    else throw new TypeError(`followAll: expected a URL or an element, not ${whatIs(one)}`);
  }
  return found;
}

/** An element's own href or src; the links inside it where it has neither. */
function addReferences(element: object, $: CheerioAPI, found: Reference[]): void {
  const own = referenceOf(element);
  if (own !== null) found.push(own);
  // `as`: elements come from the document, or have the attributes of its elements.
  else for (const inner of $(element as Parameters<CheerioAPI>[0]).find("a[href], area[href]")) found.push(referenceOf(inner));
}

function referenceOf(element: object): string | null {
  const attributes: unknown = "attribs" in element ? element.attribs : null;
  if (!isRecord(attributes)) return null;
  const reference = attributes["href"] ?? attributes["src"];
  return typeof reference === "string" ? reference : null;
}
