/** `skein serve`: the HTTP service with its jobs in a directory, their crawls there too or in a store. Reads the options, says where it listens, ends in order. */
import { resolve } from "node:path";
import { CrawlError, type OptionProblem } from "../../core/errors.ts";
import type { JobService } from "../../core/jobs.ts";
import type { LogFields, Logger, LogLevel } from "../../core/log.ts";
import { parseDuration, parseSize } from "../../core/units.ts";
import type { JobsOptions } from "../../jobs/jobs.ts";
import { compileAddressGuard } from "../../rules/address.ts";
import type { OpenService, ServiceOptions } from "../../service/open.ts";
import { type Console, createConsole } from "../console.ts";
import { EXIT } from "../exit.ts";
import { cliFlag } from "../flags.ts";
import type { Io, StopSignal } from "../io.ts";
import { type StoreAddress, storeNamed, storeOfContainers } from "../store-address.ts";
import { type Reading, readVerb, type Verb } from "../verb.ts";

export interface ServeParts {
  readonly openService: (options: ServiceOptions) => Promise<OpenService>;
  readonly openJobs: (options: JobsOptions) => Promise<JobService>;
}

export const SERVE: Verb = {
  name: "serve",
  head: `Usage: skein serve [--port 5000] [--state DIR] [--store URL] [--token T]

Crawls as jobs over HTTP, with a dashboard for the browser. Jobs lie in a directory: they survive
kill -9, and the next start goes on with them. With --store their crawls live in a Redis, and every
skein work there takes their URLs. Without a token it listens on this machine only.

Examples:
  skein serve
  curl -X POST -F "urls=@list.txt" localhost:5000
  SKEIN_TOKEN=$(openssl rand -hex 32) skein serve --host 0.0.0.0
  skein serve --store redis://localhost:6379
`,
  own: [
    cliFlag("port", { value: "N", allowed: "a port", description: "Port to listen on; 0 takes a free one. WEBAPP_PORT and PORT name it too. [default: 5000]" }),
    cliFlag("host", { value: "ADDRESS", allowed: "an address", description: "Address to listen on. [default: 127.0.0.1]" }),
    cliFlag("state", { value: "DIR", allowed: "a directory", description: "Where the jobs lie; SKEIN_STATE names it too. [default: ./skein-data]" }),
    cliFlag("workers", {
      value: "N",
      allowed: "a whole number from 0",
      description: "0: fetches nothing here; with --store, workers do. [default: 1]",
    }),
    cliFlag("token", {
      value: "T",
      allowed: "a token",
      description: "Asked of every request (Authorization: Bearer T). Better as SKEIN_TOKEN: others see flags.",
    }),
    cliFlag("no-auth", { description: "Another address than loopback without a token: whoever reaches it may crawl from here." }),
    cliFlag("allow-host", {
      ...{ value: "NAME", allowed: "a host name" },
      description: "Without a token: a name that Host may have beside those of loopback (repeatable).",
    }),
    cliFlag("scrapers", { value: "DIR", allowed: "a directory", description: "Folder of scrapers that jobs may name." }),
    cliFlag("max-running", { value: "N", allowed: "a whole number from 1", description: "Jobs that run side by side; others wait. [default: 16]" }),
    cliFlag("max-jobs", { value: "N", allowed: "a whole number from 1", description: "Jobs that have not ended. [default: 10000]" }),
    cliFlag("max-urls", { value: "N", allowed: "a whole number from 1", description: "URLs given to one job. [default: 10000000]" }),
    cliFlag("max-upload", { value: "S", allowed: "a size", description: "Largest uploaded list of URLs. [default: 256MB]" }),
    cliFlag("max-rate", { value: "N", allowed: "a whole number from 0", description: "Requests a second of one client; 0: any number. [default: 1000]" }),
    cliFlag("keep", { value: "D", allowed: "a duration", description: "Delete jobs so long after their end. By default they are kept." }),
    cliFlag("log-format", { value: "text|json", allowed: "one of text, json", description: "Log on stderr as text or as JSON lines." }),
    cliFlag("quiet", { short: "q", description: "Log errors only." }),
    cliFlag("verbose", { short: "v", description: "Log requests that only read too." }),
  ],
  shared: ["store", "allow-address"],
  tail: `
Without --store, REDIS_URL names one, or REDIS_PORT_6379_TCP_ADDR and REDIS_PORT_6379_TCP_PORT of a
linked container; not where --state is given.

Exit status: 130 or 143 after Ctrl-C or SIGTERM, jobs go on at the next start; 2 usage, or the
address cannot be had; 3 the directory cannot be written; 5 the store did not answer within 10 s;
7 another process has the directory.
`,
};

