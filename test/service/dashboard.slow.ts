/** The dashboard in a real browser, on the real HTTP side with jobs that the tests move. needs: chromium */
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { after, before, describe, test } from "node:test";
import { type Browser, type BrowserContextOptions, chromium, type Page } from "playwright-core";
import type { JobCounts, JobHost } from "../../src/core/jobs.ts";
import { silentLog } from "../../src/core/log.ts";
import { openService } from "../../src/service/open.ts";
import { fakeSite } from "../../src/testing/site.ts";
import { bench as jobsBench } from "../jobs/bench.ts";
import { type DashboardBench, dashboardAssets, dashboardBench } from "./dashboard-server.ts";

const executablePath = (process.env["PATH"] ?? "")
  .split(delimiter)
  .map((folder) => join(folder, "chromium"))
  .find((path) => existsSync(path));
const required = (process.env["SKEIN_REQUIRE"] ?? "").split(",").includes("chromium");
if (executablePath === undefined && required) throw new Error("chromium is required (SKEIN_REQUIRE) and not on PATH");
const audit = readFileSync(join(import.meta.dirname, "dashboard-audit.js"), "utf8");

let browser: Browser;

interface Tab extends AsyncDisposable {
  readonly page: Page;
  /** What the browser complained of: scripts, policy, requests that failed. */
  readonly complaints: string[];
}

async function open(url: string, options: BrowserContextOptions = {}): Promise<Tab> {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, reducedMotion: "reduce", ...options });
  context.setDefaultTimeout(20_000);
  const page = await context.newPage();
  const complaints: string[] = [];
  // An answer of 4xx is noted by the browser as well; which of them are right is for the tests to say.
  const isAnswer = (text: string) => /^Failed to load resource: the server responded with a status of 4\d\d/.test(text);
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type()) && !isAnswer(message.text())) complaints.push(message.text());
  });
  page.on("pageerror", (error) => void complaints.push(error.stack ?? error.message));
  await page.addInitScript(
    'addEventListener("securitypolicyviolation", (event) => console.error("policy: " + event.violatedDirective + " " + event.blockedURI))',
  );
  await page.goto(url);
  return { page, complaints, [Symbol.asyncDispose]: () => context.close() };
}

/** Waits until the page says so. */
async function says(page: Page, text: string | RegExp, selector = "main"): Promise<void> {
  await page.locator(selector).filter({ hasText: text }).first().waitFor();
}

/** Complaints of the audit, and of the browser's own view of the page: what takes the focus needs a name. */
async function faults(page: Page): Promise<readonly string[]> {
  // `as`: the script evaluates to a list of texts.
  const found = (await page.evaluate(audit)) as string[];
  const session = await page.context().newCDPSession(page);
  const { nodes } = await session.send("Accessibility.getFullAXTree");
  await session.detach();
  for (const { ignored, role, name, properties = [] } of nodes) {
    const focusable = properties.some((property) => property.name === "focusable" && property.value.value === true);
    const needsName = focusable && !["RootWebArea", "generic", "main", "dialog"].includes(String(role?.value));
    if (!ignored && needsName && String(name?.value ?? "").trim() === "") found.push(`a ${role?.value} without a name takes the focus`);
  }
  return found;
}

const COUNTS: Partial<JobCounts> = {
  ...{ total: 6_000, queued: 1_100, inProgress: 8, items: 120, images: 30, skipped: 9_120, bottleneck: "delay" },
  bySkipReason: { "out-of-scope": 7_011, robots: 1_200, trap: 100 },
};
// `as`: a host key is a branded text.
const hostOf = (at: number) =>
  ({
    ...{ host: `h${at}.example.org`, queued: 2_000 - at, inFlight: at % 8, concurrency: 8, delayMs: at % 2 ? 0 : 1_500, dueInMs: at % 3 ? 0 : 700 },
    ...{ settled: 10 * at, meanLatencyMs: 88, paused: false },
  }) as JobHost;

/** A service with a job of every kind; the last one runs and has everything. */
async function full(bench: DashboardBench): Promise<number> {
  await bench.add(["https://done.example.org/"], "completed", { ...COUNTS, pages: 10, completed: 20, elapsedMs: 90_000 });
  await bench.add([`https://www.example.net/${"long/".repeat(60)}`], "failed");
  await bench.add(["https://held.example.org/"], "paused", COUNTS);
  const id = await bench.add(["https://www.example.org/", "https://blog.example.org/"], "running", COUNTS);
  bench.work(id, 300);
  bench.hosts.set(
    id,
    Array.from({ length: 1_000 }, (_, at) => hostOf(at)),
  );
  const item = (at: number) => ({
    name: `Product ${at}`,
    price: at + 0.5,
    text: "<img src=x onerror=alert(1)> ".repeat(9),
    link: "javascript:alert(1)",
    _meta: {},
  });
  bench.fill(
    id,
    "items",
    Array.from({ length: 120 }, (_, at) => item(at)),
  );
  bench.fill(id, "skipped", [{ url: "https://other.example/", referrer: null, depth: 1, reason: "out-of-scope", rule: "host" }]);
  bench.fill(id, "images", ["https://img.example.org/a.png", "http://127.0.0.1/b.png", "javascript:alert(1)"]);
  return id;
}

