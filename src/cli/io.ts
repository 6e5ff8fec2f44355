/** The process as the command line sees it: streams, environment, signals. Tests pass one of their own. */
import { fstatSync, write, writeSync } from "node:fs";
import { EXIT } from "./exit.ts";

export type StopSignal = "SIGINT" | "SIGTERM";

export interface Io {
  readonly stdin: () => AsyncIterable<Uint8Array>;
  readonly stdout: {
    readonly isTerminal: boolean;
    /** Resolves when all bytes are written; the bytes must not change before. Rejects with the system's error (EPIPE: the reader went away). */
    write(bytes: Uint8Array): Promise<void>;
  };
  readonly stderr: {
    readonly isTerminal: boolean;
    columns(): number;
    /** Writes at once; a reader that went away is no error. */
    write(text: string): void;
  };
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
  /** Until the returned function is called, these signals do nothing but call the listener. */
  onSignal(listener: (signal: StopSignal) => void): () => void;
  /** Lets go of stdin: an open pipe would keep the process alive. */
  close(): void;
  /** Ends the process at once as the signal would have; for when a blocked write keeps it from ending by itself. */
  die(signal: StopSignal): void;
}

function isCharacterDevice(fd: number): boolean {
  try {
    return fstatSync(fd).isCharacterDevice();
  } catch {
    // A descriptor that was closed by the caller is no terminal.
    return false;
  }
}

function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : "";
}

/** Not a stream: a pipe's write would block this thread, and with it every request, while its reader pauses. */
function writeStdout(bytes: Uint8Array): Promise<void> {
  return new Promise((resolve, reject) => {
    const from = (at: number): void => {
      write(1, bytes, at, bytes.length - at, null, (error, written) => {
        if (error !== null && codeOf(error) === "EAGAIN") setTimeout(from, 10, at);
        else if (error !== null) reject(error);
        else if (at + written < bytes.length) from(at + written);
        else resolve();
      });
    };
    from(0);
  });
}

function writeStderr(text: string): void {
  const bytes = Buffer.from(text);
  let at = 0;
  while (at < bytes.length) {
    try {
      at += writeSync(2, bytes, at);
    } catch (error) {
      if (codeOf(error) !== "EAGAIN") return; // nobody reads diagnostics any more: the crawl goes on
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5);
    }
  }
}

export function processIo(): Io {
  let stdinUsed = false;
  return {
    stdin() {
      stdinUsed = true;
      return process.stdin;
    },
    // Asking process.stdout itself loads the terminal and network modules; most runs need neither.
    stdout: { isTerminal: isCharacterDevice(1) && process.stdout.isTTY === true, write: writeStdout },
    stderr: { isTerminal: isCharacterDevice(2) && process.stderr.isTTY === true, columns: () => process.stderr.columns ?? 80, write: writeStderr },
    env: process.env,
    cwd: process.cwd(),
    onSignal(listener) {
      process.on("SIGINT", listener);
      process.on("SIGTERM", listener);
      return () => {
        process.off("SIGINT", listener);
        process.off("SIGTERM", listener);
      };
    },
    close() {
      if (stdinUsed) process.stdin.destroy();
    },
    die(signal) {
      process.removeAllListeners(signal);
      process.kill(process.pid, signal);
      // The first process of a container outlives its own signal.
      setTimeout(() => process.exit(EXIT[signal]), 200);
    },
  };
}