const DEFAULT_PORT = 5_000;
/** How long answers that are under way may take at the end. */
const GRACE_MS = 3_000;

interface Settings {
  readonly port: number;
  readonly host: string;
  readonly workers: number;
  /** Null: crawls live in the directory. */
  readonly store: StoreAddress | null;
  /** A Redis that was told of and is not used. */
  readonly unused: StoreAddress | null;
  readonly token: string | null;
  readonly noAuth: boolean;
  readonly names: readonly string[];
  readonly limits: NonNullable<ServiceOptions["limits"]>;
  readonly jobs: Omit<JobsOptions, "log">;
}

/** 127.0.0.0/8 and ::1; a name other than localhost may lead anywhere. */
const isLoopback = (host: string) => /^(?:127(?:\.\d{1,3}){3}|::1|localhost)$/i.test(host);

/** The port of a variable: a number, or what a linked container is given, tcp://ADDRESS:PORT. */
function portOf(text: string): number | null {
  const digits = /^(?:tcp:\/\/\S*:)?(\d{1,5})$/.exec(text.trim())?.[1];
  return digits !== undefined && Number(digits) <= 65_535 ? Number(digits) : null;
}

/** Whoever names a directory wants that, whatever a container was linked to. */
function storeOf(reading: Reading, argv: readonly string[], io: Io): Pick<Settings, "store" | "unused"> {
  const named = storeNamed(reading, argv, io.env);
  if (named !== null || reading.text("state") === null) return { store: named ?? storeOfContainers(io.env), unused: null };
  return { store: null, unused: storeOfContainers(io.env) };
}

