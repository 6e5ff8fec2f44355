/** GET /v1/jobs/{id}/pages, items, skipped, images: one page of records, in the form that was asked for. */
import type { JobTable } from "../core/jobs.ts";
import { type Ask, goneSignal, jobOf, linkNext, queryOf, type Service, typeOf } from "./context.ts";
import { csvRows, csvTable } from "./csv.ts";
import { MOST_JSON_RECORDS, MOST_STREAMED_RECORDS, USUAL_RECORDS } from "./limits.ts";
import { HttpProblem } from "./problem.ts";
import { blocks, jsonArray, jsonLines, recordPage } from "./records.ts";
import { streamOf } from "./stream.ts";

const TYPES = ["application/json", "application/x-ndjson", "text/csv"] as const;
const CONTENT_TYPES: Readonly<Record<(typeof TYPES)[number], string>> = {
  "application/json": "application/json",
  "application/x-ndjson": "application/x-ndjson",
  "text/csv": "text/csv; charset=utf-8; header=present",
};
const LONGEST_CURSOR = 1_000;

export async function records(ask: Ask, service: Service, table: JobTable): Promise<Response> {
  const type = typeOf(ask, TYPES);
  const job = await jobOf(ask, service);
  const query = queryOf(ask, ["cursor", "limit"]);
  const limit = query.limit(type === "application/json" ? MOST_JSON_RECORDS : MOST_STREAMED_RECORDS, USUAL_RECORDS);
  const cursor = query.text("cursor");
  if (cursor !== null && cursor.length > LONGEST_CURSOR) query.wrong("cursor", "is none of this list");
  // What is wrong is told all at once; a store that cannot say now whether the cursor is good is no reason to keep the rest back.
  if (query.faults.length > 0 && cursor !== null && cursor.length <= LONGEST_CURSOR) {
    const lines = await service.jobs.lines(job.id, table, cursor).catch(() => undefined);
    if (lines === null) query.wrong("cursor", "is none of this list");
  }
  query.check();
  const gone = goneSignal(ask);
  const page = await recordPage(service.jobs, { id: job.id, table, cursor, limit }, gone);
  if (page === null)
    throw new HttpProblem({ status: 400, detail: "cursor: is none of this list", errors: [{ option: "cursor", message: "is none of this list" }] });
  const pieces =
    type === "text/csv"
      ? csvRows(await csvTable(service.jobs, job.id, table, job.spec.fields), page.texts())
      : type === "application/json"
        ? jsonArray(page.texts())
        : jsonLines(page.texts());
  const headers = {
    "content-type": CONTENT_TYPES[type],
    ...(page.next === null ? {} : { link: linkNext(ask, page.next) }),
    ...(page.last === null ? {} : { "skein-cursor": page.last }),
  };
  return new Response(streamOf(blocks(pieces), gone), { headers });
}