/** In the page: a row of tabs that is wider than the screen is scrolled to the one that is open. */
const openTabIsShown = `(() => {
  const tab = document.querySelector(".tabs [aria-current]");
  if (tab === null) return true;
  const [inner, outer] = [tab.getBoundingClientRect(), tab.parentElement.getBoundingClientRect()];
  return inner.left >= outer.left - 1 && inner.right <= outer.right + 1;
})()`;

describe("the dashboard", { skip: executablePath === undefined ? "chromium is not on PATH" : false, concurrency: 2 }, () => {
  before(async () => {
    browser = await chromium.launch({ executablePath: executablePath ?? "", args: ["--no-sandbox", "--disable-gpu"] });
  });
  after(() => browser.close());

  test("a job is made by the form, watched to its end, and its options are used again", async () => {
    await using bench = await dashboardBench();
    await using tab = await open(bench.url);
    const { page, complaints } = tab;
    await says(page, "There are no jobs yet");
    await page.getByRole("link", { name: "New job" }).first().click();
    await page.getByRole("textbox", { name: "Seeds" }).fill("https://a.example/\nhttps://b.example/\nno url\n");
    await page.getByLabel("Max depth").fill("2");
    await page.getByLabel("Images", { exact: true }).check();
    await page.getByRole("button", { name: "Start job" }).click();
    await page.getByRole("heading", { name: /^Job 0/ }).waitFor();
    await says(page, "1 line was no URL");
    const made = bench.jobs.all[0]?.view;
    assert.deepEqual([made?.spec.maxDepth, made?.spec.images, made?.seedsTotal], [2, true, 2]);
    bench.jobs.set(0, "running");
    bench.work(0, 40);
    await says(page, /Pages\s*35/);
    await says(page, "Article 39: a <b>title</b> & more");
    await page.getByRole("img", { name: /Pages a second over .*: highest/ }).waitFor();
    bench.end(0, "completed");
    await says(page, "Everything that belongs to the crawl was done.");
    await says(page, "Job 0: Completed", "[aria-live=polite]");
    await page.getByRole("link", { name: "Run again" }).click();
    await says(page, "With the options of job 0");
    assert.equal(await page.getByLabel("Max depth").inputValue(), "2");
    assert.equal(await page.getByRole("textbox", { name: "Seeds" }).inputValue(), "https://a.example/\nhttps://b.example/");
    assert.deepEqual(complaints, []);
  });

  test("what is wrong in a form is said at its fields, and a file of URLs is taken", async () => {
    await using bench = await dashboardBench();
    await using tab = await open(`${bench.url}/#/new`);
    const { page } = tab;
    await page.getByRole("button", { name: "Start job" }).click();
    await says(page, "give at least one URL", "[role=alert]");
    await page.getByRole("textbox", { name: "Seeds" }).fill("https://a.example/");
    await page.getByRole("heading", { name: "Politeness" }).click();
    await page.locator("[id='field-perHost.delay']").fill("soon");
    await page.getByLabel("Max depth").fill("-3");
    await page.getByRole("button", { name: "Start job" }).click();
    const depth = page.getByLabel("Max depth");
    await page.locator("[id='problem-maxDepth']").waitFor();
    assert.equal(await depth.getAttribute("aria-invalid"), "true");
    assert.match(String(await depth.getAttribute("aria-describedby")), /problem-maxDepth/);
    await page.locator("[role=alert]").getByRole("button", { name: "Per host: delay" }).click();
    assert.equal(await page.evaluate("document.activeElement.id"), "field-perHost.delay");
    assert.deepEqual(await faults(page), []);
    await depth.fill("");
    await page.locator("[id='field-perHost.delay']").fill("2s");
    await page
      .getByLabel("Or a file of URLs")
      .setInputFiles({ name: "urls.txt", mimeType: "text/plain", buffer: Buffer.from("https://b.example/\nhttps://c.example/\n") });
    await page.getByRole("button", { name: "Start job" }).click();
    await page.getByRole("heading", { name: /^Job 0/ }).waitFor();
    assert.deepEqual(bench.jobs.all[0]?.view.seeds, ["https://a.example/", "https://b.example/", "https://c.example/"]);
    assert.equal(bench.jobs.all[0]?.view.spec.perHost.delay, 2_000);
  });

  test("a job is paused, resumed, stopped and deleted by the keyboard alone", async () => {
    await using bench = await dashboardBench();
    const id = await full(bench);
    await using tab = await open(`${bench.url}/#/jobs/${id}`);
    const { page, complaints } = tab;
    const state = () => bench.jobs.all.find(({ view }) => view.id === id)?.view.state;
    await page.getByRole("button", { name: "Pause" }).focus();
    await page.keyboard.press("Enter");
    await page.getByRole("button", { name: "Resume" }).waitFor();
    assert.equal(state(), "paused");
    assert.equal(await page.evaluate("document.activeElement.textContent"), "Resume");
    await page.keyboard.press("Enter");
    await says(page, `Job ${id}: Running`, "[aria-live=polite]");
    await page.keyboard.press("Tab");
    await page.keyboard.press("Enter");
    await page.getByRole("dialog", { name: `Stop job ${id}` }).waitFor();
    assert.deepEqual(await faults(page), []);
    await page.keyboard.press("Escape");
    assert.equal(await page.evaluate("document.activeElement.textContent"), "Stop …");
    await page.keyboard.press("Enter");
    await page.getByLabel("At once").check();
    await page.locator("#stop-reason").fill("enough");
    await page.keyboard.press("Enter");
    await says(page, "Stopped", "h1");
    assert.equal(state(), "stopped");
    await page.getByRole("button", { name: "Delete" }).click();
    await page.getByRole("button", { name: "Keep it" }).click();
    await page.getByRole("button", { name: "Delete" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
    await page.getByRole("heading", { name: "Jobs" }).waitFor();
    assert.equal(state(), undefined);
    assert.deepEqual(complaints, []);
  });

  test("hosts are paused and slowed, records are turned over, a URL is explained", async () => {
    await using bench = await dashboardBench();
    const id = await full(bench);
    await using tab = await open(`${bench.url}/#/jobs/${id}/hosts`);
    const { page, complaints } = tab;
    await page.getByRole("button", { name: "Pause h1.example.org" }).click();
    await page.getByRole("button", { name: "Resume h1.example.org" }).waitFor();
    assert.equal(bench.hosts.get(id)?.[1]?.paused, true);
    await page.getByRole("button", { name: "Pace of h2.example.org" }).click();
    await page.getByLabel("Least gap").fill("soon");
    await page.getByRole("button", { name: "Set", exact: true }).click();
    await says(page, "Delay: expected a duration", "dialog [role=alert]");
    await page.getByLabel("Least gap").fill("4s");
    await page.getByRole("button", { name: "Set", exact: true }).click();
    await says(page, "4.0 s");
    assert.equal(bench.hosts.get(id)?.[2]?.delayMs, 4_000);
    await page.getByRole("button", { name: "Show up to 1,000" }).click();
    await says(page, "h999.example.org");
    await page.getByRole("link", { name: "Items" }).click();
    await page.getByRole("columnheader", { name: "price" }).waitFor();
    assert.equal(await page.locator("main img, main a[href^='javascript']").count(), 0);
    await page.getByRole("button", { name: "Next" }).click();
    await says(page, "51 to 100");
    await page.getByRole("button", { name: "Next" }).click();
    await says(page, "101 to 120");
    await page.getByRole("button", { name: "Previous" }).click();
    await says(page, "51 to 100");
    const [saved] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "Download CSV" }).click()]);
    const text = readFileSync(await saved.path(), "utf8");
    assert.equal(saved.suggestedFilename(), `job-${id}-items.csv`);
    assert.equal(text.trimEnd().split("\n").length, 121);
    await page.getByRole("link", { name: "Pages", exact: true }).click();
    await page.getByRole("link", { name: "Why: https://www.example.org/articles/2001/1" }).click();
    await says(page, "found on https://www.example.org/ <first>");
    assert.deepEqual(complaints, []);
  });

  test("images are links; thumbnails come only where they were asked for, and never from here", async () => {
    await using bench = await dashboardBench();
    const id = await full(bench);
    await using tab = await open(`${bench.url}/#/jobs/${id}/images`);
    const { page, complaints } = tab;
    const asked: string[] = [];
    await page.route(/^https?:\/\/(img\.example\.org|127\.0\.0\.1\/)/, (route) => {
      asked.push(route.request().url());
      return route.fulfill({ contentType: "image/svg+xml", body: '<svg xmlns="http://www.w3.org/2000/svg"/>' });
    });
    await page.getByRole("link", { name: "https://img.example.org/a.png" }).waitFor();
    assert.deepEqual([await page.locator("main img").count(), await page.locator("main a[href^='javascript']").count()], [0, 0]);
    const blocked = page.waitForEvent("console", (message) => message.text().startsWith("policy: img-src"));
    await page.evaluate('document.body.append(Object.assign(new Image(), { src: "https://img.example.org/z.png", alt: "" }))');
    await blocked;
    complaints.length = 0;
    await page.getByRole("link", { name: "Show thumbnails" }).click();
    await page.locator("main img").waitFor();
    await page.locator("main img").evaluate((image: { decode(): Promise<void> }) => image.decode());
    assert.deepEqual(asked, ["https://img.example.org/a.png"]);
    assert.deepEqual(complaints, []);
  });

  test("the token is asked for, asked again when it is wrong, and not kept beyond the tab", async () => {
    await using bench = await dashboardBench({ access: { token: "s3cret-s3cret", names: [], network: false } });
    const id = await full(bench);
    await using tab = await open(`${bench.url}/#/jobs/${id}`);
    const { page } = tab;
    await page.getByRole("dialog", { name: "asks for a token" }).waitFor();
    assert.deepEqual(await faults(page), []);
    await page.locator("#token").fill("wrong");
    await page.keyboard.press("Enter");
    await says(page, "did not accept", "dialog");
    await page.locator("#token").fill("s3cret-s3cret");
    await page.keyboard.press("Enter");
    await says(page, /Pages\s*258/);
    bench.work(id, 70);
    await says(page, /Pages\s*318/);
    assert.deepEqual(await page.evaluate("[localStorage.length, document.cookie, location.href.includes('s3cret')]"), [0, "", false]);
  });

  test("a lost connection is told of, and what was missed comes once it is back", async () => {
    await using bench = await dashboardBench();
    const id = await full(bench);
    await using tab = await open(`${bench.url}/#/jobs/${id}`);
    const { page } = tab;
    await says(page, /Pages\s*258/);
    await page.context().setOffline(true);
    await page.getByRole("button", { name: "Pause" }).click();
    await says(page, "No connection to the service", ".banner");
    bench.work(id, 70);
    await page.context().setOffline(false);
    bench.end(id, "completed");
    await says(page, "Completed", "h1");
    await says(page, /Pages\s*318/);
    assert.equal(await page.locator(".banner").textContent(), "");
  });

  test("the list of 10,000 jobs is paged, filtered, and moves with them", async () => {
    await using bench = await dashboardBench();
    const id = (await full(bench)) + 10_000;
    const { all } = bench.jobs;
    const [one] = all;
    assert.ok(one);
    const older = Array.from({ length: 10_000 }, (_, at) => ({
      ...one,
      view: { ...one.view, id: at, seeds: [`https://site-${at}.example/`], state: at % 10 === 0 ? ("failed" as const) : ("completed" as const) },
    }));
    for (const job of all) job.view = { ...job.view, id: job.view.id + older.length };
    all.unshift(...older);
    await using tab = await open(bench.url);
    const { page, complaints } = tab;
    await page.getByRole("link", { name: `${id} www.example.org` }).waitFor();
    assert.equal(await page.locator("tbody tr").count(), 50);
    bench.work(id, 700);
    await page
      .getByRole("row", { name: new RegExp(`^${id} `) })
      .filter({ hasText: "858" })
      .waitFor();
    await page.getByRole("link", { name: "Older jobs" }).click();
    await says(page, "site-9953.example");
    await page.getByRole("link", { name: "Newest" }).click();
    await page.getByRole("link", { name: "Failed" }).click();
    await page.getByRole("row", { name: /site-9990/ }).waitFor();
    assert.equal(await page.getByRole("row").filter({ hasText: "Completed" }).count(), 0);
    assert.deepEqual(complaints, []);
  });

  test("a real crawl: started, held, gone on with, read", async () => {
    const numbers = Array.from({ length: 40 }, (_, at) => at);
    const page = (at: number) => `<!doctype html><title>Page ${at}</title><h1>Page ${at}</h1><img src="/${at}.png"><a href="/${at + 1}">on</a>`;
    await using site = await fakeSite(Object.fromEntries([["/", page(0)], ...numbers.map((at) => [`/${at}`, { body: page(at), delayMs: 30 }])]));
    await using kept = await jobsBench();
    const access = { token: null, names: [], network: false };
    const service = await openService({ jobs: kept.jobs, host: "127.0.0.1", port: 0, access, log: silentLog, assets: await dashboardAssets() });
    try {
      await using tab = await open(`http://127.0.0.1:${service.port}/#/new`);
      const { page, complaints } = tab;
      await page.getByRole("textbox", { name: "Seeds" }).fill(site.url);
      await page.getByLabel("Images", { exact: true }).check();
      await page.getByRole("heading", { name: "Scraping" }).click();
      await page.getByRole("textbox", { name: "Extract" }).fill("heading=h1");
      await page.getByRole("button", { name: "Start job" }).click();
      await page.getByRole("button", { name: "Pause" }).click();
      await says(page, "Paused", "h1");
      assert.equal((await kept.jobs.get(0))?.state, "paused");
      await page.getByRole("link", { name: "Hosts" }).click();
      await page.getByRole("row", { name: /^127\.0\.0\.1/ }).waitFor();
      await page.getByRole("button", { name: "Resume", exact: true }).click();
      await says(page, "Completed", "h1");
      await page.getByRole("link", { name: "Overview" }).click();
      await says(page, /Pages\s*41/);
      await page.getByRole("row", { name: "404 1", exact: true }).waitFor();
      await page.getByRole("link", { name: "Items" }).click();
      await page.getByRole("cell", { name: "Page 39" }).waitFor();
      await page.getByRole("link", { name: "Images" }).click();
      await page.getByRole("link", { name: `${site.url}39.png` }).waitFor();
      await page.getByRole("link", { name: "Pages", exact: true }).click();
      await page.getByRole("link", { name: `Why: ${site.url}40` }).click();
      await says(page, "404", "main pre");
      assert.deepEqual(await faults(page), []);
      assert.deepEqual(complaints, []);
    } finally {
      await service.close(100);
    }
  });

  test("live lists hold still while somebody reads in them, and keep the focus", async () => {
    await using bench = await dashboardBench();
    const id = await full(bench);
    await using tab = await open(`${bench.url}/#/jobs/${id}`);
    const { page } = tab;
    const link = page.locator(".newest a").first();
    await link.focus();
    const href = await link.getAttribute("href");
    bench.work(id, 60);
    await says(page, "held while you read");
    assert.equal(await page.evaluate("document.activeElement.href"), href);
    await page.getByRole("button", { name: "Pause" }).focus();
    await says(page, "Article 359");
  });

  for (const [how, options] of [
    ["in the light", { colorScheme: "light" }],
    ["in the dark on a phone, 360 wide", { colorScheme: "dark", viewport: { width: 360, height: 740 } }],
  ] as const)
    test(`every page is sound ${how}: names, headings, landmarks, contrast, width, no complaint of the browser`, async () => {
      await using bench = await dashboardBench();
      const id = await full(bench);
      await using tab = await open(bench.url, options);
      const { page, complaints } = tab;
      const tabs = ["", "/pages", "/items", "/images", "/skipped", "/hosts", "/explain?url=https%3A%2F%2Fa.example%2F", "/options"];
      for (const path of ["", "new", "jobs?state=queued", "jobs/999", "jobs/0", "jobs/1", "nowhere", ...tabs.map((each) => `jobs/${id}${each}`)]) {
        await page.evaluate(`location.hash = "#/${path}"`);
        await page.locator("main").filter({ hasNotText: "Loading" }).waitFor();
        if (path === "new") await page.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })");
        assert.deepEqual(await faults(page), [], `#/${path}`);
        assert.equal(await page.evaluate(openTabIsShown), true, `#/${path}: the tab that is open`);
      }
      assert.deepEqual(complaints, []);
    });

  test("the keyboard goes through a page in its order, sees where it is, and can skip the header", async () => {
    await using bench = await dashboardBench();
    const id = await full(bench);
    await using tab = await open(`${bench.url}/#/jobs/${id}`);
    const { page } = tab;
    await says(page, "Newest pages");
    const order: string[] = [];
    for (let at = 0; at < 15; at++) {
      await page.keyboard.press("Tab");
      order.push(String(await page.evaluate("document.activeElement.textContent.trim()")));
      assert.notEqual(await page.evaluate("getComputedStyle(document.activeElement).outlineStyle"), "none", order.at(-1));
    }
    assert.deepEqual(order.slice(0, 9), ["Skip to content", "Skein", "Jobs", "New job", "Pause", "Stop …", "Cancel …", "Overview", "Pages"]);
    await page.reload();
    await says(page, "Newest pages");
    await page.keyboard.press("Tab");
    await page.keyboard.press("Enter");
    await page.keyboard.press("Tab");
    assert.equal(await page.evaluate("document.activeElement.textContent"), "Pause");
  });
});
