/** The service with real jobs: the script of the README, field cases of kind service, and addresses that are not public (SKEIN_CONFORMANCE_DIR). */
import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { after, test } from "node:test";
import { realClock } from "../../src/core/clock.ts";
import { silentLog } from "../../src/core/log.ts";
import type { CrawlSpec } from "../../src/core/spec.ts";
import type { Lookup } from "../../src/fetch/dns.ts";
import { createFetcher } from "../../src/fetch/http.ts";
import { page, startRawServer } from "../../src/fetch/raw-server.ts";
import { type JobsOptions, openJobs } from "../../src/jobs/jobs.ts";
import { wantsBody } from "../../src/rules/media-type.ts";
import { parseUrl } from "../../src/rules/url.ts";
import { openService } from "../../src/service/open.ts";

const root = mkdtempSync(join(tmpdir(), "skein-service-"));
after(() => rmSync(root, { recursive: true, force: true }));

type Json = ReturnType<typeof JSON.parse>;

interface Real extends AsyncDisposable {
  json(path: string, body?: string, type?: string): Promise<Json>;
  text(path: string): Promise<string>;
  /** The job of the three calls at its end. */
  done(id: number): Promise<Json>;
}

async function real(options: Partial<JobsOptions> = {}): Promise<Real> {
  const jobs = await openJobs({ dir: mkdtempSync(join(root, "state-")), ...options });
  const service = await openService({
    ...{ jobs, host: "127.0.0.1", port: 0, log: silentLog, assets: new Map(), access: { token: null, names: [], network: false } },
  });
  const ask = (path: string, init?: RequestInit) => fetch(`http://127.0.0.1:${service.port}${path}`, init);
  const json: Real["json"] = async (path, body, type = "text/plain") =>
    (await ask(path, body === undefined ? {} : { method: "POST", body, headers: { "content-type": type } })).json();
  return {
    json,
    text: async (path) => (await ask(path)).text(),
    async done(id) {
      // Each asking waits for the network: there is no tighter loop than that.
      for (;;) {
        const status = await json(`/status/${id}`);
        if (!["queued", "running"].includes(status.status)) return status;
        await new Promise((next) => setTimeout(next, 20));
      }
    },
    async [Symbol.asyncDispose]() {
      await service.close(500);
      await jobs.close();
    },
  };
}

const LOCAL: CrawlSpec["addresses"] = { refusePrivate: true, allow: ["127.0.0.0/8"] };

test("the script: two levels, images of both, and a host that does not resolve does not keep the job from its end", { timeout: 60_000 }, async () => {
  await using site = await startRawServer(({ target }) =>
    target === "/"
      ? page('<img src="/a.png"><a href="/two">2</a>')
      : target === "/two"
        ? page('<img src="/b.png"><img srcset="/c.png 2x"><a href="/three">3</a>')
        : page("none", [], "404 Not Found"),
  );
  await using at = await real({ addresses: LOCAL });
  const made = await at.json("/", `${site.origin}/\nhttp://no-such-host.invalid/\n`);
  assert.deepEqual(Object.entries(made).slice(0, 5), [
    ["job_id", 0],
    ["urls", [`${site.origin}/`, "http://no-such-host.invalid/"]],
    ["completed", 0],
    ["inprogress", 0],
    ["status", "queued"],
  ]);
  const end = await at.done(0);
  assert.deepEqual([end.status, end.completed, end.inprogress], ["done", end.total, 0]);
  assert.equal(await at.text("/result/0"), ["a", "b", "c"].map((name) => `${site.origin}/${name}.png\n`).join(""));
  assert.equal(
    site.requests.some(({ target }) => target === "/three"),
    false,
  );
  const pages = await at.json("/v1/jobs/0/pages");
  assert.equal(pages.length, end.total);
});

test("F120 with real jobs: an id that was answered is there at once", { timeout: 60_000 }, async () => {
  await using at = await real();
  for (let n = 0; n < 100; n++) {
    const { job_id: id } = await at.json("/", "http://127.0.0.1:9/\n");
    const { job_id: same, status } = await at.json(`/status/${id}`);
    assert.equal(same, n);
    assert.ok(["queued", "running", "done"].includes(status), status);
  }
});

test("F121 one page that never answers does not keep the job from its end", { timeout: 60_000 }, async () => {
  await using site = await startRawServer(({ target }) => {
    if (target === "/7") return null;
    return target === "/"
      ? page(Array.from({ length: 9 }, (_, n) => `<a href="/${n + 1}">x</a>`).join(""))
      : page(target === "/robots.txt" ? "none" : "page", [], target === "/robots.txt" ? "404 Not Found" : "200 OK");
  });
  await using at = await real({ addresses: LOCAL });
  const { id } = await at.json("/v1/jobs", JSON.stringify({ seeds: [`${site.origin}/`], timeout: "3s", retry: { max: 0 } }), "application/json");
  await at.done(id);
  const { state, counts } = await at.json(`/v1/jobs/${id}`);
  assert.deepEqual([state, counts.pages, counts.failed, counts.completed, counts.inProgress], ["completed", 9, 1, 10, 0]);
});

const METADATA = ["http://169.254.169.254/", "http://[::ffff:169.254.169.254]/", "http://[::ffff:a9fe:a9fe]/", "http://2852039166/", "http://0xA9FEA9FE/"];

test("F123 the metadata address in all its spellings is refused", { timeout: 60_000 }, async () => {
  await using at = await real();
  const { job_id: id } = await at.json("/", METADATA.join("\n"));
  assert.equal((await at.done(id)).status, "done");
  const pages: Json[] = await at.json(`/v1/jobs/${id}/pages`);
  assert.ok(pages.length >= 2);
  for (const { error } of pages) assert.equal(error.code, "blocked-address");
});

