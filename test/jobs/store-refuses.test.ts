/** What is asked of a job whose store refuses it: a refusal has changed nothing, and what was noted takes hold. The store is a directory that is told to refuse. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { realClock } from "../../src/core/clock.ts";
import { CrawlError } from "../../src/core/errors.ts";
import { STORE_AWAY } from "../../src/core/jobs.ts";
import { type JobHome, ownDirectories } from "../../src/jobs/home.ts";
import { createIntake } from "../../src/jobs/intake.ts";
import { startKeeper } from "../../src/jobs/keeper.ts";
import { openBook } from "../../src/store/jobs/book.ts";
import { fakeSite } from "../../src/testing/site.ts";
import { created, ENDLESS, job, LOCAL, someRequests } from "./bench.ts";

const away = () => new CrawlError("store-unreachable", STORE_AWAY);

/** `trouble`: before a call, or as soon as it was made. */
function refusing(): { readonly home: JobHome; trouble: "before" | "within" | null; calls: number } {
  const own = ownDirectories(realClock);
  const state = {
    trouble: null as "before" | "within" | null,
    calls: 0,
    home: {
      ...own,
      async tell<T>(call: () => Promise<T>): Promise<T> {
        state.calls++;
        if (state.trouble === "before") throw away();
        const answer = call();
        if (state.trouble !== "within") return answer;
        void answer.catch(() => undefined);
        throw away();
      },
    },
  };
  return state;
}

async function withJob(use: (parts: ReturnType<typeof refusing> & ReturnType<typeof createIntake> & { seedsTotal(): number; url: string }) => Promise<void>) {
  await using site = await fakeSite(ENDLESS);
  const dir = mkdtempSync(join(tmpdir(), "skein-refuses-"));
  const state = refusing();
  const options = { dir, addresses: LOCAL };
  const book = openBook(dir);
  const keeper = startKeeper(options, book, state.home);
  try {
    const intake = createIntake(keeper, options);
    // `as`: all that is asked for is creating.
    await created(intake as Parameters<typeof created>[0], job([site.url], { perHost: { delay: 0 } }));
    await someRequests(site, 1);
    assert.notEqual(keeper.runOf(0), undefined);
    await use(Object.assign(state, intake, { seedsTotal: () => book.get(0)?.seedsTotal ?? 0, url: site.url }));
  } finally {
    await keeper.close();
    rmSync(dir, { recursive: true, force: true });
  }
}

test("URLs for a running job whose store takes no changes: refused before they are read, and the job is as it was", { timeout: 60_000 }, async () => {
  await withJob(async (parts) => {
    const { addUrls, seedsTotal, url } = parts;
    parts.trouble = "before";
    let read = 0;
    function* lines(): Generator<string> {
      read++;
      yield `${url}page?n=500`;
    }
    await assert.rejects(addUrls(0, lines()), { code: "store-unreachable" });
    assert.deepEqual([seedsTotal(), read], [1, 0]);
    parts.trouble = null;
    // A store that goes while they are read: what is written of them is not noted.
    async function* slow(): AsyncGenerator<string> {
      yield `${url}page?n=500`;
      parts.trouble = "before";
    }
    await assert.rejects(addUrls(0, slow()), { code: "store-unreachable" });
    assert.equal(seedsTotal(), 1);
    parts.trouble = null;
    // Asked again they are new.
    assert.deepEqual(await addUrls(0, lines()), { added: 1, known: 0, rejected: [], rejectedTotal: 0 });
    assert.equal(seedsTotal(), 2);
  });
});

test("URLs that are noted as the store goes away are not refused: they belong to the job", { timeout: 60_000 }, async () => {
  await withJob(async (parts) => {
    const { addUrls, seedsTotal, url } = parts;
    async function* lines(): AsyncGenerator<string> {
      yield `${url}page?n=600`;
      yield url;
      parts.trouble = "within";
    }
    assert.deepEqual(await addUrls(0, lines()), { added: 1, known: 1, rejected: [], rejectedTotal: 0 });
    assert.equal(seedsTotal(), 3);
    parts.trouble = null;
    const again = await addUrls(0, [`${url}page?n=600`]);
    assert.ok("added" in again && again.added === 0, "the run has them");
  });
});
