/** A service's process without the service, killed by its parent: makes the jobs that are missing and waits until all have ended. `program.ts DIR JOBS ORIGIN…`; for tests only. */
import { writeSync } from "node:fs";
import { ENDED_STATES } from "../../src/core/jobs.ts";
import { parseSpec } from "../../src/core/spec.ts";
import { openJobs } from "../../src/jobs/jobs.ts";

const [dir = "", count = "", ...origins] = process.argv.slice(2);
const jobs = await openJobs({
  dir,
  maxRunning: 4,
  addresses: { refusePrivate: true, allow: ["127.0.0.0/8"] },
  log: (level, message, fields) => {
    if (level === "warn" || level === "error") console.error(message, JSON.stringify(fields));
  },
});
for (let n = 0; n < Number(count); n++) {
  const origin = origins[n % origins.length] ?? "";
  // The second part of the seeds comes later, to a job that runs, waits or has been killed in between.
  const spec = parseSpec({ images: true, perHost: { concurrency: 4 }, retry: { max: 5 }, extract: { title: "title" } });
  const lines = [`${origin}/job-${n}/`, "no URL", `${origin}/job-${n}/p7`];
  const answer = await jobs.create({ spec, lines, idempotency: { key: `job ${n}`, fingerprint: String(n) } });
  if (answer.kind !== "created" && answer.kind !== "repeated") throw new Error(`job ${n}: ${answer.kind}`);
  if (answer.job.id !== n) throw new Error(`job ${n} has the number ${answer.job.id}`);
}
writeSync(1, "ready\n");
await Promise.all(
  Array.from({ length: Number(count) }, async (_, id) => {
    for await (const event of (await jobs.events(id, null, new AbortController().signal)) ?? [])
      if (event.kind === "state" && ENDED_STATES.has(event.state)) return;
  }),
);
await jobs.close();