function settingsOf(reading: Reading, argv: readonly string[], io: Io): Settings {
  const problems: OptionProblem[] = [];
  const wrong = (option: string, message: string) => void problems.push({ option, message });
  const number = (name: string, least: number): number | null => {
    const text = reading.text(name);
    if (text === null) return null;
    if (/^\d{1,15}$/.test(text) && Number(text) >= least) return Number(text);
    wrong(`--${name}`, `expected a whole number from ${least}, got ${JSON.stringify(text)}`);
    return null;
  };
  const unit = (name: string, parse: (text: string) => number | null, form: string): number | null => {
    const text = reading.text(name);
    const value = text === null ? null : parse(text);
    if (text !== null && value === null) wrong(`--${name}`, `expected ${form}, got ${JSON.stringify(text)}`);
    return value;
  };
  const named = [["--port", reading.text("port")] as const, ...(["WEBAPP_PORT", "PORT"] as const).map((name) => [name, io.env[name] ?? null] as const)];
  const [label, text] = named.find(([, value]) => value !== null && value !== "") ?? ["", null];
  const port = text === null ? DEFAULT_PORT : portOf(text);
  if (port === null) wrong(label, `expected a port from 0 to 65535, got ${JSON.stringify(text)}`);
  const host = reading.text("host") ?? "127.0.0.1";
  const token = reading.text("token") ?? (io.env["SKEIN_TOKEN"] || null);
  if (token !== null && !/^[\x21-\x7e]+$/.test(token)) wrong("--token", "expected printable characters without blanks (not shown: it is a password)");
  const noAuth = reading.isOn("no-auth");
  if (token !== null && noAuth) wrong("--no-auth", "contradicts the token; leave one of them out");
  if (token === null && !noAuth && !isLoopback(host))
    wrong("--host", `${host} may be reached by others: set SKEIN_TOKEN, or say with --no-auth that whoever reaches it may crawl from this machine`);
  try {
    compileAddressGuard({ refusePrivate: true, allow: reading.spec.addresses.allow });
  } catch (error) {
    if (!(error instanceof CrawlError)) throw error;
    problems.push(...error.problems.map(({ message }) => ({ option: "--allow-address", message })));
  }
  const format = reading.text("log-format") ?? "text";
  if (format !== "text" && format !== "json") wrong("--log-format", `expected one of text, json, got ${JSON.stringify(format)}`);
  const workers = number("workers", 0) ?? 1;
  const [maxRunning, maxJobs, maxUrls] = [number("max-running", 1), number("max-jobs", 1), number("max-urls", 1)];
  const uploadBytes = unit("max-upload", parseSize, "a size such as 10MB");
  const keepFor = unit("keep", parseDuration, "a duration such as 30d");
  const perSecond = number("max-rate", 0);
  if (problems.length > 0 || port === null)
    throw new CrawlError("invalid-options", problems.map(({ option, message }) => `${option}: ${message}`).join("\n"), { problems });
  const scrapers = reading.text("scrapers");
  const { store, unused } = storeOf(reading, argv, io);
  const looksOn = store !== null && workers === 0;
  return {
    ...{ store, unused },
    ...{ port, host, workers, token, noAuth, names: reading.texts("allow-host").map((name) => name.toLowerCase()) },
    limits: {
      ...(uploadBytes === null ? {} : { uploadBytes, jsonBytes: Math.min(uploadBytes, 8_000_000) }),
      ...(perSecond === null ? {} : { requestsPerSecond: perSecond, requestBurst: 3 * perSecond }),
    },
    jobs: {
      dir: resolve(io.cwd, reading.text("state") ?? (io.env["SKEIN_STATE"] || "skein-data")),
      addresses: { refusePrivate: true, allow: reading.spec.addresses.allow },
      scrapersDir: scrapers === null ? null : resolve(io.cwd, scrapers),
      store: store === null ? null : { url: store.url, looksOn },
      ...(workers === 0 && !looksOn ? { maxRunning: 0 } : maxRunning === null ? {} : { maxRunning }),
      ...(maxJobs === null ? {} : { maxJobs }),
      ...(maxUrls === null ? {} : { maxUrls }),
      keepFor,
    },
  };
}

/** What the system says of an address that cannot be had, with the next step. */
function addressError(error: unknown, host: string, port: number): unknown {
  const code = error instanceof Error && "code" in error ? error.code : null;
  const why =
    code === "EADDRINUSE"
      ? `port ${port} of ${host} is in use. Next step: name another one with --port N (0 takes a free one), or end the process that has it`
      : code === "EACCES"
        ? `this user may not listen on port ${port}. Next step: name one from 1024 with --port N`
        : code === "EADDRNOTAVAIL" || code === "ENOTFOUND" || code === "EAI_AGAIN" || code === "EINVAL"
          ? `${host} is no address of this machine. Next step: --host 127.0.0.1, or 0.0.0.0 for all of them`
          : null;
  if (why === null) return error;
  const option = code === "EADDRINUSE" || code === "EACCES" ? "--port" : "--host";
  return new CrawlError("invalid-options", why, { cause: error, problems: [{ option, message: why }] });
}

/** Every line is a line: a service's log is not summed up like a crawl's. */
function logger(console: Console): Logger {
  return (level: LogLevel, message: string, fields: LogFields = {}) => {
    const { method, path, status, ms, ...rest } = fields;
    const details = Object.entries(rest).map(([name, value]) => `${name} ${value}`);
    const text = message === "request" ? `${method} ${path} ${status} ${ms} ms` : `${message}${details.length === 0 ? "" : ` (${details.join(", ")})`}`;
    console.say(level, level === "warn" || level === "error" ? `${level === "warn" ? "warning" : "error"}: ${text}` : text, message, fields);
  };
}

