/** Which page killed a thread. */
import assert from "node:assert/strict";
import test from "node:test";
import type { Lease } from "../core/frontier.ts";
import { makeRequest } from "../rules/admit.ts";
import { createTrials } from "./trials.ts";

const lease = (path: string, crashes = 0): Lease => ({
  request: makeRequest(`http://a.test/${path}`, [1, 2, 3, 4], { hop: "link", depth: 1, referrer: null }),
  ...{ token: `${path}-${crashes}`, attempt: 0, crashes, startWithinMs: Infinity, expiresInMs: Infinity, robots: null, cookies: null },
});

test("what a dead thread held is kept for a trial, one by one, and nothing else is", () => {
  const trials = createTrials();
  assert.equal(trials.open, false);
  trials.suspect([lease("a"), lease("b")]);
  assert.equal(trials.open, true);
  assert.equal(trials.detains(lease("c")), false);
  assert.equal(trials.detains(lease("b")), true);
  assert.equal(trials.next()?.request.url, "http://a.test/b");
  assert.equal(trials.next(), null);
  trials.passed(lease("b"));
  assert.equal(trials.detains(lease("b")), false);
  assert.equal(trials.open, true);
  trials.passed(lease("a"));
  assert.equal(trials.open, false);
});

test("a page that is given up is waited for no more", () => {
  const trials = createTrials();
  trials.suspect([lease("a", 1)]);
  assert.equal(trials.open, true);
  trials.suspect([lease("a", 2)]);
  assert.equal(trials.open, false);
});

test("a stop hands back what is kept, and ends the trials", () => {
  const trials = createTrials();
  trials.suspect([lease("a"), lease("b")]);
  trials.detains(lease("a"));
  assert.deepEqual(
    trials.release().map(({ token }) => token),
    ["a-0"],
  );
  assert.equal(trials.open, false);
});
