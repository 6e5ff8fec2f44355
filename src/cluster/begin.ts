/** Which crawl of a store a command is: the unfinished one that it goes on with, or a new one; or it is refused, since another one writes to its files. */
import { CrawlError } from "../core/errors.ts";
import type { FinishReason } from "../core/events.ts";
import { type CrawlSpec, parseSpec } from "../core/spec.ts";
import { decideResume, type FoundRun, forbiddenChanges, noSeeds, unnamedFault } from "../rules/resume.ts";
import { shownSeed } from "../rules/seeds.ts";
import type { Link } from "../store/redis/connect.ts";
import { type Crawls, type FileOwner, KEPT_DAYS, type StoredCrawl } from "../store/redis/crawls.ts";
import { type Glance, glance, tallyOf } from "../store/redis/look.ts";
import { heldError, outboxOwner } from "../store/redis/outbox.ts";
import { type NamedFile, type Places, placesOf, spelledAs } from "./output-files.ts";

export interface BeginInput {
  readonly spec: CrawlSpec;
  /** As it is kept, for workers and to be found again: with names for seeds that are read from a source. */
  readonly stored: CrawlSpec;
  /** Begin a crawl of its own, whatever the store has. */
  readonly fresh: boolean;
  /** No seed was named (AssembleOptions): none is begun. */
  readonly unnamed: "its-own" | "none" | null;
  readonly files: readonly NamedFile[];
}

export interface Begun {
  readonly id: number;
  readonly say: string;
  readonly resumed: boolean;
  /** The spec as it is kept with the crawl. */
  readonly text: string;
}

const LOOKED_AT = 200;
/** Commands that begin at the same moment with the same files settle it in two rounds; another one may end meanwhile. */
const ROUNDS = 5;
const SEEDS_SHOWN = 3;

/** Nothing is known of it yet but its spec. */
const UNSEEN = { completed: false, left: 0, counted: 0, elapsedMs: 0, bytes: 0, failed: 0, items: 0, seedsRead: false, finishReason: null } as const;

/** Of its commands until now; null: they noted none. */
export const placesIn = (info: ReadonlyMap<string, string>): Places | null => JSON.parse(info.get("places") ?? "null") as Places | null; // written below and by cluster.ts

/** As it is kept; the command's own files are spelt as the command does. */
const specOf = ({ info }: StoredCrawl, own: CrawlSpec): CrawlSpec => spelledAs(parseSpec(JSON.parse(info.get("spec") ?? "{}")), own, placesIn(info));

/** Its frontier is not opened: that would settle the rules of a crawl that another process is only just creating. */
async function foundRun(link: Link, crawl: StoredCrawl, own: CrawlSpec): Promise<FoundRun> {
  const [at, tally] = await Promise.all([glance(link, crawl.id), tallyOf(link, crawl.id)]);
  const finishReason = (crawl.info.get("finished") ?? null) as FinishReason | null; // written by `finish` (cluster.ts)
  return {
    spec: specOf(crawl, own),
    completed: crawl.completed && finishReason !== null && finishReason !== "interrupted" && finishReason !== "cancelled",
    left: at === null ? 0 : at.queued + at.delayed + at.leased,
    counted: at?.counted ?? 0,
    elapsedMs: Number(crawl.info.get("elapsed") ?? 0),
    bytes: tally.get("bytes") ?? 0,
    failed: tally.get("outcome:failed") ?? 0,
    items: tally.get("items") ?? 0,
    seedsRead: at?.seedsComplete ?? false,
    finishReason,
  };
}

/** The seeds by which the user knows a command. */
function seedsOf({ seeds }: CrawlSpec): string {
  const all = Array.isArray(seeds) ? seeds : [];
  const shown = all.slice(0, SEEDS_SHOWN).map((seed) => shownSeed(String(seed)));
  return [...shown, ...(all.length > SEEDS_SHOWN ? ["…"] : [])].join(" ") || "no seeds";
}

/** Of another command: `changed` are the options that differ, as a user knows them. */
async function refuse(link: Link, { id, held }: FileOwner, { option, file }: NamedFile, other: CrawlSpec, changed: readonly string[]): Promise<never> {
  const writer = held ? await outboxOwner(link, id) : null;
  const isBeing = writer === null ? "" : `, is being written by skein ${writer.kind} (process ${writer.pid} on ${writer.host})`;
  const what = `${file} is a file of crawl ${id} (${seedsOf(other)}) in the store at ${link.address.shown}, which is unfinished${isBeing} and was started with other options: ${changed.join(", ")}`;
  const ends = `, or --fresh to drop it and replace its files; skein export --store … --job ${id} --follow --drop -o OTHER ends it without them: what is still to come (skein work does it) goes to another file`;
  const message = `${what}. ${held ? "Name another file, or stop that one first" : `Use the same ones to resume it, name another file${ends}`}`;
  throw new CrawlError("invalid-options", message, { problems: [{ option, message }] });
}

