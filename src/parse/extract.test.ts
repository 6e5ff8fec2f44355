import assert from "node:assert/strict";
import { test } from "node:test";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import fc from "fast-check";
import type { Extraction, ExtractOptions } from "../core/page.ts";
import { decodeText, extractPage } from "./extract.ts";
import { htmlResponse } from "./response-for-tests.ts";

const OPTIONS: ExtractOptions = { images: true, robotsToken: "skein", maxUrlLength: 8192 };

interface Given {
  readonly url?: string;
  readonly type?: string | null;
  readonly headers?: Readonly<Record<string, readonly string[]>>;
  readonly options?: Partial<ExtractOptions>;
}

function page(body: string | Uint8Array, given: Given = {}): Extraction {
  const { url = "http://h/d/p.html", type = "text/html; charset=utf-8", headers = {}, options = {} } = given;
  return extractPage(htmlResponse(body, type, headers), url, { ...OPTIONS, ...options });
}

/** Links without the origin of the page. */
function links(body: string | Uint8Array, given: Given = {}): readonly string[] {
  return page(body, given).links.map((link) => (link.startsWith("http://h/") ? link.slice(8) : link));
}

test("F031 F032 white space around and within a URL", () => {
  assert.deepEqual(links('<a href="\n\t   /feeds/a.xml\t  \n"><a href="/docs/a-long-\ntitle"><a href="/docs/a-\tb"><a href="/a b">'), [
    "/feeds/a.xml",
    "/docs/a-long-title",
    "/docs/a-b",
    "/a%20b",
  ]);
});

test("F034 spellings of one URL are one link, sent as it was written first", () => {
  const found = page('<a href="/u%c3%a9"><a href="/u%C3%A9"><a href="/ué"><a href="/a%2Fb">');
  assert.deepEqual(found.links, ["http://h/u%C3%A9", "http://h/a%2Fb"]);
  assert.deepEqual(found.sentAs, new Map([["http://h/u%C3%A9", "http://h/u%c3%a9"]]));
});

test("F036 a page in Latin-1: its path in UTF-8, its query as the page is written", () => {
  assert.deepEqual(links(Buffer.from('<a href="/\xe9?q=\xe9">', "latin1"), { type: "text/html; charset=ISO-8859-1" }), ["/%C3%A9?q=%E9"]);
});

test("F039 fragments: links of other pages without them, links within the page as the page", () => {
  assert.deepEqual(links('<a href="/one#s1"><a href="/one#s2"><a href="#top">'), ["/one", "/d/p.html"]);
});

test("F043 F048 what cannot become a request is listed once, with its reason, and cut", () => {
  const long = `/${"a".repeat(20_000)}`;
  const found = page(`<a href="mailto:a@h"><a href="mailto:a@h"><a href="http://[">x<a href="${long}"><a href=javascript:void(0)>`);
  assert.deepEqual(found.rejected, [
    { href: "mailto:a@h", reason: "scheme" },
    { href: "http://[", reason: "invalid-url" },
    { href: long.slice(0, 2000), reason: "url-too-long" },
    { href: "javascript:void(0)", reason: "scheme" },
  ]);
  assert.deepEqual(found.links, []);
});

test("F049 F050 F051 the base element: relative, empty, with a query, none that is a URL", () => {
  assert.deepEqual(links('<base href="/forum/"><a href="index.php/1">', { url: "http://h/forum/a/b/" }), ["/forum/index.php/1"]);
  assert.deepEqual(links('<base href=""><a href="x">'), ["/d/x"]);
  assert.deepEqual(links('<base href="myself.html"><a href="?p=v">'), ["/d/myself.html?p=v"]);
  assert.deepEqual(links('<base target=x><base href="/a/"><base href="/b/"><a href="x">'), ["/a/x"]);
  assert.deepEqual(links('<a href="x"><base href="data:text/plain,"><a href="y">'), ["/d/x", "/d/y"]);
  assert.deepEqual(links('<base href="ftp://f/"><a href="x"><a href="http://h/y">'), ["/y"]);
  assert.deepEqual(links('<base href="http://u:p@other/d/"><a href="x">'), ["http://other/d/x"]);
});

test("F055 F056 character references in URLs are read once, and only where they are such", () => {
  assert.deepEqual(links('<a href="?a=1&amp;b=2"><a href="?a=1&#38;b=2"><a href="?a=1&#x26;b=2"><a href="?a=1&b=2">'), ["/d/p.html?a=1&b=2"]);
  assert.deepEqual(links('<a href="?x=1&copy=2&section=3&lt=4"><a href="?&amp;amp;x&notit;&eacute;">'), [
    "/d/p.html?x=1&copy=2&section=3&lt=4",
    "/d/p.html?&amp;x&notit;%C3%A9",
  ]);
});