function sayStore(console: Console, { store, unused }: Settings): void {
  if (unused !== null)
    console.say("info", `--state is given: crawls live there, and the Redis at ${unused.shown} (${unused.from}) is not used`, "store", { store: null });
  if (store === null) return;
  const { shown, from } = store;
  console.say("info", `crawls live in the store at ${shown} (${from}); skein work there takes their URLs too`, "store", { store: shown, from });
}

const spelledHost = (host: string) => (host.includes(":") ? `[${host}]` : host);

function greet(
  console: Console,
  { host, port }: { readonly host: string; readonly port: number },
  { token, noAuth, host: asked, workers, jobs, store }: Settings,
): void {
  const url = `http://${spelledHost(host)}:${port}/`;
  console.say("info", `skein serves on ${url}  (jobs in ${jobs.dir}; Ctrl-C ends it, the next start goes on with them)`, "serving", {
    url,
    dir: jobs.dir,
    auth: token !== null,
  });
  if (noAuth && !isLoopback(asked))
    console.say(
      "warn",
      `warning: --no-auth: whoever can reach ${url} may crawl from this machine, read every result and delete every job; SKEIN_TOKEN asks for a token instead`,
      "no authentication",
      { url },
    );
  if (workers === 0) {
    const who = store === null ? "jobs are taken and wait; nothing here works on them" : "nothing is fetched here; skein work takes the URLs";
    console.say("info", `--workers 0: ${who}`, "no workers");
  }
  if (workers > 1) {
    const more = store === null ? "" : "; for more start skein work";
    console.say(
      "warn",
      `warning: the service has one worker, which runs many jobs side by side (--max-running); --workers ${workers} counts as 1${more}`,
      "one worker",
      { workers },
    );
  }
}

/** Resolves with the first signal; a second one ends the process at once. */
function untilSignal(io: Io): Promise<StopSignal> {
  return new Promise((resolve) => {
    let first = true;
    io.onSignal((signal) => {
      if (!first) io.die(signal);
      first = false;
      resolve(signal);
    });
  });
}

/** Answers the exit status. Throws CrawlError for what is ours; the caller says it. */
export async function serveCommand(argv: readonly string[], io: Io, load: () => Promise<ServeParts>): Promise<number> {
  const reading = await readVerb(SERVE, argv, io, (read) => void settingsOf(read, argv, io));
  if (reading === null) return EXIT.ok;
  const settings = settingsOf(reading, argv, io);
  const format = reading.text("log-format") === "json" ? "json" : "text";
  const console = createConsole(io, { format, quiet: reading.isOn("quiet"), verbose: reading.isOn("verbose"), progress: false });
  const log = logger(console);
  sayStore(console, settings);
  const { openService, openJobs } = await load();
  const { host, port, token, names, noAuth, limits } = settings;
  const signalled = untilSignal(io);
  let jobs: JobService | null = null;
  const service = await openService({
    ...{ host, port, log, limits, access: { token, names, network: noAuth && !isLoopback(host) }, scrapers: settings.jobs.scrapersDir !== null },
    jobs: async () => (jobs = await openJobs({ ...settings.jobs, log })),
  }).catch((error: unknown) => {
    throw addressError(error, host, port);
  });
  greet(console, service, settings);
  const signal = await signalled;
  console.say("info", `${signal}: ending; jobs go on at the next start`, "ending", { signal });
  const held: JobService | null = jobs;
  await Promise.all([service.close(GRACE_MS), closeJobs(held)]);
  return EXIT[signal];
}

async function closeJobs(jobs: JobService | null): Promise<void> {
  await jobs?.close();
}
