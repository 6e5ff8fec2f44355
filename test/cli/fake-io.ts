/** A terminal and process that tests look into. */
import type { Io, StopSignal } from "../../src/cli/io.ts";

export interface FakeIo extends Io {
  out(): string;
  err(): string;
  signal(name: StopSignal): void;
  readonly died: StopSignal[];
}

export interface FakeIoOptions {
  readonly terminal?: boolean;
  readonly columns?: number;
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  readonly stdin?: string;
  /** Replaces what stdout does with its bytes. */
  readonly write?: (bytes: Uint8Array) => Promise<void>;
}

export function fakeIo(options: FakeIoOptions = {}): FakeIo {
  let out = "";
  let err = "";
  const listeners = new Set<(signal: StopSignal) => void>();
  const died: StopSignal[] = [];
  return {
    async *stdin() {
      yield Buffer.from(options.stdin ?? "");
    },
    stdout: {
      isTerminal: options.terminal ?? false,
      async write(bytes) {
        await options.write?.(bytes);
        out += Buffer.from(bytes).toString();
      },
    },
    stderr: {
      isTerminal: options.terminal ?? false,
      columns: () => options.columns ?? 80,
      write(text) {
        err += text;
      },
    },
    env: options.env ?? {},
    cwd: options.cwd ?? import.meta.dirname,
    onSignal(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    close: () => undefined,
    die: (signal) => void died.push(signal),
    out: () => out,
    err: () => err,
    signal(name) {
      for (const listener of listeners) listener(name);
    },
    died,
  };
}