test("F063 magic bytes win over the type, and a missing type is sniffed", () => {
  const pdf = page('%PDF-1.7 \0\0 <a href="/fake">');
  assert.deepEqual([pdf.links, pdf.charset], [[], null]);
  assert.deepEqual(links('\n<!DOCTYPE html><a href="/x">', { type: null }), ["/x"]);
  assert.deepEqual(links('<a href="/x">', { type: "nonsense" }), ["/x"]);
  assert.deepEqual(links('just text <a href="/x">', { type: null }), []);
  assert.deepEqual(links('<a href="/x">', { type: "text/plain" }), []);
  assert.deepEqual(links('<a href="/x">', { type: "application/json" }), []);
  assert.deepEqual(
    links('<?xml version="1.0"?><!-- c --><!DOCTYPE html PUBLIC "a" "b"><html xmlns="http://www.w3.org/1999/xhtml"><a href="/x"/></html>', {
      type: "application/xml",
    }),
    ["/x"],
  );
  assert.deepEqual(links('<?xml version="1.0"?><rss><a href="/x"/></rss>', { type: "application/xml" }), []);
});

test("XHTML: empty elements are complete, CDATA sections hide what is in them", () => {
  const type = "application/xhtml+xml";
  const found = page(
    '<html xmlns="http://www.w3.org/1999/xhtml"><head><title/><script src="x"/></head><![CDATA[<a href="/no">]]><iframe src="/f"/><a href="/x">é</a></html>',
    { type },
  );
  assert.deepEqual(found.links, ["http://h/f", "http://h/x"]);
  assert.equal(found.charset, "utf-8");
});

test("F064 F054 references that are no links: use, forms, scripts, style sheets, ping, templates", () => {
  assert.deepEqual(
    links(
      '<svg><use href="#i"/><use xlink:href="/s.svg#i"/></svg><form action="/f"></form><script src="/s.js"></script><link rel=stylesheet href=/c.css>' +
        '<link rel="alternate stylesheet" href=/d.css><link rel=icon href=/i><a ping="/p" href="/a"><template><a href="/t"></a></template><noscript><a href="/n"></a></noscript>',
    ),
    ["/a", "/n"],
  );
});

test("links of every kind, in page order, header first, each once", () => {
  const found = page(
    '<title>\n A &lt; B\t</title><link rel=" Next " href=n1><link rel=prev href=p1><link rel=alternate hreflang=de href=de><link rel=canonical href=/c>' +
      "<meta http-equiv=Refresh content=\"5; url='r1'\"><area href=a1><iframe src=i1></iframe><svg><a href=s1 xlink:href=s0><a xlink:href=s2></a></a></svg><a href=n1>",
    { headers: { link: ['</h1>; rel="next", </h2>; rel=preload', "<h3>;rel=canonical"] } },
  );
  assert.deepEqual(
    found.links.map((link) => link.slice(8)),
    ["/h1", "/d/h3", "/d/n1", "/d/p1", "/d/de", "/c", "/d/r1", "/d/a1", "/d/i1", "/d/s1", "/d/s2"],
  );
  assert.equal(found.canonical, "http://h/d/h3");
  assert.equal(found.title, "A < B");
});

test("F053 F066 meta refresh in its forms; within noscript it is none", () => {
  const refresh = (content: string): readonly string[] => links(`<meta http-equiv="rEfResh" content="${content.replaceAll('"', "&quot;")}">`);
  assert.deepEqual(refresh("0;url='/t1'"), ["/t1"]);
  assert.deepEqual(refresh("0; URL=/t2"), ["/t2"]);
  assert.deepEqual(refresh('5;  url = "/t3"'), ["/t3"]);
  assert.deepEqual(refresh("0,/t4"), ["/t4"]);
  assert.deepEqual(refresh("0 ;url=/t5"), ["/t5"]);
  assert.deepEqual(refresh("30"), []);
  assert.deepEqual(refresh("soon; url=/t6"), []);
  assert.deepEqual(links('<noscript><meta http-equiv=refresh content="0;url=/no"></noscript>'), []);
});

