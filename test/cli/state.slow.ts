/** `skein explain`, `status`, `export` and `doctor --state` on the directories of real crawls: finished, ended by a limit, running, killed, damaged. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { after, before, test } from "node:test";
import { pathToFileURL } from "node:url";
import { gunzipSync } from "node:zlib";
import { main } from "../../src/cli/main.ts";
import type { Check } from "../../src/inspect/doctor.ts";
import type { CrawlStatus } from "../../src/inspect/status.ts";
import { type Answer, html, type Served, serve } from "../crawl/served.ts";
import { fakeIo } from "./fake-io.ts";

const folder = mkdtempSync(join(tmpdir(), "skein-state-"));
const inFolder = (name: string) => join(folder, name);
let served: Served;
/** Held back until it is called, where a test wants a crawl that is under way. */
let letGo: (() => void) | null = null;

const PAGES = 40;
const site: Answer = (request, response) => {
  const path = request.url ?? "";
  if (path === "/robots.txt") return void response.end("User-agent: *\nDisallow: /private\n");
  if (path === "/old") return void response.writeHead(301, { location: "/t/5" }).end();
  if (path === "/away") return void response.writeHead(302, { location: "http://b.example/" }).end();
  if (path === "/broken") return void request.socket.destroy();
  if (path === "/slow/") return html(response, Array.from({ length: 30 }, (_, index) => `<a href="/slow/${index}">x</a>`).join(""));
  if (path.startsWith("/slow/")) return void (letGo === null ? html(response, "late") : waiting.push(() => html(response, "late")));
  const found = path === "/" ? 0 : Number(/^\/t\/(\d+)$/.exec(path)?.[1] ?? -1);
  if (found < 0) return html(response, "none", 404);
  const next = [1, 2, 3].map((step) => found * 3 + step).filter((index) => index < PAGES);
  const odd =
    found === 0
      ? '<a href="/private/x">p</a><a rel=nofollow href="/nf">n</a><a href="/old">o</a><a href="/away">a</a><a href="/broken">b</a><a href="mailto:a@b">m</a><a href="http://far.example/">f</a><a href="/x.pdf">f</a>'
      : "";
  html(response, `<title>page ${found}</title>${next.map((index) => `<a href="/t/${index}">x</a>`).join("")}${odd}`);
};
const waiting: (() => void)[] = [];

before(async () => {
  served = await serve(site);
});
after(async () => {
  for (const answer of waiting) answer();
  await served[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true });
});

async function run(argv: readonly string[], env: Record<string, string> = {}) {
  const io = fakeIo({ cwd: folder, env });
  const status = await main(argv, io);
  return { status, out: io.out(), err: io.err() };
}

const crawl = (dir: string, ...more: string[]) =>
  run(["crawl", `${served.origin}/`, "--state", inFolder(dir), "--exclude", "*.pdf", "--retries", "0", ...more]);
const masked = (text: string) => text.replaceAll(served.origin, "http://SITE").replace(/on \d{4}-\S+ \S+ UTC/g, "on DATE");

async function explained(dir: string, path: string): Promise<string> {
  const { out, err } = await run(["explain", path.startsWith("/") ? served.origin + path : path, "--state", dir]);
  return masked(out + err);
}

async function statusOf(dir: string): Promise<CrawlStatus> {
  return JSON.parse((await run(["status", "--json", "--state", dir])).out);
}

async function checks(dir: string): Promise<{ status: number; found: readonly Check[] }> {
  const { status, out } = await run(["doctor", "--json", "--state", dir]);
  return { status, found: JSON.parse(out) };
}

const records = (text: string): Record<string, unknown>[] =>
  text
    .split("\n")
    .slice(0, -1)
    .map((line) => JSON.parse(line));

