/** The three-call API: POST /, GET /status/{id}, GET /result/{id}; and the page that GET / gives. */
import { type Ask, type Asset, goneSignal, idOf, jobOf, jsonAnswer, type Service, typeOf } from "./context.ts";
import { createJob } from "./create.ts";
import { notFound } from "./problem.ts";
import { blocks, jsonArray } from "./records.ts";
import { streamOf } from "./stream.ts";
import { simpleJob } from "./views.ts";

export async function submit(ask: Ask, service: Service): Promise<Response> {
  return jsonAnswer(simpleJob(await createJob(ask, service, "simple")));
}

export async function status(ask: Ask, service: Service): Promise<Response> {
  return jsonAnswer(simpleJob(await jobOf(ask, service)));
}

/** JSON texts of strings, as the strings on lines of their own: a URL has no line end in it. */
async function* plainLines(texts: AsyncIterable<string>): AsyncGenerator<string> {
  for await (const text of texts) yield `${JSON.parse(text)}\n`;
}

async function* textsOf(lines: AsyncIterable<{ readonly text: string }>): AsyncGenerator<string> {
  for await (const { text } of lines) yield text;
}

/** All that is there now, streamed; asked again later it has more. */
export async function result(ask: Ask, service: Service): Promise<Response> {
  const id = idOf(ask);
  const type = typeOf(ask, ["text/plain", "application/json"]);
  const lines = await service.jobs.lines(id, "images", null);
  if (lines === null) throw notFound("there is no such job");
  const texts = textsOf(lines);
  const body = streamOf(blocks(type === "text/plain" ? plainLines(texts) : jsonArray(texts)), goneSignal(ask));
  return new Response(body, { headers: { "content-type": type === "text/plain" ? "text/plain; charset=utf-8" : type } });
}

const NO_DASHBOARD = `<!doctype html>
<html lang="en"><meta charset="utf-8"><title>Skein</title>
<h1>Skein</h1>
<p>The service runs. This build lacks the dashboard; the API is at <a href="/openapi.json">/openapi.json</a>.</p>
<pre>curl -X POST -F "urls=@list.txt" localhost:5000
curl localhost:5000/status/0
curl localhost:5000/result/0</pre>
</html>
`;

const fallback: Asset = { type: "text/html; charset=utf-8", body: new Uint8Array(Buffer.from(NO_DASHBOARD)), etag: '"none"' };

/** Scripts and styles of its own only, and its own images. */
const pagePolicy = (images: string) =>
  `default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:${images}; connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`;
const PAGE_POLICY = pagePolicy("");
/** Of the page as it is asked for by whoever wants to see what a crawl found: `/?thumbnails` (docs/decisions/0017). */
const THUMBNAILS_POLICY = pagePolicy(" http: https:");

/** A file of the dashboard; null: there is none of that name. Names that carry a digest of their content never change. */
export function asset(ask: Ask, { assets }: Service): Response | null {
  const { pathname, searchParams } = new URL(ask.req.url);
  const name = pathname === "/" ? "/index.html" : pathname;
  const file = assets.get(name) ?? (name === "/index.html" ? fallback : undefined);
  if (file === undefined) return null;
  const lasting = /[-.][0-9a-z]{8,}\.(?:js|css|svg|woff2)$/i.test(name) ? "public, max-age=31536000, immutable" : "no-cache";
  const policy = name === "/index.html" && searchParams.has("thumbnails") ? THUMBNAILS_POLICY : PAGE_POLICY;
  const headers = { "content-type": file.type, "content-security-policy": policy, "cache-control": lasting, etag: file.etag };
  if (ask.req.header("if-none-match") === file.etag) return new Response(null, { status: 304, headers });
  return new Response(file.body, { headers });
}
