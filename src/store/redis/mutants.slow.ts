/** Scripts that break one rule each: the shared cases must notice every one of them, on the real server. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { caseConfig, type FrontierBench, frontierCases } from "../../testing/frontier-cases.ts";
import { openRedisBench } from "./bench-for-tests.ts";
import type { Link } from "./connect.ts";
import { scanInvariants } from "./doctor.ts";
import { type ScriptName, scriptNames, scriptOf } from "./scripts.ts";
import { skipRedis, startServer, type TestServer } from "./server-for-tests.ts";
import { checkUndoneClaim } from "./undone-for-tests.ts";

let server: TestServer;
before(async () => {
  if (skipRedis === false) server = await startServer(["--appendonly", "no"]);
});
after(() => server?.stop());

/** What is wrong, which rules' cases are to find it, the text and what stands in its place; of some there is a second one. */
const MUTANTS: readonly (readonly [what: string, rules: readonly string[], from: string, to: string, from2?: string, to2?: string])[] = [
  [
    "a page is acknowledged before its links are there",
    ["I5"],
    "addGroups(6, groups, true, function()",
    "local doubt = (function()",
    "flushLevels()\ncompleteIfOver()\nflush()\nreturn { answers,",
    "flushLevels()\ncompleteIfOver()\naddGroups(6, groups, true, doubt)\nflushLevels()\nflush()\nreturn { answers,",
  ],
  ["a slot is given back twice", ["progress"], "if e.bits >= 2 then return end", ""],
  ["a token settles twice", ["I3"], "callMany('HDEL', L, ended)", ""],
  [
    "what was seen is queued again",
    ["add"],
    "if call('HSETNX', key, fp, value) == 0 then return tonumber(call('HGET', key, fp)) end",
    "call('HSET', key, fp, value)",
  ],
  ["leases are forgotten in the limit", ["I7"], "S.limit - get('counted') - get('leased')", "S.limit - get('counted')"],
  ["the crawl ends while pages are leased", ["I8"], "if get('leased') > 0 or get('rleased') > 0 then return false end", ""],
  ["a skipped URL is written twice", ["once"], "if floor(was / bit) % 2 == 1 then return false end", ""],
  ["the delay is not kept", ["delay"], "local gap = delay * h.stretch", "local gap = 0"],
  ["a request may crash workers for ever", ["crash"], "local MAX_CRASHES = 3", "local MAX_CRASHES = 99"],
  ["three levels run at a time", ["levels"], "level <= get('base') + 1", "level <= get('base') + 2"],
  ["a page fetched for its links only is counted", ["re-expansion"], "if kind == 'd' and not relink", "if kind == 'd'"],
  ["the item limit holds for each page alone", ["items"], "limit - tonumber(call('HGET', J .. ':t', 'items') or 0)", "limit"],
  ["robots.txt is asked for by every worker", ["robots"], "if o.pending == 1 then return false end", ""],
  ["what a chain owes is lost", ["redirect"], "if p.owes then owed[#owed + 1] = owedOf(p) end", ""],
  ["a host with nothing queued goes on waiting", ["I1"], "waitsNot[#waitsNot + 1] = h.name", ""],
  ["retries come back at once", ["settle"], "exact(now + wait), member", "exact(now), member"],
  ["a burst is as many steps back as it has requests", ["back-off"], "if not current then return end", ""],
  ["the rate is made up for in bursts", ["rate"], "now - get('rate') <= interval * 0.1", "true"],
  ["stop is undone by run", ["control"], "to == 'run' and get('fin') == 1 and 'finish' or to", "to"],
  ["the larger of two texts is the longer one", ["values"], "if x ~= y then", "if false then"],
  ["a host with a long queue goes first", ["fair"], "if not served[name] then", "for _ = 1, 3 do"],
];

/** The link, with other scripts. */
function mutated(link: Link, edit: (text: string) => string): Link {
  return {
    ...link,
    script: (name, keys, args) => link.command("EVAL", edit(scriptOf(name).text), keys.length, ...keys, ...(typeof args === "function" ? args() : args)),
  };
}

for (const [what, rules, from, to, from2 = null, to2 = ""] of MUTANTS) {
  test(`a case finds it: ${what}`, { skip: skipRedis }, async () => {
    const holds = (name: ScriptName): boolean => scriptOf(name).text.includes(from);
    assert.ok(scriptNames.some(holds), "the text is there to be changed");
    assert.ok(from2 === null || scriptNames.some((name) => scriptOf(name).text.includes(from2)), "the other text is there as well");
    let found = false;
    for (const one of frontierCases.filter(({ rule }) => rules.includes(rule))) {
      const wrap = (link: Link): Link =>
        mutated(link, (text) => {
          const once = text.replace(from, () => to);
          return from2 === null ? once : once.replace(from2, () => to2);
        });
      const bench = await openRedisBench(server.url, { ...caseConfig, ...one.config }, { wrap, waitMs: 300 });
      try {
        const { restart: _, ...shown } = bench;
        await one.run(shown satisfies FrontierBench);
        assert.deepEqual((await scanInvariants(bench.link, bench.id)).faults, []);
      } catch {
        found = true;
      }
      await bench.close().catch(() => undefined);
      if (found) break;
    }
    assert.ok(found, "no case noticed");
  });
}

test("a case finds it: tokens are counted by the server", { skip: skipRedis }, async (t) => {
  const [from, to] = ["nonce .. format('%03d', given)", "'c' .. format('%d', get('tokens'))"];
  assert.ok(scriptOf("claim").text.includes(from), "the text is there to be changed");
  const counted = (link: Link): Link => mutated(link, (text) => text.replace(`local token = ${from}`, () => `bump('tokens', 1)\n  local token = ${to}`));
  await assert.rejects(checkUndoneClaim(t, counted), { code: "ERR_ASSERTION", message: /applied/ });
});
