/** The trap zoo: webs without end must end with their useful pages all there; honest sites must lose nothing. */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { TRAP_LIMITS } from "../core/traps.ts";
import type { TrapOptions } from "./traps.ts";
import { crawlZoo, lotOf, lottery, range, STARTED_AT, type Web, zooTraps } from "./traps-zoo.ts";

/** Every page of the honest site is visited and nothing is refused. */
function assertHonest(web: Web, seed: string, pages: number, settings: Parameters<typeof crawlZoo>[2] = {}): void {
  const crawl = crawlZoo(web, seed, settings);
  const [first] = crawl.refused;
  assert.equal(crawl.refused.size, 0, first === undefined ? "" : `${first[0]}: ${first[1].rule}`);
  assert.equal(crawl.visited.size, pages);
}

/** `useful` pages hang below the seed next to the trap. */
function withTrap(trap: Web, entrance: string): { web: Web; useful: string[] } {
  const useful = [...range(30).map((i) => `http://h.example/page-${i}`), "http://h.example/about", "http://h.example/docs/a/b.html"];
  const web: Web = (url) =>
    url === "http://h.example/" || useful.includes(url) ? ["http://h.example/", ...useful, entrance] : [...trap(url), "http://h.example/about"];
  return { web, useful };
}

function assertEnds(trap: Web, entrance: string, rule: keyof typeof TRAP_LIMITS, most: number, options: Partial<TrapOptions> = {}): void {
  const { web, useful } = withTrap(trap, entrance);
  const crawl = crawlZoo(web, "http://h.example/", { most: most + 1, options });
  assert.ok(crawl.ended, `not ended after ${most} pages`);
  for (const url of useful) assert.ok(crawl.visited.has(url), url);
  assert.ok((crawl.traps.summary()[rule] ?? 0) > 0, JSON.stringify(crawl.traps.summary()));
}

test("trap: a calendar by months and by days, onwards and backwards", () => {
  const step =
    (months: number): Web =>
    (url) => {
      const found = /(\d{4})[-/](\d\d)/.exec(url);
      const month = found === null ? null : Number(found[1]) * 12 + Number(found[2]) - 1;
      if (month === null) return [];
      const near = [month + months, month - months].map((m) => `${Math.floor(m / 12)}/${String((m % 12) + 1).padStart(2, "0")}`);
      return near.map((text) =>
        url.includes("?") ? `http://h.example/cal?view=month&date=${text.replace("/", "-")}-01` : `http://h.example/calendar/${text}`,
      );
    };
  assertEnds(step(1), "http://h.example/calendar/2026/11", "calendarYears", 3000);
  assertEnds(step(1), "http://h.example/cal?view=month&date=2026-11-01", "calendarYears", 3000);
  assertEnds(step(12), "http://h.example/calendar/2026/11", "calendarYears", 400);
  const days: Web = (url) => {
    const at = Date.parse(`${url.slice(-10)}T00:00Z`);
    return Number.isNaN(at) ? [] : [1, -1].map((d) => `http://h.example/day/${new Date(at + d * 86_400_000).toISOString().slice(0, 10)}`);
  };
  assertEnds(days, "http://h.example/day/2026-11-29", "calendarYears", 12_000);
  const named: Web = (url) => {
    const found = /year=(\d+)&month=(\d+)/.exec(url);
    const next = Number(found?.[1]) * 12 + Number(found?.[2]);
    return found === null ? [] : [`http://h.example/c?year=${Math.floor(next / 12)}&month=${(next % 12) + 1}`];
  };
  assertEnds(named, "http://h.example/c?year=2026&month=11", "calendarYears", 100);
});

test("F046 trap: a counter without end", () => {
  assertEnds((url) => [`http://h.example/cal?y=${Number(url.slice(23)) + 1}`], "http://h.example/cal?y=1", "chain", 5100);
  assertEnds((url) => [`http://h.example/item/${Number(url.slice(22)) + 1 || 1}`], "http://h.example/item/1", "chain", 5100);
  const bush: Web = (url) => [1, 2, 3].map((k) => `http://h.example/n/${(Number(url.slice(19)) || 1) * 3 + k}`);
  assertEnds(bush, "http://h.example/n/1", "template", 22_000, { template: 20_000 });
});

