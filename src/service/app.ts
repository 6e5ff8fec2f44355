/** The HTTP application: routes to answers, guards before them, headers after them, problems for everything that goes wrong. Opens no socket. */
import { Hono } from "hono";
import { CrawlError, ERROR_CODES } from "../core/errors.ts";
import { type JobTable, STORE_FULL } from "../core/jobs.ts";
import type { Logger } from "../core/log.ts";
import { eventsAnswer } from "./answer-events.ts";
import { addUrls, create, explain, get, hosts, list, patchHosts, pause, remove, resume, stop } from "./answer-jobs.ts";
import { records } from "./answer-records.ts";
import { asset, result, status, submit } from "./answer-simple.ts";
import { type Ask, type Env, incomingOf, jsonAnswer, queryOf, type Service } from "./context.ts";
import { checkHost, checkOrigin, checkToken, clientOf, requestMeter } from "./guard.ts";
import { createMeter, type Meter } from "./metrics.ts";
import { openapiDocument } from "./openapi.ts";
import { HttpProblem, notFound, pointerOf, problemResponse } from "./problem.ts";
import { ROUTES, type Route } from "./routes.ts";

type Answering = (ask: Ask, service: Service) => Promise<Response> | Response;

export interface App {
  /** Answers every request, also with a problem; never rejects. */
  fetch(request: Request, env: Env["Bindings"]): Promise<Response>;
}

async function ready({ jobs }: Service): Promise<Response> {
  const { ready: fit, why } = await jobs.health();
  return fit ? jsonAnswer({ status: "ok" }) : jsonAnswer({ status: "unavailable", detail: why }, 503, { "retry-after": STORE_RETRY_AFTER });
}

/** What answers, by the name of the operation in the route table. */
function answersByOperation(service: Service, meter: Meter): ReadonlyMap<string, Answering> {
  const events = eventsAnswer(service);
  let document: object | null = null;
  const table = (name: JobTable) => (ask: Ask) => records(ask, service, name);
  const answers: Readonly<Record<string, Answering>> = {
    ...{ submit, status, result, createJob: create, listJobs: list, getJob: get, deleteJob: remove, stop, pause, resume, addUrls, explain, hosts, patchHosts },
    ...{ pages: table("pages"), items: table("items"), skipped: table("skipped"), images: table("images"), events: events.answer },
    dashboard: (ask) => asset(ask, service) ?? noSuchPlace(),
    dashboardPlace: (ask) => new Response(null, { status: 308, headers: { location: `/${new URL(ask.req.url).search}` } }),
    healthz: () => jsonAnswer({ status: "ok" }),
    readyz: () => ready(service),
    async metrics() {
      const text = await meter.text(service.jobs, { eventStreams: events.open() });
      return new Response(text, { headers: { "content-type": "text/plain; version=0.0.4; charset=utf-8" } });
    },
    openapi() {
      document ??= openapiDocument();
      return jsonAnswer(document);
    },
  };
  return new Map(Object.entries(answers));
}

function noSuchPlace(): never {
  throw notFound("there is nothing at this path; /openapi.json lists what there is");
}

/** Seconds after which a store that is busy or full may be tried again. */
const STORE_RETRY_AFTER = "5";

/** An exception as an answer. What is not the caller's fault is logged, and answered without its words: they may name paths and addresses. */
function problemOf(error: unknown, log: Logger): Response {
  if (error instanceof HttpProblem) return problemResponse(error.details);
  if (error instanceof CrawlError && error.code === "invalid-options" && error.problems.length > 0) {
    const errors = error.problems.map(({ option, message }) => ({ option, pointer: pointerOf(option), message }));
    return problemResponse({ status: 400, detail: "an option is wrong", errors });
  }
  if (error instanceof CrawlError && error.code === "store-unreachable") {
    // Expected while the store is away: no place in the code would tell more.
    log("warn", "a request failed", { error: error.message });
    const why = error.message === STORE_FULL ? "takes no writes now: nothing was changed" : "cannot be reached now";
    return problemResponse({ status: 503, detail: `the store with the crawls of jobs ${why}`, headers: { "retry-after": STORE_RETRY_AFTER } });
  }
  log("error", "a request failed", { error: error instanceof Error ? (error.stack ?? error.message) : String(error) });
  if (error instanceof CrawlError && ERROR_CODES[error.code].retry)
    return problemResponse({ status: 503, detail: "jobs cannot be read or written now", headers: { "retry-after": STORE_RETRY_AFTER } });
  return problemResponse({ status: 500, detail: "a fault of the service; its log says more" });
}