test("a Refresh field is read as its meta element is, and for bodies of any type", () => {
  assert.deepEqual(links("<base href=/other/>", { headers: { refresh: ["0; url=t1"] } }), ["/d/t1"]);
  assert.deepEqual(links("", { type: "image/png", headers: { refresh: ["5;URL='/t2'"] } }), ["/t2"]);
  assert.deepEqual(links("", { headers: { refresh: ["30"] } }), []);
});

test("nofollow holds where every occurrence of a link says so", () => {
  const found = page(
    '<a href=/n rel="x NoFollow"><a href=/n rel=nofollow><a href=/b rel=nofollow><a href=/b><a href=/c><a href=/c rel=nofollow><a href=/u rel=ugc><a href=/s rel=sponsored>',
  );
  assert.deepEqual(found.nofollow, new Set(["http://h/n"]));
  assert.equal(page("<a href=x>").nofollow, null);
});

test("F065 directives of meta robots and X-Robots-Tag, to everybody or to us", () => {
  assert.deepEqual(
    page('<meta name=ROBOTS content="NOINDEX, FOLLOW"><meta name=skein content=noarchive><meta name=otherbot content=nosnippet>').robots.toSorted(),
    ["follow", "noarchive", "noindex"],
  );
  assert.deepEqual(page("<meta name=robots content=none>").robots, ["noindex", "nofollow"]);
  assert.deepEqual(page("", { type: "image/png", headers: { "x-robots-tag": ["skein: nofollow", "otherbot: noindex"] } }).robots, ["nofollow"]);
});

test("F052 images: src, srcset with its commas, lazy attributes, picture sources, distinct and in order", () => {
  const images = (html: string, on = true): readonly string[] | null => page(html, { options: { images: on } }).images?.map((url) => url.slice(8)) ?? null;
  assert.deepEqual(images('<img srcset="/w=1,h=2/i.png 1x, /j.png 2x">'), ["/w=1,h=2/i.png", "/j.png"]);
  assert.deepEqual(images('<img srcset="p,q,,r,">'), ["/d/p,q,,r"]);
  assert.deepEqual(images('<img srcset="p, q,, r,">'), ["/d/p", "/d/q", "/d/r"]);
  assert.deepEqual(images('<img srcset="u (m,n),v">'), ["/d/u", "/d/v"]);
  assert.deepEqual(images('<img srcset="data:image/png;base64,AA== 1x,/k.png 2x">'), ["/k.png"]);
  assert.deepEqual(
    images(
      '<picture><source srcset="a.webp 1x"><img src=a.png data-src=b.png data-srcset="c.png 2x" data-lazy=true></picture><image src=d.png><img src=a.png><img src="">',
    ),
    ["/d/a.webp", "/d/a.png", "/d/b.png", "/d/c.png", "/d/d.png"],
  );
  assert.equal(images("<img src=a.png>", false), null);
});

test("titles: the first, decoded, collapsed, cut between characters", () => {
  assert.equal(page("<svg><title>no</title></svg><title>Caf&eacute;\n\n &amp  Bar</title><title>second</title>").title, "Café & Bar");
  assert.equal(page("<title>  </title>").title, null);
  assert.equal(page("<p>x").title, null);
  assert.equal(page(`<title>${"\u{1f600}".repeat(600)}</title>`).title, "\u{1f600}".repeat(500));
  assert.equal(page(`<title>x${"\u{1f600}".repeat(600)}</title>`).title, `x${"\u{1f600}".repeat(499)}`);
});

