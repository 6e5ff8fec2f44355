/** What a scraper module is, as its author sees it: `defineScraper` and the types of what a handler is given. Nothing here runs one. */
import type { CheerioAPI } from "cheerio";
import type { StopMode } from "../../core/events.ts";
import { isSchema, type StandardSchemaV1 } from "./standard-schema.ts";

/** What JSON.parse gives: only the author knows its shape. */
export type Parsed = ReturnType<typeof JSON.parse>;

/** `data` of a handler for which no type was named. */
export type HandlerData = Readonly<Record<string, Parsed>>;

/** The key of an item type is the field that tells its items apart: a database writes a later one over an earlier one. */
export interface ItemTypeOptions {
  readonly schema?: StandardSchemaV1 | undefined;
  readonly key?: string | undefined;
}

export interface FollowOptions {
  /** Its page goes to this handler; by default to `default`, else to the first one. */
  readonly handler?: string | undefined;
  /** Integer, −99 … 99, default 0: larger first. */
  readonly priority?: number | undefined;
  /** Given to the handler as `data`; an object that JSON can hold. */
  readonly data?: object | undefined;
  /** Name of the listing that the page belongs to, and its place there: what `stopSeries` cuts. */
  readonly series?: string | undefined;
  readonly index?: number | undefined;
  /** Default GET, or POST with a body. */
  readonly method?: string | undefined;
  /** A plain object is sent as JSON, URLSearchParams as a form. */
  readonly body?: string | Uint8Array | URLSearchParams | object | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** Request it although it was requested before. */
  readonly dontDedupe?: boolean | undefined;
}

export type Reference = string | URL | null | undefined;

export interface PageRequest {
  readonly url: string;
  readonly depth: number;
  readonly referrer: string | null;
  readonly method: string;
  readonly priority: number;
  readonly handler: string;
  readonly series: string | null;
  readonly index: number | null;
  /** Tries before this one. */
  readonly attempt: number;
}

export interface PageResponse {
  readonly status: number;
  readonly contentType: string | null;
  readonly headers: {
    /** Several lines of one name are joined with ", "; the case of the name does not matter. */
    get(name: string): string | null;
  };
}

export interface Watermark {
  /** True from the `olderInARow`-th value in a row on that is not newer than the mark; always false where there is none. */
  old(value: string | number | Date): boolean;
  /** The greatest value of the last good run. */
  readonly value: string | number | undefined;
}

type Fields = Readonly<Record<string, unknown>>;

/** What a handler is given. All of it may be destructured; the parts that cost something are made when they are first read. */
export interface HandlerContext<Data = HandlerData> {
  readonly url: string;
  readonly request: PageRequest;
  readonly response: PageResponse;
  /** Decoded, bounded. */
  readonly body: Uint8Array;
  /** The body as text, by its charset. */
  readonly html: string;
  /** The document, parsed as browsers do (XML as XML). */
  readonly $: CheerioAPI;
  /** Absolute URLs, canonical, distinct, in page order. */
  readonly links: readonly string[];
  readonly images: readonly string[];
  /** Throws where the body is not JSON. */
  json(): Parsed;
  /** Gives an item, as it is now. `type`: by default the one that is declared, else "items". Throws TypeError for what JSON cannot hold. */
  item(fields: object, type?: string): void;
  /** Asks for a page. Nothing to follow (undefined, null, "") is nothing done. */
  follow(href: Reference, options?: FollowOptions): void;
  /** Every match of a CSS selector: its own href or src, else the links inside it. Or every one of several references or elements. */
  followAll(target: string | Iterable<Reference | object>, options?: FollowOptions): void;
  /** Kept with the crawl, between pages and between runs. */
  readonly state: {
    /** What this page set, else what was settled. */
    get(key: string): Parsed;
    /** Undefined deletes. */
    set(key: string, value: unknown): void;
  };
  /** Ends the crawl: `queue` follows no new links, `flight` (the default) finishes what is in flight, `now` aborts it. */
  stop(options?: { readonly mode?: StopMode | undefined; readonly reason?: string | undefined }): void;
  /** Drops the pages of this page's series that have a greater index. A page outside of any series, such as a seed, drops nothing. */
  stopSeries(): void;
  watermark(key: string, options?: { readonly olderInARow?: number | undefined }): Watermark;
  readonly log: {
    debug(message: string, fields?: Fields): void;
    info(message: string, fields?: Fields): void;
    warn(message: string, fields?: Fields): void;
    error(message: string, fields?: Fields): void;
  };
  /** Aborted when the page is given up. */
  readonly signal: AbortSignal;
  readonly data: Data;
}

