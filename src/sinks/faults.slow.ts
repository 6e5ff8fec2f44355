/** Killed processes, full disks and locked files: what is left can be read, and a resume makes the output that of an undisturbed run. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { after, test } from "node:test";
import type { CrawlError } from "../core/errors.ts";
import type { SinkState } from "../core/sink.ts";
import { parseSpec } from "../core/spec.ts";
import { outputAt } from "../testing/sink-cases.ts";
import { ITEMS, openAt, readOutput, SUFFIXES, TABLES } from "./bench-for-tests.ts";
import { killed, resumeAndCheck, type Told, told, writer } from "./kill-for-tests.ts";
import { openSinks } from "./open.ts";

const folder = mkdtempSync(join(tmpdir(), "skein-faults-"));
after(() => rmSync(folder, { recursive: true }));
const newFolder = () => mkdtempSync(join(folder, "run-"));
const table = TABLES[0]!;
const noUnix = process.platform === "win32" ? "no POSIX signals and limits here" : false;

const unwritable = (about: RegExp) => (error: unknown) => {
  // `as`: only read in an assertion that fails on anything else.
  const { code, message } = error as CrawlError;
  return code === "output-unwritable" && about.test(message);
};

// A process takes its time to start: all suffixes are in kills.long.ts.
for (const suffix of ["csv", "csv.gz", "sqlite"]) {
  test(`items.${suffix}: killed twice at any instant, then ended cleanly`, { skip: noUnix }, async () => {
    const path = join(newFolder(), `out.${suffix}`);
    const first = await killed(path, { done: 0, state: null }, 3 + Math.floor(Math.random() * 40), ITEMS);
    const second = await killed(path, first, 1 + Math.floor(Math.random() * 20), ITEMS);
    await resumeAndCheck(path, second, second.done + 50, ITEMS);
  });
}

for (const suffix of ["jsonl", "json.gz", "csv", "sqlite"]) {
  test(`${suffix}: killed twice at any instant, then ended cleanly`, { skip: noUnix }, async () => {
    const path = join(newFolder(), `out.${suffix}`);
    const start: Told = { done: 0, state: null };
    const first = await killed(path, start, 3 + Math.floor(Math.random() * 40));
    const second = await killed(path, first, 1 + Math.floor(Math.random() * 20));
    await resumeAndCheck(path, second, second.done + 50);
  });

  test(`${suffix}: F115 a file that may not grow is output-unwritable, and what was committed can go on elsewhere`, { skip: noUnix }, async () => {
    const path = join(newFolder(), `out.${suffix}`);
    const run = (durable: boolean) => {
      const args = [process.execPath, writer, path, "0", "null", "0", String(durable)];
      const child = spawnSync("sh", ["-c", `ulimit -f ${suffix.endsWith("gz") ? 60 : 400}; exec "$@"`, "sh", ...args], { encoding: "utf8" });
      const lines = child.stdout.trimEnd().split("\n").map(told);
      assert.equal(lines.at(-1)?.error, "output-unwritable", child.stderr);
      assert.match(lines.at(-1)?.message ?? "", /out\./);
      return lines.at(-2) ?? { done: 0, state: null };
    };
    const last = run(true);
    assert.ok(last.done > 100, `${last.done} outputs`);
    await resumeAndCheck(path, last, last.done + 50);
    // Without checkpoints: whole records, in a form that can be read.
    run(false);
    const records = readOutput(path, table);
    assert.ok(records.length > 100 || suffix === "sqlite", `${records.length} records`);
    for (const [index, record] of records.entries()) assert.equal("url" in record && record.url, outputAt(index + Math.floor(index / 10)).page?.url);
  });
}

function mountSmall(): { readonly path: string; resize(size: string): void; readonly problem: string | null } {
  const path = newFolder();
  const mount = spawnSync("mount", ["-t", "tmpfs", "-o", "size=256k", "skein-test", path], { encoding: "utf8" });
  const problem = mount.status === 0 ? null : `no small file system can be mounted here: ${(mount.stderr ?? String(mount.error)).trim().split("\n")[0]}`;
  return {
    path,
    problem,
    resize(size) {
      assert.equal(spawnSync("mount", ["-o", `remount,size=${size}`, path]).status, 0);
    },
  };
}

test("a full file system is output-unwritable; with room again the run goes on from its last commit", async (t) => {
  const small = mountSmall();
  if (small.problem !== null) {
    console.log(`full disk: ${small.problem}`);
    t.skip(small.problem);
    return;
  }
  try {
    for (const [suffix, index] of [...SUFFIXES.map((name) => [name, 0] as const), ...(["csv", "sqlite"] as const).map((name) => [name, ITEMS] as const)]) {
      const path = join(small.path, `out.${suffix}`);
      const table = TABLES[index]!;
      let last: Told = { done: 0, state: null };
      const sink = openAt(path, table, null);
      const fill = () => {
        for (let n = 0; n < 100_000; n += 20) {
          sink.write(Array.from({ length: 20 }, (_, index) => outputAt(n + index)));
          last = { done: n + 20, state: sink.checkpoint?.(true) ?? null };
        }
      };
      assert.throws(fill, unwritable(/out\./), suffix);
      assert.throws(() => sink.write([outputAt(0)]), unwritable(/out\./));
      assert.throws(() => sink.checkpoint?.(false), unwritable(/out\./));
      await sink.close();
      assert.ok(last.done > 0, suffix);
      small.resize("16m");
      await resumeAndCheck(path, last, last.done + 100, index);
      rmSync(path);
      small.resize("256k");
    }
  } finally {
    spawnSync("umount", [small.path]);
  }
});

test("a database without checkpoints on a full file system keeps what was committed, and the message says how much", async (t) => {
  const small = mountSmall();
  if (small.problem !== null) {
    console.log(`full disk: ${small.problem}`);
    t.skip(small.problem);
    return;
  }
  try {
    const path = join(small.path, "out.sqlite");
    const sink = openAt(path, table, null);
    let said = "";
    try {
      for (let n = 0; n < 100_000; n += 20) sink.write(Array.from({ length: 20 }, (_, index) => outputAt(n + index)));
    } catch (error) {
      said = String(error);
    }
    await sink.close();
    const kept = Number(/cannot write \S+out\.sqlite: .*; the (\d+) records before are in it$/.exec(said)?.[1]);
    assert.ok(kept > 30, said);
    small.resize("16m");
    // Not by readOutput: without room the log could not be folded in, and stands beside the file until somebody opens it.
    const db = new DatabaseSync(path);
    assert.equal(db.prepare("SELECT count(*) AS n FROM pages").get()?.n, kept);
    db.close();
  } finally {
    spawnSync("umount", [small.path]);
  }
});

test("a device is no place for a database, and a full one for no record", { skip: noUnix }, async () => {
  for (const suffix of SUFFIXES) {
    const path = join(newFolder(), `out.${suffix}`);
    symlinkSync("/dev/full", path);
    if (suffix === "sqlite") {
      assert.throws(() => openSinks(parseSpec({ outputs: [path] }), null), unwritable(/not a file/));
      continue;
    }
    const [sink] = openSinks(parseSpec({ outputs: [path] }), null);
    sink?.write([outputAt(0)]);
    assert.throws(() => sink?.checkpoint?.(true), unwritable(/ENOSPC/));
    await sink?.close();
  }
});

test("a file or folder without permission is output-unwritable, fresh or resumed", { skip: noUnix }, async () => {
  const dir = newFolder();
  chmodSync(folder, 0o755);
  const states = new Map<string, SinkState>();
  const files = SUFFIXES.map((suffix) => join(dir, `old.${suffix}`));
  for (const file of files) {
    const sink = openAt(file, TABLES[1]!, null);
    sink.write([outputAt(0), outputAt(1)]);
    states.set(file, sink.checkpoint?.(false) ?? {});
    await sink.close();
    chmodSync(file, 0o444);
  }
  chmodSync(dir, 0o555);
  const root = process.geteuid?.() === 0;
  const start = (file: string, at: ReadonlyMap<string, SinkState> | null) => {
    // The check at the start asks what the real user may do, so that here, for root, only the file itself says no.
    for (const sink of openSinks(parseSpec({ outputs: [file] }), at)) {
      sink.write([outputAt(0)]);
      sink.flush();
    }
  };
  if (root) process.seteuid?.("nobody");
  try {
    for (const file of [...files, ...SUFFIXES.map((suffix) => join(dir, `new.${suffix}`))]) {
      for (const at of [null, states]) assert.throws(() => start(file, at), unwritable(/EACCES|permission|readonly|unable to open/), file);
    }
  } finally {
    if (root) process.seteuid?.(0);
    chmodSync(dir, 0o755);
  }
});

test("what stands in the way of a resume is told with the file, the reason and what to do", async () => {
  const dir = newFolder();
  const outputs = SUFFIXES.map((suffix) => join(dir, `out.${suffix}`));
  const spec = parseSpec({ outputs });
  const states = new Map<string, SinkState>();
  for (const sink of openSinks(spec, null)) {
    sink.write([outputAt(0), outputAt(1), outputAt(2)]);
    states.set(sink.name, sink.checkpoint?.(false) ?? {});
    await sink.close();
  }
  const refused = (file: string, about: RegExp) => {
    const only = parseSpec({ outputs: [file] });
    assert.throws(() => openSinks(only, states), unwritable(new RegExp(`^cannot go on with .*out\\..*${about.source}.*--fresh`)), file);
  };
  for (const file of outputs.filter((name) => !name.endsWith("sqlite"))) {
    const whole = readFileSync(file);
    truncateSync(file, 40);
    refused(file, /has 40 bytes and had \d+/);
    writeFileSync(file, Buffer.alloc(whole.length, 32));
    refused(file, /replaced or changed/);
  }
  for (const file of outputs) {
    rmSync(file);
    refused(file, /gone/);
  }
  const crossed = new Map([["b.jsonl", states.get(outputs[1]!) ?? {}]]);
  assert.throws(() => openSinks(parseSpec({ outputs: ["b.jsonl"] }), crossed), unwritable(/another output \(pages json, not pages jsonl\)/));
});

test("two names of one file are refused", () => {
  const dir = newFolder();
  mkdirSync(join(dir, "sub"));
  writeFileSync(join(dir, "a.jsonl"), "");
  symlinkSync(join(dir, "a.jsonl"), join(dir, "b.jsonl"));
  for (const other of [join(dir, "b.jsonl"), `${dir}/sub/../a.jsonl`]) {
    assert.throws(() => openSinks(parseSpec({ outputs: [join(dir, "a.jsonl"), other] }), null), { code: "invalid-options", message: /the same file as/ });
  }
});
