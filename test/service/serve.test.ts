/** `skein serve` as a command: where it listens, what it refuses to start with, how it ends and goes on. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { serveCommand } from "../../src/cli/commands/serve.ts";
import { main } from "../../src/cli/main.ts";
import { openJobs } from "../../src/jobs/jobs.ts";
import { openService } from "../../src/service/open.ts";
import { type FakeIo, fakeIo } from "../cli/fake-io.ts";

const root = mkdtempSync(join(tmpdir(), "skein-serve-"));
after(() => rmSync(root, { recursive: true, force: true }));

interface Served {
  readonly io: FakeIo;
  readonly url: string;
  readonly status: Promise<number>;
}

/** Starts the command; resolves when it says where it listens. The dashboard stays out: its own tests build it. */
async function serve(argv: readonly string[], env: Record<string, string> = {}, cwd = mkdtempSync(join(root, "cwd-"))): Promise<Served> {
  const io = fakeIo({ cwd, env });
  const parts = { openJobs, openService: (options: Parameters<typeof openService>[0]) => openService({ ...options, assets: new Map() }) };
  const status = serveCommand(argv, io, async () => parts);
  let failed: unknown = null;
  status.catch((error: unknown) => (failed = error));
  for (;;) {
    if (failed !== null) throw failed;
    const url = /http:\/\/[^\s"/]+/.exec(io.err())?.[0];
    if (url !== undefined && /serves on|"serving"/.test(io.err())) return { io, url, status };
    await new Promise((next) => setTimeout(next, 5));
  }
}

const refused = async (argv: readonly string[], env: Record<string, string> = {}) => {
  const io = fakeIo({ cwd: mkdtempSync(join(root, "cwd-")), env });
  return { status: await main(["serve", ...argv], io), err: io.err(), out: io.out() };
};

test("it says where it listens, ends in order on SIGTERM, and the next start has its jobs", { timeout: 60_000 }, async () => {
  const cwd = mkdtempSync(join(root, "cwd-"));
  const first = await serve(["--port", "0"], {}, cwd);
  assert.match(first.io.err(), /^skein serves on http:\/\/127\.0\.0\.1:\d+\/ {2}\(jobs in .*skein-data; Ctrl-C ends it/);
  const made = await fetch(first.url, { method: "POST", body: "http://127.0.0.1:9/\n", headers: { "content-type": "text/plain" } });
  assert.equal(made.status, 200);
  first.io.signal("SIGTERM");
  assert.equal(await first.status, 143);
  await assert.rejects(fetch(first.url));
  const second = await serve(["--port", "0", "--state", "skein-data"], {}, cwd);
  assert.equal((await fetch(`${second.url}/status/0`)).status, 200);
  second.io.signal("SIGINT");
  assert.equal(await second.status, 130);
});

test("an open stream of events does not keep it from its end", { timeout: 60_000 }, async () => {
  const { io, url, status } = await serve(["--port", "0", "--workers", "0"]);
  assert.match(io.err(), /--workers 0: jobs are taken and wait/);
  await fetch(url, { method: "POST", body: "http://127.0.0.1:9/\n", headers: { "content-type": "text/plain" } });
  const events = await fetch(`${url}/v1/jobs/0/events`);
  assert.equal((await (await fetch(`${url}/status/0`)).text()).includes('"status":"queued"'), true);
  io.signal("SIGTERM");
  assert.equal(await status, 143);
  await events.text().catch(() => "");
});

test("a port in use: status 2, what to do, and no job was touched", async () => {
  const server = createServer();
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  const bound = server.address();
  assert.ok(typeof bound === "object" && bound !== null);
  const { status, err, out } = await refused(["--port", String(bound.port)]);
  assert.deepEqual([status, out], [2, ""]);
  assert.match(err, new RegExp(`^skein: --port: port ${bound.port} of 127\\.0\\.0\\.1 is in use\\. Next step: name another one with --port N`));
  server.close();
});

test("a directory that another process has: status 7", async () => {
  const cwd = mkdtempSync(join(root, "cwd-"));
  const first = await serve(["--port", "0", "--state", "jobs"], {}, cwd);
  const io = fakeIo({ cwd });
  assert.equal(await main(["serve", "--port", "0", "--state", "jobs"], io), 7);
  first.io.signal("SIGTERM");
  await first.status;
});

test("another address than loopback needs a token, or --no-auth, which is said aloud", { timeout: 60_000 }, async () => {
  const { status, err } = await refused(["--host", "0.0.0.0"]);
  assert.equal(status, 2);
  assert.match(err, /--host: 0\.0\.0\.0 may be reached by others: set SKEIN_TOKEN, or say with --no-auth/);
  const open = await serve(["--host", "0.0.0.0", "--port", "0", "--no-auth"]);
  assert.match(open.io.err(), /warning: --no-auth: whoever can reach .* may crawl from this machine/);
  open.io.signal("SIGTERM");
  await open.status;
  const closed = await serve(["--host", "0.0.0.0", "--port", "0"], { SKEIN_TOKEN: "s3cret" });
  const url = closed.url.replace("0.0.0.0", "127.0.0.1");
  assert.equal((await fetch(`${url}/v1/jobs`)).status, 401);
  assert.equal((await fetch(`${url}/v1/jobs`, { headers: { authorization: "Bearer s3cret" } })).status, 200);
  assert.doesNotMatch(closed.io.err(), /s3cret|is no option/);
  closed.io.signal("SIGTERM");
  await closed.status;
});

test("the port comes from the flag, then WEBAPP_PORT (also as a linked container has it), then PORT", { timeout: 60_000 }, async () => {
  for (const [argv, env] of [
    [["--port", "0"], { WEBAPP_PORT: "x", PORT: "x" }],
    [[], { WEBAPP_PORT: "tcp://172.17.0.2:0", PORT: "x" }],
    [[], { WEBAPP_PORT: "", PORT: "0" }],
  ] as const) {
    const { io, status } = await serve(argv, env);
    io.signal("SIGTERM");
    assert.equal(await status, 143);
  }
});

test("--max-rate, --max-upload and --max-jobs hold", { timeout: 60_000 }, async () => {
  const { io, url, status } = await serve([
    "--port",
    "0",
    "--max-rate",
    "10",
    "--max-upload",
    "1KB",
    "--max-jobs",
    "1",
    "--workers",
    "0",
    "--log-format",
    "json",
  ]);
  const post = (body: string) => fetch(url, { method: "POST", body, headers: { "content-type": "text/plain" } });
  assert.equal((await post("http://127.0.0.1/\n".repeat(100))).status, 413);
  assert.equal((await post("http://127.0.0.1/\n")).status, 200);
  assert.equal((await post("http://127.0.0.1/\n")).status, 429);
  const statuses = await Promise.all(Array.from({ length: 60 }, async () => (await fetch(`${url}/healthz`)).status));
  assert.ok(statuses.includes(429));
  for (const line of io.err().trimEnd().split("\n")) assert.equal(typeof JSON.parse(line).message, "string");
  io.signal("SIGTERM");
  await status;
});

test("wrong usage: status 2, every problem on a line", async () => {
  const { status, err, out } = await refused(
    [
      "http://a.example/",
      "--port",
      "70000",
      "--workers",
      "-1",
      "--max-upload",
      "x",
      "--keep",
      "soon",
      "--allow-address",
      "10.0.0.0/99",
      "--token",
      "s3 cret",
      "--no-auth",
      "--log-format",
      "xml",
    ],
    {},
  );
  assert.deepEqual([status, out], [2, ""]);
  assert.equal(err.trimEnd().split("\n").length, 9, err);
  assert.doesNotMatch(err, /s3 cret/);
  assert.equal((await refused(["--store", "localhost:6379"])).status, 2);
  assert.equal((await refused([], { PORT: "http" })).status, 2);
});
