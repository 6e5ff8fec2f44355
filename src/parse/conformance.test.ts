import assert from "node:assert/strict";
import { test } from "node:test";
import { type ConformanceCase, conformanceCases } from "../rules/url-conformance.ts";
import { decodeText, extractPage } from "./extract.ts";
import { parseRefresh } from "./meta-refresh.ts";
import { htmlResponse } from "./response-for-tests.ts";
import { parseSrcset } from "./srcset.ts";

const OPTIONS = { images: true, robotsToken: "skein", maxUrlLength: 8192 };

/** Runs the cases of one topic: hard ones must pass, of those that are a matter of taste the choices are counted. */
function run(topic: string, check: (c: ConformanceCase) => boolean | null): void {
  const cases = conformanceCases(topic);
  test(`conformance: ${topic}`, { skip: cases === null }, () => {
    const wrong: string[] = [];
    const notOffered = new Map<string, number>();
    let taste = 0;
    for (const c of cases ?? []) {
      const ok = check(c);
      if (ok === null) notOffered.set(c.kind, (notOffered.get(c.kind) ?? 0) + 1);
      else if (c.taste === true) taste += ok ? 1 : 0;
      else if (!ok) wrong.push(`${c.id} ${JSON.stringify(c.input)} expected ${JSON.stringify(c.expected)}`);
    }
    const rest = [...notOffered].map(([kind, count]) => `${count} of kind ${kind}`).join(", ");
    process.stdout.write(`${topic}: ${taste} cases of taste decided as their source does${rest === "" ? "" : `; not offered: ${rest}`}\n`);
    assert.deepEqual(wrong, []);
  });
}

function bytesOf(input: { html?: string; htmlBase64?: string; bytesBase64?: string; encoding?: string }): Buffer {
  if (input.html !== undefined) return Buffer.from(input.html, "utf8");
  return Buffer.from(input.htmlBase64 ?? input.bytesBase64 ?? "", "base64");
}

function whatwg(url: string): string {
  return (URL.parse(url)?.href ?? url).replace(/#.*$/, "");
}

run("html", (c) => {
  switch (c.kind) {
    case "base": {
      const bytes = Buffer.concat([bytesOf(c.input), Buffer.from("<a href='base-probe'>")]);
      if (c.input.url === null) return null; // we always know where a page came from
      const page = extractPage(htmlResponse(bytes, "text/html; charset=utf-8"), c.input.url, OPTIONS);
      // A comment or script that is never closed swallows the probe.
      const probe = page.links.find((link) => link.endsWith("base-probe"));
      return probe === undefined ? c.expected.base === c.input.url : probe === URL.parse("base-probe", c.expected.base)?.href;
    }
    case "anchors":
      return anchors(c);
    case "robots-meta": {
      const robots = extractPage(htmlResponse(bytesOf(c.input), "text/html"), "http://h/", OPTIONS).robots;
      return robots.includes("noindex") === c.expected.noindex && robots.includes("nofollow") === c.expected.nofollow;
    }
    case "all-sources":
      return allSources(c);
    default:
      return null; // CSS urls
  }
});

function anchors(c: ConformanceCase): boolean | null {
  const options: Readonly<Record<string, unknown>> = { ...c.options, ...c.input.options };
  if (options.tags !== undefined || options.attrs !== undefined) return null;
  const page = extractPage(htmlResponse(bytesOf(c.input), c.input.contentType ?? "text/html; charset=utf-8"), c.input.url, OPTIONS);
  const nofollowPage = options.obeyMetaRobots === true && page.robots.includes("nofollow");
  const followed = page.links.filter((link) => !nofollowPage && !(options.obeyRelNofollow === true && page.nofollow?.has(link)));
  const all = new Set([...followed, ...(c.elements?.includes("img") === true ? (page.images ?? []) : [])]);
  // Other schemes, form targets and media files are no links here; what remains must be the same set.
  const wanted = (c.expected.urlSet ?? c.expected.links.map((link: { url: string }) => link.url))
    .map(whatwg)
    .filter((url: string) => url.startsWith("http") && !url.endsWith(".mp4") && !(options.formActions === true && url.endsWith(".jsp")));
  const titleOk = c.expected.title === undefined || (page.title ?? "") === c.expected.title;
  const marks = (c.expected.links ?? []).every((link: { url: string; nofollow?: boolean }) => link.nofollow !== true || page.nofollow?.has(link.url) === true);
  return titleOk && (options.obeyRelNofollow === true || marks) && setsEqual(all, new Set(wanted));
}

/** Every reference of whatever element: offered where only links and images are asked for. */
function allSources(c: ConformanceCase): boolean | null {
  const wanted: string[] | undefined = c.expected.urls ?? c.expected.contains;
  if (wanted === undefined || /<(?:form|link)/.test(c.input.html)) return null;
  const page = extractPage(htmlResponse(bytesOf(c.input), "text/html"), c.input.url, OPTIONS);
  const all = new Set([...page.links, ...(page.images ?? [])]);
  return c.expected.contains === undefined ? setsEqual(all, new Set(wanted.map(whatwg))) : wanted.every((url) => all.has(whatwg(url)));
}

function setsEqual(a: ReadonlySet<string>, b: ReadonlySet<string>): boolean {
  return a.size === b.size && [...a].every((value) => b.has(value));
}

run("srcset", (c) => (parseSrcset(c.input.srcset).find((candidate) => candidate.valid)?.url ?? null) === c.expected.firstUrl);

run("meta-refresh", (c) => {
  if (c.kind === "content") {
    const refresh = parseRefresh(c.input.content);
    if (refresh === null || c.expected === null) return refresh === c.expected;
    return refresh.delay === c.expected.delay && clean(refresh.url) === clean(c.expected.url);
  }
  const page = extractPage(htmlResponse(bytesOf(c.input), `text/html; charset=${c.input.encoding ?? "utf-8"}`), c.input.url, OPTIONS);
  const expected = c.expected === null || c.expected.url === null ? [] : [whatwg(c.expected.url)];
  return JSON.stringify(page.links.map(whatwg)) === JSON.stringify(expected);
});

function clean(url: string | null): string | null {
  return url === null ? null : url.replace(/[\t\n\r]/g, "");
}

run("charset", (c) => {
  const bytes = bytesOf(c.input);
  if (c.kind === "guess") return decodeText(bytes, "text/html").charset === c.expected.encoding;
  const page = decodeText(bytes, c.input.contentType ?? "text/html");
  if (c.kind === "declared") return (page.source === "meta" || page.source === "bom" ? page.charset : null) === c.expected.encoding;
  const charset = extractPage(htmlResponse(bytes, c.input.contentType ?? "text/html"), "http://h/", OPTIONS).charset;
  return page.charset === c.expected.encoding && charset === page.charset && (c.expected.text === undefined || page.text === c.expected.text);
});
