/** Published as skein/testing: what the author of a store or of a crawl's tests needs. Not loaded by a crawl. */
export { createTestClock, seededRandom, type TestClock } from "./clock.ts";
export { type ChildEnd, type ChildOptions, type Fault, readFault, runChild, striking, tearFile } from "./faults.ts";
export type { DurableBench, Restart, RestartCase } from "./frontier/bench.ts";
export { restartCases } from "./frontier/restart-cases.ts";
export { caseConfig, crashedOutput, type FrontierBench, type FrontierCase, flattenOwed, frontierCases, type OpenFrontierBench } from "./frontier-cases.ts";
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
} from "./shop.ts";
export { type OpenSinkBench, outputAt, type SinkBench, type SinkCase, sinkCases } from "./sink-cases.ts";
export { type FakeAnswer, type FakePage, type FakeRequest, type FakeRobots, type FakeSite, type FakeSiteOptions, fakeSite } from "./site.ts";
export {
  createTestWeb,
  type Expected,
  type ExpectedOutcome,
  type GraphOptions,
  type LedgerEntry,
  type PolitenessRules,
  type TestWeb,
  type WebGraph,
} from "./web.ts";
