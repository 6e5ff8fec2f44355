/** The trap rules, asked where the links of all threads come together. */
import assert from "node:assert/strict";
import test from "node:test";
import type { Lease, Settled } from "../core/frontier.ts";
import { pageRecord } from "../engine/record.ts";
import { type AdmitRules, createRecentIds, emptyOutput, makeRequest } from "../rules/admit.ts";
import { compileScope } from "../rules/scope.ts";
import { createTraps } from "../rules/traps.ts";
import { judgeLinks } from "./links.ts";

const SEED = [1, 2, 3, 4] as const;
const rules = (length: number): AdmitRules => ({
  ...{ scope: compileScope({ preset: "host", include: [], exclude: [] }, [], [], []), seed: SEED, maxDepth: null, robots: true, found: false, edges: false },
  traps: createTraps({ length, startedAt: 0, siteOf: (host) => host }),
  ...{ passed: createRecentIds(), skipped: true },
});
const FROM = "http://a.test/from";
const link = (url: string) => makeRequest(url, SEED, { hop: "link", depth: 1, referrer: FROM });
const request = makeRequest(FROM, SEED, { hop: "link", depth: 0, referrer: "http://a.test/" });
const lease: Lease = { request, token: "t", attempt: 0, crashes: 0, startWithinMs: Infinity, expiresInMs: Infinity, robots: null, cookies: null };
const held = new Map([["t", lease]]);
const settled = (output = emptyOutput): Settled => ({
  ...{
    token: "t",
    settlement: { kind: "done", counted: true, output },
    sinceStartMs: 1,
    answer: null,
    host: null,
    setCookies: null,
    newSeeds: null,
    tally: [],
  },
});
const outputOf = ({ settlement }: Settled) => (settlement.kind === "done" ? settlement.output : emptyOutput);

test("a link that a rule refuses is no request, and a skipped record of its page", () => {
  const links = [link("http://a.test/ok"), link(`http://a.test/${"x".repeat(100)}`)];
  const judged = judgeLinks(rules(60), { settled: [settled()], links }, held);
  assert.deepEqual(judged.links, [links[0]]);
  assert.deepEqual(judged.refused, [links[1]]);
  const [skip] = outputOf(judged.settled[0]!).skipped;
  assert.deepEqual([skip?.value.url, skip?.value.reason, skip?.value.referrer, skip?.value.depth], [links[1]!.url, "trap", FROM, 1]);
});

test("a redirect that a rule refuses ends its chain with the records that it owes", () => {
  const page = (url: string) =>
    pageRecord({
      request: { ...request, url },
      ...{
        outcome: "redirected",
        status: 302,
        attempts: 1,
        facts: { startedAt: 0, durationMs: 1 },
        response: null,
        extraction: null,
        error: null,
        location: null,
        digest: false,
      },
    });
  const owed = [page("http://a.test/first"), page(FROM)].map((record) => ({ ...emptyOutput, page: record, listed: true }));
  const rest = {
    redirects: [
      { url: "http://a.test/first", status: 302 },
      { url: FROM, status: 302 },
    ],
    owed,
  };
  const target = makeRequest(`http://a.test/${"y".repeat(100)}`, SEED, { hop: "redirect", depth: 0, referrer: "http://a.test/", rest });
  const judged = judgeLinks(rules(60), { settled: [settled()], links: [target] }, held);
  assert.deepEqual(judged.links, []);
  const output = outputOf(judged.settled[0]!);
  assert.equal(output.page?.url, FROM);
  assert.equal(output.listed, true);
  assert.deepEqual(
    output.owed?.map((one) => one.page?.url),
    ["http://a.test/first"],
  );
  assert.deepEqual(
    output.skipped.map(({ value }) => [value.reason, value.referrer]),
    [["trap", FROM]],
  );
});

test("without trap rules everything passes as it is", () => {
  const batch = { settled: [settled()], links: [link("http://a.test/ok")] };
  assert.deepEqual(judgeLinks({ ...rules(60), traps: null }, batch, held), { ...batch, refused: [] });
});
