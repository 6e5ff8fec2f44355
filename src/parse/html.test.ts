import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import fc from "fast-check";
import { isRequired } from "../rules/url-conformance.ts";
import { extractPage } from "./extract.ts";
import { oracleReferences } from "./html-oracle.ts";
import { htmlResponse } from "./response-for-tests.ts";

const URL_OF_PAGE = "http://example.org/dir/page.html";
const OPTIONS = { images: true, robotsToken: "skein", maxUrlLength: Number.MAX_SAFE_INTEGER };

function ours(html: string | Buffer): { links: string[]; images: string[]; title: string | null } {
  const page = extractPage(htmlResponse(html, "text/html; charset=utf-8"), URL_OF_PAGE, OPTIONS);
  return { links: [...page.links].sort(), images: [...(page.images ?? [])].sort(), title: page.title };
}

function theirs(html: string): { links: string[]; images: string[]; title: string | null } {
  const page = oracleReferences(html, URL_OF_PAGE);
  return { links: [...page.links].sort(), images: [...page.images].sort(), title: page.title };
}

const CONTAINERS = "div p b span table tr td ul li h1 font form button body head html section nobr caption".split(" ");
const RAW = ["script", "style", "title", "textarea", "iframe", "noscript", "noembed", "xmp", "noframes"];
const FOREIGN = ["svg", "math", "foreignObject", "desc", "g", "path", "mi", "mtext", "annotation-xml", "image", "mglyph"];

const plainAttribute = fc.constantFrom(
  ...' href=$| href="$"| href=\'$\'| HREF = $ |/href=$| xlink:href="$"| src="$"| rel=next| rel="nofollow"| class=x'.split("|"),
);
const oddAttribute = fc.constantFrom(
  ...' title=">"| title=\'<a href=no>\'| =| "| \'|/| href| encoding="text/html"| color=red| \0| a=b=c| href="$&amp;x&copy=1&lt"|\n| href="$\n\t"'.split("|"),
);
const attributes = fc
  .tuple(fc.array(fc.oneof({ weight: 9, arbitrary: plainAttribute }, { weight: 1, arbitrary: oddAttribute }), { maxLength: 3 }), fc.nat({ max: 99 }))
  .map(([parts, number]) => parts.join("").replaceAll("$", `u${number}`));
const tag = fc
  .tuple(fc.constantFrom(..."aaaaaaaaaa", "area", "link", "base", "img", "meta", "br", "hr", "input", ...CONTAINERS), attributes)
  .map(([name, rest]) => `<${name}${rest}>`);
const end = fc.constantFrom("a", "a", ...CONTAINERS, "br", "p").map((name) => `</${name}>`);
/** Mostly closed, so that what follows is seen. */
const rawStart = fc
  .tuple(fc.constantFrom(...RAW), fc.constantFrom("", " x", "/"), fc.constantFrom("t", "<a href=raw>", "<!--", "</p>", ""), fc.nat({ max: 4 }))
  .map(([name, rest, content, open]) => `<${name}${rest}>${content}${open === 0 ? "" : `</${name}>`}`);
const rawEnd = fc.constantFrom(...RAW).map((name) => `</${name}>`);
const odd = fc.constantFrom(
  ...'<!--~-->~--!>~<!-->~<!--->~<!~>~<~</~</>~<?x~<![CDATA[~]]>~<!doctype html>~"~\'~text ~ ~&amp;~&~\0~<a~<a href=~<a href="x'.split("~"),
);
const foreign = fc.tuple(fc.constantFrom(...FOREIGN), attributes, fc.constantFrom("", "", "/")).map(([name, rest, close]) => `<${name}${rest}${close}>`);
const foreignEnd = fc.constantFrom(...FOREIGN).map((name) => `</${name}>`);
const template = fc.constantFrom("<template>", "</template>", "<template>");

/** Balanced pieces make deep structures likely; loose ones break them. */
function documents(loose: fc.Arbitrary<string>, maxLength: number): fc.Arbitrary<string> {
  return fc.array(loose, { maxLength }).map((parts) => parts.join(""));
}

function compare(html: string): void {
  assert.deepEqual(ours(html), theirs(html), JSON.stringify(html));
}

test("broken HTML: the links, images and titles that parse5 finds", () => {
  fc.assert(fc.property(documents(fc.oneof({ weight: 4, arbitrary: tag }, { weight: 2, arbitrary: end }, rawStart, rawEnd, odd), 14), compare), {
    numRuns: 6000,
    seed: 1,
  });
});

test("templates: the links that parse5 finds outside of them", () => {
  fc.assert(
    fc.property(documents(fc.oneof({ weight: 3, arbitrary: tag }, { weight: 2, arbitrary: end }, { weight: 2, arbitrary: template }, odd), 12), compare),
    { numRuns: 3000, seed: 2 },
  );
});

test("svg and math: the links that parse5 finds", () => {
  const piece = fc.oneof({ weight: 3, arbitrary: tag }, { weight: 4, arbitrary: foreign }, { weight: 3, arbitrary: foreignEnd }, rawStart, rawEnd, odd);
  fc.assert(
    fc.property(documents(piece, 9), (html) => compare(`<svg>${html}`)),
    { numRuns: 4000, seed: 3 },
  );
});

test("framesets: the frames that parse5 finds", () => {
  const piece = fc.oneof(
    fc.constantFrom(
      "<frameset>",
      "</frameset>",
      "<frame src=f1>",
      "<frame src=f2>",
      "<frameset cols=1>",
      "<noframes><a href=no></noframes>",
      " ",
      "<head>",
      "<title>t</title>",
      "text",
    ),
    fc.constantFrom(
      "<a href=a1>",
      "<p>",
      "<body>",
      "<link rel=next href=l>",
      "<script>x</script>",
      "<!-- c -->",
      "<iframe src=i></iframe>",
      "<html>",
      "<br>",
      "<div>",
      "<meta>",
    ),
  );
  const check = (html: string): void => {
    const mine = ours(html);
    const wanted = theirs(html);
    // Frames outside of a frameset are links to us only.
    const links = mine.links.filter((link) => wanted.links.includes(link) || !/\/f[12]$/.test(link));
    assert.deepEqual({ ...mine, links }, wanted, JSON.stringify(html));
  };
  fc.assert(fc.property(documents(piece, 8), check), { numRuns: 3000, seed: 4 });
});

/** Every .html file below. */
function htmlFiles(directory: string): string[] {
  return readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith(".html"))
    .map((entry) => join(entry.parentPath, entry.name));
}

for (const [name, directory] of [
  ["python3-doc", "/usr/share/doc/python3/html"],
  ["git-doc", "/usr/share/doc/git/html"],
  ["postgresql-doc-15", "/usr/share/doc/postgresql-doc-15/html"],
] as const) {
  const present = existsSync(directory);
  if (!present) {
    if (isRequired("docs")) throw new Error(`${name} is required but not installed (${directory})`);
    process.stderr.write(`documents absent: ${name} (${directory})\n`);
  }
  test(`the real documents of ${name}: equal links, images and titles`, { skip: !present }, () => {
    const files = htmlFiles(directory).sort();
    // parse5 needs 100 ms for a megabyte: every nth file is enough here.
    const step = Math.ceil(files.length / 60);
    let links = 0;
    for (let i = 0; i < files.length; i += step) {
      const bytes = readFileSync(files[i]!);
      const mine = ours(bytes);
      links += mine.links.length;
      assert.deepEqual(mine, theirs(bytes.toString("utf8")), files[i]);
    }
    assert.ok(links > 100, `${links} links in ${files.length} files`);
  });
}
