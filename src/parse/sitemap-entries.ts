/** The vocabularies of sitemaps over the marks of XML: urlset, sitemapindex, RSS 0.9 … 2.0, Atom. Decides what is a page's address; URLs are resolved by the taker. */
import { decodeXML } from "entities/decode";
import { createXmlScanner, type XmlTaker } from "./sitemap-xml.ts";

export type XmlKind = "urlset" | "index" | "rss" | "atom";

/** One entry, its texts as written but trimmed. The strings may be parts of the input: copy what is to last. */
export interface RawEntry {
  readonly kind: "page" | "sitemap";
  readonly locs: readonly string[];
  /** `xhtml:link rel=alternate` of a page. */
  readonly alternates: readonly string[];
  readonly lastmod: string;
  readonly changefreq: string;
  readonly priority: string;
  /** What relative addresses are relative to, an absolute URL: `xml:base` of Atom; null: the sitemap. */
  readonly base: string | null;
}

export interface EntryTaker {
  entry(entry: RawEntry): void;
  fault(what: string): void;
  readonly done: boolean;
}

export interface EntryReader {
  write(text: string): void;
  /** `complete`: the input was not cut off by a limit. */
  end(complete: boolean): void;
  /** Null until the root element has come. */
  readonly kind: XmlKind | "html" | "foreign" | null;
}

const ROOTS: Readonly<Record<string, XmlKind | "html">> = {
  urlset: "urlset",
  sitemapindex: "index",
  rss: "rss",
  rdf: "rss",
  feed: "atom",
  html: "html",
  head: "html",
  body: "html",
};

/** What an element is for, in any vocabulary. */
type Role = "none" | "page" | "sitemap" | "loc" | "lastmod" | "changefreq" | "priority" | "guid" | "href" | "alternate";

const SITEMAP_ROLES: Readonly<Record<string, Role>> = {
  url: "page",
  sitemap: "sitemap",
  loc: "loc",
  lastmod: "lastmod",
  changefreq: "changefreq",
  priority: "priority",
  link: "alternate",
};
const ROLES: Readonly<Record<XmlKind, Readonly<Record<string, Role>>>> = {
  urlset: SITEMAP_ROLES,
  index: SITEMAP_ROLES,
  rss: { item: "page", link: "loc", guid: "guid", pubdate: "lastmod", date: "lastmod" },
  atom: { entry: "page", link: "href", updated: "lastmod" },
};

/** A warning of PHP that stands before the XML is made of these; no sitemap begins with one. */
const NOTICE = new Set(["br", "b", "i", "p", "font", "strong", "pre", "code"]);
const MAX_PRELUDE = 64;
/** Deeper nesting is no sitemap. */
const MAX_DEPTH = 256;
/** Addresses of one entry before it is handed over unfinished. */
const MAX_LOCS = 64;
/** Longer texts are cut: too long for a URL. Characters. */
const MAX_VALUE = 65_536;
const MAX_NAMES = 500;
/** Prefixes of one namespace that are told apart. */
const MAX_PREFIXES = 32;
/** Closing tags are matched with elements at most this far up. */
const MAX_REPAIR = 16;

const SITEMAP_NAMESPACE = /^https?:\/\/www\.(?:sitemaps\.org|google\.com)\/schemas\/sitemap\/0\.\d+\/?$/;
const XHTML_LINK = /^[a-z0-9_.-]+:link$/;