test("60,000 pages of one form that link to each other at random, and to their children, are no trap", () => {
  const most = 60_000;
  const chance = lottery(7);
  const page = (i: number) => `http://h.example/sec-${Math.floor(i / 400)}/topic-${Math.floor(i / 20) % 20}/page-${i}.html`;
  const numbered = /page-(\d+)/;
  const web: Web = (url) => {
    const i = Number(numbered.exec(url)?.[1] ?? 0);
    return [...range(5).map((k) => i * 5 + k + 1), ...range(5).map(() => Math.floor(chance() * most))].filter((k) => k < most).map(page);
  };
  const crawl = crawlZoo(web, "http://h.example/index.html", { most: most + 2 });
  assert.deepEqual(crawl.traps.summary(), {});
  assert.ok(crawl.visited.size >= most);
});

test("trap: paths that repeat themselves", () => {
  assertEnds((url) => [url.endsWith("/a/") ? `${url}b/` : `${url}a/`], "http://h.example/a/", "repeats", 60);
  assertEnds((url) => [`${url}foo/`, `${url}index.html/`], "http://h.example/foo/", "repeats", 200);
  const eight = ["news", "shop", "team", "jobs", "help", "blog", "faq", "map"];
  assertEnds((url) => eight.map((word) => `${url}${word}/`), "http://h.example/news/", "shuffles", 1500);
  const letters = range(12).map((i) => String.fromCharCode(97 + i));
  assertEnds((url) => letters.map((word) => `${url}${word}/`), "http://h.example/a/", "shuffles", 3000);
  assertEnds((url) => [`${url}x${url.length}/`], "http://h.example/deep/", "pathDepth", 80);
  assertEnds((url) => [`${url}0123456789abcdef`], "http://h.example/l?q=", "length", 800);
});

test("trap: queries that grow and repeat", () => {
  assertEnds((url) => [`${url}${url.includes("?") ? "&" : "?"}p=1`], "http://h.example/grow", "pairRepeats", 40);
  assertEnds((url) => [`${url}${url.includes("?") ? "&" : "?"}p=${url.length}`], "http://h.example/grow", "keyRepeats", 100);
});

test("trap: session ids drawn anew on every page; each page is taken once", () => {
  const forms = [
    (page: string, id: string) => `http://h.example/s/${page}?sid=${id}`,
    (page: string, id: string) => `http://h.example/s/${page};jsessionid=${id}`,
    (page: string, id: string) => `http://h.example/s/${page};jsessionid=${id}.node1?x=1`,
    (page: string, id: string) => `http://h.example/s/${page}?x=1&PHPSESSID=${id}&y=2`,
    (page: string, id: string) => `http://h.example/(S(${id.slice(0, 24)}))/s/${page}`,
  ];
  for (const form of forms) {
    let drawn = 0;
    const trap: Web = (url) => {
      const id = () => (0x10000000 + lotOf(`${url}${drawn++}`, 0x7fffffff)).toString(16).padEnd(32, "0a1b2c3d4e5f");
      return range(25).map((i) => form(`p${i}`, id()));
    };
    const { web } = withTrap(trap, form("p0", "0123456789abcdef0123456789abcdef"));
    const crawl = crawlZoo(web, "http://h.example/", { most: 1000 });
    assert.ok(crawl.ended);
    const pages = [...crawl.visited].filter((url) => url.includes("/s/")).map((url) => /p\d+/.exec(url)?.[0]);
    assert.equal(pages.length, 25);
    assert.equal(new Set(pages).size, 25);
  }
});

test("trap: many links on every page: what is refused does not leak", () => {
  const names = (n: number) => range(n).map((i) => `menu-${String.fromCharCode(97 + (i % 26), 97 + Math.floor(i / 26))}`);
  assertEnds((url) => names(50).map((word) => `${url}${word}/`), "http://h.example/menu-aa/", "shuffles", 50 ** 2 + 1500);
  let drawn = 0;
  const sessions: Web = (url) =>
    names(300).map(
      (word) =>
        `http://h.example/${word}?sid=${lotOf(`${url}${drawn++}`, 2 ** 31)
          .toString(16)
          .padStart(8, "0")}a1b2c3d4`,
    );
  assertEnds(sessions, "http://h.example/x?sid=0123456789abcdef", "sessions", 400);
});