export type Handler<Data = HandlerData> = (context: HandlerContext<Data>) => unknown;

/** A checked scraper. Which data a handler takes is between it and its author. */
export interface Scraper {
  readonly version?: string | number | undefined;
  readonly items?: Readonly<Record<string, ItemTypeOptions | StandardSchemaV1>> | undefined;
  readonly handlers: Readonly<Record<string, (context: never) => unknown>>;
}

/**
 * A scraper: `handlers` by name, each for one kind of page. Seeds go to the handler `default`, else to the first one. Throws TypeError for what is none.
 * The types of `data` may be named: `defineScraper<{ list: { index?: number }; detail: { id: string } }>({ … })`.
 */
export function defineScraper<DataOf extends Readonly<Record<string, object>> = Readonly<Record<string, HandlerData>>>(scraper: {
  /** Changed whenever pages are understood differently: pages stored under another version are parsed again. */
  readonly version?: string | number;
  readonly items?: Readonly<Record<string, ItemTypeOptions | StandardSchemaV1>>;
  readonly handlers: { readonly [Name in keyof NoInfer<DataOf>]: Handler<NoInfer<DataOf>[Name]> };
}): Scraper {
  const wrong = faultOf(scraper);
  if (wrong !== null) throw new TypeError(`defineScraper: ${wrong}`);
  return scraper;
}

/** What keeps a value from being a scraper, in words; null: it is one. */
export function faultOf(value: unknown): string | null {
  if (!isRecord(value)) return `expected an object with handlers, not ${whatIs(value)}`;
  const unknown = Object.keys(value).find((key) => !["version", "items", "handlers"].includes(key));
  if (unknown !== undefined) return `${JSON.stringify(unknown)} is not a part of a scraper; there are version, items and handlers`;
  const { version, items, handlers } = value;
  if (version !== undefined && typeof version !== "string" && typeof version !== "number")
    return `version must be a string or a number, not ${whatIs(version)}`;
  if (!isRecord(handlers)) return `handlers must be an object of functions, not ${whatIs(handlers)}`;
  if (Object.keys(handlers).length === 0) return "handlers is empty: at least one is needed";
  for (const [name, handler] of Object.entries(handlers))
    if (typeof handler !== "function") return `handlers.${name} must be a function, not ${whatIs(handler)}`;
  return items === undefined ? null : faultOfItems(items);
}

function faultOfItems(items: unknown): string | null {
  if (!isRecord(items)) return `items must be an object of item types, not ${whatIs(items)}`;
  for (const [name, type] of Object.entries(items)) {
    if (isSchema(type)) continue;
    if (!isRecord(type)) return `items.${name} must be a Standard Schema or { schema, key }, not ${whatIs(type)}`;
    const unknown = Object.keys(type).find((key) => key !== "schema" && key !== "key");
    if (unknown !== undefined) return `items.${name}: ${JSON.stringify(unknown)} is not a part of an item type; there are schema and key`;
    const { schema, key } = type;
    if (schema !== undefined && !isSchema(schema)) return `items.${name}.schema is not a Standard Schema (https://standardschema.dev) but ${whatIs(schema)}`;
    if (key !== undefined && (typeof key !== "string" || key === "")) return `items.${name}.key must be the name of a field, not ${whatIs(key)}`;
  }
  return null;
}

export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** For messages: `a function`, `the string "x"`, `undefined`. */
export function whatIs(value: unknown): string {
  if (value === null || value === undefined) return String(value);
  if (typeof value === "string") return value.length <= 40 ? `the string ${JSON.stringify(value)}` : `a string of ${value.length} characters`;
  if (typeof value === "number" || typeof value === "boolean" || typeof value === "bigint") return `${typeof value} ${value}`;
  if (Array.isArray(value)) return "an array";
  return typeof value === "object" ? "an object" : `a ${typeof value}`;
}