/** Attributes of a start tag, names as written, references resolved; of two with one name the first counts. */
export function readAttributes(raw: string): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  for (const match of raw.matchAll(/([^\s=/"']+)\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'/]+))/g)) {
    const name = match[1] ?? "";
    if (!found.has(name)) found.set(name, decodeXML(match[2] ?? match[3] ?? match[4] ?? "").trim());
  }
  return found;
}

/** What an attribute declares a namespace for: a prefix with its colon, "" for names without one; null: it declares none. */
function declaredPrefix(attribute: string): string | null {
  if (attribute === "xmlns") return "";
  return attribute.startsWith("xmlns:") ? `${attribute.slice(6)}:` : null;
}

interface OpenElement {
  readonly name: string;
  readonly role: Role;
}

/** `url`: the sitemap's own, against which the outermost `xml:base` is resolved. */
export function createEntryReader(url: string, taker: EntryTaker): EntryReader {
  let kind: EntryReader["kind"] = null;
  const open: OpenElement[] = [];
  let roles = new Map<string, Role>();
  /** Prefixes (with colon) of the root's namespace. */
  let prefixes: readonly string[] = [""];
  let rootNamespace: string | undefined;
  const bases: { depth: number; base: string }[] = [];
  let tooDeep = false;
  /** Tags of a notice that came before the root. */
  let prelude = 0;

  let entry: "page" | "sitemap" | null = null;
  let locs: string[] = [];
  let guids: string[] = [];
  let alternates: string[] = [];
  let lastmod = "";
  let changefreq = "";
  let priority = "";

  let collecting = false;
  let collectDepth = -1; // of the element whose own text is collected; text of elements within it is not
  let value = "";
  let permanent = true; // of a guid

  function roleOf(name: string): Role {
    const known = roles.get(name);
    if (known !== undefined) return known;
    const role = lookUp(name.toLowerCase(), name);
    if (roles.size >= MAX_NAMES) roles = new Map();
    roles.set(name, role);
    return role;
  }

  function lookUp(lower: string, name: string): Role {
    if (kind === null || kind === "html" || kind === "foreign") return "none";
    const colon = name.indexOf(":");
    const prefix = name.slice(0, colon + 1);
    const local = lower.slice(colon + 1);
    const role = Object.hasOwn(ROLES[kind], local) ? ROLES[kind][local]! : "none";
    if (role === "alternate") return XHTML_LINK.test(lower) ? role : "none";
    // RSS knows no namespace of its own; Dublin Core dates are common in it.
    if (kind === "rss") return prefix === "" ? (local === "date" ? "none" : role) : lower === "dc:date" ? "lastmod" : "none";
    return prefixes.includes(prefix) ? role : "none";
  }

  function openRoot(name: string, attributes: string): void {
    const colon = name.indexOf(":");
    if (kind === null) {
      const root = name.slice(colon + 1).toLowerCase();
      kind = Object.hasOwn(ROOTS, root) ? ROOTS[root]! : "foreign";
      if (prelude > 0 && (kind === "urlset" || kind === "index")) taker.fault("there is markup before the sitemap");
    } else taker.fault("more than one root element");
    const declared = readAttributes(attributes);
    const prefix = name.slice(0, colon + 1);
    const namespace = declared.get(prefix === "" ? "xmlns" : `xmlns:${name.slice(0, colon)}`);
    const others = [...declared].filter(([, uri]) => namespace !== undefined && uri === namespace).flatMap(([attribute]) => declaredPrefix(attribute) ?? []);
    prefixes = [prefix, ...others];
    rootNamespace = namespace;
    roles = new Map();
    noteBase(declared.get("xml:base"));
  }

  /** The role of an element that declares namespaces: a prefix that it gives the root's namespace counts from now on, another default takes the role away. */
  function roleAmongNamespaces(name: string, attributes: string): Role {
    const declared = readAttributes(attributes);
    const more = [...declared].filter(([, uri]) => uri === rootNamespace).flatMap(([attribute]) => declaredPrefix(attribute) ?? []);
    const fresh = more.filter((prefix) => !prefixes.includes(prefix));
    if (fresh.length > 0) {
      prefixes = [...prefixes, ...fresh].slice(0, MAX_PREFIXES);
      roles = new Map();
    }
    const role = roleOf(name);
    const own = declared.get("xmlns");
    return name.includes(":") || own === undefined || own === rootNamespace || isMeant(own) ? role : "none";
  }

  /** An empty default is what some writers of XML leave behind; a root without a namespace may stand above entries that name the right one. */
  function isMeant(namespace: string): boolean {
    return namespace === "" || (rootNamespace === undefined && SITEMAP_NAMESPACE.test(namespace));
  }

  function noteBase(base: string | undefined): void {
    if (base === undefined || kind !== "atom") return;
    const outer = bases.at(-1)?.base ?? url;
    bases.push({ depth: open.length, base: URL.parse(base, outer)?.href ?? outer });
  }

  function beginEntry(what: "page" | "sitemap"): void {
    if (entry !== null) {
      taker.fault("an entry lies within another one");
      finishEntry();
    }
    entry = what;
  }

  function finishEntry(): void {
    if (entry === null) return;
    const told: RawEntry = {
      kind: entry,
      locs: locs.length > 0 ? locs : guids,
      alternates,
      lastmod,
      changefreq,
      priority,
      base: bases.at(-1)?.base ?? null,
    };
    entry = null;
    if (locs.length > 0) locs = [];
    if (guids.length > 0) guids = [];
    if (alternates.length > 0) alternates = [];
    lastmod = "";
    changefreq = "";
    priority = "";
    if (told.locs.length > 0 || told.alternates.length > 0) taker.entry(told);
  }

  function addLoc(list: string[], text: string): void {
    if (text === "") return;
    list.push(text);
    if (list.length < MAX_LOCS || entry === null) return;
    const same = entry;
    finishEntry();
    entry = same;
  }

  /** An element directly within an entry. */
  function openInEntry(role: Role, attributes: string): void {
    switch (role) {
      case "guid":
        permanent = readAttributes(attributes).get("isPermaLink")?.toLowerCase() !== "false";
        break;
      case "href":
      case "alternate": {
        const given = readAttributes(attributes);
        const rel = given.get("rel")?.toLowerCase();
        if (rel === "alternate" || (rel === undefined && role === "href")) addLoc(role === "href" ? locs : alternates, given.get("href") ?? "");
        return;
      }
      case "loc":
      case "lastmod":
      case "changefreq":
      case "priority":
        break;
      default:
        return;
    }
    collecting = true;
    collectDepth = open.length;
    value = "";
  }

  function take(role: Role): void {
    collectDepth = -1;
    const text = (value.includes("&") ? decodeXML(value) : value).trim();
    value = "";
    if (role === "loc") addLoc(locs, text);
    // What is marked as no link is one all the same when it looks like one and the item has no other.
    else if (role === "guid" && (permanent || /^https?:\/\//i.test(text))) addLoc(guids, text);
    else if (role === "lastmod") lastmod = text;
    else if (role === "changefreq") changefreq = text;
    else if (role === "priority") priority = text;
  }

  const xml: XmlTaker = {
    open(name, attributes) {
      if (kind === null && prelude < MAX_PRELUDE && NOTICE.has(name.toLowerCase())) {
        prelude++;
        return;
      }
      if (open.length === 0) openRoot(name, attributes);
      if (open.length >= MAX_DEPTH) {
        if (!tooDeep) taker.fault(`elements are nested more than ${MAX_DEPTH} deep`);
        tooDeep = true;
        return;
      }
      let role = open.length === 0 ? "none" : roleOf(name);
      if (attributes !== "" && open.length > 0) {
        if (kind !== "rss" && role !== "alternate" && attributes.includes("xmlns")) role = roleAmongNamespaces(name, attributes);
        if (kind === "atom" && attributes.includes("xml:base")) noteBase(readAttributes(attributes).get("xml:base"));
      }
      const parent = open.at(-1)?.role;
      open.push({ name, role });
      collecting = false;
      if (role === "page" || role === "sitemap") beginEntry(role);
      else if (entry !== null && (parent === "page" || parent === "sitemap")) openInEntry(role, attributes);
    },
    close(name) {
      if (kind === null && prelude > 0) return;
      let at = open.length - 1;
      const lowest = Math.max(0, at - MAX_REPAIR);
      while (at >= lowest && open[at]!.name !== name) at--;
      if (at < lowest || at < 0) {
        if (!tooDeep) taker.fault(`</${name.slice(0, 40)}> closes nothing`);
        return;
      }
      if (at < open.length - 1) taker.fault(`</${name.slice(0, 40)}> comes before </${open.at(-1)!.name.slice(0, 40)}>`);
      closeDownTo(at);
    },
    text(piece, data) {
      if (value.length < MAX_VALUE) value += data && piece.includes("&") ? piece.replaceAll("&", "&amp;") : piece;
    },
    fault: (what) => taker.fault(what),
    get collecting() {
      return collecting;
    },
    get done() {
      return taker.done || kind === "html" || kind === "foreign";
    },
  };

  function closeDownTo(depth: number): void {
    while (open.length > depth) {
      const { role } = open.at(-1)!;
      if (collectDepth === open.length) take(role);
      open.pop();
      if (role === "page" || role === "sitemap") finishEntry();
      if ((bases.at(-1)?.depth ?? -1) >= open.length) bases.pop();
    }
    collecting = open.length === collectDepth;
  }

  const scanner = createXmlScanner(xml);
  return {
    write: (text) => scanner.write(text),
    end(complete) {
      const where = scanner.end();
      if (taker.done || kind === "html" || kind === "foreign") return;
      if (complete && (open.length > 0 || where !== "outside"))
        taker.fault(open.length > 0 ? `the file ends within <${open.at(-1)!.name.slice(0, 40)}>` : "the file is cut off");
      // A text that its closing tag has begun to end is whole; any other may lack its end.
      if (where === "closing" && open.length > 0) closeDownTo(open.length - 1);
      finishEntry();
    },
    get kind() {
      return kind;
    },
  };
}