test("a finished crawl: every URL on its pages has its explanation", async () => {
  assert.equal((await crawl("finished")).status, 0);
  const first = (text: string) => text.split("\n")[1];
  const answers: readonly (readonly [string, RegExp])[] = [
    ["/", /^It was fetched on DATE, at the first try: status 200, \d+ bytes of text\/html; charset=utf-8\. It has 10 links\.$/],
    ["/t/39", /^It was fetched/],
    ["/private/x", /^It was not fetched: line 2 of http:\/\/SITE\/robots\.txt disallows it: "Disallow: \/private", in the group for every agent \(\*\)\.$/],
    ["/nf", /^It was not fetched: the link says rel=nofollow\.$/],
    ["/old", /^It was asked for on DATE and redirects with status 301 to http:\/\/SITE\/t\/5\.$/],
    ["/away", /redirects with status 302 to http:\/\/b\.example\/\.$/],
    ["http://b.example/", /^It was not fetched: a redirect led to it, and it lies outside the crawl, whose scope is "host"/],
    ["/broken", /^It could not be fetched, at the first try: the connection was lost\. Code reset/],
    ["mailto:a@b", /^It was not fetched: its scheme is neither http nor https\.$/],
    ["http://far.example/", /^It was not fetched: it lies outside the crawl/],
    ["/x.pdf", /^It was not fetched: the pattern --exclude \*\.pdf matches it\.$/],
    ["/never", /^The crawl has not met it: no page that was read links to it\.$/],
  ];
  for (const [path, said] of answers) assert.match(first(await explained("finished", path)) ?? "", said, path);
  const way = (await explained("finished", "/t/39")).split("\n").slice(2);
  assert.deepEqual(way, [
    "It was found 3 links from a seed (depth 3), this way:",
    "  http://SITE/ (seed)",
    "  → http://SITE/t/3",
    "  → http://SITE/t/12",
    "  → http://SITE/t/39",
    "",
  ]);
});

test("no link of any page is without its explanation", async () => {
  const lines = records((await run(["export", "--state", "finished"])).out);
  const links = [...new Set(lines.flatMap(({ links }) => links as string[]))]; // every record has them
  const told = records((await run(["explain", "--json", "--state", "finished", ...links])).out);
  assert.equal(told.length, links.length);
  for (const { kind, url, way, text } of told) {
    assert.match(String(kind), /^(page|skipped)$/, String(url));
    // `as`: both are lists of an explanation.
    if (url !== `${served.origin}/`) assert.equal((way as { url: string }[])[0]?.url, `${served.origin}/`, String(url));
    assert.ok((text as string[]).length >= 2);
  }
});

test("explain: statuses, JSON, several URLs, and the scheme of a bare host", async () => {
  const known = await run(["explain", `127.0.0.1:${served.port}/t/5`, `${served.origin}/nf#x`, "--state", "finished", "--json"]);
  assert.equal(known.status, 0);
  const [page, skipped] = records(known.out);
  assert.deepEqual([page?.kind, page?.url], ["page", `${served.origin}/t/5`]);
  assert.deepEqual([skipped?.kind, (skipped?.skipped as Record<string, unknown> | undefined)?.reason], ["skipped", "nofollow"]);
  assert.ok(Array.isArray(page?.text) && page.text.length > 1);
  assert.equal((await run(["explain", `${served.origin}/never`], { SKEIN_STATE: "finished" })).status, 8);
});

test("explain answers whatever it is asked", async () => {
  const odd = [
    "",
    " ",
    "http://",
    "http://[",
    "javascript:x",
    "a\u0000b",
    '"',
    "\\",
    "//x",
    "http://a.example/\n",
    "é",
    `http://a.example/${"x".repeat(50_000)}`,
  ];
  const told = records((await run(["explain", "--json", "--state", "finished", "--", ...odd])).out);
  assert.deepEqual(
    told.map(({ kind }) => kind),
    odd.map(() => "unknown"),
  );
});

