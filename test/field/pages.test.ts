/** Whole crawls of pages that are written in odd ways, judged by what was asked for. Field cases F049 to F066. */
import assert from "node:assert/strict";
import test from "node:test";
import { page } from "../../src/fetch/raw-server.ts";
import { type Answer, beside, crawled, site } from "./field.ts";

/** What a page at `path` makes the crawler ask for, sorted; every page is there. */
async function led(body: Answer, path = "/", spec = {}): Promise<string[]> {
  await using server = await site({ [path]: body }, "<p>there");
  await crawled(server, { seeds: path, maxDepth: 1, ...spec });
  return server.targets().slice(1).sort();
}

test("F049 F050 F051 base elements: relative, empty, and a link of a query alone", async () => {
  assert.deepEqual(await led(`<base href="/forum/"><a href="index.php/1">x</a>`, "/forum/a/b/"), ["/forum/index.php/1"]);
  assert.deepEqual(await led(`<base href=""><a href="x">x</a>`, "/d/p.html"), ["/d/x"]);
  assert.deepEqual(await led(`<base href="myself.html"><a href="?p=v">x</a>`, "/d/myself.html"), ["/d/myself.html?p=v"]);
  assert.deepEqual(await led(`<base target=_blank><base href="/one/"><base href="/two/"><a href="x">x</a>`), ["/one/x"]);
  for (const bad of ["http://[bad", "javascript:0", "data:text/plain,", "http://"])
    assert.deepEqual(await led(`<base href="${bad}"><a href="x">x</a>`, "/d/"), ["/d/x"], bad);
});

test("F049 a base on another host takes relative links out of the scope", async () => {
  assert.deepEqual(await led(`<base href="http://elsewhere.invalid/"><a href="x">x</a><a href="{origin}/in">i</a>`), ["/in"]);
});

test("F052 the images of a srcset, commas and all", async () => {
  const sets = ["p,q,,r,", "p, q,, r,", "u (m,n),v", "/w=1,h=2/i.png 1x, /j.png 2x", "data:image/png;base64,AA== 1x,/k.png 2x"];
  const wanted = [["/p,q,,r"], ["/p", "/q", "/r"], ["/u", "/v"], ["/w=1,h=2/i.png", "/j.png"], ["/k.png"]];
  for (const [i, set] of sets.entries()) {
    await using server = await site({ "/": `<img srcset="${set}">` });
    const { at } = await crawled(server, { images: true });
    assert.deepEqual(
      at("/").images,
      wanted[i]?.map((path) => server.origin + path),
      set,
    );
    assert.deepEqual(server.targets(), ["/"]);
  }
});

test("F053 F066 every form of meta refresh is followed, also from a page that holds nothing else", async () => {
  const forms = [
    "0;url='/t1'",
    "0; URL=/t2",
    "5;  url = &quot;/t3&quot;",
    "0,/t4",
    "0 ;url=/t5",
    "0;/t6",
    "0; /t7",
    ".5;url=/t8",
    "0;url=/t9 ",
    "0;url='/ta' and more",
    "3 url=/tb",
  ];
  for (const [i, content] of forms.entries()) {
    const target = `/t${"123456789ab"[i]}`;
    await using server = await site({ "/": `<meta HTTP-EQUIV=Refresh content="${content}">` }, "<p>there");
    const { at } = await crawled(server, { maxDepth: 1 });
    assert.deepEqual(server.targets(), ["/", target], content);
    assert.deepEqual(at("/").links, [server.origin + target]);
  }
  for (const content of ["5", "url=/no", "", "x;url=/no", "0;"]) assert.deepEqual(await led(`<meta http-equiv=refresh content="${content}">`), [], content);
});

test("F054 what stands in comments, scripts and styles is no link", async () => {
  const body = `<!-- <a href=/old> --><script>var s="<a href=/js>"</script><style>/*<a href=/css>*/</style><!--><a href=/in1>x</a><textarea><a href=/ta></textarea>
    <title><a href=/ti></title><noscript><a href=/in2>x</a></noscript><iframe><a href=/if></iframe><xmp><a href=/xm></xmp><template><a href=/te></template><a href=/in3>x</a>`;
  assert.deepEqual(
    (await led(body)).filter((path) => path !== "/te"),
    ["/in1", "/in2", "/in3"],
  );
});

test("F055 F056 character references in an href are decoded once, old names before = are not", async () => {
  assert.deepEqual(await led(`<a href="?a=1&amp;b=2">1</a><a href="?a=1&#38;b=2">2</a><a href="?a=1&#x26;b=2">3</a><a href="?a=1&b=2">4</a>`), ["/?a=1&b=2"]);
  assert.deepEqual(await led(`<a href="?x=1&copy=2&section=3">1</a>`), ["/?x=1&copy=2&section=3"]);
  assert.deepEqual(await led(`<a href="?x&amp;amp;y">1</a><a href="?x&ampy">2</a><a href="?x&amp=y">3</a>`), ["/?x&amp;y", "/?x&amp=y", "/?x&ampy"].sort());
});

