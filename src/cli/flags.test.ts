import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import fc from "fast-check";
import { CrawlError } from "../core/errors.ts";
import type { CrawlSpec } from "../core/spec.ts";
import { cliFlag, cliFlags, flagTable, parseFlags } from "./flags.ts";
import { envSettings, finishSpec, mergeSettings, readConfig } from "./settings.ts";

const table = flagTable();
const folder = mkdtempSync(join(tmpdir(), "skein-flags-"));
after(() => rmSync(folder, { recursive: true }));

function spec(argv: readonly string[], env: Record<string, string> = {}, file: Record<string, unknown> | null = null): CrawlSpec {
  const parsed = parseFlags(argv, table);
  const fromEnv = envSettings(env, table);
  const config = file === null ? null : { name: "skein.config.json", values: file };
  return finishSpec(mergeSettings(config, [...fromEnv.given, ...parsed.given]), config, [...parsed.problems, ...fromEnv.problems]);
}

function problems(argv: readonly string[], env: Record<string, string> = {}, file: Record<string, unknown> | null = null): string[] {
  try {
    spec(argv, env, file);
  } catch (error) {
    assert.ok(error instanceof CrawlError);
    return error.problems.map(({ option, message }) => `${option}: ${message}`);
  }
  return [];
}

test("values come joined, apart, and right after the letter", () => {
  for (const argv of [["--concurrency", "5"], ["--concurrency=5"], ["-c", "5"], ["-c5"], ["-c=5"]]) assert.equal(spec(argv).concurrency, 5, argv.join(" "));
});

test("arguments and flags mix, and after -- all are arguments", () => {
  const { args } = parseFlags(["a.example", "-d", "1", "b.example", "-", "--", "-d", "--x"], table);
  assert.deepEqual(args, ["a.example", "b.example", "-", "-d", "--x"]);
});

test("repeatable flags add up, of others the last one counts", () => {
  const made = spec(["--include", "a", "--include=b", "-d1", "-d", "2", "-o", "x.jsonl", "-o-"]);
  assert.deepEqual(made.scope.include, ["a", "b"]);
  assert.equal(made.maxDepth, 2);
  assert.deepEqual(made.outputs, ["x.jsonl", "-"]);
});

test("switches have opposites, and letters of switches cluster", () => {
  assert.equal(spec(["--no-robots"]).robots, false);
  assert.equal(spec(["--no-robots", "--robots"]).robots, true);
  assert.equal(spec(["--no-robots=false"]).robots, true);
  assert.equal(spec(["--images", "--no-images"]).images, false);
  const flags = cliFlags(parseFlags(["-qvd3", "--no-progress", "-i", "f", "-i", "-"], table).given, []);
  assert.deepEqual(flags, { inputFiles: ["f", "-"], quiet: true, verbose: true, logFormat: "text", progress: false, fresh: false, help: false });
});

test("headers, authorization, fields, durations, sizes and none", () => {
  const made = spec(
    [
      "-H",
      "X-A: b: c",
      "-H",
      "Accept:*/*",
      "--auth",
      "a.example=me:p=w:d",
      "--fields",
      "url, status",
      "--delay",
      "2s",
      "--max-body-size",
      "1MB",
      "--limit",
      "none",
      "--jitter",
      "0.5",
    ],
    {},
    { limits: { pages: 5 } },
  );
  assert.deepEqual(made.headers, { "X-A": "b: c", Accept: "*/*" });
  assert.deepEqual(made.auth, { "a.example": "me:p=w:d" });
  assert.deepEqual(made.fields, ["url", "status"]);
  assert.deepEqual([made.perHost.delay, made.maxBodySize, made.limits.pages, made.perHost.jitter], [2_000, 1_000_000, null, 0.5]);
});

test("all wrong flags are told at once, by the name the user typed, with what was given", () => {
  assert.deepEqual(
    problems(["--dpeth", "2", "-c", "lots", "--limit=0", "--list", "re:(", "-o", "x.xml", "-H", "nocolon", "--timeout", "-Z", "--print", "all"]).map((line) =>
      line.slice(0, 70),
    ),
    [
      "--dpeth: no such option; did you mean --depth?",
      "--timeout: needs a value: expected a duration from 1ms such as 250ms, 1s, 2m, 1h, 30d, or a number of milliseconds".slice(0, 70),
      "-Z: no such option",
      `-H: expected a header as 'Name: value'; there is no ":" in it`,
      "--limit: expected a whole number from 1, got 0",
      '-c: expected a whole number from 1 to 10000, got "lots"',
      "-o: expected a file name that ends in .jsonl, .json, .csv (each also with .gz) or .sqlite".slice(0, 70),
      '--print: expected one of pages, links, got "all"',
      ...problems(["--list", "re:("]).map((line) => line.slice(0, 70)),
    ],
  );
});

test("an option of later versions is unknown", () => {
  for (const flag of ["--render", "--replay"]) assert.match(problems([flag, "x"])[0] ?? "", /no such option/);
});

