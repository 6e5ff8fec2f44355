/** For tests only: the links and images of a page by way of parse5, a full HTML parser, to compare ours with. */
import { type DefaultTreeAdapterTypes, parse } from "parse5";

type Node = DefaultTreeAdapterTypes.ChildNode | DefaultTreeAdapterTypes.Document;
type Element = DefaultTreeAdapterTypes.Element;

export interface OracleReferences {
  /** Distinct WHATWG-resolved http(s) URLs without fragment and credentials: a, area, iframe, frame, SVG a, and link elements of the followed relations. */
  readonly links: ReadonlySet<string>;
  /** Of img src only. */
  readonly images: ReadonlySet<string>;
  readonly title: string | null;
}

const SVG = "http://www.w3.org/2000/svg";
const XHTML = "http://www.w3.org/1999/xhtml";

export function oracleReferences(html: string, url: string): OracleReferences {
  const elements: Element[] = [];
  const titles: string[] = [];
  // Not recursive: pages of 100,000 nested elements are among those compared.
  const stack: Node[] = [parse(html, { scriptingEnabled: false })];
  while (stack.length > 0) {
    const node = stack.pop()!;
    if ("tagName" in node) elements.push(node);
    if ("childNodes" in node) for (let i = node.childNodes.length - 1; i >= 0; i--) stack.push(node.childNodes[i]!);
  }
  const base = baseOf(elements, url);
  const links = new Set<string>();
  const images = new Set<string>();
  for (const element of elements) {
    const href = referenceOf(element);
    if (href !== null) addResolved(links, href, base);
    if (element.tagName === "img" && element.namespaceURI === XHTML) {
      const src = attribute(element, "src");
      if (src !== null && src.trim() !== "") addResolved(images, src, base);
    }
    if (element.tagName === "title" && element.namespaceURI === XHTML) titles.push(textOf(element));
  }
  return { links, images, title: titles[0] === undefined || titles[0] === "" ? null : titles[0] };
}

function textOf(element: Element): string {
  return element.childNodes
    .map((child) => ("value" in child ? child.value : ""))
    .join("")
    .replace(/[\t\n\f\r ]+/g, " ")
    .trim();
}

function attribute(element: Element, name: string, prefix?: string): string | null {
  return element.attrs.find((a) => a.name === name && (a.prefix ?? "") === (prefix ?? ""))?.value ?? null;
}

function referenceOf(element: Element): string | null {
  if (element.namespaceURI === SVG) return element.tagName === "a" ? (attribute(element, "href") ?? attribute(element, "href", "xlink")) : null;
  if (element.namespaceURI !== XHTML) return null;
  switch (element.tagName) {
    case "a":
    case "area":
      return attribute(element, "href");
    case "iframe":
    case "frame":
      return nonEmpty(attribute(element, "src"));
    case "link": {
      const rels = (attribute(element, "rel") ?? "").toLowerCase().split(/[\t\n\f\r ]+/);
      const followed = rels.some((rel) => ["next", "prev", "alternate", "canonical"].includes(rel)) && !rels.includes("stylesheet");
      return followed ? nonEmpty(attribute(element, "href")) : null;
    }
    default:
      return null;
  }
}

function nonEmpty(value: string | null): string | null {
  return value === null || /^[\t\n\f\r ]*$/.test(value) ? null : value;
}

function baseOf(elements: readonly Element[], url: string): string {
  for (const element of elements) {
    const href = element.tagName === "base" && element.namespaceURI === XHTML ? attribute(element, "href") : null;
    if (href === null) continue;
    const base = URL.parse(href, url);
    return base === null || base.protocol === "data:" || base.protocol === "javascript:" ? url : base.href;
  }
  return url;
}

function addResolved(into: Set<string>, href: string, base: string): void {
  const url = URL.parse(href, base);
  if (url === null || (url.protocol !== "http:" && url.protocol !== "https:")) return;
  url.username = "";
  url.password = "";
  into.add(url.href.replace(/#.*$/s, ""));
}
