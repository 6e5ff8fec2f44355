/** docs/service.md and docs/api.md are true: the tutorial's commands run against a service, the reference is what the route table gives. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { silentLog } from "../../src/core/log.ts";
import { openJobs } from "../../src/jobs/jobs.ts";
import { openService } from "../../src/service/open.ts";
import { apiPage } from "../../src/service/reference.ts";
import { root, run, temporaryFolder } from "../command.ts";
import { openDemoSite } from "../demo-site.ts";

test("docs/api.md is what the route table gives (npm run docs writes it)", () => {
  assert.equal(readFileSync(join(root, "docs/api.md"), "utf8"), apiPage());
});

test("the commands of the tutorial run, one after the other", { timeout: 100_000 }, async () => {
  const text = readFileSync(join(root, "docs/service.md"), "utf8");
  const blocks = [...text.matchAll(/^<!-- service -->\n```sh\n([\s\S]*?)^```$/gm)].map((match) => match[1] ?? "");
  assert.ok(blocks.length >= 6);
  await using site = await openDemoSite();
  await using folder = await temporaryFolder();
  const jobs = await openJobs({ dir: join(folder.path, "state"), addresses: { refusePrivate: true, allow: ["127.0.0.0/8"] } });
  const service = await openService({
    jobs,
    host: "127.0.0.1",
    port: 0,
    log: silentLog,
    assets: new Map(),
    access: { token: null, names: [], network: false },
  });
  const answers: string[] = [];
  for (const block of blocks) {
    const code = block
      .replaceAll("localhost:5000", `127.0.0.1:${service.port}`)
      .replaceAll("https://example.com/", site.url)
      .replaceAll(/\bcurl /g, "curl -sS --noproxy '*' ");
    const { code: status, stdout, stderr } = await run("sh", ["-ec", code], folder.path);
    assert.equal(status, 0, stderr);
    assert.notEqual(stdout, "", code);
    answers.push(stdout);
    // What comes next reads what this has begun.
    for (const id of [0, 1]) {
      for (let state = "queued"; ["queued", "running", "stopping"].includes(state); ) {
        const job = await jobs.get(id);
        state = job?.state ?? "completed";
        await new Promise((next) => setTimeout(next, 20));
      }
    }
  }
  await service.close(500);
  await jobs.close();
  assert.match(answers[0] ?? "", /^\{"job_id":0,"urls":\[.*"status":"queued","total":2\}$/);
  assert.match(answers[1] ?? "", /"status":"done"/);
  assert.match(answers[2] ?? "", /^HTTP\/1\.1 202 [\s\S]*location: \/v1\/jobs\/1/);
  assert.match(answers[3] ?? "", /did you mean maxDepth[\s\S]*|stateDir/);
  const whole = answers.join("\n");
  assert.doesNotMatch(whole, /Internal Server Error/);
});
