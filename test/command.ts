/** Runs programs for the tests of the package, the docs and the examples, and gathers what they print. */
import { spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, dirname, join, resolve } from "node:path";

export const root = resolve(import.meta.dirname, "..");

export interface Finished {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Never rejects for an exit status. The Node that runs the tests comes first on PATH; proxies of the machine are kept away from loopback. */
export function run(command: string, args: readonly string[], cwd: string, env: Readonly<Record<string, string>> = {}): Promise<Finished> {
  return new Promise((done, failed) => {
    const path = [dirname(process.execPath), process.env.PATH ?? ""].join(delimiter);
    const child = spawn(command, args, {
      cwd,
      env: { ...process.env, PATH: path, NO_PROXY: "127.0.0.1,localhost", NODE_TEST_CONTEXT: undefined, ...env },
      stdio: ["ignore", "pipe", "pipe"],
      // A crawl that does not end must not take the whole run with it; its exit status is then null.
      timeout: 150_000,
      killSignal: "SIGKILL",
    });
    let stdout = "";
    let stderr = "";
    child.stdout.setEncoding("utf8").on("data", (text: string) => (stdout += text));
    child.stderr.setEncoding("utf8").on("data", (text: string) => (stderr += text));
    child.on("error", failed);
    child.on("close", (code) => done({ code, stdout, stderr }));
  });
}

export async function temporaryFolder(): Promise<{ readonly path: string } & AsyncDisposable> {
  const path = await mkdtemp(join(tmpdir(), "skein-test-"));
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }) };
}

/** Lines without the empty last one. */
export const lines = (text: string): readonly string[] => text.split("\n").filter((line) => line !== "");
