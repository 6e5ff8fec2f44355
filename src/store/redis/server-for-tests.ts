/** A real Redis of the tests' own, on a private port with its files in a temporary directory; for tests only. */
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort } from "../../testing/free-port.ts";

export { freePort };

export interface TestServer {
  readonly port: number;
  readonly url: string;
  readonly dir: string;
  /** Ends it at once, as a kill of the machine's choice does. */
  kill(): Promise<void>;
  start(): Promise<void>;
  signal(name: NodeJS.Signals): void;
  stop(): Promise<void>;
}

/** Another server than the usual one: `SKEIN_REDIS_SERVER=/path/to/valkey-server`. */
const SERVER = process.env.SKEIN_REDIS_SERVER ?? "redis-server";

function isThere(): boolean {
  try {
    execFileSync(SERVER, ["--version"], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
}

/** Why the tests on Redis are skipped; false: they are not. */
export const skipRedis: string | false = (() => {
  if (isThere()) return false;
  if ((process.env.SKEIN_REQUIRE ?? "").split(",").includes("redis-server")) throw new Error(`${SERVER} is not on PATH, and SKEIN_REQUIRE asks for it`);
  return `${SERVER} is not on PATH`;
})();

/** `sentinel`: lines of its file, for a sentinel in place of a server. */
export async function startServer(more: readonly string[] = [], port?: number, sentinel?: readonly string[]): Promise<TestServer> {
  const dir = mkdtempSync(join(tmpdir(), "skein-redis-"));
  const at = port ?? (await freePort());
  let child: ChildProcess | null = null;
  /** Whether a test wants it to end. */
  let ending = false;
  const args = ["--port", String(at), "--bind", "127.0.0.1", "--dir", dir, "--save", "", "--appendonly", "yes", "--appendfsync", "everysec", ...more];

  if (sentinel !== undefined) {
    const file = join(dir, "sentinel.conf");
    writeFileSync(file, [`port ${at}`, `dir ${dir}`, ...sentinel, ""].join("\n"));
    args.splice(0, args.length, file, "--sentinel");
  }

  async function start(): Promise<void> {
    const started = spawn(SERVER, args, { stdio: ["ignore", "pipe", "inherit"] });
    child = started;
    ending = false;
    let log = "";
    await new Promise<void>((resolve, reject) => {
      started.stdout?.on("data", (bytes: Buffer) => {
        log = (log + bytes.toString("latin1")).slice(-8_000);
        if (/Ready to accept connections|Sentinel ID is/.test(log)) resolve();
      });
      started.once("exit", (code, signal) => {
        reject(new Error(`${SERVER} ended:\n${log}`));
        // Every test that waits for it would only say that its time is over.
        if (!ending) console.error(`${SERVER} at port ${at} ended by itself (${signal ?? code}):\n${log}`);
      });
    });
  }

  async function end(signal: NodeJS.Signals): Promise<void> {
    const last = child;
    if (last === null || last.exitCode !== null || last.signalCode !== null) return;
    ending = true;
    const gone = once(last, "exit");
    last.kill(signal);
    await gone;
  }

  await start();
  return {
    port: at,
    url: `redis://127.0.0.1:${at}`,
    dir,
    kill: () => end("SIGKILL"),
    start,
    signal(name) {
      ending ||= name !== "SIGSTOP" && name !== "SIGCONT";
      child?.kill(name);
    },
    async stop() {
      await end("SIGKILL");
      rmSync(dir, { recursive: true, force: true });
    },
  };
}
