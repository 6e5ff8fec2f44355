/** No command and no option of one that Redis 6.2 has not: scripts and calls are read word by word. (No server of 6.2 is to be had from Debian 12.) */
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

const here = import.meta.dirname;

/** Commands by the version that brought them, https://redis.io/commands: all up to 6.2; with the options that are used. */
const COMMANDS: Readonly<Record<string, readonly string[]>> = {
  CONFIG: ["GET"],
  DECRBY: [],
  DEL: [],
  EVAL: [],
  EVALSHA: [],
  EXISTS: [],
  GET: [],
  HDEL: [],
  HEXISTS: [],
  HGET: [],
  HGETALL: [],
  HINCRBY: [],
  HINCRBYFLOAT: [],
  HKEYS: [],
  HLEN: [],
  HMGET: [],
  HRANDFIELD: [], // 6.2
  HSCAN: ["COUNT"],
  HSET: [],
  HSETNX: [],
  HSTRLEN: [],
  INCR: [],
  INCRBY: [],
  INFO: [],
  LLEN: [],
  LPOP: [],
  LPUSH: [],
  LRANGE: [],
  PTTL: [],
  PEXPIRE: [], // its NX, XX, GT and LT are of 7.0
  PUBLISH: [],
  RPOP: [],
  RPUSH: [],
  SADD: [],
  SET: ["NX", "PX"],
  SISMEMBER: [],
  SMEMBERS: [],
  SREM: [],
  TIME: [],
  UNLINK: [],
  XADD: ["MAXLEN"],
  XLEN: [],
  XRANGE: ["COUNT"], // "(" for what comes after an id: 6.2
  XTRIM: ["MINID"], // 6.2
  ZADD: [],
  ZCARD: [],
  ZCOUNT: [],
  ZRANGE: ["BYSCORE", "LIMIT", "REV", "WITHSCORES"], // BYSCORE and REV: 6.2
  ZRANGEBYSCORE: ["LIMIT", "WITHSCORES"],
  ZREM: [],
  ZREVRANGE: [],
  ZSCORE: [],
};

/** Methods of the client that send something. */
const METHODS = ["bgrewriteaof", "config", "exists", "get", "info", "ping", "select", "set", "subscribe"];

const isCode = (name: string): boolean => name.endsWith(".ts") && !/\.(?:test|slow|long|bench)\.ts$|-for-tests\.ts$/.test(name);

/** Words in capitals of each line that calls the server. */
function* wordsOf(file: string, calls: RegExp, quoted: RegExp): Generator<readonly [place: string, words: readonly string[]]> {
  for (const [n, line] of readFileSync(file, "utf8").split("\n").entries()) {
    const words = calls.test(line) ? [...line.matchAll(quoted)].map(([, word]) => word ?? "") : [];
    if (words.length > 0) yield [`${file}:${n + 1}`, words];
  }
}

function* allWords() {
  const lua = join(here, "lua");
  for (const name of readdirSync(lua)) yield* wordsOf(join(lua, name), /\bp?call(?:Many)?\(/, /'([A-Z]{3,})'/g);
  for (const name of readdirSync(here).filter(isCode)) yield* wordsOf(join(here, name), /\.(?:command|call|callBuffer)\(|\.(?:config|set)\(/, /"([A-Z]{3,})"/g);
}

test("every command and option that is sent is one of Redis 6.2", () => {
  let seen = 0;
  for (const [place, words] of allWords()) {
    // An option is told by standing behind a command that has it.
    const options = words.filter((word, n) => words.slice(0, n).some((command) => COMMANDS[command]?.includes(word)));
    for (const word of words) assert.ok(options.includes(word) || word in COMMANDS, `${place}: ${word} is not known to be of Redis 6.2`);
    seen += words.length;
  }
  assert.ok(seen > 100, `${seen} words`);
});

test("the login of the operations guide allows every command that is sent", () => {
  const guide = readFileSync(join(here, "../../../docs/operations.md"), "utf8");
  const allowed = new Set([...(/^ACL SETUSER .+$/m.exec(guide)?.[0].matchAll(/\+([a-z]+)/g) ?? [])].map(([, name = ""]) => name.toUpperCase()));
  const options = new Set(Object.values(COMMANDS).flat());
  const sent = [...allWords()].flatMap(([, words]) => words).filter((word) => word in COMMANDS && !options.has(word));
  assert.deepEqual(
    [...new Set(sent)].filter((word) => !allowed.has(word)),
    [],
  );
});

test("the client sends nothing that is not on the list", () => {
  for (const name of readdirSync(here).filter(isCode)) {
    const text = readFileSync(join(here, name), "utf8");
    for (const [, method = ""] of text.matchAll(/\b(?:client|ear)\.([a-z]+)\(/g)) {
      assert.ok(METHODS.includes(method) || ["on", "connect", "disconnect", "end", "destroy"].includes(method), `${name}: ${method}`);
    }
  }
});

test("no client but that of connect.ts talks to the server", () => {
  const clients = readdirSync(here).filter((name) => isCode(name) && readFileSync(join(here, name), "utf8").includes("new Client("));
  assert.deepEqual(clients, ["connect.ts"]);
});
