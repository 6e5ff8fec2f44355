/** Real commands as processes that tests kill, freeze and start again; nothing is judged here. */
import { type ChildProcess, spawn } from "node:child_process";
import { join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

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

/** All that run: a test that fails, or whose time is over, leaves none behind to load the machine and to keep its suite from ending. */
const running = new Set<ChildProcess>();
export function killAll(): void {
  for (const child of running) child.kill("SIGKILL");
}
process.on("exit", killAll);

/** Waits until it holds, for a minute at most; then fails, and tells what the processes have said. */
export async function until(what: string, holds: () => boolean | Promise<boolean>, processes: readonly Running[] = []): Promise<void> {
  for (const last = performance.now() + 60_000; !(await holds()); await sleep(20)) {
    if (performance.now() < last) continue;
    throw new Error(
      `not within a minute: ${what}\n${processes.map((one, i) => `-- process ${i}${one.over ? ", ended" : ""}:\n${one.stderr().slice(-4_000)}`).join("\n")}`,
    );
  }
}

export function startCommand(args: readonly string[], cwd: string, env: Readonly<Record<string, string>> = {}): Running {
  return startProcess([process.execPath, bin, ...args], cwd, { ...process.env, ...env });
}

/** `env`: all of its surroundings. */
export function startProcess([file = "", ...args]: readonly string[], cwd: string, env: NodeJS.ProcessEnv): Running {
  const child = spawn(file, args, { cwd, stdio: ["ignore", "ignore", "pipe"], env });
  running.add(child);
  let stderr = "";
  let over = false;
  child.stderr.setEncoding("utf8").on("data", (text: string) => (stderr += text));
  const ended = new Promise<number | null>((done, reject) => {
    child.on("error", reject);
    child.on("close", (code) => {
      over = true;
      running.delete(child);
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
