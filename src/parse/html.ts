/** The references of an HTML page, as spans of its bytes in page order; resolved in parse/extract.ts, once the encoding and the base are known. */
import { attributeAt, type Scan, TAG } from "./scan.ts";
import { endTree, FRAMESET_BEGINS, finishRawText, nextElement, SVG_LINK, startTree } from "./tree.ts";

/** What a reference is. */
export const REF = {
  /** a, area, SVG a, link: the URL and perhaps rel. */
  LINK: 1,
  /** iframe, frame: the URL. */
  FRAME: 2,
  /** link element: the URL and rel, which decides. */
  LINK_ELEMENT: 3,
  /** meta refresh: its content. */
  REFRESH: 4,
  /** One image URL. */
  IMAGE: 5,
  /** A srcset. */
  IMAGE_SET: 6,
  /** What a data attribute of an image holds. */
  LAZY_IMAGE: 7,
} as const;

/** Five numbers a reference: REF, value start, value end, rel start (−1: none), rel end. */
export const REF_SIZE = 5;

/** A byte span. */
export interface Span {
  readonly start: number;
  readonly end: number;
}

export interface HtmlReferences {
  refs: Int32Array;
  /** Numbers used in `refs`. */
  size: number;
  /** href of the first base element that has one. */
  base: Span | null;
  /** Content of the first title element. */
  title: Span | null;
  /** meta elements with name and content. */
  named: { readonly name: Span; readonly content: Span }[];
  /** meta elements that may declare an encoding: a charset attribute, or http-equiv and content. */
  charsets: { readonly charset: Span | null; readonly pragma: Span | null; readonly content: Span | null }[];
}

/** Titles longer than this many bytes are cut before they are decoded. */
const MAX_TITLE_BYTES = 16_384;
/** More metas of a kind than this are not remembered. */
const MAX_METAS = 1000;

/** One array of references is used again and again: pages are read one after the other. */
let spare: Int32Array | null = null;
const MAX_SPARE_LENGTH = 100_000;

/** Gives the array back; `found` must not be used any more. */
export function releaseReferences(found: HtmlReferences): void {
  if (found.refs.length <= MAX_SPARE_LENGTH) spare = found.refs;
}

/** `bytes` in an ASCII-compatible encoding. `xml`: XHTML syntax. */
export function collectReferences(bytes: Buffer, options: { images: boolean; xml: boolean }): HtmlReferences {
  const tree = startTree(bytes, options);
  const scan = tree.scan;
  const refs = spare ?? new Int32Array(REF_SIZE * 512);
  spare = null;
  const found: HtmlReferences = { refs, size: 0, base: null, title: null, named: [], charsets: [] };
  for (;;) {
    const element = nextElement(tree);
    switch (element) {
      case 0:
        endTree(tree);
        return found;
      case TAG.A:
      case TAG.AREA:
        addLink(found, scan, REF.LINK, attributeAt(scan, "href"));
        break;
      case SVG_LINK: {
        const href = attributeAt(scan, "href"); // it wins over xlink:href (SVG 2 §16.1.5)
        addLink(found, scan, REF.LINK, href >= 0 ? href : attributeAt(scan, "xlink:href"));
        break;
      }
      case TAG.LINK:
        addLink(found, scan, REF.LINK_ELEMENT, attributeAt(scan, "href"));
        break;
      case TAG.FRAME:
        addValue(found, scan, REF.FRAME, attributeAt(scan, "src"));
        break;
      case TAG.IFRAME:
        addValue(found, scan, REF.FRAME, attributeAt(scan, "src"));
        finishRawText(tree);
        break;
      case TAG.TITLE: {
        const start = scan.at;
        const end = finishRawText(tree);
        found.title ??= { start, end: Math.min(end, start + MAX_TITLE_BYTES) };
        break;
      }
      case TAG.BASE:
        found.base ??= spanOf(scan, "href");
        break;
      case TAG.META:
        addMeta(found, scan, tree.noscript);
        break;
      case TAG.IMG:
      case TAG.SOURCE:
        addImages(found, scan, element === TAG.IMG);
        break;
      case FRAMESET_BEGINS:
        dropBody(found, tree.bodyFrom);
        break;
    }
  }
}

function spanAt(scan: Scan, at: number): Span | null {
  return at < 0 ? null : { start: scan.attributes[at + 2]!, end: scan.attributes[at + 3]! };
}

function spanOf(scan: Scan, name: string): Span | null {
  return spanAt(scan, attributeAt(scan, name));
}

