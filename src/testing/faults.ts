/** Faults on purpose: a process that kills itself at a named step, a child that is killed, files that were written in part. For tests of whatever must survive them. */
import { spawn } from "node:child_process";
import { closeSync, fstatSync, ftruncateSync, openSync, writeSync } from "node:fs";

/** `point:n`: at the n-th time that `point` is passed (from 1). */
export interface Fault {
  readonly point: string;
  readonly nth: number;
}

/** Throws on anything else than `point:n`. */
export function readFault(text: string): Fault {
  const match = /^([a-z-]+):(\d+)$/.exec(text);
  if (match?.[1] === undefined || Number(match[2]) < 1) throw new Error(`a fault is "point:n", not "${text}"`);
  return { point: match[1], nth: Number(match[2]) };
}

/** To be called at every point passed; at the fault's the process dies as by `kill -9`, or `strike` is called. */
export function striking(fault: Fault, strike: () => void = () => process.kill(process.pid, "SIGKILL")): (point: string) => void {
  let left = fault.nth;
  return (point) => {
    if (point === fault.point && --left === 0) strike();
  };
}

export interface ChildOptions {
  /** Arguments of node: the file first. */
  readonly args: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** Kill it, as by `kill -9`, so long after it has written `killFrom` (or was started). Absent: it ends by itself. */
  readonly killAfterMs?: number;
  readonly killFrom?: string;
}

export interface ChildEnd {
  readonly code: number | null;
  readonly signal: string | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a node program until it ends or is killed. */
export function runChild(options: ChildOptions): Promise<ChildEnd> {
  const child = spawn(process.execPath, [...options.args], { env: { ...process.env, ...options.env }, stdio: ["ignore", "pipe", "pipe"] });
  let stdout = "";
  let stderr = "";
  let timer: NodeJS.Timeout | null = null;
  const arm = (): void => {
    if (timer === null && options.killAfterMs !== undefined) timer = setTimeout(() => child.kill("SIGKILL"), options.killAfterMs);
  };
  if (options.killFrom === undefined) arm();
  child.stdout.on("data", (bytes: Buffer) => {
    stdout += bytes.toString("utf8");
    if (options.killFrom !== undefined && stdout.includes(options.killFrom)) arm();
  });
  child.stderr.on("data", (bytes: Buffer) => {
    stderr += bytes.toString("utf8");
  });
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code, signal) => {
      if (timer !== null) clearTimeout(timer);
      resolve({ code, signal, stdout, stderr });
    });
  });
}

/** What a power cut leaves of bytes that were not synced: everything from `from` on is cut off at a random place, or lost in parts (sectors of zeros). */
export function tearFile(path: string, from: number, random: () => number): void {
  const fd = openSync(path, "r+");
  try {
    const { size } = fstatSync(fd);
    if (size <= from) return;
    const end = from + Math.floor(random() * (size - from + 1));
    if (random() < 0.5) ftruncateSync(fd, end);
    else
      for (let at = Math.ceil(from / SECTOR) * SECTOR; at < size; at += SECTOR) {
        if (random() < 0.3) writeSync(fd, Buffer.alloc(Math.min(SECTOR, size - at)), 0, Math.min(SECTOR, size - at), at);
      }
  } finally {
    closeSync(fd);
  }
}

const SECTOR = 512;
