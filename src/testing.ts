/** Published as skein/testing: what the author of a store or of a crawl's tests needs. Not loaded by a crawl. */

export { type HandlerResult, type TestPage, testHandler } from "./parse/scrape/test-handler.ts";
export { createTestClock, seededRandom, type TestClock } from "./testing/clock.ts";
export { type ChildEnd, type ChildOptions, type Fault, readFault, runChild, striking, tearFile } from "./testing/faults.ts";
export type { DurableBench, Restart, RestartCase } from "./testing/frontier/bench.ts";
export { restartCases } from "./testing/frontier/restart-cases.ts";
export {
  caseConfig,
  crashedOutput,
  type FrontierBench,
  type FrontierCase,
  flattenOwed,
  frontierCases,
  type OpenFrontierBench,
} from "./testing/frontier-cases.ts";
export {
  createShop,
  type Latency,
  type Offer,
  type Product,
  type ServedShop,
  SHOP_ORIGIN,
  type Shop,
  type ShopAnswer,
  type ShopOptions,
  type ShopVisit,
} from "./testing/shop.ts";
export { type OpenSinkBench, outputAt, type SinkBench, type SinkCase, sinkCases } from "./testing/sink-cases.ts";
export { type FakeAnswer, type FakePage, type FakeRequest, type FakeRobots, type FakeSite, type FakeSiteOptions, fakeSite } from "./testing/site.ts";
export {
  createTestWeb,
  type Expected,
  type ExpectedOutcome,
  type GraphOptions,
  type LedgerEntry,
  type PolitenessRules,
  type TestWeb,
  type WebGraph,
} from "./testing/web.ts";
