/**
 * The commands of compose.yaml and of the Dockerfile run as they stand: the service, the workers, the crawl, the health check. What they run in – images,
 * volumes, published ports – is not tried here: that needs a container engine. needs: redis-server
 */
import assert from "node:assert/strict";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { after, before, test } from "node:test";
import { freePort, skipRedis, startServer, type TestServer } from "../../src/store/redis/server-for-tests.ts";
import { type Finished, root, run } from "../command.ts";
import { type Served, serve, tree } from "../crawl/served.ts";
import { killAll, startProcess, until } from "./processes.ts";

type Env = Readonly<Record<string, string>>;

const composeLines = readFileSync(join(root, "compose.yaml"), "utf8").split("\n");
const dockerLines = readFileSync(join(root, "Dockerfile"), "utf8").split("\n");

/** What the only line that matches says in its brackets. */
function only(lines: readonly string[], shape: RegExp, where: string): string {
  const found = lines.flatMap((line) => shape.exec(line)?.[1] ?? []);
  assert.ok(found.length === 1 && found[0] !== undefined, `${where}: ${found.length} lines like ${shape} where one is read`);
  return found[0];
}

function words(json: string): readonly string[] {
  const read: unknown = JSON.parse(json);
  assert.ok(Array.isArray(read) && read.length > 0 && read.every((word) => typeof word === "string"), `an array of strings: ${json}`);
  return read;
}

/** Lines of one service of compose.yaml. */
function serviceLines(name: string): readonly string[] {
  const from = composeLines.indexOf(`  ${name}:`);
  assert.ok(from > 0, `compose.yaml has no service ${name}`);
  const rest = composeLines.slice(from + 1);
  const to = rest.findIndex((line) => /^ {0,2}\S/.test(line));
  return to < 0 ? rest : rest.slice(0, to);
}

/** An entrypoint or a command of compose.yaml, as the container gets it and on the tests' own Redis. */
function composed(name: string, key: "entrypoint" | "command"): readonly string[] {
  return words(only(serviceLines(name), new RegExp(`^ {4}${key}: (\\[.*\\])$`), `compose.yaml, ${name}`)).map((word) => {
    // `$` alone compose would take for a variable of its own.
    assert.doesNotMatch(word.replaceAll("$$", ""), /\$/, `compose.yaml, ${name}, ${key}`);
    return word.replaceAll("$$", "$").replace("redis:6379", `127.0.0.1:${redis.port}`);
  });
}

const graceMs = (name: string): number => 1_000 * Number(only(serviceLines(name), /^ {4}stop_grace_period: (\d+)s$/, `compose.yaml, ${name}`));

const ENTRYPOINT = words(only(dockerLines, /^ENTRYPOINT (\[.*\])$/, "Dockerfile"));
const CMD = words(only(dockerLines, /^CMD (\[.*\])$/, "Dockerfile"));
const HEALTHCHECK = words(only(dockerLines, /^ {2}CMD (\[.*\])$/, "Dockerfile, HEALTHCHECK"));

const temporary = mkdtempSync(join(tmpdir(), "skein-compose-"));
const folder = () => mkdtempSync(join(temporary, "d-"));
const path = join(temporary, "bin");
/** As in the image: `skein` and `node` on PATH, links as npm makes them; a test's own surroundings name no store, no port and no token. */
const surroundings = (more: Env): Env => ({
  PATH: [path, "/usr/local/bin", "/usr/bin", "/bin"].join(delimiter),
  HOME: temporary,
  // Otherwise only public addresses are allowed, and the sites of the tests have none.
  SKEIN_ALLOW_ADDRESS: "127.0.0.0/8",
  ...more,
});

let redis: TestServer;
const options = { skip: skipRedis, timeout: 160_000 };
before(async () => {
  mkdirSync(path);
  symlinkSync(process.execPath, join(path, "node"));
  symlinkSync(join(root, "bin/skein.js"), join(path, "skein"));
  // With the settings that the container has; its first word is the program.
  const [, ...settings] = words(only(serviceLines("redis"), /^ {4}command: (\[.*\])$/, "compose.yaml, redis"));
  if (skipRedis === false) redis = await startServer(settings);
});
after(async () => {
  killAll();
  await redis?.stop();
  rmSync(temporary, { recursive: true, force: true });
});

interface Container {
  readonly folder: string;
  readonly stderr: () => string;
  /** Its status, null after SIGKILL. */
  readonly ended: Promise<number | null>;
  /** Waits for what it says. */
  says(what: RegExp): Promise<void>;
  /** SIGTERM, and SIGKILL when the time is over, as an engine does. */
  stop(graceMs: number): Promise<number | null>;
}

function start(command: readonly string[], env: Env = {}): Container {
  const cwd = folder();
  const one = startProcess(command, cwd, surroundings(env));
  const name = command.join(" ");
  return {
    folder: cwd,
    stderr: one.stderr,
    ended: one.ended,
    says: (what) =>
      until(`${name} says ${what}`, () => {
        assert.ok(what.test(one.stderr()) || !one.over, `${name} ended and said: ${one.stderr()}`);
        return what.test(one.stderr());
      }),
    async stop(graceMs) {
      one.signal("SIGTERM");
      const patience = setTimeout(() => one.signal("SIGKILL"), graceMs);
      const code = await one.ended;
      clearTimeout(patience);
      return code;
    },
  };
}

interface Service extends Container {
  readonly port: number;
  ask(path: string, init?: RequestInit): Promise<Response>;
}

