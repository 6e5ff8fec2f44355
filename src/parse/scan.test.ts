import assert from "node:assert/strict";
import { test } from "node:test";
import { conformanceCases } from "../rules/url-conformance.ts";
import { nextTag, type Scan, skipRawText, skipScript, startScan, TAG } from "./scan.ts";
import { createTextReader } from "./text.ts";

type StartTag = [string, Record<string, string>];

/** Every start tag of a document of UTF-8, by the scanner in use. Tree construction is taken to do nothing, as the tokenizer tests of html5lib do. */
function startTags(html: string, rawText: boolean): StartTag[] {
  const bytes = Buffer.from(html, "utf8");
  const reader = createTextReader(bytes, "utf-8");
  const scan = startScan(bytes, true);
  scan.everyTag = true;
  const tags: StartTag[] = [];
  for (let tag = nextTag(scan); tag !== 0; tag = nextTag(scan)) {
    if (tag < 0) continue;
    tags.push([lower(reader.raw(scan.nameStart, scan.nameEnd)), attributesOf(scan, reader)]);
    if (!rawText) continue;
    if (tag === TAG.SCRIPT) skipScript(scan);
    else if (tag === TAG.RAW || tag === TAG.TITLE || tag === TAG.IFRAME || tag === TAG.NOFRAMES) skipRawText(scan);
  }
  return tags;
}

function attributesOf(scan: Scan, reader: ReturnType<typeof createTextReader>): Record<string, string> {
  const attributes: Record<string, string> = {};
  for (let k = 0; k < scan.attributeCount * 4; k += 4) {
    const name = lower(reader.raw(scan.attributes[k]!, scan.attributes[k + 1]!));
    if (!Object.hasOwn(attributes, name)) attributes[name] = reader.attribute(scan.attributes[k + 2]!, scan.attributes[k + 3]!);
  }
  return attributes;
}

function lower(text: string): string {
  return text.replace(/[A-Z]/g, (c) => c.toLowerCase());
}

test("conformance: html-start-tags", { skip: conformanceCases("html-start-tags") === null }, () => {
  for (const c of conformanceCases("html-start-tags") ?? []) assert.deepEqual(startTags(c.input.html, true), c.expected, `${c.id}: ${c.input.html}`);
});

test("F057 F058 attributes: unquoted, repeated, without value, in upper case, with odd names", () => {
  assert.deepEqual(startTags("<a href=/b/ rel=x>t</a>", true), [["a", { href: "/b/", rel: "x" }]]);
  assert.deepEqual(startTags('<a\nclass="c"\nhref="/n">', true), [["a", { class: "c", href: "/n" }]]);
  assert.deepEqual(startTags('<A HREF = "x" href=y a/b=c/ "q" =z=1 n>', true), [["a", { href: "x", a: "", b: "c/", '"q"': "z=1", n: "" }]]);
  assert.deepEqual(startTags('<a b= c="d>e"><p a="1"b=\'2\'/>', true), [
    ["a", { b: 'c="d' }],
    ["p", { a: "1", b: "2" }],
  ]);
});

test("a tag that the input cuts off is none", () => {
  for (const html of ["<a", "<a ", "<a href", "<a href=", "<a href=x", '<a href="x', '<a href="x"', "<a href='x>", "<a/", "</a"])
    assert.deepEqual(startTags(html, true), [], html);
});

test("comments in all their forms hide what is in them, and nothing else", () => {
  const hrefs = (html: string): string[] => startTags(html, true).map(([, attributes]) => attributes.href ?? "");
  assert.deepEqual(hrefs("<!--><a href=1><!---><a href=2><!----><a href=3><!-- --!><a href=4><!----!><a href=5>"), ["1", "2", "3", "4", "5"]);
  assert.deepEqual(hrefs("<!-- <a href=x> -- > <a href=x> --><a href=1><!--- -><a href=x>--><a href=2>"), ["1", "2"]);
  assert.deepEqual(hrefs("<!x <a href=x><a href=1><?php <a href=x><a href=2></ <a href=x><a href=3></><a href=4><![CDATA[<a href=x>]]><a href=5>"), [
    "1",
    "2",
    "3",
    "4",
    "5",
  ]);
  assert.deepEqual(hrefs("<!-- never closed <a href=x>"), []);
  assert.deepEqual(hrefs("a < b <a href=1> <1 <a href=2><"), ["1", "2"]);
});

test("F054 scripts keep their tags to themselves, escaped or not", () => {
  const hrefs = (html: string): string[] => startTags(html, true).flatMap(([name, attributes]) => (name === "a" ? [attributes.href ?? ""] : []));
  assert.deepEqual(hrefs('<script>"<a href=x>"</script><a href=1>'), ["1"]);
  assert.deepEqual(hrefs("<script><!-- <script> </script> <a href=x> --></script><a href=1>"), ["1"]);
  assert.deepEqual(hrefs("<script><!-- <script> </script> </script><a href=1>"), ["1"]);
  assert.deepEqual(hrefs("<script><!--><script></script><a href=1>"), ["1"]);
  assert.deepEqual(hrefs("<script></scriptx><a href=x></script ><a href=1>"), ["1"]);
  assert.deepEqual(hrefs("<style></styl><a href=x></STYLE/><a href=1><textarea></title><a href=x></textarea>"), ["1"]);
});