test("F057 F058 attributes without quotes, on lines of their own, doubled, in capitals", async () => {
  assert.deepEqual(await led(`<script src=/a.js integrity=x crossorigin=anonymous></script><a href=/b/ rel=x>t</a>`), ["/b/"]);
  assert.deepEqual(await led(`<a\nclass="c"\nhref="/n">x</a><A\tHREF='/m'>x</A><a href = /k >x</a><a href=/j href=/i>x</a><a/href=/h>x</a><a href=/g`), [
    "/h",
    "/j",
    "/k",
    "/m",
    "/n",
  ]);
});

test("F059 F060 F061 the charset: a byte order mark first, a late meta element, labels nobody knows", async () => {
  const title = "<title>Тест</title>";
  const bom = Buffer.concat([Buffer.from([0xef, 0xbb, 0xbf]), Buffer.from(title)]);
  const late = `<!--${"x".repeat(1_500)}--><script>1</script><meta charset="utf-8">${title}`;
  const utf16 = Buffer.concat([Buffer.from([0xff, 0xfe]), Buffer.from(`${title}<a href=/in>x</a>`, "utf16le")]);
  const cyrillic = Buffer.concat([
    Buffer.from("<meta http-equiv=Content-Type content='text/html; charset=windows-1251'><title>"),
    Buffer.from([0xd2, 0xe5, 0xf1, 0xf2]),
    Buffer.from("</title>"),
  ]);
  const cases: readonly (readonly [string | Uint8Array, string, string])[] = [
    [bom, "text/html; charset=windows-1251", "bom"],
    [late, "text/html", "meta"],
    [`<meta charset=utf-8>${title}`, "text/html; charset=utf8mb4", "meta"],
    [`<meta charset=utf-8>${title}`, 'text/html; charset="x-nope"', "meta"],
    [`<meta charset=utf-8>${title}`, "text/html; charset=", "meta"],
    [title, "text/html", "utf-8-valid"],
    [utf16, "text/html", "bom"],
    [cyrillic, "text/html", "meta"],
    [`<meta charset=koi8-r>${title}`, "text/html; Charset=UTF-8", "header"],
  ];
  for (const [body, type, source] of cases) {
    const { record } = await beside("/t", page(body, [`Content-Type: ${type}`]), { "/in": "<p>in" });
    assert.deepEqual([record.title, record.charsetSource], ["Тест", source], type);
  }
});

test("F062 100,000 elements inside one another end no crawl, and the link inside is found", async () => {
  const began = performance.now();
  for (const tag of ["div", "b", "table", "svg", "a", "p", "li", "font"]) {
    const { at } = await beside("/deep", `${`<${tag}>`.repeat(100_000)}<a href=/in>x</a>`, { "/in": "<p>in" });
    assert.equal(at("/in").status, 200, tag);
  }
  assert.ok(performance.now() - began < 40_000);
});

test("F063 binary bytes served as text/html give no links", async () => {
  const binaries = [
    "%PDF-1.7 \0\0 <a href=/fake>",
    "\x89PNG\r\n\x1a\n\0\0<a href=/fake>",
    "PK\x03\x04\0\0<a href=/fake>",
    "GIF89a\0\0<a href=/fake>",
    "\x1f\x8b\x08\0<a href=/fake>",
  ];
  for (const bytes of binaries) {
    const { record, targets } = await beside("/p", page(Buffer.from(bytes, "latin1")), { "/fake": "<p>" });
    assert.deepEqual([record.status, record.links], [200, []], JSON.stringify(bytes));
    assert.ok(!targets.includes("/fake"));
  }
});

test("F064 svg use and links inside the page are no pages", async () => {
  assert.deepEqual(await led(`<svg><use href="#i"/><use xlink:href="/sprite.svg#i"/><a xlink:href="/svg-a"><text>x</text></a></svg><a href="#x">x</a>`), [
    "/svg-a",
  ]);
});

test("F065 robots meta elements are read in any case; with robots off they are not", async () => {
  const answers = {
    "/": `<a href=/a>a</a><a href=/c>c</a><a href=/e>e</a>`,
    "/a": `<meta name=ROBOTS content="NOINDEX, FOLLOW"><a href=/b>b</a>`,
    "/c": `<meta name="robots" content="none"><a href=/d>d</a>`,
  };
  const tagged = { "/e": page(`<a href=/f>f</a>`, ["X-Robots-Tag: NoFollow"]) };
  await using server = await site({ ...answers, ...tagged }, "<p>there");
  const { skipped } = await crawled(server);
  assert.deepEqual(server.targets().sort(), ["/", "/a", "/b", "/c", "/e"]);
  assert.deepEqual([...skipped].sort(), ["nofollow /d", "nofollow /f"]);
  await using open = await site({ ...answers, ...tagged }, "<p>there");
  await crawled(open, { robots: false });
  assert.deepEqual(open.targets().sort(), ["/", "/a", "/b", "/c", "/d", "/e", "/f"]);
});