test("F059 F060 F061 where the encoding comes from", () => {
  const title = (body: Uint8Array | string, type: string): readonly unknown[] => {
    const found = page(body, { type });
    const text = decodeText(typeof body === "string" ? Buffer.from(body) : body, type);
    assert.deepEqual([text.charset, text.source], [found.charset, found.charsetSource]);
    assert.ok(found.title === null || text.text.includes(found.title));
    return [found.title, found.charset, found.charsetSource];
  };
  const utf8 = "<title>Тест</title>";
  const cp1251 = Buffer.concat([Buffer.from("<title>"), Buffer.from([0xd2, 0xe5, 0xf1, 0xf2]), Buffer.from("</title>")]);
  assert.deepEqual(title(`\ufeff${utf8}`, "text/html; charset=windows-1251"), ["Тест", "utf-8", "bom"]);
  assert.deepEqual(title(cp1251, "text/html; charset=cp1251"), ["Тест", "windows-1251", "header"]);
  for (const label of ["utf8mb4", "x-nope", ""])
    assert.deepEqual(title(`<meta charset=utf-8>${utf8}`, `text/html; charset=${label}`), ["Тест", "utf-8", "meta"]);
  assert.deepEqual(
    title(
      Buffer.concat([Buffer.from(`<!--${"x".repeat(1500)}--><meta http-equiv=content-type content="text/html; charset=windows-1251">`), cp1251]),
      "text/html",
    ),
    ["Тест", "windows-1251", "meta"],
  );
  assert.deepEqual(title(`<!--${"x".repeat(1500)}--><script>'<meta charset=koi8-r>'</script>${utf8}`, "text/html"), ["Тест", "utf-8", "utf-8-valid"]);
  assert.deepEqual(title(Buffer.from(utf8).subarray(0, -9), "text/html").slice(1), ["utf-8", "utf-8-valid"]);
  assert.deepEqual(title(Buffer.from("<title>caf\xe9</title>", "latin1"), "text/html"), ["café", "windows-1252", "default"]);
  assert.deepEqual(title("<title>plain</title>", "text/html"), ["plain", "windows-1252", "default"]);
  assert.deepEqual(title("<meta charset=utf-16><title>é</title>", "text/html"), ["é", "utf-8", "meta"]);
});

test("encodings in which ASCII bytes are not ASCII are read as text first", () => {
  const html = '<title>日本語</title><a href="/ア?q=ア">';
  const utf16 = (swap: boolean): Buffer => (swap ? Buffer.from(html, "utf16le").swap16() : Buffer.from(html, "utf16le"));
  for (const [body, type] of [
    [utf16(false), "text/html; charset=utf-16le"],
    [utf16(true), "text/html; charset=utf-16be"],
    [Buffer.concat([Buffer.from([0xff, 0xfe]), utf16(false)]), "text/html"],
  ] as const) {
    assert.deepEqual([page(body, { type }).title, links(body, { type })], ["日本語", ["/%E3%82%A2?q=%E3%82%A2"]]);
  }
  // In ISO-2022-JP the character for "ア" is written with a percent sign and a quotation mark.
  const jp = Buffer.concat([Buffer.from('<title>x</title><a href="/'), Buffer.from('\x1b$B%"\x1b(B', "latin1"), Buffer.from('"><a href="/y">')]);
  assert.deepEqual(links(jp, { type: "text/html; charset=iso-2022-jp" }), ["/%E3%82%A2", "/y"]);
  const late = Buffer.concat([Buffer.from(`<!--${"x".repeat(1500)}--><meta charset=iso-2022-jp>`), jp]);
  assert.deepEqual(links(late, { type: "text/html" }), ["/%E3%82%A2", "/y"]);
});

test("Korean pages: the syllables that Windows added to EUC-KR, in titles, paths and queries", () => {
  const korean = Buffer.concat([Buffer.from("<title>"), Buffer.of(0x8c, 0x63, 0xb0, 0xa1), Buffer.from("</title><a href='/"), Buffer.of(0x94, 0xee)]);
  const found = page(Buffer.concat([korean, Buffer.from("?q="), Buffer.of(0x8c, 0x63), Buffer.from("'>")]), { type: "text/html; charset=ks_c_5601-1987" });
  assert.deepEqual([found.charset, found.title, found.links], ["euc-kr", "똠가", ["http://h/%EB%B7%81?q=%8Cc"]]);
  assert.equal(decodeText(korean, "text/html; charset=euc-kr").text, "<title>똠가</title><a href='/뷁");
});

test("double-byte encodings are scanned as bytes: their second bytes are never markup", () => {
  const sjis = Buffer.concat([
    Buffer.from("<title>"),
    Buffer.from([0x95, 0x5c, 0x83, 0x5c]),
    Buffer.from('</title><a href="/'),
    Buffer.from([0x83, 0x41]),
    Buffer.from("?"),
    Buffer.from([0x83, 0x41]),
    Buffer.from('">'),
  ]);
  const found = page(sjis, { type: "text/html; charset=shift_jis" });
  assert.deepEqual([found.title, found.links], ["表ソ", ["http://h/%E3%82%A2?%83A"]]);
});

