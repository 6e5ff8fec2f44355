/** What is wrong with the words of a smaller command is told all at once, each fault by the flag in question. */
import assert from "node:assert/strict";
import { tmpdir } from "node:os";
import { test } from "node:test";
import { fakeIo } from "../../test/cli/fake-io.ts";
import { main } from "./main.ts";

async function told(...argv: string[]): Promise<readonly string[]> {
  const io = fakeIo({ cwd: tmpdir() });
  assert.equal(await main(argv, io), 2, io.err());
  return io.err().trimEnd().split("\n");
}

const IDLE = 'skein: --exit-when-idle: expected a duration such as 10s (--exit-when-idle 10s or --exit-when-idle=10s) or nothing, got "foo"';

test("a word behind a flag whose value may be left out is told by that flag, with both of its forms", async () => {
  assert.deepEqual(await told("work", "--store", "redis://h", "--exit-when-idle", "foo"), [IDLE]);
  assert.deepEqual(await told("work", "--store", "redis://h", "--exit-when-idle=foo"), ['skein: --exit-when-idle: expected a duration such as 10s, got "foo"']);
  assert.deepEqual(await told("work", "--store", "redis://h", "--exit-when-idle", "5s", "foo"), [
    "skein: foo: skein work takes no arguments: crawls come from the store",
  ]);
});

test("all faults of one command line are told at once", async () => {
  const all = await told("work", "--store", "redis://h", "-c", "0", "--threads", "x", "--bogus", "--exit-when-idle", "foo", "bar");
  assert.equal(all.length, 5, all.join("\n"));
  for (const expected of [
    /^skein: -c: /,
    /^skein: --threads: /,
    /^skein: --bogus: no such option/,
    /^skein: --exit-when-idle: /,
    /^skein: bar: skein work takes no arguments/,
  ])
    assert.ok(
      all.some((line) => expected.test(line)),
      `${expected} in\n${all.join("\n")}`,
    );
  const status = await told("status", "x", "y", "--job", "z", "--store", "http://h");
  assert.deepEqual(status.map((line) => line.replace(/^skein: (\S+): .*/, "$1")).sort(), ["--job", "--store", "x", "y"]);
  assert.deepEqual(await told("serve", "x", "--bogus", "0"), [
    "skein: --bogus: no such option",
    "skein: x: skein serve takes no arguments; URLs are posted to it",
  ]);
  assert.equal((await told("doctor", "x", "-c", "0")).length, 2);
  assert.equal((await told("export", "x", "-c", "0")).length, 2);
});
