/** Every program in examples/ runs against a site on loopback and prints what its first comment says. They import the built package, as a user would. */
import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { type Finished, lines, root, run } from "./command.ts";
import { type DemoSite, openDemoSite } from "./demo-site.ts";

/** What each program is given after the site's URL, and what it must have done. A new example needs an entry. */
const EXPECTED: Readonly<Record<string, { readonly args: readonly string[]; check(result: Finished, site: DemoSite): void }>> = {
  "list-links.ts": {
    args: [],
    check({ stdout }, { url }) {
      assert.deepEqual(
        [...lines(stdout)].sort(),
        ["about.html", "docs/a.html", "docs/b.html", "docs/deep.html"].map((path) => url + path),
      );
    },
  },
  "textbook-scrape.ts": {
    args: [],
    check({ stdout }, { url }) {
      const rows = lines(stdout);
      assert.equal(rows[0], "url,title");
      assert.deepEqual(
        rows.slice(1),
        [
          ["", "Home"],
          ["docs/", "Docs"],
          ["docs/a.html", "A"],
          ["docs/b.html", "B"],
          ["docs/deep.html", "Deep"],
          ["docs/deeper.html", "Deeper"],
          ["docs/hidden.html", "Hidden"],
        ].map(([path, title]) => `${url}${path},"${title}"`),
      );
    },
  },
  "polite.ts": {
    args: ["20ms"],
    check({ stdout }, { url, asked }) {
      assert.match(stdout, new RegExp(`^fetched 200 ${url}$`, "m"));
      assert.match(stdout, /^disallowed - .*private\/secret\.html$/m);
      assert.match(stdout, /^9 pages in \d+ ms, ended: finished$/m);
      assert.equal(asked[0], "/robots.txt");
    },
  },
  "postgres-sink.ts": {
    args: [],
    check({ stdout }) {
      const rows = lines(stdout);
      assert.match(rows[0] ?? "", /^CREATE TABLE IF NOT EXISTS item /);
      assert.deepEqual(rows.slice(2, 3).concat(rows.at(-2) ?? ""), ["BEGIN", "COMMIT"]);
      // Each page has a title; what was not HTML gives nothing.
      assert.match(rows.at(-3) ?? "", /^INSERT INTO skein_checkpoint .* \| postgres \| [^|]+:[1-9]\d*$/);
      assert.match(rows.at(-1) ?? "", /^\d+ pages, ended: finished$/);
    },
  },
  "stop-early.ts": {
    args: ["weaver"],
    check({ stdout }, { url }) {
      assert.equal(stdout, `"weaver" is on ${url}about.html (stop-condition)\n`);
    },
  },
};

for (const name of readdirSync(join(root, "examples")).filter((file) => file.endsWith(".ts"))) {
  test(`examples/${name} does what it says`, async () => {
    const expected = EXPECTED[name];
    assert.ok(expected, `test/examples.slow.ts says nothing about ${name}`);
    await using site = await openDemoSite();
    const result = await run(process.execPath, [join(root, "examples", name), site.url, ...expected.args], root);
    assert.equal(result.code, 0, result.stderr);
    expected.check(result, site);
  });
}