test("any bytes of any type give an answer", () => {
  const body = fc.oneof(
    fc.uint8Array({ maxLength: 60 }),
    fc
      .array(fc.constantFrom("<", ">", "a", "!--", "svg", "<title>", "meta charset=", "utf-16", '"', "=", "\0", "\xff", "&#", "href", " "), { maxLength: 12 })
      .map((parts) => Buffer.from(parts.join(""), "latin1")),
  );
  const type = fc.constantFrom(
    null,
    "text/html",
    "text/html; charset=iso-2022-jp",
    "text/html;charset=utf-16",
    "application/xhtml+xml",
    "text/xml",
    "text/plain; charset=gb18030",
    "image/png",
    ";",
    "text/html; charset=replacement",
  );
  fc.assert(
    fc.property(body, type, (bytes, contentType) => {
      page(bytes, { type: contentType });
      decodeText(bytes, contentType);
    }),
    { numRuns: 5000, seed: 5 },
  );
});

test("F062 100,000 nested elements lose no link", () => {
  assert.deepEqual(links(`${"<div>".repeat(100_000)}<a href=/in>`), ["/in"]);
  assert.deepEqual(links(`${"<svg><g>".repeat(50_000)}<a href=/in>`), ["/in"]);
  assert.deepEqual(links(`${"<template>".repeat(50_000)}${"</template>".repeat(50_000)}<a href=/in>`), ["/in"]);
});

/** CPU microseconds of the faster of two. */
function cost(html: string): number {
  const bytes = Buffer.from(html);
  let best = Number.POSITIVE_INFINITY;
  for (let i = 0; i < 2; i++) {
    const start = process.cpuUsage();
    page(bytes);
    const used = process.cpuUsage(start);
    best = Math.min(best, used.user + used.system);
  }
  return best;
}

test("hostile pages take time in proportion to their size", () => {
  const patterns = [
    "<!--",
    "<!-- --!",
    '<a href="',
    "<a href='>",
    "<script><!--<script>",
    "</",
    "<![CDATA[",
    "<svg><![CDATA[",
    "<title>",
    "<svg></x>",
    "<frameset>",
    "x<frameset>",
    "<svg><foreignObject><b></x>",
    "<svg><g></div>",
    "<a a=1 ",
    "<a href=&amp;&",
    "<img srcset=', , ,(' data-src=x>",
    "<meta charset=x>",
    "<svg><desc><svg>",
    "<math><mi></p>",
    "<base href=x>",
    "<a href=http://[>",
  ];
  for (const pattern of patterns) {
    const small = cost(pattern.repeat(Math.ceil(20_000 / pattern.length)));
    const large = cost(pattern.repeat(Math.ceil(320_000 / pattern.length)));
    // Sixteen times the size: linear work is near 16, quadratic near 256.
    assert.ok(large < 80 * Math.max(small, 1000), `${pattern}: ${small} µs for 20 kB, ${large} µs for 320 kB`);
  }
});

test("one tag with a very long list of attributes, or one attribute value, is read in one go", () => {
  const many = `<img ${"src=x data-src=y ".repeat(40_000)}><img ${Array.from({ length: 40_000 }, (_, i) => `data-src-${i}=x`).join(" ")}><a ${"b=c ".repeat(40_000)} href=/x>`;
  assert.deepEqual(links(many), ["/x"]);
  assert.deepEqual(page(`<img srcset="${"a 1x, ".repeat(50_000)}">`).images, ["http://h/d/a"]);
});

test("long runs of blanks within values are read in one go", () => {
  const blanks = " ".repeat(300_000);
  const type = "text/html; charset=windows-1252";
  const body = `<title>a${blanks}b</title><a href="x?é${blanks}é"><meta http-equiv=refresh content="0; url=a${blanks}b"><base href="${blanks}x${blanks}é"><meta name=robots content="a${blanks}b"><a rel="x${blanks}y" href=z>`;
  const found = page(body, { type, options: { maxUrlLength: 2_000_000 } });
  assert.equal(found.title, "a"); // what is read of a title is bounded
  assert.equal(found.links.length, 3);
});

test("what leaves the parser does not keep the page alive", () => {
  setFlagsFromString("--expose-gc");
  const collect: () => void = runInNewContext("gc");
  const used = (): number => {
    for (let i = 0; i < 3; i++) collect(); // the memory of buffers is given back one collection later
    return process.memoryUsage().heapUsed + process.memoryUsage().external;
  };
  const kept: Extraction[] = [];
  const keep = (): void => {
    for (let i = 0; i < 40; i++) {
      const body = `<title>Title of page ${i} with some more words</title><a href="/link-number-${i}/of-some-length.html">${"x".repeat(500_000)}`;
      kept.push(page(Buffer.from(body)));
    }
  };
  keep();
  const before = used();
  keep();
  const after = used();
  assert.ok(after - before < 5_000_000, `${after - before} bytes more`);
  assert.equal(kept.length, 80);
});
