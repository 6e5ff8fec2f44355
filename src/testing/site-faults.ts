/** The named faults of the fake site, by path. Pages and robots.txt are site.ts. */
import type { ServerResponse } from "node:http";
import { gzipSync } from "node:zlib";
import type { FakeRequest } from "./site.ts";

type Fault = (request: FakeRequest, response: ServerResponse) => void;

const HTML = { "content-type": "text/html; charset=utf-8" };
/** A page large enough to be cut in the middle. */
const PAGE = `<!doctype html><title>Page</title>${"<p>The quick brown fox jumps over the lazy dog.</p>\n".repeat(400)}`;
const CHUNK = "<p>and on it goes, and on, and on</p>\n".repeat(50);

function numberOf(request: FakeRequest, name: string, otherwise: number): number {
  const given = Number(request.query.get(name) ?? Number.NaN);
  return Number.isFinite(given) ? given : otherwise;
}

const FAULTS: Readonly<Record<string, Fault>> = {
  "/slow": (request, response) => {
    const timer = setTimeout(() => response.writeHead(200, HTML).end(PAGE), numberOf(request, "ms", 2_000));
    response.on("close", () => clearTimeout(timer));
  },
  "/cut": (_, response) => {
    response.writeHead(200, { ...HTML, "content-length": PAGE.length });
    response.write(PAGE.slice(0, PAGE.length / 2), () => response.destroy());
  },
  "/lying-length": (_, response) => {
    response.writeHead(200, { ...HTML, "content-length": 100, connection: "close" });
    response.end(PAGE);
  },
  "/endless": (_, response) => {
    response.writeHead(200, HTML);
    const more = (): void => {
      if (response.destroyed) return;
      if (response.write(CHUNK)) setImmediate(more);
      else response.once("drain", more);
    };
    more();
  },
  "/loop": (request, response) => {
    const step = numberOf(request, "step", 0);
    response.writeHead(302, { location: step === 2 ? "/loop" : `/loop?step=${step + 1}` }).end();
  },
  "/wrong-charset": (_, response) => {
    // The bytes are windows-1252; the header and the document both say UTF-8.
    response.writeHead(200, HTML).end(Buffer.from('<!doctype html><meta charset="utf-8"><title>Café</title><h1>Crème brûlée</h1>', "latin1"));
  },
  "/retry-after": (request, response) => {
    if (request.before >= numberOf(request, "times", 1)) response.writeHead(200, HTML).end(PAGE);
    else response.writeHead(429, { "retry-after": String(numberOf(request, "seconds", 1)) }).end();
  },
  "/gzip-broken": (_, response) => {
    const packed = gzipSync(PAGE);
    packed.fill(0xff, packed.length >> 1);
    response.writeHead(200, { ...HTML, "content-encoding": "gzip" }).end(packed);
  },
  "/reset": (_, response) => {
    response.socket?.resetAndDestroy();
  },
};

/** `/status/503?times=2`: twice 503, then 200; without `times` always. */
function answerStatus(request: FakeRequest, response: ServerResponse): boolean {
  const status = Number(/^\/status\/([2-9]\d\d)$/.exec(request.path)?.[1] ?? Number.NaN);
  if (Number.isNaN(status)) return false;
  const passed = request.before >= numberOf(request, "times", Infinity);
  response.writeHead(passed ? 200 : status, HTML).end(passed ? PAGE : "");
  return true;
}

/** False: there is no fault of that name. */
export function answerFault(request: FakeRequest, response: ServerResponse): boolean {
  const fault = FAULTS[request.path];
  if (fault === undefined) return answerStatus(request, response);
  fault(request, response);
  return true;
}
