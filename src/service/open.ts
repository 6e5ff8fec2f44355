/** Opens the service: the application, the files of the dashboard, the socket. Who keeps and runs jobs is given. */
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
  /** Files of the dashboard by path; by default those of the build. */
  readonly assets?: ReadonlyMap<string, Asset>;
}

export interface OpenService {
  readonly host: string;
  readonly port: number;
  /** Waits at most so long for answers under way. Jobs are the caller's to close. */
  close(graceMs: number): Promise<void>;
}

/** The service is of use without its page: curl needs none. */
async function dashboard(log: Logger): Promise<ReadonlyMap<string, Asset>> {
  try {
    return await (await import("./dashboard/files.ts")).dashboardFiles();
  } catch (error) {
    log("warn", "the dashboard is not built (npm run build)", { error: error instanceof Error ? error.message : String(error) });
    return new Map();
  }
}

const NOT_YET = { status: 503, detail: "the service is starting", headers: { "retry-after": "1" }, close: true };
/** Answers until jobs can be asked. */
export const STARTING: App = { fetch: async () => problemResponse(NOT_YET) };

/** Rejects with the system's error when the address cannot be had, and with that of the jobs when they cannot be opened. */
export async function openService(options: ServiceOptions): Promise<OpenService> {
  const { log, access, host, port, scrapers = false, clock = realClock } = options;
  const limits: ServiceLimits = { ...SERVICE_LIMITS, ...options.limits };
  const closing = new AbortController();
  const assets = options.assets ?? (await dashboard(log));
  let app = STARTING;
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