/** Fetches as the service does, with names resolved by the test. */
function withLookup(lookup: Lookup): JobsOptions["world"] {
  return {
    openFetcher: async () =>
      createFetcher(
        {
          ...{
            timeoutMs: 3_000,
            maxBodySize: 1_000_000,
            types: "text",
            wantsBody,
            userAgent: "skein/test",
            headers: {},
            hosts: {},
            proxy: [],
            insecure: false,
          },
          ...{ addresses: { refusePrivate: true, allow: [] }, perHostConcurrency: 8, auth: new Map(), seedHosts: new Set<never>(), lookup },
        },
        realClock,
      ),
  };
}

test("F124 a public name that leads to a private address, at first or later, is refused, and nothing is connected to", { timeout: 60_000 }, async () => {
  let connections = 0;
  const server = createServer((socket) => {
    connections++;
    socket.destroy();
  });
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  const bound = server.address();
  assert.ok(typeof bound === "object" && bound !== null);
  const asked = new Map<string, number>();
  const lookup: Lookup = (name, callback) => {
    const before = asked.get(name) ?? 0;
    asked.set(name, before + 1);
    if (name.startsWith("later") && before === 0) callback(Object.assign(new Error("again"), { code: "EAI_AGAIN" }), []);
    else callback(null, [{ address: "127.0.0.1", family: 4 }]);
  };
  await using at = await real({ world: withLookup(lookup) ?? {} });
  const seeds = [`http://rebound.example:${bound.port}/`, `http://later.example:${bound.port}/`];
  const { id } = await at.json("/v1/jobs", JSON.stringify({ seeds, robots: false }), "application/json");
  assert.equal((await at.done(id)).status, "done");
  const pages: Json[] = await at.json(`/v1/jobs/${id}/pages`);
  assert.equal(pages.length, 2);
  for (const { url, error } of pages) assert.ok(error.code === "blocked-address" || (url.includes("later") && error.code === "dns"), `${url}: ${error.code}`);
  assert.equal(connections, 0);
  server.close();
});

const conformance = resolve(import.meta.dirname, "../..", process.env["SKEIN_CONFORMANCE_DIR"] ?? "../shared/conformance", "ssrf.jsonl");

interface Case {
  readonly id: string;
  readonly kind: string;
  readonly taste?: boolean;
  readonly input: { readonly ip?: string; readonly url?: string; readonly dns?: readonly string[] };
  readonly expected: { readonly blocked?: boolean; readonly invalidUrl?: boolean };
}

test("ssrf: every URL and address of the conformance data that must be refused is refused in a job", { timeout: 120_000 }, async (t) => {
  if (!existsSync(conformance)) {
    assert.ok(!(process.env["SKEIN_REQUIRE"] ?? "").split(",").includes("conformance"), "conformance data absent");
    t.skip(`conformance data absent: ${conformance}`);
    return;
  }
  const cases = readFileSync(conformance, "utf8")
    .split("\n")
    .filter((line) => line !== "")
    .map((line): Case => JSON.parse(line))
    .filter(({ taste, expected }) => !taste && expected.blocked === true);
  const names = new Map<string, readonly string[]>();
  const wanted: { id: string; url: string }[] = [];
  for (const { id, input } of cases) {
    const url = input.url ?? (input.ip?.includes(":") ? `http://[${input.ip.replace(/%.*/, "")}]/` : `http://${input.ip}/`);
    const parsed = URL.parse(url);
    if (parsed === null || !/^https?:$/.test(parsed.protocol)) continue;
    // Another name for each, where the name is only one for the resolver.
    if (input.dns !== undefined) {
      const host = `${id}.example`;
      names.set(host, input.dns);
      parsed.hostname = host;
    }
    wanted.push({ id, url: parsed.href });
  }
  assert.ok(wanted.length > 80, `${wanted.length}`);
  const lookup: Lookup = (name, callback) => {
    const found = names.get(name) ?? ["127.0.0.1"];
    callback(
      null,
      found.map((address) => ({ address, family: address.includes(":") ? 6 : 4 })),
    );
  };
  await using at = await real({ world: withLookup(lookup) ?? {} });
  const { id, rejected = [] } = await at.json(
    "/v1/jobs",
    JSON.stringify({ seeds: wanted.map(({ url }) => url), robots: false, retry: { max: 0 } }),
    "application/json",
  );
  await at.done(id);
  const pages: Json[] = await at.json(`/v1/jobs/${id}/pages?limit=1000`);
  const outcome = new Map<string, string>(pages.map(({ url, error }) => [url, error?.code ?? "none"]));
  const rejectedLines = new Set<number>(rejected.map(({ line }: { line: number }) => line));
  // Spellings that are one URL in canonical form have one record; what is no URL is refused by its line.
  const canonical = wanted.map(({ url }) => parseUrl(url));
  const came = wanted.map(({ id: name, url }, at) => {
    const parsed = canonical[at];
    const verdict = rejectedLines.has(at + 1) ? "rejected" : (outcome.get(parsed !== undefined && "url" in parsed ? parsed.url : url) ?? "no record");
    return `${name} ${url} ${verdict}`;
  });
  const mustBe = wanted.map(({ id: name, url }, at) => `${name} ${url} ${"reject" in (canonical[at] ?? { reject: "" }) ? "rejected" : "blocked-address"}`);
  assert.deepEqual(came, mustBe);
  assert.deepEqual([...outcome.keys()].sort(), [...new Set(canonical.flatMap((parsed) => ("url" in parsed ? [parsed.url] : [])))].sort());
});
