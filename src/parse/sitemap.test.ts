/** Sitemaps against the field cases and rules of their own; the conformance data has its own file. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { gzipSync } from "node:zlib";
import fc from "fast-check";
import { createSitemapParser, parseSitemapDate, readSitemap, type SitemapOptions } from "./sitemap.ts";
import { collector, type Read, read, readPacked, URL_HERE } from "./sitemap-trial.ts";

function readInPieces(body: Uint8Array, cuts: (at: number) => number, options: Partial<SitemapOptions> = {}): Read {
  const { got, full } = collector(options);
  const parser = createSitemapParser(full);
  for (let at = 0; at < body.length; ) {
    const n = Math.max(1, cuts(at));
    // A copy that is spoilt afterwards: the parser must not look at it again.
    const piece = Uint8Array.from(body.subarray(at, at + n));
    parser.push(piece);
    piece.fill(0x7a);
    at += n;
  }
  return { ...got, result: parser.end() };
}

const urlset = (inner: string, attributes = ' xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"') =>
  `<?xml version="1.0"?>\n<urlset${attributes}>${inner}</urlset>`;
const entries = (...locs: string[]) => locs.map((loc) => `<url><loc>${loc}</loc></url>`).join("\n");

test("F079 a gzipped sitemap is known by its first bytes, whatever the type; the text form and two layers too", async () => {
  const list = ["http://h/1", "http://h/2", "http://h/3"];
  for (const contentType of ["application/octet-stream", "text/plain", "text/xml; charset=utf-8", null]) {
    for (const body of [gzipSync(urlset(entries(...list))), gzipSync(list.join("\n")), gzipSync(gzipSync(urlset(entries(...list))))]) {
      const found = await readPacked(body, { contentType });
      assert.deepEqual(found.locs, list);
      assert.equal(found.result.error, null);
    }
  }
  const four = gzipSync(gzipSync(gzipSync(gzipSync(urlset(entries(...list))))));
  const found = await readPacked(four);
  assert.deepEqual([found.locs, found.result.limit, found.result.error], [[], "layers", "compressed more than 3 times"]);
  assert.deepEqual((await readPacked(gzipSync(list.join("\n")), { maxLayers: 0 })).locs, []);
});

test("F080 an index reports every sitemap it names, itself included", () => {
  const found = read("<sitemapindex><sitemap><loc>/index.xml</loc></sitemap><sitemap><loc>/a.xml</loc><lastmod>2024-02-29</lastmod></sitemap></sitemapindex>");
  assert.deepEqual([found.sitemaps, found.locs], [["http://h/index.xml", "http://h/a.xml"], []]);
  assert.equal(found.facts[1]?.lastmod, Date.UTC(2024, 1, 29));
});

test("F081 CDATA, entities and white space in loc", () => {
  const found = read(
    urlset("<url><loc><![CDATA[http://h/a?x=1&y=2]]></loc></url><url><loc>http://h/b?x=1&amp;y=2</loc></url><url><loc>\n  http://h/c \n</loc></url>"),
  );
  assert.deepEqual(found.locs, ["http://h/a?x=1&y=2", "http://h/b?x=1&y=2", "http://h/c"]);
  assert.equal(found.result.error, null);
  const mixed = read(urlset(entries("http://h/&#x61;&#98;?<![CDATA[a&amp;b]]>&amp;c", "http://h/é", "http://h/%C3%A9")));
  assert.deepEqual(mixed.locs, ["http://h/ab?a&amp;b&c", "http://h/%C3%A9", "http://h/%C3%A9"]);
});

test("F082 namespaces: none, old ones, prefixes; an image's loc is no page", () => {
  const image =
    "<image:image><image:loc>http://h/i.jpg</image:loc></image:image><video:video><video:content_loc>http://h/v.mp4</video:content_loc></video:video>";
  const inner = `<url><loc>http://h/1</loc>${image}</url><url>${image}<loc>http://h/2</loc></url>`;
  for (const attributes of [
    "",
    ' xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:image="http://www.google.com/schemas/sitemap-image/1.1"',
    ' xmlns="http://www.google.com/schemas/sitemap/0.84"',
  ])
    assert.deepEqual(read(urlset(inner, attributes)).locs, ["http://h/1", "http://h/2"]);
  const prefixed =
    '<s:urlset xmlns:s="n" xmlns:i="m" xmlns="n"><s:url><s:loc>http://h/1</s:loc><i:loc>http://h/i</i:loc></s:url><url><loc>http://h/2</loc></url></s:urlset>';
  assert.deepEqual(read(prefixed).locs, ["http://h/1", "http://h/2"]);
  const nested = urlset('<url><loc>http://h/1</loc><image xmlns="m"><loc>http://h/i</loc></image><loc xmlns="m">http://h/j</loc></url>');
  assert.deepEqual(read(nested).locs, ["http://h/1"]);
  assert.deepEqual(read("<UrlSet><URL><Loc>http://h/1</Loc></URL></UrlSet>").locs, ["http://h/1"]);
});

test("F083 empty, relative and hopeless locs lose no other entry", () => {
  const found = read(
    urlset(`<url/><url><loc/></url>${entries("", "/rel", "page.html?a", "www.example.com/x", "not a url", "mailto:a@b", "http://", "&amp;x", "http://h/ok")}`),
  );
  assert.deepEqual(found.locs, ["http://h/rel", "http://h/page.html?a", "http://h/ok"]);
  assert.deepEqual([found.result.rejected, found.result.error], [5, null]);
});

test("F084 a large sitemap is read in slices with the loop in between", async () => {
  const image = "<image:image><image:loc>http://h/some/long/path/of/an/image/0.jpg</image:loc></image:image>\n".repeat(4);
  const body = Buffer.from(urlset(Array.from({ length: 50_000 }, (_, i) => `<url><loc>http://h/page/${i}</loc>\n${image}</url>`).join("\n")));
  for (const bytes of [body, gzipSync(body)]) {
    let urls = 0;
    let pauses = 0;
    const pause = () => new Promise<void>((resolve) => setImmediate(() => resolve(void pauses++)));
    const options: SitemapOptions = { url: URL_HERE, contentType: null, onUrl: () => urls++, onSitemap: assert.fail };
    const result = await readSitemap(bytes, options, pause);
    assert.deepEqual([result.kind, urls, result.bytes, result.error], ["urlset", 50_000, body.length, null]);
    assert.ok(pauses > 10, `${pauses} pauses`);
    const few = await readSitemap(bytes, { ...options, onUrl: () => {}, maxUrls: 10 }, pause);
    assert.deepEqual([few.urls, few.limit, few.error], [10, "urls", null]);
    assert.ok(few.bytes < body.length / 5);
  }
});

test("F085 nothing is taken from HTML, prose or pictures at the sitemap's address", () => {
  const html = '<!DOCTYPE html><html><body>not found <a href="/x">x</a><url><loc>http://h/no</loc></url></body></html>';
  for (const body of [html, ` \n${html}`, "<HTML><loc>http://h/no</loc>", "<body>404</body>"]) {
    const found = read(body, { contentType: "application/xml" });
    assert.deepEqual([found.result.kind, found.locs, found.result.error], ["html", [], "an HTML page, not a sitemap"]);
  }
  for (const body of ["404 not found: /sitemap.xml", "\x89PNG\r\n\x1a\n\0\0", "<svg><loc>http://h/no</loc></svg>", '{"url":"http://h/no"}']) {
    const found = read(body);
    assert.deepEqual([found.result.kind, found.locs], ["other", []]);
    assert.notEqual(found.result.error, null);
  }
  assert.deepEqual(read(" \r\n").result, { kind: "empty", urls: 0, sitemaps: 0, rejected: 0, bytes: 3, error: null, limit: null });
});

test("bare ampersands, stray signs and wrong closing tags lose no page", () => {
  const found = read(
    urlset(
      `${entries("http://h/a?x=1&y=2", "http://h/b?q=&copy=1&lt", "http://h/c?1<2")}<url><loc>http://h/d</url><url><loc>http://h/e</loc></urll></url>${entries("http://h/f")}`,
    ),
  );
  assert.deepEqual(found.locs, ["http://h/a?x=1&y=2", "http://h/b?q=&copy=1&lt", "http://h/c?1%3C2", "http://h/d", "http://h/e", "http://h/f"]);
  assert.notEqual(found.result.error, null);
});

test("a file that was cut off keeps its whole entries, never a part of an address", () => {
  const whole = urlset(entries("http://h/1", "http://h/2"));
  for (let n = 0; n < whole.length; n++) {
    const { locs, result } = read(whole.slice(0, n));
    assert.ok(JSON.stringify(locs) === JSON.stringify(["http://h/1", "http://h/2"].slice(0, locs.length)), `${n}: ${locs}`);
    if (n > 30) assert.notEqual(result.error, null, `${n}`);
  }
});

test("entities of a DTD, external ones and includes are neither resolved nor opened", () => {
  const levels = Array.from({ length: 9 }, (_, i) => `<!ENTITY l${i + 1} "${`&l${i};`.repeat(10)}">`).join("\n");
  const doctype = `<!DOCTYPE urlset [<!ENTITY l0 "lol">${levels}<!-- ]> --><!ENTITY x SYSTEM "file:///etc/passwd"><!ENTITY gt2 ">">]>`;
  const found = read(
    `<?xml version="1.0"?>${doctype}<urlset>${entries("http://h/&l9;", "&x;", "http://h/ok")}<url><loc><xi:include href="file:///etc/passwd"/></loc></url></urlset>`,
  );
  assert.deepEqual(found.locs, ["http://h/&l9;", "http://h/ok"]);
});

test("a notice that a program printed before the sitemap is passed over and named; alone it is no sitemap", () => {
  const notice = "<br />\n<b>Warning</b>:  x in <b>/var/www/x.php</b> on line <b>3</b><br />\n";
  const found = read(`${notice}<?xml version="1.0"?>\n${urlset(entries("http://h/1"))}`);
  assert.deepEqual([found.result.kind, found.locs, found.result.error], ["urlset", ["http://h/1"], "there is markup before the sitemap"]);
  assert.equal(read(`${notice}<sitemapindex><sitemap><loc>http://h/s</loc></sitemap></sitemapindex>`).result.kind, "index");
  for (const other of [notice, `${notice}<html><body></body></html>`, "<p>Not found</p>", "<b>".repeat(1000)]) {
    const { locs, result } = read(other);
    assert.deepEqual(locs, []);
    assert.match(result.kind, /^(?:html|other)$/, other.slice(0, 200));
    assert.notEqual(result.error, null);
  }
});

test("namespaces declared on an entry: the root's under another name counts, an empty one too, a foreign one does not", () => {
  const S = "http://www.sitemaps.org/schemas/sitemap/0.9";
  const cases: [string, string[]][] = [
    [`<s:urlset xmlns:s="${S}"><url xmlns="${S}"><loc>http://h/1</loc></url><s:url><s:loc>http://h/2</s:loc></s:url></s:urlset>`, ["http://h/1", "http://h/2"]],
    [`<urlset xmlns="${S}"><p:url xmlns:p="${S}"><p:loc>http://h/1</p:loc></p:url></urlset>`, ["http://h/1"]],
    [`<urlset xmlns="${S}"><url xmlns=""><loc>http://h/1</loc></url></urlset>`, ["http://h/1"]],
    [`<urlset><url xmlns="${S}"><loc>http://h/1</loc></url></urlset>`, ["http://h/1"]],
    [`<urlset xmlns="${S}"><url xmlns="http://other.example/"><loc>http://h/no</loc></url></urlset>`, []],
    [`<urlset xmlns="${S}"><url><loc xmlns="http://other.example/">http://h/no</loc><loc>http://h/1</loc></url></urlset>`, ["http://h/1"]],
  ];
  for (const [body, locs] of cases) assert.deepEqual(read(body).locs, locs, body);
});

test("encodings: byte order marks, UTF-16 without one, Content-Type before declaration, declaration, UTF-8", () => {
  const declared = (encoding: string) => `<?xml version="1.0" encoding="${encoding}"?><urlset>${entries("http://h/é")}</urlset>`;
  const utf16 = Buffer.from(declared("utf-16"), "utf16le");
  const bodies: [Buffer, string | null][] = [
    [Buffer.from(declared("utf-8")), null],
    [Buffer.from(declared("iso-8859-1"), "latin1"), null],
    [Buffer.from(`\n ${declared("iso-8859-1")}`, "latin1"), null],
    [Buffer.from(declared("utf-8"), "latin1"), "text/xml; charset=iso-8859-1"],
    [Buffer.from(`\ufeff${declared("iso-8859-1")}`), "text/xml; charset=windows-1252"],
    [utf16, null],
    [Buffer.concat([Buffer.of(0xff, 0xfe), utf16]), "text/xml; charset=utf-8"],
    [Buffer.from(utf16).swap16(), "text/xml; charset=utf-16"],
    [Buffer.from(declared("utf-16")), "application/xml; charset=utf-16"],
    [Buffer.from("http://h/é", "utf16le"), null],
    [Buffer.from("\ufeffhttp://h/é\r\n"), "text/plain"],
  ];
  for (const [i, [body, contentType]] of bodies.entries()) assert.deepEqual(read(body, { contentType }).locs, ["http://h/%C3%A9"], `body ${i}`);
});

test("RSS: the item's link, else its guid; feeds of other kinds and prefixed links are not mixed up", () => {
  const items = `<item><title>a</title><link>http://h/1</link><guid>http://h/g</guid><pubDate>Thu, 05 Jan 2017 12:34:50 GMT</pubDate></item>
    <item><link/><guid isPermaLink="true">http://h/2</guid></item><item><guid isPermaLink="false">tag:h,2017:3</guid></item>
    <item><atom:link href="http://h/no"/><media:content url="http://h/no"/><link><![CDATA[http://h/4?a&b]]></link></item>`;
  const rss = read(`<rss version="2.0"><channel><link>http://h/home</link><image><link>http://h/no</link></image>${items}</channel></rss>`);
  assert.deepEqual([rss.result.kind, rss.locs], ["rss", ["http://h/1", "http://h/2", "http://h/4?a&b"]]);
  assert.equal(rss.facts[0]?.lastmod, Date.UTC(2017, 0, 5, 12, 34, 50));
  const rdf = `<rdf:RDF xmlns:rdf="r" xmlns="http://purl.org/rss/1.0/"><channel><link>http://h/</link></channel><item><link>http://h/1</link><dc:date>2017-01-05</dc:date></item></rdf:RDF>`;
  assert.deepEqual([read(rdf).result.kind, read(rdf).locs, read(rdf).facts[0]?.lastmod], ["rss", ["http://h/1"], Date.UTC(2017, 0, 5)]);
});

test("Atom: the entry's alternate links, against xml:base", () => {
  const feed = (prefix: string) => {
    const p = prefix === "" ? "" : `${prefix}:`;
    return `<${p}feed xmlns${prefix === "" ? "" : `:${prefix}`}="http://www.w3.org/2005/Atom" xml:base="/base/"><${p}link href="/home"/><${p}entry xml:base="deep/">
      <${p}link href="1"/><${p}link rel="self" href="self"/><${p}link rel="edit" href="edit"/><${p}updated>2003-12-13T18:30:02Z</${p}updated></${p}entry>
      <${p}entry><${p}link rel="alternate" type="text/html" href="2?a=1&amp;b=2"/><${p}source><${p}link href="/no"/></${p}source></${p}entry></${p}feed>`;
  };
  for (const prefix of ["", "a"]) {
    const found = read(feed(prefix));
    assert.deepEqual([found.result.kind, found.locs, found.result.error], ["atom", ["http://h/base/deep/1", "http://h/base/2?a=1&b=2"], null]);
    assert.equal(found.facts[0]?.lastmod, Date.UTC(2003, 11, 13, 18, 30, 2));
  }
});

test("what the file says of a page is read where it can be, and is null where not", () => {
  const facts = (inner: string) => read(urlset(`<url>${inner}<loc>http://h/</loc></url>`)).facts[0];
  assert.deepEqual(facts("<lastmod> 2020 </lastmod><changefreq>Daily</changefreq><priority>.5</priority>"), {
    lastmod: Date.UTC(2020, 0),
    changefreq: "daily",
    priority: 0.5,
  });
  assert.deepEqual(facts("<lastmod>soon</lastmod><changefreq>often</changefreq><priority>1.5</priority>"), { lastmod: null, changefreq: null, priority: null });
  assert.deepEqual(facts("<lastmod>2020-02-30</lastmod><priority>-1</priority>"), { lastmod: null, changefreq: null, priority: null });
});

test("dates that exist in files: no zone, a blank for T, names of zones, days that do not exist", () => {
  const good: [string, string][] = [
    ["2020-05-04 10:00", "2020-05-04T10:00:00Z"],
    ["2020-05-04t10:00:01.5z", "2020-05-04T10:00:01.5Z"],
    ["2020-05-04T10:00:00+0530", "2020-05-04T04:30:00Z"],
    ["Mon, 4 May 2020 10:00 EST", "2020-05-04T15:00:00Z"],
    ["4 May 98 10:00:00 +0200", "1998-05-04T08:00:00Z"],
    ["Mon, 4 May 2020 10:00:00 +0200 (CEST)", "2020-05-04T08:00:00Z"],
    ["2000-02-29", "2000-02-29T00:00:00Z"],
  ];
  for (const [text, iso] of good) assert.equal(parseSitemapDate(text), Date.parse(iso), text);
  for (const text of ["", "0", "2020-13-01", "2020-04-31", "2021-02-29", "2020-05-04T25:00Z", "31 Foo 2020", "1588586400", "9".repeat(10_000)])
    assert.equal(parseSitemapDate(text), null, text);
});

test("a hostile file is bounded: endless tags, deep nesting, faults without end, many locs", () => {
  const much = 600_000;
  const bodies = [
    `<urlset><url a="${"x".repeat(much)}`,
    `<urlset>${"<a>".repeat(much / 3)}`,
    `<urlset>${"</a>".repeat(much / 4)}`,
    `<urlset>${"<".repeat(much)}`,
    `<urlset><url><loc>${"&amp;".repeat(much / 5)}`,
    `<urlset><!--${"-".repeat(much)}`,
    `<!DOCTYPE ${"[".repeat(much)}`,
    "x".repeat(much),
    "x\n".repeat(much / 2),
  ];
  for (const body of bodies) assert.deepEqual(read(body).locs, []);
  assert.equal(read(`<urlset><url>${"<loc>http://h/</loc>".repeat(1000)}</url></urlset>`).locs.length, 1000);
  const cut = read(urlset(entries("http://h/1", "http://h/2")), { maxBytes: 120 });
  assert.deepEqual([cut.locs, cut.result.limit, cut.result.bytes], [["http://h/1"], "bytes", 120]);
});

const fragment = fc.constantFrom(
  ...[
    "<url>",
    "</url>",
    "<loc>",
    "</loc>",
    "http://h/a",
    "/b?x=1&amp;y",
    "&",
    ";",
    "<![CDATA[",
    "]]>",
    "<!--",
    "-->",
    "<?pi ?>",
    "<urlset>",
    "</urlset>",
    "<sitemapindex>",
  ],
  ...[
    "<sitemap>",
    "</sitemap>",
    "<rss><channel>",
    "<item>",
    "<link>",
    "</link>",
    "<feed>",
    "<entry>",
    '<link href="/e"/>',
    "<!DOCTYPE a [",
    "]>",
    "\n",
    " ",
    "é",
    "<",
    ">",
    '"',
    "'",
    "\0",
    "<a b='",
    "\u{1f600}",
  ],
);

const bodies = fc.oneof(
  fc.array(fragment, { maxLength: 60 }).map((parts) => Buffer.from(parts.join(""))),
  fc.array(fragment, { maxLength: 60 }).map((parts) => Buffer.from(urlset(parts.join("")))),
  fc.array(fragment, { maxLength: 40 }).map((parts) => Buffer.from(`\ufeff<urlset>${parts.join("")}`, "utf16le")),
  fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.concat([Buffer.from("http://h/x\n<urlset>".slice(0, 11)), bytes])),
);
/** How far a file was read when its reading ended early may differ. */
const plain = (found: Read) => ({ ...found, result: { ...found.result, bytes: 0 } });

