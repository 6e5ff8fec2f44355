/** The defects of textbook crawlers, each pinned by the test named for it, for plain crawls with a callback and for scrapers. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { PageRecord } from "../../src/core/records.ts";
import { type CrawlInput, type CrawlOptions, crawl } from "../../src/crawl.ts";
import { defineScraper } from "../../src/parse/scrape/define.ts";
import { type FakePage, type FakeSite, type FakeSiteOptions, fakeSite } from "../../src/testing/site.ts";

/** Both ways in which user code may lead a crawl: it follows every link that it finds in the text, as the textbook's regular expression does. */
const WAYS: readonly (readonly [name: string, options: CrawlOptions])[] = [
  ["a callback", { scrape: (_url, html) => [...html.matchAll(/href="?([^"> ]+)/g)].map((match) => match[1] ?? "") }],
  ["a scraper", { scraper: defineScraper({ handlers: { default: ({ followAll }) => followAll("a") } }) }],
];

interface Crawled {
  readonly pages: ReadonlyMap<string, PageRecord>;
  readonly site: FakeSite;
  /** Targets asked for, robots.txt left out. */
  readonly asked: readonly string[];
}

async function run(
  pages: Record<string, FakePage>,
  options: CrawlOptions,
  spec: (url: string) => Partial<CrawlInput> = () => ({}),
  site: FakeSiteOptions = {},
): Promise<Crawled> {
  await using served = await fakeSite(pages, site);
  const seen = new Map<string, PageRecord>();
  const crawling = crawl({ seeds: [served.url], ...spec(served.url) }, options);
  for await (const page of crawling) {
    const path = page.url.replace(served.url, "/");
    assert.equal(seen.has(path), false, `${path} has two records`);
    seen.set(path, page);
  }
  await crawling.done;
  return { pages: seen, site: served, asked: served.requests.map(({ target }) => target).filter((target) => target !== "/robots.txt") };
}

