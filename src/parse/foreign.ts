/** Foreign content (HTML Standard §13.2.6.5): what its elements and their names mean. The stack of open ones is kept in parse/tree.ts. */
import { attributeAt, elementName, nextTag, type Scan, skipRawText, skipScript, startScan, TAG } from "./scan.ts";

export const HTML = 0;
export const SVG = 1;
export const MATH = 2;

/** An open element since the outermost svg or math. Below the first of these the document is plain HTML. */
export interface OpenElement {
  readonly space: typeof HTML | typeof SVG | typeof MATH;
  readonly name: string;
  /** HTML integration point (SVG foreignObject, desc, title; some annotation-xml) or MathML text integration point. */
  readonly point: "html" | "text" | null;
}

/** Start tags that end foreign content. */
export const BREAKOUT = new Set(
  (
    "b big blockquote body br center code dd div dl dt em embed h1 h2 h3 h4 h5 h6 head hr i img li listing menu meta nobr ol p pre ruby s small span " +
    "strong strike sub sup table tt u ul var"
  ).split(" "),
);
export const VOID = new Set("area base basefont bgsound br col embed frame hr img image input keygen link meta param source track wbr".split(" "));
/** HTML start tags that close an open p. */
export const CLOSES_P = new Set(
  (
    "address article aside blockquote center details dialog dir div dl fieldset figcaption figure footer header hgroup main menu nav ol p search section " +
    "summary ul h1 h2 h3 h4 h5 h6 pre listing form li dd dt plaintext table hr xmp"
  ).split(" "),
);

/** Start tags that are ignored in a body, but for a table around them. */
export const TABLE_PARTS = new Set("caption col colgroup frame head html body tbody td tfoot th thead tr".split(" "));

/** Whether the start tag is handled by the rules for foreign content ("tree construction dispatcher"). */
export function isForeignStart(top: OpenElement, name: string): boolean {
  if (top.space === HTML || top.point === "html") return false;
  if (top.point === "text") return name === "mglyph" || name === "malignmark";
  return !(top.space === MATH && top.name === "annotation-xml" && name === "svg");
}

export function pointOf(scan: Scan, space: OpenElement["space"], name: string): OpenElement["point"] {
  if (space === SVG) return name === "foreignobject" || name === "desc" || name === "title" ? "html" : null;
  if (name === "mi" || name === "mo" || name === "mn" || name === "ms" || name === "mtext") return "text";
  if (name !== "annotation-xml") return null;
  const at = attributeAt(scan, "encoding");
  if (at < 0) return null;
  const encoding = scan.bytes.latin1Slice(scan.attributes[at + 2], scan.attributes[at + 3]).toLowerCase();
  return encoding === "text/html" || encoding === "application/xhtml+xml" ? "html" : null;
}

export function hasFontAttribute(scan: Scan): boolean {
  return attributeAt(scan, "color") >= 0 || attributeAt(scan, "face") >= 0 || attributeAt(scan, "size") >= 0;
}

/** Counts of elements by name, by a second pass that follows the first one only where it is asked for: as much as that is linear in all. */
export interface Outside {
  readonly scan: Scan;
  readonly counts: Map<string, number>;
}

export function startOutside(scan: Scan): Outside {
  const outside = startScan(scan.bytes, true);
  outside.everyTag = true;
  return { scan: outside, counts: new Map() };
}

/** Whether an HTML element of that name was open at the offset `upTo`. Elements without end tags count as open for ever: close enough. */
export function isOpenOutside({ scan, counts }: Outside, name: string, upTo: number): boolean {
  if (name === "body" || name === "html") return false; // their end tags close nothing
  while (scan.at < upTo) {
    const tag = nextTag(scan);
    if (tag === 0 || scan.at > upTo) break;
    const found = elementName(scan);
    const count = counts.get(found) ?? 0;
    if (tag < 0) counts.set(found, Math.max(0, count - 1));
    else if (!VOID.has(found) && (!TABLE_PARTS.has(found) || (counts.get("table") ?? 0) > 0)) counts.set(found, count + 1);
    if (tag === TAG.SCRIPT) skipScript(scan);
    else if (tag === TAG.RAW || tag === TAG.NOFRAMES || tag === TAG.TITLE || tag === TAG.IFRAME) skipRawText(scan);
  }
  return (counts.get(name) ?? 0) > 0;
}
