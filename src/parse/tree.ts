/**
 * As much of tree construction (HTML Standard §13.2.6) as decides which tags become elements of the document: foreign content with its integration
 * points, templates, framesets. Not a tree: outside of these, every tag is taken as an element where it stands.
 *
 * Links inside a template are no links of the document: its content is an inert document of its own, as in browsers and in the test oracle.
 * A frame counts wherever it stands, though browsers show it in a frameset only: it can mean nothing but a page to load.
 * Of noscript the content counts (scripting is off). A select may hold anything (the standard since 2025; older parsers dropped links in it).
 */
import {
  BREAKOUT,
  CLOSES_P,
  HTML,
  hasFontAttribute,
  isForeignStart,
  isOpenOutside,
  MATH,
  type OpenElement,
  type Outside,
  pointOf,
  SVG,
  startOutside,
  TABLE_PARTS,
  VOID,
} from "./foreign.ts";
import { replacedBody } from "./frameset.ts";
import { elementName, endScan, nextTag, type Scan, skipRawText, skipScript, startScan, TAG } from "./scan.ts";

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

/** Gives back what the scans hold. */
export function endTree(tree: Tree): void {
  endScan(tree.scan);
  if (tree.outside !== null) endScan(tree.outside.scan);
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

// ---- foreign content

function push(tree: Tree, element: OpenElement): void {
  if (tree.open.length < MAX_OPEN) tree.open.push(element);
}

/** A tag while an svg or math element is open. */
function inForeign(tree: Tree, tag: number): number {
  const name = elementName(tree.scan);
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

/** Up to the next integration point or HTML element. */
function leaveForeign(tree: Tree): void {
  for (let top = tree.open.at(-1); top !== undefined && top.space !== HTML && top.point === null; top = tree.open.at(-1)) tree.open.pop();
}

/** A start tag by the HTML rules, somewhere inside of an integration point. */
function htmlInForeign(tree: Tree, tag: number, name: string): number {
  if (tag === TAG.FRAMESET) return 0;
  if (TABLE_PARTS.has(name) && !tree.open.some((element) => element.space === HTML && element.name === "table")) return 0;
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
  tree.outside ??= startOutside(tree.scan);
  if (isOpenOutside(tree.outside, name, tree.foreignFrom)) open.length = 0;
}
