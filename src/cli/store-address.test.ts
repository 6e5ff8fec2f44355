/** Where the address of a store comes from, and what is said of it. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { fakeIo } from "../../test/cli/fake-io.ts";
import { WORK } from "./commands/work.ts";
import { storeAddress, storeOfContainers, withoutPassword } from "./store-address.ts";
import { storeLabel } from "./store-label.ts";
import { readVerb } from "./verb.ts";

const root = mkdtempSync(join(tmpdir(), "skein-store-address-"));
after(() => rmSync(root, { recursive: true, force: true }));

async function chosen(argv: readonly string[], env: Record<string, string>, config: object | null = null) {
  const cwd = mkdtempSync(join(root, "cwd-"));
  if (config !== null) writeFileSync(join(cwd, "skein.config.json"), JSON.stringify(config));
  const io = fakeIo({ cwd, env });
  const reading = await readVerb(WORK, argv, io);
  assert.ok(reading !== null);
  return storeAddress(reading, argv, env);
}

test("the flag wins over the variables, skein's own variable over those of containers, and there may be none", async () => {
  const env = { SKEIN_STORE: "redis://own:1", REDIS_URL: "redis://given:2", REDIS_PORT_6379_TCP_ADDR: "10.0.0.3", REDIS_PORT_6379_TCP_PORT: "3" };
  const { SKEIN_STORE: _own, ...linked } = env;
  const { REDIS_URL: _url, ...legacy } = linked;
  assert.deepEqual(await chosen(["--store=redis://flag:9"], env), { url: "redis://flag:9", from: "--store", shown: "flag:9" });
  assert.deepEqual(await chosen([], env), { url: "redis://own:1", from: "SKEIN_STORE", shown: "own:1" });
  assert.deepEqual(await chosen([], linked, { store: "redis://file:4" }), { url: "redis://file:4", from: "the config file", shown: "file:4" });
  assert.deepEqual(await chosen([], linked), { url: "redis://given:2", from: "REDIS_URL", shown: "given:2" });
  assert.deepEqual(await chosen([], legacy), { url: "redis://10.0.0.3:3", from: "REDIS_PORT_6379_TCP_ADDR", shown: "10.0.0.3:3" });
  assert.equal(await chosen([], {}), null);
});

test("empty variables count as not set, the usual port is known, an IPv6 address is put into brackets", () => {
  assert.equal(storeOfContainers({ REDIS_URL: "", REDIS_PORT_6379_TCP_ADDR: "" }), null);
  assert.equal(storeOfContainers({ REDIS_PORT_6379_TCP_PORT: "7000" }), null);
  assert.equal(storeOfContainers({ REDIS_PORT_6379_TCP_ADDR: "redis" })?.url, "redis://redis:6379");
  assert.equal(storeOfContainers({ REDIS_PORT_6379_TCP_ADDR: "fd00::2", REDIS_PORT_6379_TCP_PORT: "7000" })?.url, "redis://[fd00::2]:7000");
});

test("no password is shown, neither of a good address nor of a bad one", () => {
  for (const url of ["redis://:s3cret@host:6379/2", "rediss://user:s3cret@host:6379", "redis://:s3/cr3t@x@host:6379"]) {
    assert.equal(storeOfContainers({ REDIS_URL: url })?.shown.replace(/\/2$/, ""), "host:6379");
  }
  assert.throws(
    () => storeOfContainers({ REDIS_URL: "http://:s3cret@host" }),
    (error: Error) => error.message.startsWith("REDIS_URL: ") && !error.message.includes("s3cret"),
  );
  assert.throws(() => storeOfContainers({ REDIS_PORT_6379_TCP_ADDR: "host", REDIS_PORT_6379_TCP_PORT: "many" }), /REDIS_PORT_6379_TCP_ADDR: expected/);
});

test("one server has many stores: which it is, is shown where it is not the usual one", () => {
  const shown = (url: string) => storeOfContainers({ REDIS_URL: url })?.shown;
  for (const url of ["redis://h:1", "redis://:pw@h:1/", "redis://h:1/0", "redis://h:1?prefix=skein", "redis://h:1/0?prefix=skein"])
    assert.equal(shown(url), "h:1", url);
  assert.equal(shown("redis://:pw@h:1/2"), "h:1/2");
  assert.equal(shown("redis://h:1?prefix=shop"), "h:1?prefix=shop");
  assert.equal(shown("rediss://u:pw@h:1/3?prefix=shop"), "h:1/3?prefix=shop");
  assert.equal(shown("redis+sentinel://s1,s2:1/main"), "s1,s2:1/main");
});

test("what is wrong with a store is told by the name under which it was given", () => {
  const env = { SKEIN_STORE: "redis://h", REDIS_URL: "redis://g" };
  assert.equal(storeLabel(["status", "--store=redis://f"], env), "--store");
  assert.equal(storeLabel(["status"], env), "SKEIN_STORE");
  assert.equal(storeLabel(["status"], { ...env, SKEIN_STORE: "" }), "REDIS_URL");
  assert.equal(storeLabel(["status"], {}), "--store");
});

test("arguments are shown without the passwords of their URLs", () => {
  const shown = (text: string) => withoutPassword(text);
  assert.equal(shown("redis://:geheim@127.0.0.1:8790/2?prefix=a"), "redis://:***@127.0.0.1:8790/2?prefix=a");
  assert.equal(shown("--store=rediss://u:p%40w:x@host"), "--store=rediss://u:***@host");
  assert.equal(shown("redis+sentinel://:pw@s1,s2:1/main"), "redis+sentinel://:***@s1,s2:1/main");
  for (const same of ["https://a.test:8080/b@c", "redis://host:6379", "-o", "https://a.test/?q=x:y@z"]) assert.equal(shown(same), same);
});