function add(found: HtmlReferences, kind: number, start: number, end: number, relStart: number, relEnd: number): void {
  const k = found.size;
  if (k + REF_SIZE > found.refs.length) {
    const larger = new Int32Array(found.refs.length * 2);
    larger.set(found.refs);
    found.refs = larger;
  }
  const refs = found.refs;
  refs[k] = kind;
  refs[k + 1] = start;
  refs[k + 2] = end;
  refs[k + 3] = relStart;
  refs[k + 4] = relEnd;
  found.size = k + REF_SIZE;
}

function addValue(found: HtmlReferences, scan: Scan, kind: number, at: number): void {
  if (at >= 0) add(found, kind, scan.attributes[at + 2]!, scan.attributes[at + 3]!, -1, -1);
}

function addLink(found: HtmlReferences, scan: Scan, kind: number, at: number): void {
  if (at < 0) return;
  const rel = scan.attributeCount > 1 ? attributeAt(scan, "rel") : -1;
  const spans = scan.attributes;
  if (rel < 0) add(found, kind, spans[at + 2]!, spans[at + 3]!, -1, -1);
  else add(found, kind, spans[at + 2]!, spans[at + 3]!, spans[rel + 2]!, spans[rel + 3]!);
}

function addMeta(found: HtmlReferences, scan: Scan, noscript: boolean): void {
  const content = spanOf(scan, "content");
  const pragma = spanOf(scan, "http-equiv");
  const charset = spanOf(scan, "charset");
  const name = spanOf(scan, "name");
  // In noscript it tells browsers without scripts to go elsewhere: not what the page is.
  if (pragma !== null && content !== null && !noscript && isWord(scan, pragma, "refresh")) add(found, REF.REFRESH, content.start, content.end, -1, -1);
  if (name !== null && content !== null && found.named.length < MAX_METAS) found.named.push({ name, content });
  if ((charset !== null || (pragma !== null && content !== null)) && found.charsets.length < MAX_METAS) found.charsets.push({ charset, pragma, content });
}

function isWord(scan: Scan, span: Span, word: string): boolean {
  return span.end - span.start === word.length && scan.bytes.latin1Slice(span.start, span.end).toLowerCase() === word;
}

/** Data attributes in which pages hide an image from the browser until a script shows it: data-src, data-lazy-src, data-original, data-full-src, data-src-small … */
const LAZY = /^data-(?:[a-z0-9]+-)*(?:src|original|lazy|image|img|url)(?:-[a-z0-9]+)*$/;
const LAZY_SET = /^data-(?:[a-z0-9]+-)*srcset$/;

/** Of one element. */
const MAX_IMAGE_ATTRIBUTES = 64;

/** In the order of the attributes; the first of each name. `single`: the element has image URLs outside of sets (img, not source). */
function addImages(found: HtmlReferences, scan: Scan, single: boolean): void {
  let rest = MAX_IMAGE_ATTRIBUTES;
  for (let k = 0; k < scan.attributeCount * 4 && rest > 0; k += 4) {
    const length = scan.attributes[k + 1]! - scan.attributes[k]!;
    if (length !== 3 && length !== 6 && (length < 8 || length > 40)) continue;
    const name = scan.bytes.latin1Slice(scan.attributes[k], scan.attributes[k + 1]).toLowerCase();
    const kind = imageKind(name, single);
    if (kind === null) continue;
    rest--;
    if (attributeAt(scan, name) === k) addValue(found, scan, kind, k);
  }
}

function imageKind(name: string, single: boolean): number | null {
  if (name === "srcset") return REF.IMAGE_SET;
  if (name === "src") return single ? REF.IMAGE : null;
  if (!name.startsWith("data-")) return null;
  if (LAZY_SET.test(name)) return REF.IMAGE_SET;
  return single && LAZY.test(name) ? REF.LAZY_IMAGE : null;
}

/** A frameset replaces the body, with all that was in it. */
function dropBody(found: HtmlReferences, bodyFrom: number): void {
  let kept = 0;
  for (let k = 0; k < found.size; k += REF_SIZE) {
    if (found.refs[k + 1]! > bodyFrom) continue;
    found.refs.copyWithin(kept, k, k + REF_SIZE);
    kept += REF_SIZE;
  }
  found.size = kept;
  if (found.title !== null && found.title.start > bodyFrom) found.title = null;
  if (found.base !== null && found.base.start > bodyFrom) found.base = null;
  found.named = found.named.filter(({ name }) => name.start < bodyFrom);
}
