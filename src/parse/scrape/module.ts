/** A scraper made ready to run: what kind it is, what it is called, which items it gives. */
import { createHash } from "node:crypto";
import type { Scrape } from "../../core/scraping.ts";
import { faultOf, type Scraper } from "./define.ts";
import { loadCheerio } from "./document.ts";
import { type FieldRule, readFieldRules } from "./extract-fields.ts";
import { type ItemRules, type ItemType, itemRules, itemTypes } from "./items.ts";

/** What a caller outside of its thread may know of a scraper. */
export interface ModuleFacts {
  readonly kind: "links" | "handlers" | "items";
  readonly version: string;
  readonly first: string | null;
  readonly itemTypes: readonly ItemType[];
}

export type ScraperModule = ModuleFacts &
  (
    | { readonly kind: "links"; readonly find: Scrape }
    | { readonly kind: "handlers"; readonly first: string; readonly scraper: Scraper; readonly names: ReadonlySet<string>; readonly rules: ItemRules }
    | { readonly kind: "items"; readonly fields: readonly FieldRule[] }
  );

/** A scraper's own code. `source` stands for its version where it names none. Throws TypeError for what is no scraper. */
export async function moduleOf(value: unknown, source: string | null): Promise<ScraperModule> {
  if (typeof value === "function") {
    // `as`: what the user's function returns is checked when it is called.
    return { kind: "links", version: digest(source ?? String(value)), first: null, itemTypes: [], find: value as Scrape };
  }
  const fault = faultOf(value);
  if (fault !== null) throw new TypeError(fault);
  // `as`: `faultOf` has looked at every part.
  const scraper = value as Scraper;
  await loadCheerio();
  const rules = itemRules(scraper.items);
  return {
    kind: "handlers",
    version: scraper.version === undefined ? digest(source ?? sourceOf(scraper)) : `version ${scraper.version}`,
    first: firstOf(scraper),
    itemTypes: itemTypes(rules),
    scraper,
    names: new Set(Object.keys(scraper.handlers)),
    rules,
  };
}

/** The option `extract`. Throws CrawlError `invalid-options`. */
export async function fieldsModule(extract: Readonly<Record<string, string>>): Promise<ScraperModule> {
  const fields = await readFieldRules(extract);
  return {
    ...{ kind: "items", version: digest(JSON.stringify(extract)), first: null },
    itemTypes: [{ name: "items", key: null, columns: fields.map(({ name }) => name) }],
    fields,
  };
}

export function factsOf({ kind, version, first, itemTypes }: ScraperModule): ModuleFacts {
  return { kind, version, first, itemTypes };
}

function firstOf({ handlers }: Scraper): string {
  return Object.hasOwn(handlers, "default") ? "default" : Object.keys(handlers)[0]!;
}

function sourceOf({ handlers }: Scraper): string {
  return Object.entries(handlers)
    .map(([name, handler]) => `${name}: ${String(handler)}`)
    .join("\n");
}

function digest(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, 16);
}
