/**
 * As much of tree construction (HTML Standard §13.2.6) as decides which tags become elements of the document: foreign content with its integration
 * points, templates, framesets. Not a tree: outside of these, every tag is taken as an element where it stands.
 *
 * Links inside a template are no links of the document: its content is an inert document of its own, as in browsers and in the test oracle.
 * Of noscript the content counts (scripting is off). A select may hold anything (the standard since 2025; older parsers dropped links in it).
 */
import { attributeAt, nextTag, type Scan, skipRawText, skipScript, startScan, TAG } from "./scan.ts";

const HTML = 0;
const SVG = 1;
const MATH = 2;

/** An open element since the outermost svg or math. Below the first of these the document is plain HTML. */
interface OpenElement {
  readonly space: typeof HTML | typeof SVG | typeof MATH;
  readonly name: string;
  /** HTML integration point (SVG foreignObject, desc, title; some annotation-xml) or MathML text integration point. */
  readonly point: "html" | "text" | null;
}

/** Deeper nesting of foreign elements is flattened, so that a hostile page cannot make end tags expensive. */
const MAX_OPEN = 256;

export interface Tree {
  readonly scan: Scan;
  /** XML syntax: `<script/>` is complete, CDATA sections stand anywhere. */
  readonly xml: boolean;
  readonly open: OpenElement[];
  /** Heights of `open` at which the open templates began. */
  readonly templates: number[];
  noscript: boolean;
  /** Open framesets; −1 before the first one. */
  framesets: number;
  /** A frameset was refused: content had come before it. */
  framesetRefused: boolean;
  /** Where a frameset was accepted: offset at which the body that it replaced had begun. */
  bodyFrom: number;
  /** Offset of the outermost svg or math that is open. */
  foreignFrom: number;
  outside: Outside | null;
}

/** What a reported tag is: an element of that TAG in the document, an SVG link, or nothing to look at. */
export const SVG_LINK = 100;
export const FRAMESET_BEGINS = 101;

export function startTree(bytes: Buffer, options: { images: boolean; xml: boolean }): Tree {
  const scan = startScan(bytes, options.images);
  scan.cdata = options.xml;
  return {
    scan,
    xml: options.xml,
    open: [],
    templates: [],
    noscript: false,
    framesets: -1,
    framesetRefused: false,
    bodyFrom: 0,
    foreignFrom: 0,
    outside: null,
  };
}

/**
 * The next element that matters: a TAG, SVG_LINK or FRAMESET_BEGINS (then what the body held is gone: see `bodyFrom`); 0 at the end.
 * Its attributes stand in `tree.scan`. Content of raw text elements has been passed over, but for TITLE and IFRAME, where the caller goes on with skipRawText.
 */
export function nextElement(tree: Tree): number {
  const scan = tree.scan;
  for (;;) {
    const tag = nextTag(scan);
    if (tag === 0) return 0;
    const element = tree.open.length > 0 ? inForeign(tree, tag) : tag > 0 ? htmlStart(tree, tag) : htmlEnd(tree, -tag);
    if (tree.open.length > 0 || scan.everyTag) followForeign(tree);
    if (element !== 0) return element;
  }
}

/** Tells the scanner what it must report and whether CDATA sections may come. */
function followForeign(tree: Tree): void {
  const top = tree.open.at(-1);
  tree.scan.everyTag = top !== undefined;
  tree.scan.cdata = tree.xml || (top !== undefined && top.space !== HTML);
}

function htmlStart(tree: Tree, tag: number): number {
  const scan = tree.scan;
  if (tree.framesets >= 0) return inFrameset(tree, tag);
  switch (tag) {
    case TAG.SVG:
    case TAG.MATH:
      if (tree.open.length === 0) tree.foreignFrom = scan.nameStart - 1;
      if (!scan.selfClosing) push(tree, { space: tag === TAG.SVG ? SVG : MATH, name: tag === TAG.SVG ? "svg" : "math", point: null });
      return 0;
    case TAG.TEMPLATE:
      if (!(tree.xml && scan.selfClosing)) tree.templates.push(tree.open.length);
      return 0;
    case TAG.NOSCRIPT:
      tree.noscript = !(tree.xml && scan.selfClosing);
      return 0;
    case TAG.FRAMESET:
      return beginFrameset(tree);
    case TAG.FRAME:
      return 0; // ignored outside of a frameset
    case TAG.PLAINTEXT:
      scan.at = scan.end;
      return 0;
    case TAG.SCRIPT:
      if (!(tree.xml && scan.selfClosing)) skipScript(scan);
      return 0;
    case TAG.RAW:
    case TAG.NOFRAMES:
      if (!(tree.xml && scan.selfClosing)) skipRawText(scan);
      return 0;
    case TAG.TITLE:
    case TAG.IFRAME:
      if (tree.templates.length === 0) return tag;
      finishRawText(tree);
      return 0;
    case TAG.OTHER:
      return 0;
    default:
      return tree.templates.length === 0 ? tag : 0;
  }
}