test("trap: faceted search by keys that come and go, and by keys that all stay", () => {
  const keys = ["brand", "color", "price", "size", "sort", "stock"];
  const facets: Web = (url) => {
    const chosen = new URLSearchParams(url.split("?")[1] ?? "");
    return keys.flatMap((key) =>
      range(6).map((value) => {
        const next = new URLSearchParams(chosen);
        next.set(key, `v${value}`);
        next.sort();
        return `http://h.example/search?${next}`;
      }),
    );
  };
  // All choices of up to three keys (4,965) are fewer than what is refused of the 117,648 there are.
  assertEnds(facets, "http://h.example/search", "combinations", 12_000);
});

test("trap: host names without end", () => {
  let drawn = 0;
  const trap: Web = (url) => range(3).map(() => `http://x${lotOf(`${url}${drawn++}`, 1e9)}.h.example/`);
  assertEnds(trap, "http://x.h.example/", "hosts", 1100);
  assertEnds((url) => [`http://www.${url.slice(7)}`], "http://www.h.example/", "hostLabels", 60);
});

const SHOP = "http://shop.example";

/** 15,000 details on 500 list pages; each detail names its neighbours and five others. */
const shop: Web = (url) => {
  const list = /\/list\?page=(\d+)$/.exec(url);
  const detail = /\/detail\/(\d+)$/.exec(url);
  if (list !== null) {
    const page = Number(list[1]);
    return [...range(30).map((i) => `${SHOP}/detail/${page * 30 + i}`), ...(page < 499 ? [`${SHOP}/list?page=${page + 1}`] : [])];
  }
  if (detail === null) return [`${SHOP}/list?page=0`];
  const id = Number(detail[1]);
  return [id - 1, id + 1, ...range(5).map((i) => lotOf(`${id}/${i}`, 15_000))].filter((n) => n >= 0 && n < 15_000).map((n) => `${SHOP}/detail/${n}`);
};

test("honest: a shop of 15,000 details, in both orders", () => {
  assertHonest(shop, `${SHOP}/`, 15_501);
  assertHonest(shop, `${SHOP}/`, 15_501, { newestFirst: true, options: { chain: null } });
  assertHonest((url) => shop(url).filter((link) => link.includes("list") || url.includes("list")), `${SHOP}/`, 15_501);
});

test("honest: forums with threads of many pages, users and related threads", () => {
  const f = "http://forum.example";
  const forum: Web = (url) => {
    const start = Number(/&start=(\d+)/.exec(url)?.[1] ?? 0);
    const t = /[?&]t=(\d+)/.exec(url)?.[1];
    if (url === `${f}/`) return range(10).map((i) => `${f}/viewforum.php?f=${i}`);
    const board = /[?&]f=(\d+)/.exec(url)?.[1];
    if (t !== undefined) {
      const related = range(4).map((i) => `${f}/viewtopic.php?f=${board}&t=${Number(board) * 1000 + lotOf(`${t}${i}`, 1000)}`);
      return [...related, `${f}/u/${lotOf(t, 3000)}`, ...(start < 40 ? [`${f}/viewtopic.php?f=${board}&t=${t}&start=${start + 20}`] : [])];
    }
    if (board === undefined) return [];
    return [
      ...range(50).map((i) => `${f}/viewtopic.php?f=${board}&t=${Number(board) * 1000 + start + i}`),
      ...(start < 950 ? [`${f}/viewforum.php?f=${board}&start=${start + 50}`] : []),
    ];
  };
  const users = new Set(range(10_000).map((t) => lotOf(String(t), 3000))).size;
  assertHonest(forum, `${f}/`, 1 + 10 * 20 + 10_000 * 3 + users);
});

test("honest: pagination of 500 pages, and a comic of 4,500 strips that only know their neighbours", () => {
  const pages: Web = (url) => (Number(url.split("=")[1] ?? 0) < 500 ? [`http://p.example/?page=${Number(url.split("=")[1] ?? 0) + 1}`] : []);
  assertHonest(pages, "http://p.example/", 501);
  const comic: Web = (url) =>
    url.endsWith("/4500/") || url === "http://c.example/"
      ? ["http://c.example/4499/"]
      : [-1, 1].map((d) => `http://c.example/${Number(url.slice(17, -1)) + d}/`).filter((u) => !u.endsWith("/0/") && !u.endsWith("/4500/"));
  assertHonest(comic, "http://c.example/", 4500);
});

