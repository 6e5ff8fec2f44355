/** retry.ts and http-date.ts: when to try again, and what servers write about it. */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { parseCookieDate, parseHttpDate } from "./http-date.ts";
import { type FailedTry, isPassingStatus, parseRetryAfter, retryDecision } from "./retry.ts";

const NOW = Date.UTC(2026, 7, 22, 12, 0, 0);
const failed: FailedTry = { code: "http", status: 503, retryable: true, retryAfterMs: null, attempt: 0, crashes: 0, maxRetries: 2, maxWaitMs: 300_000 };
const decide = (change: Partial<FailedTry>, chance = 0.5) => retryDecision({ ...failed, ...change }, () => chance);

test("F094 as many retries as allowed follow the first try", () => {
  const kinds = [0, 1, 2, 3].map((attempt) => decide({ attempt, maxRetries: 3 }).kind);
  assert.deepEqual(kinds, ["retry", "retry", "retry", "give-up"].slice(0, 4));
  assert.deepEqual(decide({ attempt: 3, maxRetries: 3 }), { kind: "give-up", why: "after 4 tries" });
  assert.deepEqual(decide({ maxRetries: 0 }), { kind: "give-up", why: "no retries allowed" });
});

test("back-off doubles from one second, up to a minute and the longest wait", () => {
  const after = (change: Partial<FailedTry>) => decide({ maxRetries: 100, ...change }, 0.999_999);
  const within = (attempt: number) => Math.round((after({ attempt }) as { afterMs: number }).afterMs);
  assert.deepEqual([0, 1, 2, 5, 6, 60].map(within), [1_000, 2_000, 4_000, 32_000, 60_000, 60_000]);
  assert.deepEqual(decide({ attempt: 9, maxRetries: 100, maxWaitMs: 5_000 }, 0.5), { kind: "retry", afterMs: 2_500 });
  assert.deepEqual(decide({ crashes: 2 }, 0.5), { kind: "retry", afterMs: 2_000 });
});

test("F023 Retry-After is the least wait", () => {
  assert.deepEqual(decide({ status: 429, code: "rate-limited", retryAfterMs: 2_000 }), { kind: "retry", afterMs: 2_000 });
  assert.deepEqual(decide({ retryAfterMs: 100 }), { kind: "retry", afterMs: 500 });
});

test("F024 a Retry-After beyond the longest wait gives up at once and names both figures", () => {
  const decision = decide({ retryAfterMs: 86_400_000 });
  assert.deepEqual(decision, { kind: "give-up", why: "the server asks to wait 1d (Retry-After), longer than the longest wait of 5m" });
  assert.equal(decide({ retryAfterMs: 300_000 }).kind, "retry");
});

test("F025 999 is retried like a 5xx, and no other answers than passing ones are", () => {
  for (const status of [408, 425, 429, 500, 502, 503, 504, 599, 999]) assert.equal(isPassingStatus(status), true, String(status));
  for (const status of [200, 301, 400, 401, 403, 404, 409, 410, 418, 451]) assert.equal(isPassingStatus(status), false, String(status));
  assert.equal(decide({ status: 404 }).kind, "give-up");
});

test("of a list of Retry-After the longest wait counts, and what cannot be read does not", () => {
  const now = Date.UTC(2026, 0, 1);
  const date = "Thu, 01 Jan 2026 00:01:00 GMT";
  for (const [value, expected] of [
    ["1, 2", 2_000],
    ["30,5", 30_000],
    ["soon, 3", 3_000],
    ["soon, later", null],
    [`5, ${date}`, 60_000],
    [`${date}, 120`, 120_000],
    ["Thursday, 01-Jan-26 00:01:00 GMT", 60_000],
    [",", null],
  ] as const)
    assert.equal(parseRetryAfter(value, now), expected, value);
});

