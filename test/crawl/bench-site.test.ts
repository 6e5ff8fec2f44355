/** A generated site whose exact counts are known, with what only a real HTML parser gets right: links in comments and scripts, unquoted and upper-case attributes, references in href. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import test from "node:test";
import { crawl } from "../../src/crawl.ts";
import { serveFolder } from "./static-site.ts";

const harness = resolve(import.meta.dirname, "../..", process.env.SKEIN_BENCH_DIR ?? "../shared/bench");
const generator = join(harness, "site.mjs");
const absent = existsSync(generator) ? false : `no site generator at ${harness} (SKEIN_BENCH_DIR)`;

test("the records of a site full of parser traps equal what its generator counted", { skip: absent }, async () => {
  const folder = mkdtempSync(join(tmpdir(), "skein-site-"));
  try {
    execFileSync(process.execPath, [generator, folder, "--size", "small", "--pages", "600", "--traps", "--base", "http://traps.test"], { stdio: "ignore" });
    const expected = JSON.parse(readFileSync(join(folder, "expected.json"), "utf8"));
    await using server = await serveFolder(join(folder, "www"));
    const links = new Set<string>();
    const images = new Set<string>();
    let pages = 0;
    // Absolute links name a host that does not exist: out of scope, but the same page by its path; every page has a relative link too.
    const local = (url: string) => url.replace("http://traps.test", server.origin);
    const run = crawl({ seeds: [`${server.origin}/index.html`], images: true, scope: { preset: "host" } });
    for await (const page of run) {
      if (page.status !== 200) assert.fail(`${page.url}: ${page.status}`);
      pages++;
      for (const link of page.links) links.add(local(link));
      for (const image of page.images ?? []) images.add(local(image));
    }
    assert.equal(pages, expected.pages);
    assert.equal(links.size, expected.distinctLinks);
    assert.equal(images.size, expected.distinctImages);
    assert.deepEqual(
      server.requests.filter((target) => target.startsWith("/hidden/")),
      [],
    );
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