test("honest: archives by day from 1851 to now, a blog by date, and part numbers that look like dates", () => {
  const first = Date.UTC(1851, 8, 18);
  const paper: Web = (url) => {
    const at = Date.parse(`${url.slice(19, 29).replaceAll("/", "-")}T00:00Z`);
    const day = (ms: number) => `http://n.example/p/${new Date(ms).toISOString().slice(0, 10).replaceAll("-", "/")}/`;
    if (Number.isNaN(at)) return range(1753).map((i) => day(first + i * 3_153_600_000));
    return [day(at - 864_000_000), day(at + 864_000_000)].filter((u) => u >= day(first) && u <= day(STARTED_AT));
  };
  const crawl = crawlZoo(paper, "http://n.example/");
  assert.deepEqual([...crawl.refused], []);
  assert.ok(crawl.visited.size > 5000);
  const parts: Web = (url) =>
    [-1, 0, 1]
      .flatMap((d) => range(12).map((m) => `http://x.example/part/${(Number(url.slice(22, 26)) || 4500) + d}-${m + 1}`))
      .filter((u) => !/part\/(4499|4600)/.test(u));
  assertHonest(parts, "http://x.example/", 1201);
});

test("honest: threads by number and page, which look like years and months, and know their neighbours", () => {
  const t = "http://t.example";
  const threads: Web = (url) => {
    const [, id, page] = (/\/thread\/(\d+)\/(\d+)$/.exec(url) ?? []).map(Number);
    if (id === undefined || page === undefined) return range(3000).map((i) => `${t}/thread/${i}/1`);
    return [id - 1, id + 1]
      .filter((n) => n >= 0 && n < 3000)
      .map((n) => `${t}/thread/${n}/1`)
      .concat(page < 12 ? [`${t}/thread/${id}/${page + 1}`] : []);
  };
  assertHonest(threads, `${t}/`, 36_001);
  const stories: Web = (url) => range(3).map((d) => `http://s.example/?story=${(Number(url.split("=")[1] ?? 1500) + d) % 3000}`);
  assertHonest(stories, "http://s.example/", 3001);
});

test("honest: documentation in 40 languages and versions, packages, shards, digests, many names", () => {
  const docs: Web = (url) =>
    url === "http://d.example/"
      ? range(40).flatMap((l) => range(200).map((p) => `http://d.example/l${l}/stable/guide/topic-${String.fromCharCode(97 + (p % 26))}${p}/index.html`))
      : [];
  assertHonest(docs, "http://d.example/", 8001);
  const java: Web = (url) =>
    url === "http://j.example/"
      ? range(2000).flatMap((p) =>
          ["package-summary.html", "package-tree.html", "package-use.html"].map((leaf) => `http://j.example/api/org/lib${p}/lib${p}/core/${leaf}`),
        )
      : [];
  assertHonest(java, "http://j.example/", 6001);
  const shards: Web = (url) =>
    url === "http://m.example/"
      ? range(4096).map((i) => `http://m.example/f/${[...i.toString(16).padStart(4, "0")].join("/")}/${lotOf(String(i), 1e9).toString(36)}.html`)
      : [];
  assertHonest(shards, "http://m.example/", 4097);
  const wiki: Web = (url) =>
    range(8).map(
      (i) =>
        `http://w.example/wiki/${["Alpha", "Beta", "Gamma"][i % 3]}_${lotOf(`${url}${i}`, 26 ** 3)
          .toString(26)
          .replace(/\d/g, "z")}_${i}`,
    );
  const crawl = crawlZoo(wiki, "http://w.example/", { most: 20_000 });
  assert.equal(crawl.refused.size, 0);
  const files: Web = (url) =>
    url.endsWith("/")
      ? range(5000).map(
          (i) =>
            `http://g.example/blob/${lotOf(`a${i}`, 2 ** 31)
              .toString(16)
              .padStart(8, "0")
              .repeat(5)}?raw=true`,
        )
      : [];
  assert.equal(crawlZoo(files, "http://g.example/").refused.size, 0);
});