test("F028 what cannot pass is not tried again", () => {
  assert.equal(decide({ code: "dns", status: null }).kind, "retry");
  assert.equal(decide({ code: "tls", status: null, retryable: false }).kind, "give-up");
  for (const code of ["blocked-address", "redirect", "too-large", "parse", "crashed", "robots-unavailable"] as const) {
    assert.deepEqual(decide({ code, status: null }), { kind: "give-up", why: "not a passing failure" });
  }
  for (const code of ["connect", "timeout", "reset", "protocol", "scraper"] as const) assert.equal(decide({ code, status: null }).kind, "retry");
});

test("every wait lies within its bounds", () => {
  const small = fc.integer({ min: 0, max: 100 });
  fc.assert(
    fc.property(
      fc.record({ attempt: small, crashes: small, maxRetries: small, maxWaitMs: fc.integer({ min: 0, max: 10_000_000 }), retryAfterMs: fc.option(fc.nat()) }),
      fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
      (change, chance) => {
        const decision = decide(change, chance);
        const floor = change.retryAfterMs ?? 0;
        if (floor > change.maxWaitMs || change.attempt >= change.maxRetries) assert.equal(decision.kind, "give-up");
        else {
          assert.ok(decision.kind === "retry");
          assert.ok(decision.afterMs >= floor && decision.afterMs <= change.maxWaitMs);
          assert.ok(decision.afterMs <= Math.max(floor, 60_000));
        }
      },
    ),
  );
});

test("Retry-After in seconds or as a date in all three forms", () => {
  const rows: Readonly<Record<string, number | null>> = {
    "120": 120_000,
    " 2 ": 2_000,
    "0": 0,
    "1.5": 1_500,
    "Sat, 22 Aug 2026 12:01:00 GMT": 60_000,
    "Saturday, 22-Aug-26 12:01:00 GMT": 60_000,
    "Sat Aug 22 12:01:00 2026": 60_000,
    "Sat, 22 Aug 2026 11:00:00 GMT": 0,
    "Thu, 01 Jan 1970 00:00:00 GMT": 0,
    "-5": null,
    "1e3": null,
    soon: null,
    "": null,
    "Sat, 31 Feb 2026 12:01:00 GMT": null,
    "Sat, 22 Foo 2026 12:01:00 GMT": null,
    "Sat, 22 Aug 2026 25:01:00 GMT": null,
    "2026-08-22T12:01:00Z": null,
  };
  for (const [value, expected] of Object.entries(rows)) assert.equal(parseRetryAfter(value, NOW), expected, value);
});

test("every moment is read back from each form of HTTP-date", () => {
  const names = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];
  const long = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
  fc.assert(
    fc.property(fc.integer({ min: Date.UTC(1977, 0) / 1_000, max: Date.UTC(2076, 0) / 1_000 - 1 }), (seconds) => {
      const date = new Date(seconds * 1_000);
      const imf = date.toUTCString();
      const [, day = "", month = "", year = "", time = ""] = imf.split(/,? /);
      const forms = [
        imf,
        `${long[date.getUTCDay()]}, ${day}-${month}-${year.slice(2)} ${time} GMT`,
        `${names[date.getUTCDay()]} ${month} ${String(Number(day)).padStart(2)} ${time} ${year}`,
      ];
      for (const form of forms) assert.equal(parseHttpDate(form, NOW), seconds * 1_000, form);
      for (const form of forms) assert.equal(typeof parseCookieDate(form), "number", form);
    }),
  );
});

test("a two-digit year means the nearest century", () => {
  const year = (text: string) => new Date(parseHttpDate(`Monday, 01-Jan-${text} 00:00:00 GMT`, NOW) ?? 0).getUTCFullYear();
  assert.deepEqual([year("26"), year("76"), year("77"), year("99")], [2026, 2076, 1977, 1999]);
});

test("any header value is read or refused", () => {
  fc.assert(
    fc.property(fc.string(), (value) => {
      const wait = parseRetryAfter(value, NOW);
      assert.ok(wait === null || wait >= 0);
    }),
  );
});
