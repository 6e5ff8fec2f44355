/** Bytes of a response → what it says. HTML and XHTML are scanned; of other types only the header fields speak. */
import type { FetchedResponse } from "../core/outcome.ts";
import type { ExtractOptions, ExtractPage } from "../core/page.ts";
import type { CharsetSource } from "../core/records.ts";
import { parseXRobotsTag, type RobotsStatement, robotsDirectives } from "../rules/directives.ts";
import { mediaTypeOf } from "../rules/media-type.ts";
import { decodeFieldValue } from "../rules/url.ts";
import { encodeQuery } from "../rules/url-query.ts";
import { createResolver, type Resolver } from "../rules/url-resolve.ts";
import { type Charset, charsetInContent, declaredCharset, decodeAll, encodingOfLabel, impliedCharset, isAsciiSafe } from "./charset.ts";
import { type Collector, createCollector } from "./collect.ts";
import { collectReferences, type HtmlReferences, REF, REF_SIZE, releaseReferences, type Span } from "./html.ts";
import { parseLinkHeader } from "./link-header.ts";
import { parseRefresh } from "./meta-refresh.ts";
import { type DocumentKind, documentKind } from "./sniff.ts";
import { parseSrcset } from "./srcset.ts";
import { createTextReader, type TextReader } from "./text.ts";

const MAX_TITLE_LENGTH = 1000;

/** Of a robots meta element or header line, more is not read. */
const MAX_DIRECTIVES_BYTES = 2000;

/** Relations of link elements and Link fields that are followed, unless the target is a style sheet. */
const FOLLOWED = new Set(["next", "prev", "alternate", "canonical"]);

/** What the parts of one extraction share. */
interface Work {
  readonly url: string;
  readonly options: ExtractOptions;
  readonly collector: Collector;
  /** Filled as they are found. */
  readonly statements: RobotsStatement[];
}

/** What was found beside the URLs. */
interface Facts {
  readonly charset: Charset | null;
  readonly title: string | null;
  /** Set only where a base element moved it. */
  readonly base: string | null;
}

const NONE: readonly string[] = [];

/** Never throws; any bytes give an answer. */
export const extractPage: ExtractPage = (response, url, options) => {
  const bytes = asBuffer(response.body);
  const type = mediaTypeOf(response.contentType);
  const kind = documentKind(type, bytes);
  const work: Work = { url, options, collector: createCollector(options.images), statements: [] };
  readHeaders(response, work);
  const facts =
    kind === "html" || kind === "xhtml"
      ? readHtml(bytes, kind, type.charset, work)
      : { charset: charsetOf(kind, bytes, type.charset), title: null, base: null };
  return {
    charset: facts.charset?.name ?? null,
    charsetSource: facts.charset?.source ?? null,
    title: facts.title,
    ...(facts.base === null ? {} : { base: facts.base }),
    ...work.collector.result(),
    robots: work.statements.length === 0 ? NONE : robotsDirectives(work.statements, options.robotsToken),
  };
};

/** The whole body as text, for callbacks that want it. `charset` is "binary" (each byte one character) for what is not text. */
export function decodeText(body: Uint8Array, contentType: string | null): { readonly text: string; readonly charset: string; readonly source: CharsetSource } {
  const bytes = asBuffer(body);
  const type = mediaTypeOf(contentType);
  const kind = documentKind(type, bytes);
  if (kind === "binary") return { text: bytes.latin1Slice(), charset: "binary", source: "default" };
  let charset = charsetOf(kind, bytes, type.charset);
  if (kind === "html" && charset !== null && (charset.source === "default" || charset.source === "utf-8-valid")) {
    const found = collectReferences(bytes, { images: false, xml: false });
    charset = impliedCharset(bytes, lateLabel(bytes, found));
    releaseReferences(found);
  }
  const { name, source } = charset ?? impliedCharset(bytes, null);
  return { text: decodeAll(bytes, name), charset: name, source };
}

function asBuffer(body: Uint8Array): Buffer {
  return Buffer.isBuffer(body) ? body : Buffer.from(body.buffer, body.byteOffset, body.byteLength);
}

/** The encoding by all but a late meta element; null for what is not text. */
function charsetOf(kind: DocumentKind, bytes: Buffer, label: string | null): Charset | null {
  if (kind === "binary") return null;
  const isXml = kind === "xml" || kind === "xhtml";
  return declaredCharset(bytes, label, isXml ? "xml" : kind) ?? (isXml ? { name: "utf-8", source: "default" } : impliedCharset(bytes, null));
}

/** Link, Refresh and X-Robots-Tag speak for bodies of any type. Their URLs are relative to the URL of the page, whatever its base element says. */
function readHeaders(response: FetchedResponse, work: Work): void {
  const robots = response.headers.all("x-robots-tag");
  if (robots.length > 0) work.statements.push(...parseXRobotsTag(robots.map((line) => line.slice(0, MAX_DIRECTIVES_BYTES))));
  const lines = response.headers.all("link");
  const refresh = response.headers.get("refresh");
  if (lines.length === 0 && refresh === null) return;
  const resolver = createResolver(work.url, null, work.options.maxUrlLength);
  const next = refresh === null ? null : (parseRefresh(refresh)?.url ?? null);
  if (next !== null) work.collector.link(resolver.resolve(decodeFieldValue(next)), next, false);
  for (const { href, rels } of parseLinkHeader(lines)) addRelated(work.collector, resolver, decodeFieldValue(href), rels);
}

function addRelated(collector: Collector, resolver: Resolver, href: string, rels: readonly string[]): void {
  if (!rels.some((rel) => FOLLOWED.has(rel)) || rels.includes("stylesheet")) return;
  const resolved = resolver.resolve(href);
  collector.link(resolved, href, rels.includes("nofollow"));
  if (rels.includes("canonical")) collector.canonical(resolved);
}

