/** The one place that loads undici, and only the part of it that is used: its whole index takes three times as long to load. */
import type { Client, Dispatcher } from "undici";

export type { Client, Dispatcher };
export type ClientConstructor = typeof Client;

let loaded: Promise<ClientConstructor> | null = null;

/** The Client class: one origin, one connection, HTTP/1.1. Loaded at the first call. */
export function loadClient(): Promise<ClientConstructor> {
  loaded ??= import("undici/lib/dispatcher/client.js").then((module) => module.default);
  return loaded;
}