test("property: the result does not depend on how the bytes are cut", () => {
  fc.assert(
    fc.property(bodies, fc.array(fc.integer({ min: 1, max: 30 }), { minLength: 1 }), (body, sizes) => {
      assert.deepEqual(plain(readInPieces(body, (at) => sizes[at % sizes.length] ?? 1)), plain(read(body)));
    }),
    { numRuns: 1500 },
  );
});

test("property: nor on gzip around them", async () => {
  await fc.assert(
    fc.asyncProperty(bodies, fc.integer({ min: 0, max: 3 }), async (body, layers) => {
      let bytes: Uint8Array = body;
      for (let i = 0; i < layers; i++) bytes = gzipSync(bytes);
      assert.deepEqual(plain(await readPacked(bytes)), plain(read(body)));
    }),
    { numRuns: 300 },
  );
});

test("property: random bytes never throw, gzip's mark before them or not", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.uint8Array({ maxLength: 2000 }),
      fc.constantFrom(null, "text/xml; charset=gbk", "a/b; charset=iso-2022-jp", "text/xml;charset=utf-7"),
      fc.constantFrom([], [0x1f, 0x8b, 8], [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3]),
      async (bytes, contentType, mark) => {
        await readPacked(Buffer.from([...mark, ...bytes]), { contentType });
      },
    ),
    { numRuns: 500 },
  );
});