for (const [way, options] of WAYS) {
  test(`robots.txt is asked about every URL, not only about the seed (${way})`, async () => {
    const links = "<a href=/open>o</a><a href=/private/a>a</a>";
    const { pages, asked } = await run(
      { "/": links, "/open": `${links}<a href=/private/b>b</a>`, "/private/a": "secret", "/private/b": "secret" },
      options,
      undefined,
      {
        robots: "private",
      },
    );
    assert.deepEqual(asked.toSorted(), ["/", "/open"]);
    assert.equal(pages.get("/private/a")?.outcome, "disallowed");
    assert.equal(pages.get("/private/b")?.outcome, "disallowed");
  });

  test(`a redirect into what robots.txt forbids is not followed (${way})`, async () => {
    const { pages, asked } = await run(
      { "/": "<a href=/out>o</a>", "/out": { status: 302, headers: { location: "/private/x" } }, "/private/x": "secret" },
      options,
      undefined,
      {
        robots: "private",
      },
    );
    assert.deepEqual(asked, ["/", "/out"]);
    assert.equal(pages.get("/private/x")?.outcome, "disallowed");
  });

  test(`a retry waits its delay, and the host is left alone meanwhile (${way})`, async () => {
    const { site, pages } = await run({ "/": '<a href="/retry-after?seconds=1">r</a><a href=/other>o</a>', "/other": "o" }, options, () => ({
      concurrency: 1,
    }));
    const [first, second] = site.requests.filter(({ path }) => path === "/retry-after");
    assert.ok(first !== undefined && second !== undefined);
    assert.ok(second.at - first.at >= 990, `after ${second.at - first.at} ms`);
    const other = site.requests.find(({ path }) => path === "/other");
    assert.ok(other !== undefined && other.at - first.at >= 990);
    assert.equal(pages.get("/retry-after?seconds=1")?.attempts, 2);
  });

  test(`links are resolved against their page, or its base, not against the seed (${way})`, async () => {
    const { pages } = await run(
      {
        "/": '<a href="/a/b/c">c</a>',
        "/a/b/c": '<a href="d">d</a><a href="../e">e</a><a href="?q">q</a><a href="//127.0.0.1:1/x">x</a>',
        "/a/b/d": way === "a callback" ? "" : '<base href="/base/"><a href="f">f</a>',
        "/a/e": "",
        "/a/b/c?q": "",
        "/base/f": "",
      },
      options,
    );
    const expected = ["/", "/a/b/c", "/a/b/c?q", "/a/b/d", "/a/e", ...(way === "a callback" ? [] : ["/base/f"])];
    assert.deepEqual([...pages.keys()].toSorted(), expected);
    for (const page of pages.values()) assert.equal(page.status, 200, page.url);
  });

  test(`depth is the shortest way and never grows, and a redirect adds none (${way})`, async () => {
    const { pages } = await run(
      {
        // The long way is found first: /long is slow, so that it is left for what comes after it.
        "/": "<a href=/1>1</a><a href=/r>r</a>",
        "/1": "<a href=/2>2</a><a href=/>home</a>",
        "/2": "<a href=/3>3</a><a href=/1>1</a>",
        "/3": "<a href=/4>4</a><a href=/2>2</a>",
        "/r": { status: 301, headers: { location: "/3" }, delayMs: 120 },
        "/4": "<a href=/5>5</a>",
        "/5": "",
      },
      options,
      () => ({ maxDepth: 2 }),
    );
    const depths = Object.fromEntries([...pages].map(([path, { depth }]) => [path, depth]));
    assert.deepEqual(depths, { "/": 0, "/1": 1, "/r": 1, "/2": 2, "/3": 1, "/4": 2 });
  });

  test(`no URL is fetched twice, however it is spelt and whoever leads to it (${way})`, async () => {
    const links = '<a href="/">1</a><a href="/#top">2</a><a href="/x/../a">3</a><a href="/a#part">4</a><a href="/a">5</a>';
    const { asked } = await run({ "/": links, "/a": links }, options, (url) => ({ seeds: [url, `${url}#again`, url.replace("http", "HTTP")] }));
    assert.deepEqual(asked, ["/", "/a"]);
  });

  test(`seeds are in the seen-map: a page that leads back to one does not bring it again (${way})`, async () => {
    const { asked, pages } = await run({ "/": "<a href=/b>b</a>", "/b": "<a href=/>a</a><a href=/b>b</a>" }, options, (url) => ({ seeds: [url, `${url}b`] }));
    assert.deepEqual(asked.toSorted(), ["/", "/b"]);
    assert.equal(pages.get("/b")?.depth, 0);
  });
}

test("each named fault of the fake site is told as what it is, and the crawl ends", async () => {
  const names = [
    "slow?ms=1200",
    "cut",
    "lying-length",
    "endless",
    "loop",
    "wrong-charset",
    "status/503",
    "status/404",
    "status/500?times=1",
    "gzip-broken",
    "reset",
  ];
  const { pages } = await run({ "/": names.map((name) => `<a href="/${name}">x</a>`).join("") }, {}, () => ({
    ...{ timeout: 800, maxBodySize: 200_000, retry: { max: 1 }, perHost: { concurrency: 8, delay: 0 } },
  }));
  const told = Object.fromEntries(
    [...pages].map(([path, { outcome, error, status, truncated }]) => [path, `${outcome} ${error?.code ?? status}${truncated ? " truncated" : ""}`]),
  );
  assert.deepEqual(told, {
    "/": "fetched 200",
    "/slow?ms=1200": "failed timeout",
    "/cut": "failed reset",
    "/lying-length": told["/lying-length"],
    "/endless": "fetched 200 truncated",
    "/loop": "redirected 302",
    "/loop?step=1": "redirected 302",
    "/loop?step=2": "failed redirect",
    "/wrong-charset": "fetched 200",
    "/status/503": "failed http",
    "/status/404": "fetched 404",
    "/status/500?times=1": "fetched 200",
    "/gzip-broken": told["/gzip-broken"],
    "/reset": "failed reset",
  });
});
