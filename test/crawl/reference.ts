/** An independent answer to "what does a complete crawl of this folder find": parse5 and URL over the files, breadth first, no part of the crawler. */
import { readFileSync } from "node:fs";
import { extname } from "node:path";
import { type DefaultTreeAdapterTypes, parse } from "parse5";
import { lookUp, TYPES } from "./static-site.ts";

type Node = DefaultTreeAdapterTypes.Node;

export interface ReferencePage {
  readonly depth: number;
  readonly status: number;
  /** Distinct link targets, without fragment; empty for what is not HTML. */
  readonly links: ReadonlySet<string>;
}

const RELS = new Set(["next", "prev", "alternate", "canonical"]);

/** Links by the contract's list: a, area, iframe, frame, SVG a, meta refresh, link rel=next/prev/alternate/canonical. */
export function referenceLinks(html: string, pageUrl: string): Set<string> {
  const refs: string[] = [];
  let base: string | null = null;
  const visit = (node: Node): void => {
    if ("attrs" in node) {
      const attr = (name: string) => node.attrs.find((a) => a.name === name)?.value;
      const svg = node.namespaceURI.endsWith("svg");
      if (node.tagName === "base" && !svg && base === null && attr("href") !== undefined) base = attr("href")!;
      if (node.tagName === "a" || node.tagName === "area") {
        const href = attr("href");
        if (href !== undefined) refs.push(href);
      }
      if ((node.tagName === "iframe" || node.tagName === "frame") && attr("src") !== undefined) refs.push(attr("src")!);
      if (
        node.tagName === "link" &&
        (attr("rel") ?? "")
          .toLowerCase()
          .split(/\s+/)
          .some((rel) => RELS.has(rel)) &&
        attr("href") !== undefined
      )
        refs.push(attr("href")!);
      if (node.tagName === "meta" && attr("http-equiv")?.toLowerCase() === "refresh") {
        const url = /^\s*[\d.]+\s*[;,]?\s*(?:url\s*=\s*)?["']?([^"']+)/i.exec(attr("content") ?? "")?.[1];
        if (url !== undefined) refs.push(url);
      }
    }
    if ("childNodes" in node) for (const child of node.childNodes) visit(child);
  };
  visit(parse(html, { scriptingEnabled: false }));
  const from = base === null ? pageUrl : new URL(base, pageUrl).href;
  const links = new Set<string>();
  for (const ref of refs) {
    if (!URL.canParse(ref, from)) continue;
    const url = new URL(ref, from);
    if (url.protocol !== "http:" && url.protocol !== "https:") continue;
    url.hash = "";
    url.username = url.password = ""; // credentials never stand in records
    links.add(url.href);
  }
  return links;
}

/** Every URL of the start URL's host that is reachable by links, with its depth; a folder's redirect keeps the depth. */
export function referenceCrawl(root: string, start: string): Map<string, ReferencePage> {
  const pages = new Map<string, ReferencePage>();
  const origin = new URL(start).origin;
  let level = [start];
  for (let depth = 0; level.length > 0; depth++) {
    const next: string[] = [];
    for (let i = 0; i < level.length; i++) {
      const url = level[i]!;
      if (pages.has(url)) continue;
      const found = lookUp(root, new URL(url).pathname);
      if (found.kind === "folder") {
        const to = new URL(url);
        to.pathname += "/";
        pages.set(url, { depth, status: 301, links: new Set() });
        level.push(to.href);
        continue;
      }
      const html = found.kind === "file" && TYPES[extname(found.path)] === "text/html";
      const links = html ? referenceLinks(readFileSync(found.path, "utf8"), url) : new Set<string>();
      pages.set(url, { depth, status: found.kind === "file" ? 200 : 404, links });
      for (const link of links) if (new URL(link).origin === origin && !pages.has(link)) next.push(link);
    }
    level = next;
  }
  return pages;
}
