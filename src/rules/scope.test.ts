/** scope.ts: presets, patterns and seeds. */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { CrawlError } from "../core/errors.ts";
import { compileScope, loadScope, type ScopeOptions, type ScopePreset } from "./scope.ts";
import { siteOf } from "./site.ts";
import { hostKeyOf } from "./url.ts";

interface Choice extends ScopeOptions {
  readonly follow: readonly string[];
  readonly list: readonly string[];
}
const plain: Choice = { preset: "host", include: [], exclude: [], follow: [], list: [] };
function scopeOf(choice: Partial<Choice>, ...seeds: string[]) {
  const { follow, list, ...options } = { ...plain, ...choice };
  return compileScope(options, follow, list, seeds, siteOf);
}

function inside(preset: ScopePreset, seeds: readonly string[], rows: Readonly<Record<string, boolean>>): void {
  const scope = scopeOf({ preset }, ...seeds);
  // Twice: the second time answers come from what was remembered.
  for (const _ of [1, 2]) for (const [url, expected] of Object.entries(rows)) assert.equal(scope.verdict(url) === null, expected, `${preset} ${url}`);
  assert.ok(Object.values(rows).some((expected) => expected));
}

test("host is hostname and port, and http and https belong together", () => {
  inside("host", ["http://a.example/x", "http://b.example:8080/"], {
    "http://a.example/": true,
    "https://a.example/y?z": true,
    "http://a.example:8080/": false,
    "http://www.a.example/": false,
    "http://a.example.evil.example/": false,
    "http://b.example:8080/x": true,
    "https://b.example:8080/x": true,
    "http://b.example/": false,
    "http://b.example:80801/": false,
    "http://c.example/?u=http://a.example/": false,
  });
});

test("page is the seeds alone", () => {
  inside("page", ["http://a.example/x", "http://a.example/y?1"], {
    "http://a.example/x": true,
    "http://a.example/y?1": true,
    "http://a.example/y": false,
    "http://a.example/": false,
  });
});

test("prefix is the folder of a seed and what lies below, on its host and port", () => {
  inside("prefix", ["http://a.example/docs/index.html?x=/y/", "http://b.example:81/p"], {
    "http://a.example/docs/": true,
    "https://a.example/docs/a/b": true,
    "http://a.example/docs": false,
    "http://a.example/docs2/": false,
    "http://a.example/": false,
    "http://a.example:81/docs/": false,
    "http://b.example:81/": true,
    "http://b.example:81/q/r": true,
    "http://b.example/q": false,
  });
});

test("domain is the registrable domain on any port", () => {
  inside("domain", ["http://www.a.co.uk/", "http://me.github.io/", "http://127.0.0.1:81/"], {
    "https://a.co.uk:8443/": true,
    "http://x.y.a.co.uk/": true,
    "http://b.co.uk/": false,
    "http://you.github.io/": false,
    "http://x.me.github.io/": true,
    "http://127.0.0.1/": true,
    "http://127.0.0.2/": false,
  });
});

test("any is everything", () => inside("any", ["http://a.example/"], { "http://b.example/x": true }));

test("exclude wins over include, and both say which pattern decided", () => {
  const scope = scopeOf({ include: ["*.html", "*.htm"], exclude: ["*.pdf", "/private/**"] }, "http://a.example/");
  assert.equal(scope.verdict("http://a.example/x.html"), null);
  assert.deepEqual(scope.verdict("http://a.example/x.txt"), { reason: "out-of-scope", rule: "include *.html, *.htm" });
  assert.deepEqual(scope.verdict("http://a.example/private/x.html"), { reason: "excluded", rule: "exclude /private/**" });
  assert.deepEqual(scope.verdict("http://b.example/x.html"), { reason: "out-of-scope", rule: "scope host" });
  assert.deepEqual(scope.verdict("http://b.example/x.pdf"), { reason: "excluded", rule: "exclude *.pdf" });
});

test("seeds are always in, even if a pattern excludes them", () => {
  const scope = scopeOf({ include: ["*.html"], exclude: ["/start*"] }, "http://a.example/start");
  assert.equal(scope.verdict("http://a.example/start"), null);
  assert.equal(scope.verdict("http://a.example/start2")?.reason, "excluded");
});

test("F103 the target of a redirected seed widens the scope", () => {
  for (const preset of ["page", "prefix", "host", "domain"] as const) {
    const scope = scopeOf({ preset }, "http://a.example/");
    assert.equal(scope.verdict("http://b.test/home")?.rule, `scope ${preset}`);
    scope.addSeed("http://b.test/home");
    assert.equal(scope.verdict("http://b.test/home"), null);
    assert.equal(scope.verdict("http://b.test/other") === null, preset !== "page");
    assert.equal(scope.verdict("http://a.example/"), null);
  }
});

test("F040 an international host name is compared in ASCII", () => {
  const scope = scopeOf({}, "http://xn--bcher-kva.example/");
  assert.equal(scope.verdict("http://xn--bcher-kva.example/%C3%BC"), null);
});

test("follow and list choose by their own patterns, all without any", () => {
  const scope = scopeOf({ follow: ["re:/(index|view)"], list: ["*.html"] }, "http://a.example/");
  assert.deepEqual(["http://a.example/view/1", "http://a.example/x.html"].map(scope.follows), [true, false]);
  assert.deepEqual(["http://a.example/view/1", "http://a.example/x.html"].map(scope.lists), [false, true]);
  assert.deepEqual(scope.described, [
    "--follow re:/(index|view): regular expression /\\/(index|view)/ on the whole URL",
    "--list *.html: last path segment is *.html",
  ]);
  const all = scopeOf({}, "http://a.example/");
  assert.ok(all.follows("http://a.example/x") && all.lists("http://a.example/x"));
  assert.equal(scopeOf({ follow: ["re:$^"] }).follows("http://a.example/"), false);
});

test("wrong patterns are named with their options, all at once", async () => {
  await assert.rejects(
    loadScope({ ...plain, exclude: ["re:("] }, ["re:["], [], []),
    (error) => error instanceof CrawlError && error.problems.map(({ option }) => option).join() === "scope.exclude,follow",
  );
});

test("the public suffix list is loaded when the scope needs it", async () => {
  const scope = await loadScope({ ...plain, preset: "domain" }, [], [], ["http://www.a.co.uk/"]);
  assert.equal(scope.verdict("http://b.a.co.uk/"), null);
  assert.equal(scope.verdict("http://b.co.uk/")?.reason, "out-of-scope");
  assert.throws(() => compileScope({ ...plain, preset: "domain" }, [], [], []), /site rule/);
});

test("host scope agrees with the comparison of host keys for any order of questions", () => {
  const url = fc
    .tuple(
      fc.constantFrom("http", "https"),
      fc.constantFrom("a.example", "b.example", "a.example.b.example"),
      fc.constantFrom("", ":81", ":8", ":443", ":80"),
      fc.constantFrom("/", "/x?y"),
    )
    .map(([scheme, host, port, path]) => new URL(`${scheme}://${host}${port}${path}`).href);
  fc.assert(
    fc.property(fc.array(url, { maxLength: 3 }), fc.array(url, { maxLength: 12 }), (seeds, asked) => {
      const scope = scopeOf({}, ...seeds);
      const keys = new Set(seeds.map(hostKeyOf));
      for (const one of asked) assert.equal(scope.verdict(one) === null, keys.has(hostKeyOf(one)), one);
    }),
  );
});
