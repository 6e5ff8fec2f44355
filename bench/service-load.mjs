// 50 clients at once on `skein serve` while jobs run: latency percentiles by call, memory over time, and whether anything was lost.
//   node bench/service-load.mjs [clients] [seconds]
// Each client posts a job now and then, and asks for the status, results and records of its own jobs in between, without a pause. Then every job is waited for
// until it has ended, however late, and must be done with exactly the pages and images that its site has. What is not is told apart: lost (the job, a page or an
// image of a fetched page is missing), unfinished (nothing of any job moved for a minute), or failed pages, which have a record that says why: this process, which
// serves the site as well, was too slow to answer. Late is who ended after the clients did. Exit status 1 if anything is lost or unfinished.
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { Agent, createServer, get, request } from "node:http";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const root = resolve(dirname(fileURLToPath(import.meta.url)), "..");
const clients = Number(process.argv[2] ?? 50);
const seconds = Number(process.argv[3] ?? 300);
const PAGES = 10; // a job: its page, and what it links to, with an image each

const site = createServer((incoming, outgoing) => {
  if (incoming.url === "/robots.txt") return outgoing.writeHead(404).end();
  const [, job, page] = incoming.url.split("/");
  const links = page === "0" ? Array.from({ length: PAGES - 1 }, (_, n) => `<a href="/${job}/${n + 1}">x</a>`).join("") : "";
  outgoing.writeHead(200, { "content-type": "text/html" }).end(`<img src="/${job}/${page}.png">${links}`);
});
await new Promise((done) => site.listen(0, "127.0.0.1", done));
const origin = `http://127.0.0.1:${site.address().port}`;

const state = mkdtempSync(join(tmpdir(), "skein-load-"));
const args = [
  join(root, "bin/skein.js"),
  "serve",
  "--port",
  "0",
  "--state",
  join(state, "data"),
  "--allow-address",
  "127.0.0.0/8",
  "--max-rate",
  "0",
  "--log-format",
  "json",
];
const service = spawn(process.execPath, args, { stdio: ["ignore", "ignore", "pipe"] });
let log = "";
service.stderr.setEncoding("utf8");
const url = await new Promise((found, failed) => {
  service.stderr.on("data", (text) => {
    log = (log + text).slice(-20_000);
    const match = /"url":"(http:[^"]+)"/.exec(log);
    if (match) found(new URL(match[1]));
  });
  service.on("exit", (code) => failed(new Error(`the service ended with ${code}: ${log}`)));
});

const agent = new Agent({ keepAlive: true, maxSockets: clients + 5 });
const times = new Map();
const statuses = new Map();

function call(name, method, path, body) {
  const startedAt = performance.now();
  return new Promise((done, failed) => {
    const outgoing = request(
      { host: url.hostname, port: url.port, method, path, agent, headers: body === undefined ? {} : { "content-type": "text/plain" } },
      (incoming) => {
        const parts = [];
        incoming
          .on("data", (part) => parts.push(part))
          .on("end", () => {
            const list = times.get(name) ?? [];
            times.set(name, list);
            list.push(performance.now() - startedAt);
            statuses.set(incoming.statusCode, (statuses.get(incoming.statusCode) ?? 0) + 1);
            done({ status: incoming.statusCode, headers: incoming.headers, text: Buffer.concat(parts).toString() });
          });
      },
    );
    outgoing.on("error", failed).end(body);
  });
}

const jobs = new Map(); // id → its name on the site
let serial = 0;
const until = performance.now() + seconds * 1000;

async function client() {
  const mine = [];
  while (performance.now() < until) {
    const name = `j${serial++}`;
    const made = await call("POST /", "POST", "/", `${origin}/${name}/0\n`);
    if (made.status !== 200) throw new Error(`POST: ${made.status} ${made.text}`);
    const { job_id: id } = JSON.parse(made.text);
    if (jobs.has(id)) throw new Error(`the id ${id} was given twice`);
    jobs.set(id, name);
    mine.push(id);
    for (let n = 0; n < 40 && performance.now() < until; n++) {
      const one = mine[Math.floor(Math.random() * mine.length)];
      const kind = Math.random();
      const [label, path] =
        kind < 0.6
          ? ["GET /status", `/status/${one}`]
          : kind < 0.8
            ? ["GET /result", `/result/${one}`]
            : kind < 0.95
              ? ["GET pages", `/v1/jobs/${one}/pages`]
              : ["GET jobs", "/v1/jobs?limit=20"];
      const { status } = await call(label, "GET", path);
      if (status !== 200) throw new Error(`${path}: ${status}`);
    }
  }
}

const memory = [];
const metrics = () =>
  new Promise((done) =>
    get({ host: url.hostname, port: url.port, path: "/metrics" }, (incoming) => {
      let text = "";
      incoming
        .setEncoding("utf8")
        .on("data", (part) => (text += part))
        .on("end", () => done(Number(/^process_resident_memory_bytes (\d+)/m.exec(text)?.[1] ?? 0)));
    }).on("error", () => done(0)),
  );
const sampler = setInterval(async () => memory.push(Math.round((await metrics()) / 1e6)), Math.max(1_000, (seconds * 1_000) / 30));

const startedAt = performance.now();
await Promise.all(Array.from({ length: clients }, client));
const lasted = (performance.now() - startedAt) / 1000;
clearInterval(sampler);

