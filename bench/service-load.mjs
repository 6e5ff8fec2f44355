// 50 clients at once on `skein serve` while jobs run: latency percentiles by call, memory over time, and whether anything was lost.
//   node bench/service-load.mjs [clients] [seconds]
// Each client posts a job now and then, and asks for the status, results and records of its own jobs in between, without a pause. At the end every job must be
// done with exactly the pages and images that its site has. The site is served by this process, so that the figures are those of a machine that does both.
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
            done({ status: incoming.statusCode, text: Buffer.concat(parts).toString() });
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

// Nothing is lost: every job ends, with all its pages and images.
let lost = 0;
const endBy = performance.now() + 300_000;
const left = [...jobs];
async function verify() {
  for (let next = left.shift(); next !== undefined; next = left.shift()) {
    const [id, name] = next;
    let status;
    do {
      status = JSON.parse((await call("after", "GET", `/status/${id}`)).text);
      if (["queued", "running"].includes(status.status)) await new Promise((later) => setTimeout(later, 200));
    } while (["queued", "running"].includes(status.status) && performance.now() < endBy);
    const images = (await call("after", "GET", `/result/${id}`)).text.trimEnd().split("\n").sort().join();
    const wanted = Array.from({ length: PAGES }, (_, n) => `${origin}/${name}/${n}.png`)
      .sort()
      .join();
    if (status.status !== "done" || status.completed !== PAGES || status.total !== PAGES || images !== wanted) {
      lost++;
      console.log(`not as it should be: ${JSON.stringify(status)} images ${images}`);
    }
  }
}
await Promise.all(Array.from({ length: 20 }, verify));
console.log(`all jobs ended ${((performance.now() - startedAt) / 1000).toFixed(0)} s after the start`);

const at = (list, share) => list[Math.min(list.length - 1, Math.floor(list.length * share))].toFixed(0);
console.log(`${clients} clients, ${lasted.toFixed(0)} s, ${jobs.size} jobs of ${PAGES} pages, ${lost} of them not as they should be`);
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
site.close();
agent.destroy();
rmSync(state, { recursive: true, force: true });
