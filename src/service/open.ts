/** Opens the service: the application, the files of the dashboard, the socket. Who keeps and runs jobs is given. */
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type Clock, realClock } from "../core/clock.ts";
import type { JobService } from "../core/jobs.ts";
import type { Logger } from "../core/log.ts";
import { type App, createApp } from "./app.ts";
import type { Asset } from "./context.ts";
import type { Access } from "./guard.ts";
import { SERVICE_LIMITS, type ServiceLimits } from "./limits.ts";
import { problemResponse } from "./problem.ts";
import { listen } from "./server.ts";

export interface ServiceOptions {
  /** Opened once the socket is: work must not begin for a service that cannot be reached. */
  readonly jobs: JobService | (() => Promise<JobService>);
  readonly host: string;
  /** 0: any free one. */
  readonly port: number;
  readonly access: Access;
  readonly log: Logger;
  /** Whether jobs may name scrapers of the service. */
  readonly scrapers?: boolean;
  readonly limits?: Partial<ServiceLimits>;
  readonly clock?: Clock;
  /** Folder of the built dashboard; by default where the build puts it. */
  readonly dashboard?: string;
}

export interface OpenService {
  readonly host: string;
  readonly port: number;
  /** Waits at most so long for answers under way. Jobs are the caller's to close. */
  close(graceMs: number): Promise<void>;
}

const TYPES: Readonly<Record<string, string>> = {
  html: "text/html; charset=utf-8",
  js: "text/javascript; charset=utf-8",
  css: "text/css; charset=utf-8",
  svg: "image/svg+xml",
  png: "image/png",
  ico: "image/x-icon",
  woff2: "font/woff2",
  json: "application/json",
  txt: "text/plain; charset=utf-8",
  webmanifest: "application/manifest+json",
};

/** In a build the chunks and dashboard/ lie in dist/; in a checkout the sources run and the last build is served. */
function builtDashboard(): string | null {
  const places = ["../dashboard/", "./dashboard/", "../../dist/dashboard/"].map((path) => fileURLToPath(new URL(path, import.meta.url)));
  return places.find((place) => existsSync(join(place, "index.html"))) ?? null;
}

/** Files of a folder by their path on the service; what has no known type is left out. Read once: a handful of files. */
export function readAssets(folder: string | null): ReadonlyMap<string, Asset> {
  const assets = new Map<string, Asset>();
  if (folder === null) return assets;
  for (const name of readdirSync(folder, { recursive: true, encoding: "utf8" })) {
    const type = TYPES[/\.([a-z0-9]+)$/.exec(name)?.[1] ?? ""];
    if (type === undefined) continue;
    const body = new Uint8Array(readFileSync(join(folder, name)));
    assets.set(`/${name.replaceAll("\\", "/")}`, { type, body, etag: `"${createHash("sha256").update(body).digest("base64url").slice(0, 22)}"` });
  }
  return assets;
}

const NOT_YET = { status: 503, detail: "the service is starting", headers: { "retry-after": "1" }, close: true };

/** Rejects with the system's error when the address cannot be had, and with that of the jobs when they cannot be opened. */
export async function openService(options: ServiceOptions): Promise<OpenService> {
  const { log, access, host, port, scrapers = false, clock = realClock } = options;
  const limits: ServiceLimits = { ...SERVICE_LIMITS, ...options.limits };
  const closing = new AbortController();
  const assets = readAssets(options.dashboard ?? builtDashboard());
  let app: App = { fetch: async () => problemResponse(NOT_YET) };
  const listening = await listen({ fetch: (request, env) => app.fetch(request, env) }, { host, port }, limits, log, () => closing.abort());
  try {
    const jobs = typeof options.jobs === "function" ? await options.jobs() : options.jobs;
    app = createApp({ jobs, clock, log, access, limits, scrapers, assets, closing: closing.signal });
  } catch (error) {
    await listening.close(0);
    throw error;
  }
  return listening;
}