/** The state of every job, by pages of the list. */
async function allJobs() {
  const found = new Map();
  for (let path = "/v1/jobs?limit=1000"; path !== undefined; ) {
    const { status, text, headers } = await call("after", "GET", path);
    if (status !== 200) throw new Error(`${path}: ${status} ${text}`);
    for (const job of JSON.parse(text)) found.set(job.id, job);
    path = /^<([^>]+)>/.exec(headers.link ?? "")?.[1];
  }
  return found;
}

const STANDSTILL_MS = 60_000;
const ENDED = ["completed", "stopped", "failed", "cancelled"];
/** Resolves with the jobs once all have ended, or nothing has moved for long. It asks for figures, not for lists: those of many thousand jobs would be most of the work. */
async function untilEnded() {
  let before = "";
  let movedAt = performance.now();
  for (;;) {
    const { text } = await call("after", "GET", "/metrics");
    const states = new Map([...text.matchAll(/^skein_jobs\{state="(\w+)"\} (\d+)/gm)].map(([, state, count]) => [state, Number(count)]));
    const open = [...states].filter(([state]) => !ENDED.includes(state)).reduce((sum, [, count]) => sum + count, 0);
    const now = [...text.matchAll(/^skein_(?:jobs|pages_total)\b.*$/gm)].join();
    if (now !== before) movedAt = performance.now();
    before = now;
    if (open === 0 || performance.now() - movedAt > STANDSTILL_MS) return allJobs();
    await new Promise((later) => setTimeout(later, 500));
  }
}

const loadEndedAt = Date.now();
const found = await untilEnded();
const verdicts = { right: 0, lost: 0, unfinished: 0, "with failed pages": 0 };
let late = 0;
function tell(verdict, id, why) {
  verdicts[verdict]++;
  console.log(`job ${id} (${jobs.get(id)}) ${verdict}: ${why}`);
}

/** What is wrong with a job that has ended: what it lacks, and what its records say of that. */
async function look(id, name, job) {
  const pages = JSON.parse((await call("after", "GET", `/v1/jobs/${id}/pages?limit=1000`)).text);
  const images = new Set((await call("after", "GET", `/result/${id}`)).text.trimEnd().split("\n"));
  const numbers = Array.from({ length: PAGES }, (_, n) => n);
  const record = new Map(pages.map((page) => [page.url, page]));
  const failed = numbers.filter((n) => record.get(`${origin}/${name}/${n}`)?.outcome === "failed");
  // A page that failed has no image, and one that links to the others has none of them to be found.
  const excused = (n) => failed.includes(n) || (n > 0 && failed.includes(0));
  const missing = numbers.filter((n) => !excused(n) && (!record.has(`${origin}/${name}/${n}`) || !images.has(`${origin}/${name}/${n}.png`)));
  const { total, completed, inProgress } = job.counts;
  const wrong = pages.length !== new Set(record.keys()).size || completed !== total || inProgress !== 0 || completed !== pages.length;
  if (job.state !== "completed" || missing.length > 0 || wrong)
    return tell("lost", id, `state ${job.state} (${job.detail}), pages ${pages.length}, missing ${missing.join(" ")}, counts ${JSON.stringify(job.counts)}`);
  if (failed.length > 0)
    return tell("with failed pages", id, failed.map((n) => `${n} ${JSON.stringify(record.get(`${origin}/${name}/${n}`).error)}`).join(", "));
  verdicts.right++;
}

const left = [...jobs];
async function verify() {
  for (let next = left.shift(); next !== undefined; next = left.shift()) {
    const [id, name] = next;
    const job = found.get(id);
    if (job === undefined) tell("lost", id, "the service does not know it");
    else if (!ENDED.includes(job.state)) tell("unfinished", id, `${job.state}, ${JSON.stringify(job.counts)}`);
    else {
      if (Date.parse(job.endedAt) > loadEndedAt) late++;
      await look(id, name, job);
    }
  }
}
await Promise.all(Array.from({ length: 20 }, verify));
for (const id of found.keys()) if (!jobs.has(id)) console.log(`job ${id} was not asked for, or its answer was lost`);
console.log(`all jobs ended ${((performance.now() - startedAt) / 1000).toFixed(0)} s after the start; ${late} of them after the clients did`);

const at = (list, share) => list[Math.min(list.length - 1, Math.floor(list.length * share))].toFixed(0);
console.log(
  `${clients} clients, ${lasted.toFixed(0)} s, ${jobs.size} jobs of ${PAGES} pages: ${Object.entries(verdicts)
    .map(([verdict, n]) => `${n} ${verdict}`)
    .join(", ")}`,
);
console.log(`statuses: ${[...statuses].map(([status, n]) => `${status} × ${n}`).join(", ")}`);
console.log("call          count    p50    p90    p99    max (ms)");
times.delete("after");
for (const [name, list] of times) {
  list.sort((a, b) => a - b);
  console.log(`${name.padEnd(12)} ${String(list.length).padStart(6)} ${[0.5, 0.9, 0.99, 1].map((share) => at(list, share).padStart(6)).join(" ")}`);
}
console.log(`memory over time (MB): ${memory.join(" ")}`);
service.removeAllListeners("exit");
const ended = new Promise((done) => service.on("exit", (code) => done(code)));
service.kill("SIGTERM");
console.log(`end: status ${await ended}`);
process.exitCode = verdicts.lost + verdicts.unfinished > 0 ? 1 : 0;
site.close();
agent.destroy();
rmSync(state, { recursive: true, force: true });