test("status of a finished crawl, for people and as JSON", async () => {
  const status = await statusOf("finished");
  assert.deepEqual([status.state, status.finishReason, status.pages, status.queued, status.inFlight], ["finished", "finished", PAGES, 0, 0]);
  assert.deepEqual(status.byStatus, { "200": PAGES, "301": 1, "302": 1 });
  assert.equal(status.bySkipReason.nofollow, 1);
  assert.equal(status.etaMs, null);
  const { status: exit, out } = await run(["status", "--state", "finished"]);
  assert.equal(exit, 0);
  assert.match(
    out,
    /^state {4}finished\nstarted {2}\d{4}-.* of work\npages {4}40, .*\nwaiting {2}0 queued, 0 in flight\nrecords {2}fetched 40 · redirected 2 · disallowed 1 · failed 1\nstatus {3}200 40 · 301 1 · 302 1\nfailed {3}reset 1\nskipped {2}.*\n(?:retries .*\n)?slowest {2}127\.0\.0\.1:\d+ \d+ms\noptions/,
  );
  assert.deepEqual([status.slowest.map(({ host }) => host), status.bottleneck], [[`127.0.0.1:${served.port}`], null]);
});

test("export: pages, skipped URLs and edges, into every format and to stdout", async () => {
  const lines = records(readFileSync(inFolder("finished/pages.jsonl"), "utf8"));
  for (const name of ["p.jsonl", "p.jsonl.gz", "p.json", "p.csv", "p.sqlite"]) {
    const { status, err } = await run(["export", "--state", "finished", "-o", name, "--fields", "url,status"]);
    assert.deepEqual([status, err], [0, `${name}: ${lines.length} pages\n`]);
  }
  const short = lines.map(({ url, status }) => ({ url, status }));
  assert.deepEqual(records(readFileSync(inFolder("p.jsonl"), "utf8")), short);
  assert.deepEqual(records(gunzipSync(readFileSync(inFolder("p.jsonl.gz"))).toString()), short);
  assert.deepEqual(JSON.parse(readFileSync(inFolder("p.json"), "utf8")), short);
  assert.equal(readFileSync(inFolder("p.csv"), "utf8").split("\r\n")[1], `${served.origin}/,200`);
  using db = new DatabaseSync(inFolder("p.sqlite"), { readOnly: true });
  assert.equal(db.prepare("SELECT count(*) AS n FROM pages").get()?.n, lines.length);
  assert.deepEqual(records((await run(["export", "--state", "finished"])).out), lines);
  assert.deepEqual(records((await run(["export", "--state", "finished", "-o", "-", "--fields", "url,status"])).out), short);
  const skipped = records((await run(["export", "--state", "finished", "--what", "skipped"])).out);
  assert.ok(skipped.some(({ url, reason }) => url === `${served.origin}/nf` && reason === "nofollow"));
  const edges = lines.flatMap(({ url, links }) => (links as string[]).map((to) => ({ from: url, to })));
  assert.deepEqual(records((await run(["export", "--state", "finished", "--what", "links"])).out), edges);
  assert.equal((await run(["export", "--state", "finished", "--what", "links", "-o", "edges.csv", "-q"])).err, "");
  assert.equal(readFileSync(inFolder("edges.csv"), "utf8").split("\r\n").length, edges.length + 2);
});

test("export does not replace the outputs that a resume goes on with", async () => {
  assert.equal((await crawl("with-output", "-o", inFolder("own.csv"))).status, 0);
  const { status, err } = await run(["export", "--state", "with-output", "-o", "own.csv"]);
  assert.deepEqual([status, err], [2, "skein: --output: own.csv is a file of the crawl itself; name another\n"]);
});

