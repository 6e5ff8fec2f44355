/** The words for what goes wrong with a server: library text is not passed on, and each failure comes with something to do. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { READING_SCRIPTS } from "./reads.ts";
import { scriptOf } from "./scripts.ts";
import { adviceFor, PASSING, refusalWords, troubleOf, wordOf } from "./trouble.ts";

test("what the client library says of a connection is said in our words", () => {
  assert.equal(troubleOf('Unknown RESP type 72 "H"'), 'what answers there is not Redis (it began with "H")');
  assert.equal(troubleOf('Unknown RESP type 21 "\u0015"'), "what answers there is not Redis");
  assert.equal(troubleOf("All sentinels are unreachable. Retrying from scratch after 10ms."), "no Sentinel names a master");
  assert.equal(
    troubleOf("All sentinels are unreachable and retry is disabled. Last error: connect ECONNREFUSED 127.0.0.1:1"),
    "no Sentinel names a master: connect ECONNREFUSED 127.0.0.1:1",
  );
  assert.equal(troubleOf("connect ETIMEDOUT"), "connect ETIMEDOUT");
});

test("a missing rule is said with the prefix, the user and what he needs", () => {
  const login = { tag: "{shop}", username: "skein" };
  const key = refusalWords("NOPERM No permissions to access a key", login);
  assert.match(
    key,
    /The prefix in use is shop \(\?prefix=NAME .*\), and the user skein needs the keys ~\{shop\} and ~\{shop\}:\*; docs\/operations\.md, "Security"/,
  );
  const old = refusalWords("NOPERM this user has no permissions to access one of the keys used as arguments", { ...login, username: null });
  assert.match(old, /the default user needs the keys ~\{shop\}/);
  assert.match(refusalWords("NOPERM No permissions to access a channel", login), /needs the channels &\{shop\}:\*/);
  assert.match(refusalWords("NOPERM User skein has no permissions to run the 'xadd' command", login), /the 'xadd' command\. .* needs that command/);
  const at = "script: efd3b7d99c453e8dc4ce707c53054dd1734b571a, on @user_script:1.";
  const within = wordOf(new Error(`ERR The user executing the script can't run this command or subcommand ${at}`));
  assert.equal(within, "NOPERM this user can't run this command or subcommand");
  const keyWithin = wordOf(new Error(`ERR The user executing the script can't access at least one of the keys mentioned in the command arguments ${at}`));
  assert.match(refusalWords(keyWithin, login), /needs the keys ~\{shop\}/);
  assert.match(refusalWords("WRONGPASS invalid username-password pair", login), /^refused the login: WRONGPASS .*redis:\/\/USER:PASSWORD@HOST/);
  assert.match(refusalWords("DENIED Redis is running in protected mode", login), /^lets nobody in: DENIED/);
});

test("whatever stands in the way, the sentence names the option and a step", () => {
  const told: readonly (readonly [string, RegExp])[] = [
    ["connect ECONNREFUSED 127.0.0.1:6379", /^Nothing listens there: start Redis;/],
    ["getaddrinfo ENOTFOUND redis", /^There is no such host name/],
    ["self-signed certificate", /NODE_EXTRA_CA_CERTS/],
    ["Hostname/IP does not match certificate's altnames", /^Use a name/],
    ["LOADING Redis is loading the dataset in memory", /wait/],
    ["OOM command not allowed when used memory > 'maxmemory'.", /raise maxmemory/],
    ["MISCONF Redis is configured to save RDB snapshots", /make room/],
    ["READONLY You can't write against a read only replica.", /replica/],
    ["ERR max number of clients reached", /maxclients/],
    ["no Sentinel names a master", /redis\+sentinel:\/\//],
    ["connect ETIMEDOUT", /firewall/],
    ["no answer", /^Check the address/],
  ];
  for (const [why, step] of told) {
    assert.match(adviceFor(why), step, why);
    assert.match(adviceFor(why), /; or name another store with --store \(or SKEIN_STORE\)$/, why);
  }
});

test("a server that has too many clients is waited for", () => {
  assert.match(wordOf(new Error("ERR max number of clients reached")), PASSING);
});

test("scripts that are said to read only call nothing that writes", () => {
  for (const name of READING_SCRIPTS) {
    const called = [...scriptOf(name).text.matchAll(/\b(?:p?call|callMany)\('([A-Z]+)'/g)].map(([, command = ""]) => command);
    assert.deepEqual(
      called.filter((command) => !/^(?:TIME|GET|EXISTS|LLEN|LRANGE|HGET|HGETALL|HMGET|HLEN|HSTRLEN|ZCARD|ZRANGE|ZSCORE)$/.test(command)),
      [],
      name,
    );
    assert.doesNotMatch(scriptOf(name).text, /\btouch\(\)/, name);
  }
});