function readHtml(bytes: Buffer, kind: "html" | "xhtml", label: string | null, work: Work): Facts {
  const read = (document: Buffer): HtmlReferences => collectReferences(document, { images: work.options.images, xml: kind === "xhtml" });
  let charset = declaredCharset(bytes, label, kind === "xhtml" ? "xml" : "html");
  let document = charset === null || isAsciiSafe(charset.name) ? bytes : transcoded(bytes, charset.name);
  let found = read(document);
  if (charset === null) {
    charset = kind === "xhtml" ? { name: "utf-8", source: "default" } : impliedCharset(bytes, lateLabel(bytes, found));
    if (!isAsciiSafe(charset.name)) {
      document = transcoded(bytes, charset.name);
      found = read(document);
    }
  }
  const reader = createTextReader(document, document === bytes ? charset.name : "utf-8");
  readMetas(found, reader, work);
  const base = baseOf(found, reader, work.url, charset.name);
  addReferences(found, reader, createResolver(base, charset.name, work.options.maxUrlLength), work.collector);
  const title = titleOf(found, reader);
  releaseReferences(found);
  return { charset, title, base: base === work.url ? null : base };
}

function transcoded(bytes: Buffer, encoding: string): Buffer {
  return Buffer.from(decodeAll(bytes, encoding), "utf8");
}

/** The first meta element anywhere that names a known encoding. */
function lateLabel(document: Buffer, found: HtmlReferences): string | null {
  const textOf = (span: Span): string => document.latin1Slice(span.start, span.end);
  for (const { charset, pragma, content } of found.charsets) {
    if (charset !== null && encodingOfLabel(textOf(charset)) !== null) return textOf(charset);
    if (pragma === null || content === null || textOf(pragma).toLowerCase() !== "content-type") continue;
    const label = charsetInContent(textOf(content));
    if (label !== null && encodingOfLabel(label) !== null) return label;
  }
  return null;
}

/** HTML Standard §4.2.3: a base that is no URL, or a data: or javascript: URL, is as if there were none. */
function baseOf(found: HtmlReferences, reader: TextReader, url: string, encoding: string): string {
  if (found.base === null) return url;
  const href = encodeQuery(reader.trimmed(found.base.start, found.base.end), encoding);
  const base = href === "" ? null : URL.parse(href, url);
  return base === null || base.protocol === "data:" || base.protocol === "javascript:" ? url : base.href;
}

function readMetas(found: HtmlReferences, reader: TextReader, work: Work): void {
  for (const { name, content } of found.named) {
    const agent = reader.trimmed(name.start, name.end).toLowerCase();
    if (agent !== "robots" && agent !== work.options.robotsToken) continue;
    work.statements.push({ agent, content: reader.attribute(content.start, Math.min(content.end, content.start + MAX_DIRECTIVES_BYTES)) });
  }
}

function titleOf(found: HtmlReferences, reader: TextReader): string | null {
  if (found.title === null) return null;
  const title = reader.text(found.title.start, found.title.end);
  if (title === "") return null;
  if (title.length <= MAX_TITLE_LENGTH) return title;
  // Not in the middle of a surrogate pair. A copy, since a slice would keep the long one alive.
  return Buffer.from([...title.slice(0, MAX_TITLE_LENGTH)].filter((char) => char < "\ud800" || char > "\udfff" || char.length === 2).join("")).toString("utf8");
}

function addReferences(found: HtmlReferences, reader: TextReader, resolver: Resolver, collector: Collector): void {
  const { refs, size } = found;
  for (let k = 0; k < size; k += REF_SIZE) {
    const start = refs[k + 1]!;
    const end = refs[k + 2]!;
    const relStart = refs[k + 3]!;
    switch (refs[k]) {
      case REF.LINK: {
        const href = reader.trimmed(start, end);
        const rels = relStart < 0 ? NONE : relsOf(reader, relStart, refs[k + 4]!);
        collector.link(resolver.resolve(href), href, rels.includes("nofollow"));
        break;
      }
      case REF.FRAME: {
        const href = reader.trimmed(start, end);
        if (href !== "") collector.link(resolver.resolve(href), href, false);
        break;
      }
      case REF.LINK_ELEMENT: {
        const href = reader.trimmed(start, end);
        if (href !== "" && relStart >= 0) addRelated(collector, resolver, href, relsOf(reader, relStart, refs[k + 4]!));
        break;
      }
      case REF.REFRESH: {
        const url = parseRefresh(reader.attribute(start, end))?.url ?? null;
        if (url !== null) collector.link(resolver.resolve(url), url, false);
        break;
      }
      case REF.IMAGE: {
        const src = reader.trimmed(start, end);
        if (src !== "") collector.image(resolver.resolve(src));
        break;
      }
      case REF.LAZY_IMAGE:
        addLazyImage(reader.trimmed(start, end), resolver, collector);
        break;
      case REF.IMAGE_SET:
        for (const candidate of parseSrcset(reader.attribute(start, end))) collector.image(resolver.resolve(candidate.url));
        break;
    }
  }
}

/** The value of a data attribute: one URL, a list of them, or something else altogether. */
function addLazyImage(value: string, resolver: Resolver, collector: Collector): void {
  if (!/[./]/.test(value)) return;
  if (!/,[\t\n\f\r ]/.test(value)) collector.image(resolver.resolve(value));
  else for (const candidate of parseSrcset(value)) collector.image(resolver.resolve(candidate.url));
}

function relsOf(reader: TextReader, start: number, end: number): readonly string[] {
  return reader
    .attribute(start, end)
    .toLowerCase()
    .split(/[\t\n\f\r ]+/);
}
