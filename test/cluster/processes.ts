/** Real commands as processes that tests kill, freeze and start again; nothing is judged here. */
import { type ChildProcess, spawn } from "node:child_process";
import { join, resolve } from "node:path";

const bin = join(resolve(import.meta.dirname, "../.."), "bin/skein.js");

export interface Running {
  readonly child: ChildProcess;
  /** What it has said so far. */
  stderr(): string;
  /** Its exit status; null: a signal ended it. */
  readonly ended: Promise<number | null>;
  readonly over: boolean;
  signal(name: NodeJS.Signals): void;
  /** Ends it at once, frozen or not, and waits until it is gone. */
  kill(): Promise<void>;
}

export function startCommand(args: readonly string[], cwd: string, env: Readonly<Record<string, string>> = {}): Running {
  const child = spawn(process.execPath, [bin, ...args], { cwd, stdio: ["ignore", "ignore", "pipe"], env: { ...process.env, ...env } });
  let stderr = "";
  let over = false;
  child.stderr.setEncoding("utf8").on("data", (text: string) => (stderr += text));
  const ended = new Promise<number | null>((done, reject) => {
    child.on("error", reject);
    child.on("close", (code) => {
      over = true;
      done(code);
    });
  });
  return {
    child,
    stderr: () => stderr,
    ended,
    get over() {
      return over;
    },
    signal: (name) => void child.kill(name),
    async kill() {
      child.kill("SIGKILL");
      await ended;
    },
  };
}
