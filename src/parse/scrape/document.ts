/** A fetched page as a handler sees it: text, document, links and JSON, each made once and only when it is read. */
import type { CheerioAPI } from "cheerio";
import type { FetchedResponse } from "../../core/outcome.ts";
import type { Extraction } from "../../core/page.ts";
import type { ScrapeTask } from "../../core/scraping.ts";
import { mediaTypeOf } from "../../rules/media-type.ts";
import { MAX_URL_LENGTH } from "../../rules/url.ts";
import { decodeText, extractPage } from "../extract.ts";
import { documentKind } from "../sniff.ts";
import type { PageResponse, Parsed } from "./define.ts";

type Load = typeof import("cheerio")["load"];
let load: Load | null = null;

/** The document parser takes long to load, and only scrapers need it: it must have been loaded before one runs. */
export async function loadCheerio(): Promise<void> {
  load ??= (await import("cheerio")).load;
}

export interface PageDocument {
  readonly html: string;
  readonly $: CheerioAPI;
  readonly links: readonly string[];
  readonly images: readonly string[];
  /** Against which references of the document are resolved. */
  readonly base: string;
  readonly response: PageResponse;
  json(): Parsed;
}

export function createDocument(task: ScrapeTask): PageDocument {
  const headers = headersOf(task.headers);
  let html: string | null = null;
  let $: CheerioAPI | null = null;
  let extraction: Extraction | null = null;
  const text = (): string => (html ??= decodeText(task.body, task.contentType).text);
  const extracted = (): Extraction => {
    const response: FetchedResponse = {
      ...rest,
      status: task.status,
      headers,
      contentType: task.contentType,
      body: task.body,
      wireBytes: task.body.byteLength,
    };
    return (extraction ??= extractPage(response, task.sentAs, { images: true, robotsToken: "", maxUrlLength: MAX_URL_LENGTH }));
  };
  return {
    get html() {
      return text();
    },
    get $() {
      return ($ ??= parse(task, text()));
    },
    get links() {
      return extracted().links;
    },
    get images() {
      return extracted().images ?? [];
    },
    get base() {
      return extracted().base ?? task.sentAs;
    },
    response: { status: task.status, contentType: task.contentType, headers: { get: (name) => headers.get(name.toLowerCase()) } },
    json: () => parseJson(task, text),
  };
}

const rest = { truncated: false, bodySkipped: false } as const;

function parse(task: ScrapeTask, html: string): CheerioAPI {
  if (load === null) throw new Error("the document parser is not loaded");
  const bytes = Buffer.from(task.body.buffer, task.body.byteOffset, task.body.byteLength);
  return load(html, documentKind(mediaTypeOf(task.contentType), bytes) === "xml" ? { xml: true } : null);
}

/** JSON is UTF-8 (RFC 8259 §8.1), whatever the type says that it came with; what is not UTF-8 is read like any text. */
function parseJson(task: ScrapeTask, text: () => string): Parsed {
  let json: string;
  try {
    json = new TextDecoder("utf-8", { fatal: true }).decode(task.body);
  } catch {
    json = text();
  }
  try {
    return JSON.parse(json);
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new Error(`${task.url}: the body is not JSON (its content type is ${task.contentType ?? "not given"}): ${why}`, { cause });
  }
}

function headersOf(lines: ScrapeTask["headers"]): FetchedResponse["headers"] {
  const all = (wanted: string) => lines.filter(([name]) => name === wanted).map(([, value]) => value);
  return {
    all,
    get: (name) => {
      const values = all(name);
      return values.length === 0 ? null : values.join(", ");
    },
    names: () => [...new Set(lines.map(([name]) => name))],
  };
}