export async function refuseOwned(
  link: Link,
  crawls: Crawls,
  owner: FileOwner,
  { files, text }: { files: readonly NamedFile[]; text: string },
): Promise<never> {
  const crawl = await crawls.get(owner.id);
  const file = files[owner.file];
  if (crawl === null || file === undefined) throw await heldError(link, owner.id);
  const own = parseSpec(JSON.parse(text));
  const spec = specOf(crawl, own);
  const decision = decideResume({ ...UNSEEN, spec }, own, "the store");
  if (decision.kind !== "refuse") throw await heldError(link, owner.id);
  return refuse(link, owner, file, spec, decision.changed);
}

/** What `--fresh` drops: "dropped the unfinished crawl 3 in the store (5 pages done, 7 queued)". */
function droppedWords(id: number, at: Glance | null): string {
  const { counted = 0, queued = 0, delayed = 0, leased = 0 } = at ?? {};
  return `dropped the unfinished crawl ${id} in the store (${counted} page${counted === 1 ? "" : "s"} done, ${queued + delayed + leased} queued)`;
}

/** A new crawl in a store whose URL may hold a password: whoever reads this is there already. */
const keptText = (stored: CrawlSpec): string => JSON.stringify({ ...stored, store: null });

/** The unfinished crawl that owns the command's files, else the newest of the same command; null: a new one is to begin. */
async function findCrawl(
  link: Link,
  crawls: Crawls,
  { files, unnamed }: BeginInput,
  text: string,
): Promise<{ readonly id: number; readonly say: string } | null> {
  const own = parseSpec(JSON.parse(text));
  async function decide(crawl: StoredCrawl): Promise<{ readonly id: number; readonly say: string } | null> {
    const found = await foundRun(link, crawl, own);
    const decision = decideResume(found, own, `the store (crawl ${crawl.id})`);
    const fault = unnamed === null ? null : unnamedFault(decision.kind, found, unnamed, `crawl ${crawl.id} in the store`);
    if (fault !== null) throw noSeeds(fault);
    return decision.kind === "resume" ? { id: crawl.id, say: decision.say } : null;
  }
  const owner = await crawls.ownerOf(files.map(({ name }) => name));
  const owning = owner === null ? null : await crawls.get(owner.id);
  if (owner !== null && owning !== null) {
    if (forbiddenChanges(specOf(owning, own), own).length > 0) return refuseOwned(link, crawls, owner, { files, text });
    const goesOn = await decide(owning);
    if (goesOn !== null) return goesOn;
  }
  for (const id of await crawls.list(LOOKED_AT)) {
    const crawl = await crawls.get(id);
    if (crawl === null || !crawl.info.has("spec") || crawl.info.has("dropped") || forbiddenChanges(specOf(crawl, own), own).length > 0) continue;
    // The newest of the same command decides.
    return decide(crawl);
  }
  return null;
}

/** Rejects with CrawlError `invalid-options` when an unfinished crawl of another command owns one of the files, with `state-held` when it is to be dropped and is being written. */
export async function beginCrawl(link: Link, crawls: Crawls, input: BeginInput): Promise<Begun> {
  const { spec, stored, fresh, files } = input;
  const text = keptText(stored);
  for (let round = 1; ; round++) {
    const found = fresh ? null : await findCrawl(link, crawls, input, text);
    if (found !== null) return { ...found, resumed: true, text };
    if (input.unnamed !== null) throw noSeeds("the store has no unfinished crawl of this command to go on with");
    await crawls.retire(KEPT_DAYS);
    const info = { kind: "crawl", spec: text, places: JSON.stringify(placesOf(stored, null)), ...(spec.scraper === null ? {} : { scraper: spec.scraper }) };
    const created = await crawls.createWithFiles({ info, files: files.map(({ name }) => name), drops: fresh });
    if ("id" in created) {
      const { id, dropped } = created;
      const gone = await Promise.all(dropped.map(async (other) => droppedWords(other, await glance(link, other))));
      return { id, say: [...gone, `crawl ${id} in the store: others join it with skein work --store …`].join("; "), resumed: false, text };
    }
    // Another command was faster: it is looked at, unless it is to be dropped, which it cannot be while it is written.
    if (fresh || round === ROUNDS) throw await heldError(link, created.owner.id);
  }
}