/** Passes over the content of a TITLE or IFRAME that nextElement gave; answers where it ends (it begins at `scan.at` before the call). */
export function finishRawText(tree: Tree): number {
  return tree.xml && tree.scan.selfClosing ? tree.scan.at : skipRawText(tree.scan);
}

function htmlEnd(tree: Tree, tag: number): number {
  if (tag === TAG.NOSCRIPT) tree.noscript = false;
  else if (tag === TAG.FRAMESET && tree.framesets > 0) tree.framesets--;
  else if (tag === TAG.TEMPLATE) {
    const height = tree.templates.pop();
    if (height !== undefined) tree.open.length = Math.min(tree.open.length, height);
  }
  return 0;
}

// ---- framesets: rare, old, and they replace the body

function beginFrameset(tree: Tree): number {
  if (tree.framesetRefused || tree.templates.length > 0 || tree.open.length > 0) return 0;
  tree.bodyFrom = replacedBody(tree.scan);
  if (tree.bodyFrom < 0) {
    tree.framesetRefused = true;
    return 0;
  }
  tree.framesets = 1;
  return FRAMESET_BEGINS;
}

function inFrameset(tree: Tree, tag: number): number {
  if (tag === TAG.FRAMESET && tree.framesets > 0) tree.framesets++;
  else if (tag === TAG.NOFRAMES) skipRawText(tree.scan);
  else if (tag === TAG.FRAME && tree.framesets > 0) return TAG.FRAME;
  return 0;
}

/** Names of start tags after which a frameset is refused ("frameset-ok" becomes "not ok"), and those whose content is no text of the body. */
const NO_FRAMESET = new Set(
  "body pre listing li dd dt button applet marquee object table area br embed img image keygen wbr input hr textarea xmp iframe select plaintext".split(" "),
);

/** What may stand before the body. */
const HEAD_ONLY = new Set("html head base basefont bgsound link meta title noscript noframes style script template frameset".split(" "));

/**
 * Offset at which the body began, or that of the frameset tag the scan stands behind if there is none yet; −1 if something that counts as content
 * came before, so that the frameset is ignored. A second, slow pass, made once per document at most.
 */
function replacedBody(scan: Scan): number {
  const before = startScan(scan.bytes.subarray(0, scan.nameStart - 1), true);
  before.everyTag = true;
  let bodyFrom = before.end;
  for (;;) {
    const from = before.at;
    const tag = nextTag(before);
    const upTo = tag === 0 ? before.end : before.nameStart - (tag < 0 ? 2 : 1);
    const between = before.bytes.latin1Slice(from, upTo).replace(/<!--(?:>|->|[\s\S]*?(?:-->|--!>|$))|<[!?/][^>]*>/g, "");
    if (/[^\t\n\f\r \0]/.test(between)) return -1;
    if (tag === 0) return bodyFrom;
    const name = nameOf(before);
    if (tag > 0 ? NO_FRAMESET.has(name) : name === "br") return -1;
    if (tag > 0 ? !HEAD_ONLY.has(name) : name === "body" || name === "html" || name === "p") bodyFrom = Math.min(bodyFrom, before.nameStart);
    if (tag === TAG.SCRIPT) skipScript(before);
    else if (tag === TAG.RAW || tag === TAG.NOFRAMES || tag === TAG.TITLE) skipRawText(before);
  }
}

// ---- foreign content

/** Start tags that end foreign content. */
const BREAKOUT = new Set(
  (
    "b big blockquote body br center code dd div dl dt em embed h1 h2 h3 h4 h5 h6 head hr i img li listing menu meta nobr ol p pre ruby s small span " +
    "strong strike sub sup table tt u ul var"
  ).split(" "),
);
const VOID = new Set("area base basefont bgsound br col embed frame hr img image input keygen link meta param source track wbr".split(" "));
/** HTML start tags that close an open p. */
const CLOSES_P = new Set(
  (
    "address article aside blockquote center details dialog dir div dl fieldset figcaption figure footer header hgroup main menu nav ol p search section " +
    "summary ul h1 h2 h3 h4 h5 h6 pre listing form li dd dt plaintext table hr xmp"
  ).split(" "),
);

function nameOf(scan: Scan): string {
  return scan.bytes.latin1Slice(scan.nameStart, scan.nameEnd).toLowerCase();
}

function push(tree: Tree, element: OpenElement): void {
  if (tree.open.length < MAX_OPEN) tree.open.push(element);
}

/** A tag while an svg or math element is open. */
function inForeign(tree: Tree, tag: number): number {
  const name = nameOf(tree.scan);
  if (tag < 0) return foreignEnd(tree, -tag, name);
  const top = tree.open.at(-1)!; // the caller saw one
  if (!isForeignStart(top, name)) return htmlInForeign(tree, tag, name);
  if (BREAKOUT.has(name) || (name === "font" && hasFontAttribute(tree.scan))) {
    leaveForeign(tree);
    return tree.open.length > 0 ? htmlInForeign(tree, tag, name) : htmlStart(tree, tag);
  }
  if (!tree.scan.selfClosing) push(tree, { space: top.space, name, point: pointOf(tree.scan, top.space, name) });
  return tag === TAG.A && top.space === SVG && tree.templates.length === 0 ? SVG_LINK : 0;
}

