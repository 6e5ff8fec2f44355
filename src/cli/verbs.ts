/** The smaller commands by name. Each is loaded when it is asked for, and what it works with when there is work. */
import type { Io } from "./io.ts";
import type { Verb } from "./verb.ts";

export interface Command {
  /** Answers the exit status. */
  run(argv: readonly string[], io: Io): Promise<number>;
  help(): Promise<string>;
}

const helpOf = async (verb: Verb): Promise<string> => (await import("./verb.ts")).verbHelp(verb);

export const VERBS: ReadonlyMap<string, Command> = new Map<string, Command>([
  [
    "serve",
    {
      run: async (argv, io) =>
        (await import("./commands/serve.ts")).serveCommand(argv, io, async () => {
          const [service, jobs] = await Promise.all([import("../service/open.ts"), import("../jobs/jobs.ts")]);
          return { openService: service.openService, openJobs: jobs.openJobs };
        }),
      help: async () => helpOf((await import("./commands/serve.ts")).SERVE),
    },
  ],
  [
    "fetch",
    {
      run: async (argv, io) => (await import("./commands/fetch.ts")).fetchCommand(argv, io, () => import("../inspect/probe.ts")),
      help: async () => helpOf((await import("./commands/fetch.ts")).FETCH),
    },
  ],
  [
    "robots",
    {
      run: async (argv, io) => (await import("./commands/robots.ts")).robotsCommand(argv, io, () => import("../inspect/probe-robots.ts")),
      help: async () => helpOf((await import("./commands/robots.ts")).ROBOTS),
    },
  ],
  [
    "explain",
    {
      run: async (argv, io) =>
        (await import("./commands/explain.ts")).explainCommand(
          argv,
          io,
          async () => {
            const [view, facts, words] = await Promise.all([import("../inspect/inspect.ts"), import("../inspect/explain.ts"), import("../inspect/words.ts")]);
            return { ...view, ...facts, ...words };
          },
          async () => {
            const [store, view, words] = await Promise.all([
              import("../inspect/store.ts"),
              import("../inspect/store-explain.ts"),
              import("../inspect/words.ts"),
            ]);
            return { ...store, ...view, ...words };
          },
        ),
      help: async () => helpOf((await import("./commands/explain.ts")).EXPLAIN),
    },
  ],
  [
    "status",
    {
      run: async (argv, io) =>
        (await import("./commands/status.ts")).statusCommand(
          argv,
          io,
          async () => ({ ...(await import("../inspect/inspect.ts")), ...(await import("../inspect/status.ts")) }),
          async () => ({ ...(await import("../inspect/store.ts")), ...(await import("../inspect/store-status.ts")) }),
        ),
      help: async () => helpOf((await import("./commands/status.ts")).STATUS),
    },
  ],
  [
    "export",
    {
      run: async (argv, io) =>
        (await import("./commands/export.ts")).exportCommand(
          argv,
          io,
          async () => {
            const [view, files, journal] = await Promise.all([
              import("../inspect/inspect.ts"),
              import("../inspect/export.ts"),
              import("../inspect/journal.ts"),
            ]);
            return { ...view, ...files, ...journal };
          },
          () => import("../cluster/export-store.ts"),
        ),
      help: async () => helpOf((await import("./commands/export.ts")).EXPORT),
    },
  ],
  [
    "work",
    {
      run: async (argv, io) => (await import("./commands/work.ts")).workCommand(argv, io, () => import("../cluster/work.ts")),
      help: async () => helpOf((await import("./commands/work.ts")).WORK),
    },
  ],
  [
    "init",
    {
      run: async (argv, io) => (await import("./commands/init.ts")).initCommand(argv, io),
      help: async () => helpOf((await import("./commands/init.ts")).INIT),
    },
  ],
  [
    "cache",
    {
      run: async (argv, io) => (await import("./commands/cache.ts")).cacheCommand(argv, io, () => import("../inspect/cache.ts")),
      help: async () => helpOf((await import("./commands/cache.ts")).CACHE),
    },
  ],
  [
    "reparse",
    {
      run: async (argv, io) => (await import("./commands/reparse.ts")).reparseCommand(argv, io, () => import("../reparse.ts")),
      help: async () => helpOf((await import("./commands/reparse.ts")).REPARSE),
    },
  ],
  [
    "doctor",
    {
      run: async (argv, io) =>
        (await import("./commands/doctor.ts")).doctorCommand(argv, io, async () => ({
          ...(await import("../inspect/doctor.ts")),
          loadStore: () => import("../inspect/store-doctor.ts"),
        })),
      help: async () => helpOf((await import("./commands/doctor.ts")).DOCTOR),
    },
  ],
]);