test("a crawl ended by --limit: what waits is said to wait, and the larger limit to help", async () => {
  assert.equal((await crawl("limited", "--limit", "10")).status, 0);
  const status = await statusOf("limited");
  assert.deepEqual([status.state, status.finishReason, status.pages, status.limitLeft], ["finished", "limit-pages", 10, 0]);
  assert.ok(status.queued > 0);
  assert.deepEqual(status.hosts, [{ host: `127.0.0.1:${served.port}`, waiting: status.queued + status.delayed }]);
  const pages = new Set(records((await run(["export", "--state", "limited"])).out).map(({ url }) => url));
  const left = [...Array(PAGES).keys()].map((index) => `${served.origin}/t/${index}`).find((url) => !pages.has(url)) ?? "";
  const linked = records((await run(["export", "--state", "limited", "--what", "links"])).out).find(({ to }) => !pages.has(to) && String(to).includes("/t/"));
  assert.ok(left !== "" && linked !== undefined);
  assert.match(
    await explained("limited", String(linked.to)),
    /\nIt waits in the queue, .* The crawl was over before its turn \(ended by --limit 10\); with a larger limit the same command goes on there\.\nIt was found .*, this way:\n {2}http:\/\/SITE\/ \(seed\)\n/,
  );
  assert.ok((await checks("limited")).found.every(({ level }) => level === "ok"));
});

test("a running crawl is read without disturbing it", async () => {
  const gate = Promise.withResolvers<void>();
  letGo = gate.resolve;
  const arrived = () => served.targets().filter((target) => /^\/slow\/\d/.test(target)).length;
  const whole = run(["crawl", `${served.origin}/slow/`, "--state", inFolder("running"), "-c", "2"]);
  while (arrived() < 2) await new Promise((resolve) => setTimeout(resolve, 5));
  // The counters are committed with the settle of the first page, before its links are asked for.
  const status = await statusOf("running");
  assert.deepEqual([status.state, status.finishReason, status.pages], ["running", null, 1]);
  assert.equal(status.queued + status.inFlight, 30);
  assert.match(await explained("running", "/slow/29"), /\nIt waits in the queue, behind \d+ pages of its host; \d+ pages wait in all\.\n/);
  assert.match(await explained("running", "/slow/x"), /The crawl has not ended; it may still be found\.\n$/);
  assert.equal(records((await run(["export", "--state", "running"])).out).length, 1);
  assert.ok((await checks("running")).found.every(({ level }) => level === "ok"));
  letGo = null;
  for (const answer of waiting.splice(0)) answer();
  assert.equal((await whole).status, 0);
  assert.equal((await statusOf("running")).pages, 31);
});