/** Whether the start tag is handled by the rules for foreign content ("tree construction dispatcher"). */
function isForeignStart(top: OpenElement, name: string): boolean {
  if (top.space === HTML || top.point === "html") return false;
  if (top.point === "text") return name === "mglyph" || name === "malignmark";
  return !(top.space === MATH && top.name === "annotation-xml" && name === "svg");
}

function pointOf(scan: Scan, space: OpenElement["space"], name: string): OpenElement["point"] {
  if (space === SVG) return name === "foreignobject" || name === "desc" || name === "title" ? "html" : null;
  if (name === "mi" || name === "mo" || name === "mn" || name === "ms" || name === "mtext") return "text";
  if (name !== "annotation-xml") return null;
  const at = attributeAt(scan, "encoding");
  if (at < 0) return null;
  const encoding = scan.bytes.latin1Slice(scan.attributes[at + 2], scan.attributes[at + 3]).toLowerCase();
  return encoding === "text/html" || encoding === "application/xhtml+xml" ? "html" : null;
}

function hasFontAttribute(scan: Scan): boolean {
  return attributeAt(scan, "color") >= 0 || attributeAt(scan, "face") >= 0 || attributeAt(scan, "size") >= 0;
}

/** Up to the next integration point or HTML element. */
function leaveForeign(tree: Tree): void {
  for (let top = tree.open.at(-1); top !== undefined && top.space !== HTML && top.point === null; top = tree.open.at(-1)) tree.open.pop();
}

/** A start tag by the HTML rules, somewhere inside of an integration point. */
function htmlInForeign(tree: Tree, tag: number, name: string): number {
  if (tag === TAG.FRAMESET) return 0;
  if (CLOSES_P.has(name)) closeHtml(tree, "p");
  const result = htmlStart(tree, tag);
  // svg and math have pushed themselves; the content of raw text elements is over, but their end tag is still to come.
  if (tag !== TAG.SVG && tag !== TAG.MATH && !VOID.has(name)) push(tree, { space: HTML, name, point: null });
  return result;
}

function closeHtml(tree: Tree, name: string): void {
  for (let i = tree.open.length - 1; i >= 0 && tree.open[i]!.space === HTML; i--) {
    if (tree.open[i]!.name !== name) continue;
    tree.open.length = i;
    return;
  }
}

function foreignEnd(tree: Tree, tag: number, name: string): number {
  const open = tree.open;
  if (tag === TAG.NOSCRIPT) tree.noscript = false;
  const top = open.at(-1)!; // the caller saw one
  if (top.space !== HTML) {
    if (name === "p" || name === "br") {
      leaveForeign(tree);
      return 0;
    }
    for (let i = open.length - 1; i >= 0 && open[i]!.space !== HTML; i--) {
      if (open[i]!.name !== name) continue;
      open.length = i;
      return 0;
    }
  }
  if (tag === TAG.TEMPLATE) return htmlEnd(tree, tag);
  if (top.space === HTML) closeHtml(tree, name);
  else closeAround(tree, name);
  return 0;
}

/** An HTML element that began before this svg or math closes and takes these along, unless an integration point lies between ("has an element in scope"). */
function closeAround(tree: Tree, name: string): void {
  const open = tree.open;
  for (let i = open.length - 1; i >= 0; i--) {
    const element = open[i]!;
    if (element.point !== null) return;
    if (element.space !== HTML || element.name !== name) continue;
    open.length = i;
    return;
  }
  if (isOpenOutside(tree, name)) open.length = 0;
}

/** Counts of elements by name, by a second pass that follows the first one only where it is asked for: as much as that is linear in all. */
interface Outside {
  readonly scan: Scan;
  readonly counts: Map<string, number>;
}

/** Whether an HTML element of that name was open when the outermost svg or math began. Elements without end tags count as open for ever: close enough. */
function isOpenOutside(tree: Tree, name: string): boolean {
  if (name === "body" || name === "html") return false; // their end tags close nothing
  tree.outside ??= { scan: startOutside(tree.scan), counts: new Map() };
  const { scan, counts } = tree.outside;
  while (scan.at < tree.foreignFrom) {
    const tag = nextTag(scan);
    if (tag === 0 || scan.at > tree.foreignFrom) break;
    const found = nameOf(scan);
    const count = counts.get(found) ?? 0;
    if (tag < 0) counts.set(found, Math.max(0, count - 1));
    else if (!VOID.has(found)) counts.set(found, count + 1);
    if (tag === TAG.SCRIPT) skipScript(scan);
    else if (tag === TAG.RAW || tag === TAG.NOFRAMES || tag === TAG.TITLE || tag === TAG.IFRAME) skipRawText(scan);
  }
  return (counts.get(name) ?? 0) > 0;
}

function startOutside(scan: Scan): Scan {
  const outside = startScan(scan.bytes, true);
  outside.everyTag = true;
  return outside;
}
