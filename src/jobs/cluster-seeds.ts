/** What workers are told of a job's seeds. Which URLs belong to the crawl they learn from the store; whom it trusts with credentials only from here. */
import type { CrawlSpec } from "../core/spec.ts";

/** Jobs with no more seeds than these have all of them with their crawl. */
const FEW = 1_000;
const MOST_HOSTS = 10_000;
/** Lines looked at before others have their turn. */
const AT_ONCE = 5_000;
/** Stands for seeds that are not listed, and is none. */
const MANY = "-i seeds";

/** Sent to the seeds' hosts only. */
const isSecret = (header: string): boolean => /^(?:authorization|cookie)$/i.test(header);

const originOf = (line: string): string => (/^[^:/?#]*:\/\/[^/?#]*/.exec(line)?.[0] ?? line).toLowerCase();

/** All of a few seeds. Of many only one a host, and only where it matters whose hosts they are: with credentials in a seed, or headers that hold some. */
export async function workerSeeds(spec: CrawlSpec, total: number, seeds: () => Iterable<string>): Promise<readonly string[]> {
  if (total <= FEW) return [...seeds()];
  const everyHost = Object.keys(spec.headers).some(isSecret);
  const byOrigin = new Map<string, string>();
  let looked = 0;
  for (const line of seeds()) {
    if (++looked % AT_ONCE === 0) await new Promise<void>((resolve) => setImmediate(resolve));
    const origin = originOf(line);
    if ((everyHost || origin.includes("@")) && !byOrigin.has(origin)) byOrigin.set(origin, line);
    if (byOrigin.size >= MOST_HOSTS) break;
  }
  return byOrigin.size === 0 ? [MANY] : [...byOrigin.values()];
}