/** Starts a crawl of the slow pages in a process of its own, and answers it when two of them are asked for. */
async function slowChild(...argv: string[]) {
  letGo = () => undefined;
  const program = `import(${JSON.stringify(pathToFileURL(join(import.meta.dirname, "../../src/cli/main.ts")).href)}).then(({ main }) => main(process.argv.slice(1)))`;
  const before = served.targets().length;
  const child = spawn(process.execPath, ["-e", program, "crawl", `${served.origin}/slow/`, "-c", "2", ...argv], {
    cwd: folder,
    env: { ...process.env, NO_PROXY: "127.0.0.1", NODE_TEST_CONTEXT: undefined },
    stdio: "ignore",
  });
  const gone = new Promise<void>((resolve) => child.on("close", () => resolve()));
  const asked = () =>
    served
      .targets()
      .slice(before)
      .filter((target) => /^\/slow\/\d/.test(target)).length;
  while (asked() < 2) {
    assert.equal(child.exitCode, null);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  return {
    async end(signal: "SIGKILL" | "SIGINT") {
      child.kill(signal);
      letGo = null;
      // What is in flight is finished before an interrupted crawl ends.
      if (signal === "SIGINT") for (const answer of waiting.splice(0)) answer();
      await gone;
    },
  };
}

test("a crawl that was killed: stopped, its state whole, what it held explained", async () => {
  await (await slowChild("--state", "killed")).end("SIGKILL");
  const status = await statusOf("killed");
  assert.deepEqual([status.state, status.finishReason], ["stopped", null]);
  assert.ok(status.pages >= 1);
  assert.match((await run(["status", "--state", "killed"])).out, /^state {4}stopped before its end; the command that started it resumes it\n/);
  const { status: exit, found } = await checks("killed");
  assert.deepEqual([exit, found.filter(({ level }) => level !== "ok")], [0, []]);
  assert.match(await explained("killed", "/slow/29"), /It waits in the queue/);
});

test("a crawl in memory that was interrupted: what it kept is told, and what it could not keep is said", async () => {
  await (await slowChild()).end("SIGINT");
  const [name = ""] = readdirSync(inFolder(".skein"));
  const dir = join(".skein", name);
  const status = await statusOf(dir);
  // How many were in flight when the signal came is chance.
  assert.deepEqual([status.state, status.pages + status.queued], ["stopped", 31]);
  assert.ok(status.pages >= 1 && status.queued >= 1);
  assert.match(await explained(dir, "/slow/"), /\nIt was settled while the crawl ran in memory, and has no record here; the crawl's outputs have it\.\n$/);
  assert.match(await explained(dir, "/slow/29"), /\nIt waits in the queue/);
  assert.match(await explained(dir, "/never"), /\nThe crawl has not met it, as far as is recorded: it ran in memory until it was interrupted\.\n/);
  const exported = await run(["export", "--state", dir]);
  assert.deepEqual([exported.status, exported.out], [0, ""]);
  assert.match(
    exported.err,
    /^warning: this crawl ran in memory until it was interrupted: the \d+ URLs? that it had settled by then (?:is|are) only in its outputs\n$/,
  );
  assert.equal(status.beganInMemory?.settled, status.pages);
  assert.match(
    (await run(["status", "--state", dir])).out,
    /\nbegan {4}in memory; kept \d{4}-\S+ \S+ UTC: the \d+ URLs? settled by then ha(?:s|ve) no record here\n/,
  );
  // Resumed, it still says so; a new run does not.
  assert.equal((await run(["crawl", `${served.origin}/slow/`, "--state", inFolder(dir)])).status, 0);
  assert.match(
    await explained(dir, "/slow/"),
    /has not ended\.\n\(Or it was settled while the crawl ran in memory, before it was interrupted; the crawl's outputs have it then\.\)\n$/,
  );
  assert.match(await explained(dir, "/never"), /it ran in memory at first, and what it read then is not recorded here\./);
  assert.notEqual((await statusOf(dir)).beganInMemory, null);
  assert.equal((await run(["crawl", `${served.origin}/slow/`, "--state", inFolder(dir), "--limit", "1"])).status, 0);
  assert.equal((await statusOf(dir)).beganInMemory, null);
  assert.equal((await checks(dir)).status, 0);
});

test("pages of a sitemap are found there, and the sitemap is known as one", async () => {
  await using listed = await serve((request, response) => {
    if (request.url === "/robots.txt") return void response.end("");
    if (request.url !== "/map.xml") return html(response, "a page");
    response.writeHead(200, { "content-type": "application/xml" });
    const origin = `http://${request.headers.host}`;
    response.end(
      `<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><url><loc>${origin}/a</loc></url><url><loc>http://far.example/</loc></url></urlset>`,
    );
  });
  const { status, err } = await run(["crawl", `${listed.origin}/`, "--sitemap", `${listed.origin}/map.xml`, "--state", inFolder("listed")]);
  assert.equal(status, 0, err);
  assert.match(
    await explained("listed", `${listed.origin}/a`),
    /\nIt was found at depth 0, this way:\n {2}http:.*\/map\.xml \(a sitemap, .*\)\n {2}→ http:.*\/a\n$/,
  );
  const map = await run(["explain", `${listed.origin}/map.xml`, "--state", "listed"]);
  assert.deepEqual([map.status, map.out], [0, `${listed.origin}/map.xml\nIt was read as a sitemap, not as a page.\n`]);
  assert.match(await explained("listed", "http://far.example/"), /\nIt was not fetched: /);
});

test("doctor finds what is wrong with a state, and what to do", async () => {
  const broken = async (name: string, damage: (dir: string) => void): Promise<Check[]> => {
    cpSync(inFolder("finished"), inFolder(name), { recursive: true });
    damage(inFolder(name));
    const { status, found } = await checks(name);
    const wrong = found.filter(({ level }) => level === "fail");
    assert.equal(status, wrong.length > 0 ? 1 : 0);
    return wrong;
  };
  const failing = async (name: string, damage: (dir: string) => void, check: string, text: RegExp) => {
    const [first] = await broken(name, damage);
    assert.equal(first?.name, check);
    assert.match(first?.text ?? "", text);
    assert.notEqual(first?.next, null);
  };
  await failing("short", (dir) => truncateSync(join(dir, "pages.jsonl"), 100), "pages.jsonl", /has 100 bytes; \d+ were committed/);
  await failing("gone", (dir) => rmSync(join(dir, "skipped.jsonl")), "skipped.jsonl", /is gone/);
  await failing(
    "changed",
    (dir) => writeFileSync(join(dir, "pages.jsonl"), "x".repeat(readFileSync(join(dir, "pages.jsonl")).length)),
    "pages.jsonl",
    /its last committed line has no end/,
  );
  await failing("noise", (dir) => writeFileSync(join(dir, "state.db"), "this is no database, whatever its name"), "state.db", /not a database/);
  await failing(
    "counters",
    (dir) => {
      using db = new DatabaseSync(join(dir, "state.db"));
      db.exec("UPDATE progress SET counters = json_set(counters, '$.queued', 7)");
    },
    "counters",
    /say that 7 URLs wait, the queue holds 0/,
  );
  assert.deepEqual(await broken("longer", (dir) => writeFileSync(join(dir, "pages.jsonl"), "torn", { flag: "a" })), []);
});

test("wrong usage: status 2 and every problem; a directory without a crawl", async () => {
  const cases: readonly (readonly [readonly string[], RegExp])[] = [
    [["explain", "--state", "finished"], /^skein: nothing to explain: give a URL\n$/],
    [["explain", "http://a/"], /^skein: --state: name the state directory of the crawl, or with --store URL the store that has it\n$/],
    [["explain", "http://a/", "--state", "absent"], /^skein: --state: there is no state of a crawl in .*absent\n$/],
    [["explain", "http://a/", "--state", "finished", "--jsno"], /^skein: --jsno: no such option; did you mean --json\?\n$/],
    [["status", "x", "--state", "finished"], /^skein: x: skein status takes no arguments/],
    [["status", "--state", "finished", "-c", "2"], /^skein: -c: an option of skein crawl, not of skein status\n$/],
    [["export", "--state", "finished", "--what", "page"], /^skein: --what: expected one of pages, items, skipped, links, got "page"\n$/],
    [["export", "--state", "finished", "-o", "x.pdf"], /^skein: --output: expected a file name that ends in .*got "x\.pdf"\n$/],
    [
      ["export", "--state", "finished", "-o", "finished/pages.jsonl"],
      /^skein: --output: finished\/pages\.jsonl is a file of the crawl itself; name another\n$/,
    ],
    [["export", "--state", "finished", "--what", "links", "--fields", "url"], /^skein: --fields: chooses fields of page records; it goes with --what pages\n$/],
    [["export", "--state", "finished", "--fields", "urls"], /^skein: --fields: expected names from url, status/],
    [["doctor", "x"], /^skein: x: skein doctor takes no arguments\n$/],
  ];
  for (const [argv, said] of cases) {
    const { status, out, err } = await run(argv);
    assert.deepEqual([status, out], [2, ""], err);
    assert.match(err, said);
  }
  const unwritable = await run(["export", "--state", "finished", "-o", "no-such-folder/x.csv"]);
  assert.deepEqual([unwritable.status, unwritable.out], [3, ""]);
});