test("flags come before variables, variables before the file, the file before the defaults", () => {
  const file = { maxDepth: 1, concurrency: 10, limits: { pages: 1, errors: 7 }, scope: { include: ["file"] } };
  const env = { SKEIN_CONCURRENCY: "20", SKEIN_LIMIT: "2", SKEIN_INCLUDE: "*.html\nre:,", SKEIN_NO_ROBOTS: "1", SKEIN_TIMEOUT: "" };
  const made = spec(["--limit", "3"], env, file);
  assert.deepEqual([made.maxDepth, made.concurrency, made.limits.pages, made.limits.errors, made.robots, made.timeout], [1, 20, 3, 7, false, 30_000]);
  assert.deepEqual(made.scope, { preset: "host", include: ["*.html", "re:,"], exclude: [] });
  assert.equal(spec([], { SKEIN_ROBOTS: "off" }).robots, false);
  assert.equal(cliFlags(envSettings({ SKEIN_QUIET: "yes", SKEIN_INPUT_FILE: "a\nb" }, table).given, []).inputFiles.length, 2);
});

test("a problem of a variable or of the file is named after it, and a misspelt variable is noticed", () => {
  assert.deepEqual(problems([], { SKEIN_DEPTH: "x", SKEIN_IMAGES: "maybe" }, { concurrency: 0, maxdepth: 2 }), [
    'SKEIN_IMAGES: expected true or false, got "maybe"',
    'SKEIN_DEPTH: expected a whole number from 0, got "x"',
    "skein.config.json: concurrency: expected a whole number from 1 to 10000, got 0",
    "skein.config.json: maxdepth: no such option; did you mean maxDepth?",
  ]);
  const env = { SKEIN_CONCURENCY: "2", SKEIN_QQQQQQ: "1", SKEIN_REQUIRE: "redis", SKEIN_LONG_MINUTES: "1", SKEIN_EMPTY: "", PATH: "x" };
  assert.deepEqual(envSettings(env, table).strange, [
    "the variable SKEIN_CONCURENCY is no option and does nothing; did you mean SKEIN_CONCURRENCY?",
    "the variable SKEIN_QQQQQQ is no option and does nothing",
  ]);
});

test("the config file is TypeScript, JavaScript or JSON, and only one of them", async () => {
  assert.equal(await readConfig(folder), null);
  writeFileSync(join(folder, "skein.config.ts"), "const depth: number = 3;\nexport default { maxDepth: depth };\n");
  assert.deepEqual((await readConfig(folder))?.values, { maxDepth: 3 });
  writeFileSync(join(folder, "skein.config.json"), "{}");
  await assert.rejects(readConfig(folder), /skein\.config\.ts, skein\.config\.json: there may be only one/);
  rmSync(join(folder, "skein.config.ts"));
  assert.deepEqual((await readConfig(folder))?.values, {});
  writeFileSync(join(folder, "skein.config.json"), "{");
  await assert.rejects(readConfig(folder), /skein\.config\.json: cannot be read/);
  writeFileSync(join(folder, "skein.config.json"), "[]");
  await assert.rejects(readConfig(folder), /expected an object/);
});

test("any arguments give a spec or a list of problems", () => {
  const words = fc.constantFrom(
    ...table.flatMap(({ name, short }) => [`--${name}`, `--no-${name}`, `--${name}=`, ...(short === null ? [] : [`-${short}`])]),
    "--",
    "-",
    "-c5",
    "a.example",
    "1",
    "x",
  );
  const word = fc.oneof(
    words,
    fc.string(),
    fc.string().map((text) => `--${text}`),
    fc.string().map((text) => `-${text}`),
  );
  fc.assert(
    fc.property(fc.array(word, { maxLength: 8 }), (argv) => {
      for (const line of problems(argv)) assert.match(line, /.: ./s);
    }),
    { numRuns: 500 },
  );
});

test("a flag whose value may be left out takes the next word only if it looks like its value; else the word is known to stand behind it", () => {
  const own = [cliFlag("exit-when-idle", { value: "D", bare: "1s", allowed: "a duration such as 10s", description: "" }), ...table];
  const read = (...argv: string[]) => {
    const { given, args, behind } = parseFlags(argv, own);
    return [given.find(({ flag }) => flag.name === "exit-when-idle")?.value, args, [...behind].map(([at, flag]) => [at, flag?.label])];
  };
  assert.deepEqual(read("--exit-when-idle", "5s"), [["5s"], [], []]);
  assert.deepEqual(read("--exit-when-idle", "1s", "x"), [["1s"], ["x"], []]);
  assert.deepEqual(read("a", "--exit-when-idle", "foo", "b"), [["1s"], ["a", "foo", "b"], [[1, "--exit-when-idle"]]]);
  assert.deepEqual(read("--exit-when-idle=foo", "b"), [["foo"], ["b"], []]);
  assert.deepEqual(read("--exit-when-idle", "-q", "b"), [["1s"], ["b"], []]);
});
