/** How messages name the option that says which store: as its user did. Loads nothing, for errors are told before there is a command. */
import type { Io } from "./io.ts";

/** Of a Redis that is linked to this container. */
export const ADDRESS = "REDIS_PORT_6379_TCP_ADDR";

export const isStoreFlagged = (argv: readonly string[]): boolean => argv.some((arg) => arg === "--store" || arg.startsWith("--store="));

/** For what is met to be wrong with a store only once somebody has connected to it. */
export function storeLabel(argv: readonly string[], env: Io["env"]): string {
  if (isStoreFlagged(argv)) return "--store";
  return ["SKEIN_STORE", "REDIS_URL", ADDRESS].find((name) => Boolean(env[name])) ?? "--store";
}
