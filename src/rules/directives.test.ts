/** directives.ts: who is spoken to, and what is said. */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { parseXRobotsTag, robotsDirectives } from "./directives.ts";

const meta = (agent: string, content: string) => robotsDirectives([{ agent, content }], "skein");
const header = (...lines: string[]) => robotsDirectives(parseXRobotsTag(lines), "skein");

test("F065 names and values are compared without regard to case, none is noindex and nofollow", () => {
  assert.deepEqual(meta("ROBOTS", "NOINDEX, FOLLOW"), ["noindex", "follow"]);
  assert.deepEqual(meta("robots", "none"), ["noindex", "nofollow"]);
  // Blanks or semicolons in place of commas; what is no name keeps them.
  assert.deepEqual(meta("robots", "noindex nofollow"), ["noindex", "nofollow"]);
  assert.deepEqual(meta("robots", " NoIndex;\tFollow , noarchive"), ["noindex", "follow", "noarchive"]);
  assert.deepEqual(meta("robots", "no index"), ["no index"]);
  assert.deepEqual(header("skein: noindex nofollow"), ["noindex", "nofollow"]);
  assert.deepEqual(meta("RoBoTs", "nOnE , nofollow"), ["noindex", "nofollow"]);
  assert.deepEqual(meta("robots", " ,, index,nofollow,"), ["index", "nofollow"]);
  assert.deepEqual(meta("robots", ""), []);
});

test("a tag with an agent's name speaks to that agent only", () => {
  assert.deepEqual(meta("googlebot", "noindex"), []);
  assert.deepEqual(meta("Skein", "noindex"), ["noindex"]);
  assert.deepEqual(meta("skein-news", "noindex"), []);
  assert.deepEqual(meta("*", "noindex"), ["noindex"]);
});

test("what several tags say adds up", () => {
  const values = [
    { agent: "robots", content: "noindex" },
    { agent: "skein", content: "nofollow, noindex" },
    { agent: "otherbot", content: "noarchive" },
    { agent: null, content: "nosnippet" },
  ];
  assert.deepEqual(robotsDirectives(values, "skein"), ["noindex", "nofollow", "nosnippet"]);
});

test("a header line may name its agent, which is over with the line", () => {
  assert.deepEqual(header("noindex, nofollow"), ["noindex", "nofollow"]);
  assert.deepEqual(header("otherbot: noindex, nofollow", "noarchive"), ["noarchive"]);
  assert.deepEqual(header("skein: none"), ["noindex", "nofollow"]);
  assert.deepEqual(header("Skein : noindex"), ["noindex"]);
  assert.deepEqual(header("BadBot: noindex, nofollow, skein: noarchive, googlebot: nofollow"), ["noarchive"]);
  assert.deepEqual(header("noindex, otherbot: nofollow"), ["noindex"]);
  assert.deepEqual(header(""), []);
});

test("a directive with a value is not taken for an agent", () => {
  assert.deepEqual(header("unavailable_after: 25 Jun 2010 15:00:00 PST, nofollow"), ["unavailable_after: 25 jun 2010 15:00:00 pst", "nofollow"]);
  assert.deepEqual(header("unavailable_after: Wed, 25 Jun 2031 15:00:00 GMT, noindex"), ["unavailable_after: wed, 25 jun 2031 15:00:00 gmt", "noindex"]);
  assert.deepEqual(header("Unavailable_After:Friday, 25-Jun-10 15:00:00 UTC"), ["unavailable_after: friday, 25-jun-10 15:00:00 utc"]);
  assert.deepEqual(header("skein: unavailable_after: Wed, 25 Jun 2031 15:00:00 GMT"), ["unavailable_after: wed, 25 jun 2031 15:00:00 gmt"]);
  assert.deepEqual(header("otherbot: unavailable_after: Wed, 25 Jun 2031 15:00:00 GMT"), []);
  assert.deepEqual(header("max-snippet:20, max-image-preview: large, max-video-preview:-1"), [
    "max-snippet: 20",
    "max-image-preview: large",
    "max-video-preview: -1",
  ]);
});

test("statements keep their agent's spelling", () => {
  assert.deepEqual(parseXRobotsTag(["noindex, OtherBot: nofollow, noarchive"]), [
    { agent: null, content: "noindex" },
    { agent: "OtherBot", content: "nofollow, noarchive" },
  ]);
});

test("any header lines give distinct directives in lower case", () => {
  fc.assert(
    fc.property(fc.array(fc.string()), (lines) => {
      const found = header(...lines);
      assert.equal(new Set(found).size, found.length);
      assert.deepEqual(
        found,
        found.map((directive) => directive.toLowerCase()),
      );
    }),
  );
});
