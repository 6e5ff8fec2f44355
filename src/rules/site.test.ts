/** site.ts against the public suffix list's own test. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { isPublicSuffix, registrableDomain, siteOf } from "./site.ts";

const file = join(process.env.SKEIN_CONFORMANCE_DIR ?? join(import.meta.dirname, "../../../shared/conformance"), "public-suffix.jsonl");

function readCases(): readonly { readonly input: { readonly host: string }; readonly expected: string | null }[] | null {
  try {
    return readFileSync(file, "utf8")
      .split("\n")
      .filter((line) => line !== "")
      .map((line) => JSON.parse(line));
  } catch (error) {
    if ((process.env.SKEIN_REQUIRE ?? "").split(",").includes("conformance")) throw error;
    console.log("conformance data absent: public-suffix.jsonl");
    return null;
  }
}

const cases = readCases();

test("the conformance cases of public-suffix.jsonl", { skip: cases === null }, () => {
  const ascii = (host: string | null) => (host === null || host.startsWith(".") ? host : new URL(`http://${host}`).hostname);
  for (const { input, expected } of cases ?? []) assert.equal(registrableDomain(ascii(input.host) ?? ""), ascii(expected), input.host);
});

test("the site of a host is its registrable domain, or itself where there is none", () => {
  const rows = {
    "www.example.com": "example.com",
    "EXAMPLE.com.": "example.com",
    "a.b.example.co.uk": "example.co.uk",
    "me.github.io": "me.github.io",
    "docs.me.github.io": "me.github.io",
    "github.io": "github.io",
    localhost: "localhost",
    "127.0.0.1": "127.0.0.1",
    "[::1]": "[::1]",
    "under_score.example.com": "example.com",
    "xn--bcher-kva.example": "xn--bcher-kva.example",
  };
  for (const [host, site] of Object.entries(rows)) assert.equal(siteOf(host), site, host);
});

test("public suffixes are those of both sections and single labels, never addresses", () => {
  for (const suffix of ["com", "co.uk", "github.io", "localhost", "x.kobe.jp"]) assert.equal(isPublicSuffix(suffix), true, suffix);
  for (const other of ["example.com", "127.0.0.1", "[::1]", "", "city.kobe.jp"]) assert.equal(isPublicSuffix(other), false, other);
});
