/** What the user of a job is told of a failure. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { CrawlError, LostCrawl } from "../core/errors.ts";
import { failureDetail } from "./run.ts";

test("a lost crawl is told by its class, and no other failure by words that it happens to have", () => {
  assert.equal(failureDetail(new LostCrawl("the store at redis://10.0.0.7 answered: NOCRAWL")), "its crawl is no longer in the store");
  for (const message of ["NOCRAWL", "/var/x: its crawl is no longer in the store"]) {
    assert.equal(failureDetail(new CrawlError("internal", message)), "an internal error");
    assert.equal(failureDetail(new Error(message)), "an internal error");
  }
});