test("an admitted link stays admitted, a refused one is counted once, and seeds are no traps", () => {
  const traps = zooTraps({ template: 10, chain: null });
  const pages = range(40).map((i) => `http://h.example/n/${i}`);
  const first = pages.map((url, i) => traps.verdict(url, i === 0 ? null : pages[i - 1]!, i));
  assert.equal(first.filter((verdict) => verdict !== null).length, 40 - 11);
  assert.deepEqual(
    pages.map((url, i) => traps.verdict(url, i === 0 ? null : pages[i - 1]!, i)),
    first,
  );
  assert.deepEqual(traps.summary(), { template: 29 });
  assert.equal(first.at(-1)?.rule, "traps.template 10: more than 10 URLs of one form that only lead to each other");
  assert.equal(traps.verdict(`http://h.example/${"a/".repeat(40)}`, null, 0), null);
});

test("every rule is lifted by null", () => {
  const none = Object.fromEntries(Object.keys(TRAP_LIMITS).map((name) => [name, null]));
  const traps = zooTraps(none);
  const from = "http://h.example/n/1?date=2100-01-01";
  const long = `http://h.example/${"a/".repeat(40)}?${"p=1&".repeat(2000)}`;
  for (const url of [
    long,
    "http://h.example/n/1?date=2100-02-01",
    `http://${"a.".repeat(20)}example/`,
    "http://h.example/s?sid=0123456789abcdef0",
    "http://h.example/s?sid=0123456789abcdef1",
  ])
    assert.equal(traps.verdict(url, from, 1_000_000), null, url.slice(0, 60));
});

test("a crawl that goes on from a snapshot answers as the undisturbed one", () => {
  const web = withTrap((url) => [1, 2, 3].map((k) => `http://h.example/n/${(Number(url.slice(19)) || 1) * 3 + k}`), "http://h.example/n/1").web;
  const links: [string, string][] = [];
  const seen = new Set<string>(["http://h.example/"]);
  for (const url of seen) {
    if (seen.size > 3000) break;
    for (const link of web(url)) {
      links.push([link, url]);
      seen.add(link);
    }
  }
  const whole = zooTraps({ template: 500 });
  const answers = links.map(([url, from]) => whole.verdict(url, from, 3)?.name ?? null);
  assert.ok(answers.includes("template"));
  for (const cut of [0, 10, 900, links.length - 5]) {
    const before = zooTraps({ template: 500 });
    for (const [url, from] of links.slice(0, cut)) before.verdict(url, from, 3);
    const saved = structuredClone(before.snapshot());
    const after = zooTraps({ template: 500, startedAt: 0 });
    after.restore(saved);
    assert.deepEqual(
      links.slice(cut).map(([url, from]) => after.verdict(url, from, 3)?.name ?? null),
      answers.slice(cut),
    );
    assert.deepEqual(after.summary(), whole.summary());
  }
});

test("with its memory full it refuses nothing that it could not judge by the URL alone", () => {
  const traps = zooTraps({ maxBytes: 20_000, template: 100, hosts: 5 });
  for (let i = 0; i < 50_000; i++) traps.verdict(`http://h.example/n/${i}`, `http://h.example/list/${i}`, 2);
  for (let i = 0; i < 1000; i++) assert.equal(traps.verdict(`http://h${i}.example/n/${i}`, "http://h.example/n/0", 2), null);
  assert.equal(traps.verdict("http://h.example/a/b/a/b/a/b/a/b/a/b/", "http://h.example/", 2)?.name, "repeats");
  assert.ok(traps.snapshot().filter.parts.reduce((sum, part) => sum + part.length, 0) <= 20_000);
});

test("property: any two canonical URLs have a verdict, and it does not change", () => {
  const part = fc.constantFrom("a", "b", "a/b", "1", "2026/11", "%20", ";", "=", "?", "&", "x=1", "sid=", "0123456789abcdef", "(S(", "//", "é");
  const url = fc.array(part, { maxLength: 30 }).map((parts) => new URL(`http://h.example/${parts.join("/")}`).href);
  fc.assert(
    fc.property(fc.array(url, { minLength: 2, maxLength: 8 }), (urls) => {
      const traps = zooTraps();
      const ask = () => urls.map((u, i) => traps.verdict(u, urls[(i + 1) % urls.length]!, i)?.name ?? null);
      assert.deepEqual(ask(), ask());
    }),
  );
});
