/** What the suites of the cache share. */
import type { FetcherOptions } from "../../src/fetch/options.ts";
import { wantsBody } from "../../src/rules/media-type.ts";

export const OPTIONS: FetcherOptions = {
  timeoutMs: 5_000,
  maxBodySize: 10_000_000,
  types: "text",
  wantsBody,
  userAgent: "skein-test/1",
  headers: {},
  hosts: {},
  auth: new Map(),
  seedHosts: new Set(),
  proxy: [],
  insecure: false,
  addresses: { refusePrivate: false, allow: [] },
  perHostConcurrency: 8,
};