async function startService(command: readonly string[], env: Env = {}): Promise<Service> {
  const port = await freePort();
  const service = start(command, { PORT: String(port), ...env });
  await service.says(new RegExp(`serves on http://0\\.0\\.0\\.0:${port}\\b`));
  return { ...service, port, ask: (path, init) => fetch(`http://127.0.0.1:${port}${path}`, { signal: AbortSignal.timeout(60_000), ...init }) };
}

const startWorker = async (): Promise<Container> => {
  const worker = start([...ENTRYPOINT, ...composed("worker", "command")]);
  await worker.says(/working for the store at /);
  return worker;
};

async function stopWorker(worker: Container, worked: RegExp): Promise<void> {
  assert.equal(await worker.stop(graceMs("worker")), 0, worker.stderr());
  assert.match(worker.stderr(), worked);
}

/** The status of a service that SIGTERM ends is 143 (docs/service.md); what matters is that it is not the 137 of one that is killed. */
async function stopService(service: Service, graceMs: number): Promise<void> {
  assert.equal(await service.stop(graceMs), 143, service.stderr());
}

function health(port: number): Promise<Finished> {
  const [file = "", ...args] = HEALTHCHECK;
  return run(file, args, temporary, surroundings({ PORT: String(port) }));
}

const HOSTS = ["127.0.0.1", "127.0.0.2", "127.0.0.3", "127.0.0.4"];
const PAGES = 30;
/** Most requests in flight of a process that is given this number. */
const ALONE = 2;
/** Four sites that answer nothing but the seeds until more requests are open than one process makes: so two have their share, or the crawl does not end. */
function sites(): Promise<Served> {
  let open: (() => void)[] | null = [];
  const pages = tree(PAGES);
  return serve((request, response) => {
    const answer = (): void => void pages(request, response);
    if (open === null || request.url === "/" || request.url === "/robots.txt") return answer();
    if (open.push(answer) <= ALONE) return;
    const held = open;
    open = null;
    for (const one of held) one();
  }, HOSTS);
}
const seedsOf = ({ port }: Served): string[] => HOSTS.map((host) => `http://${host}:${port}/`);

test("the service of compose.yaml without a token: its jobs are crawled by its workers too, and SIGTERM ends all in time", options, async () => {
  await using site = await sites();
  const service = await startService(composed("service", "entrypoint"), { SKEIN_TOKEN: "" });
  const worker = await startWorker();
  assert.equal((await service.ask("/healthz")).status, 200);
  assert.equal((await health(service.port)).code, 0);
  const job = { seeds: seedsOf(site), concurrency: ALONE };
  const created = await service.ask("/v1/jobs", { method: "POST", body: JSON.stringify(job), headers: { "content-type": "application/json" } });
  assert.equal(created.status, 202, await created.text());
  let view = { state: "", counts: { pages: 0 } };
  await until("the job has ended", async () => {
    view = JSON.parse(await (await service.ask("/v1/jobs/0")).text());
    return view.state === "completed";
  });
  assert.equal(view.counts.pages, HOSTS.length * PAGES);
  await stopWorker(worker, /left: [1-9]\d* requests? for 1 crawl\b/);
  await stopService(service, graceMs("service"));
  // The volume of the service is its folder.
  assert.ok(existsSync(join(service.folder, "skein-data")));
});

test("the service of compose.yaml with SKEIN_TOKEN asks for it, its health check does not need it", options, async () => {
  const service = await startService(composed("service", "entrypoint"), { SKEIN_TOKEN: "a-token-of-this-test" });
  assert.equal((await service.ask("/v1/jobs")).status, 401);
  assert.equal((await service.ask("/v1/jobs", { headers: { authorization: "Bearer another" } })).status, 401);
  assert.equal((await service.ask("/v1/jobs", { headers: { authorization: "Bearer a-token-of-this-test" } })).status, 200);
  assert.equal((await health(service.port)).code, 0);
  await stopService(service, graceMs("service"));
});

test("SKEIN_TOKEN of whoever calls compose reaches the service, and is empty where there is none", () => {
  const environment = only(serviceLines("service"), /^ {4}environment: (.*)$/, "compose.yaml, service");
  assert.match(environment, /^\{ SKEIN_TOKEN: "\$\{SKEIN_TOKEN:-\}" \}$/);
});

test("the crawl of compose.yaml takes a URL and an output, and the workers help", options, async () => {
  await using site = await sites();
  const worker = await startWorker();
  const crawl = start([...composed("crawl", "entrypoint"), ...seedsOf(site), "-c", String(ALONE), "-o", "pages.jsonl"]);
  assert.equal(await crawl.ended, 0, crawl.stderr());
  assert.equal(readFileSync(join(crawl.folder, "pages.jsonl"), "utf8").trimEnd().split("\n").length, HOSTS.length * PAGES);
  await stopWorker(worker, /left: [1-9]\d* requests? for 1 crawl\b/);
});

test("the Dockerfile's command serves what its health check asks for; with nothing there the check fails", options, async () => {
  const service = await startService([...ENTRYPOINT, ...CMD]);
  assert.equal((await health(service.port)).code, 0);
  await stopService(service, 10_000);
  const { code, stderr } = await health(service.port);
  assert.deepEqual([code, stderr], [1, ""]);
});

test("compose itself takes compose.yaml", async (t) => {
  for (const [file, ...words] of [["docker", "compose"], ["docker-compose"]] as const) {
    const ask = (...args: string[]): Promise<Finished | null> => run(file, [...words, ...args], root).catch(() => null);
    if ((await ask("version"))?.code !== 0) continue;
    const read = await ask("-f", join(root, "compose.yaml"), "config");
    assert.equal(read?.code, 0, read?.stderr);
    return;
  }
  t.skip("neither `docker compose` nor `docker-compose` works here");
});