/** On every answer. Nothing here is for other sites: no CORS, no frames, no sniffing; answers change, so nobody keeps them. */
const HEADERS: Readonly<Record<string, string>> = {
  "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
  "referrer-policy": "no-referrer",
  "cross-origin-resource-policy": "same-origin",
  "cross-origin-opener-policy": "same-origin",
  "cache-control": "no-store",
};

function withHeaders(response: Response): Response {
  for (const [name, value] of Object.entries(HEADERS)) if (!response.headers.has(name)) response.headers.set(name, value);
  return response;
}

/** Such a route looks at its query itself: it has parameters, or a body whose faults are told together with those of the query. */
const takesQuery = ({ anyQuery, method, parameters = [] }: Route) =>
  anyQuery === true || method === "POST" || method === "PATCH" || parameters.some((parameter) => parameter.in === "query");

/** Before anything is done: a parameter that is not known was meant for something. */
const withoutQuery =
  (work: Answering): Answering =>
  (ask, service) => {
    if (ask.req.url.includes("?")) queryOf(ask, []).check();
    return work(ask, service);
  };

/** `{id}` of the route table in the router's spelling. */
const routerPath = (path: string) => path.replace("{id}", ":id");

export function createApp(service: Service): App {
  const { access, limits, clock, log } = service;
  const meter = createMeter();
  const answers = answersByOperation(service, meter);
  const waitOf = requestMeter({ clock, perSecond: limits.requestsPerSecond, burst: limits.requestBurst });

  function guard(ask: Ask, open: boolean): void {
    const incoming = incomingOf(ask);
    const wait = waitOf(clientOf(incoming));
    if (wait !== null)
      throw new HttpProblem({ status: 429, detail: "too many requests", headers: { "retry-after": String(Math.ceil(wait / 1_000)) }, close: true });
    checkHost(incoming.headers.host, access);
    if (!open && access.token !== null) checkToken(incoming.headers.authorization, access.token);
    checkOrigin(incoming);
  }

  /** The one way from a request to its answer. */
  const answering = (operation: string, open: boolean, work: Answering) => async (ask: Ask) => {
    const startedAt = clock.now();
    let response: Response;
    try {
      guard(ask, open);
      response = await work(ask, service);
    } catch (error) {
      response = problemOf(error, log);
    }
    const ms = clock.now() - startedAt;
    meter.note(operation, response.status, ms / 1_000);
    const { method } = ask.req;
    // Without the query: it may hold a URL with a password.
    const path = ask.req.path.slice(0, 200);
    log(method === "GET" || method === "HEAD" ? "debug" : "info", "request", {
      method,
      path,
      status: response.status,
      ms: Math.round(ms),
      client: clientOf(incomingOf(ask)),
    });
    return withHeaders(response);
  };

  const app = new Hono<Env>();
  const methodsOf = new Map<string, string[]>();
  for (const route of ROUTES) {
    const { path, method, operation, open } = route;
    const work = answers.get(operation);
    if (work === undefined) throw new CrawlError("internal", `nothing answers ${operation}`);
    app.on(method, routerPath(path), answering(operation, open === true, takesQuery(route) ? work : withoutQuery(work)));
    methodsOf.set(path, [...(methodsOf.get(path) ?? []), ...(method === "GET" ? ["GET", "HEAD"] : [method])]);
  }
  for (const [path, methods] of methodsOf) {
    const allow = [...methods, "OPTIONS"].join(", ");
    app.options(
      routerPath(path),
      answering("options", true, () => new Response(null, { status: 204, headers: { allow } })),
    );
    const refuse = () => problemResponse({ status: 405, detail: `this path takes ${allow}`, headers: { allow } });
    app.all(routerPath(path), answering("none", true, refuse));
  }
  const isFile = (ask: Ask) => (ask.req.method === "GET" || ask.req.method === "HEAD") && service.assets.has(new URL(ask.req.url).pathname);
  const file = answering("file", true, (ask) => asset(ask, service) ?? noSuchPlace());
  const nothing = answering("none", false, noSuchPlace);
  app.notFound((ask) => (isFile(ask) ? file(ask) : nothing(ask)));
  return { fetch: async (request, env) => app.fetch(request, env) };
}
