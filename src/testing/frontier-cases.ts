/** What every frontier must show, as data: any store, any test runner. A case opens nothing itself; its bench does, with `{ ...caseConfig, ...case.config }`. */
import type { FrontierCase } from "./frontier/bench.ts";
import { levelCases } from "./frontier/level-cases.ts";
import { limitCases } from "./frontier/limit-cases.ts";
import { modelCases } from "./frontier/model-cases.ts";
import { politeCases } from "./frontier/polite-cases.ts";
import { queueCases } from "./frontier/queue-cases.ts";
import { robotsCases } from "./frontier/robots-cases.ts";
import { valueCases } from "./frontier/value-cases.ts";

export { caseConfig, crashedOutput, type FrontierBench, type FrontierCase, flattenOwed, type OpenFrontierBench } from "./frontier/bench.ts";

export const frontierCases: readonly FrontierCase[] = [
  ...queueCases,
  ...politeCases,
  ...robotsCases,
  ...levelCases,
  ...limitCases,
  ...valueCases,
  ...modelCases,
];
