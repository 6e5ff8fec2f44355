/** The records of a job, a page at a time: pages, items, skipped URLs, images. */
import type { ComponentChildren } from "preact";
import { useRef, useState } from "preact/hooks";
import { listRecords } from "./api.ts";
import { download, type FileForm } from "./download.ts";
import { bytes, capital, count, duration } from "./format.ts";
import { Address, Notice, TableBox, useAction } from "./parts.tsx";
import { hrefOf } from "./router.ts";
import { usePoll } from "./store.ts";
import { isEnded, type Job, type Page, type Table } from "./types.ts";

const PAGE = 50;
const PAGE_OF_IMAGES = 60;
const EVERY_MS = 3_000;
/** Of an item; what more there is stands in the last cell. */
const MOST_COLUMNS = 10;

type Record_ = Readonly<Record<string, unknown>>;
const NAMES: Readonly<Record<Table, string>> = { pages: "pages", items: "items", skipped: "skipped URLs", images: "images" };

/** Where one has turned to: the cursors of the pages up to this one. */
function useRecords<T>(job: Job, table: Table, limit: number) {
  const [cursors, setCursors] = useState<readonly (string | null)[]>([null]);
  const cursor = cursors.at(-1) ?? null;
  const ended = isEnded(job.state);
  const polled = usePoll(`${job.id} ${table} ${cursor ?? ""} ${ended}`, ended ? null : EVERY_MS, (signal) =>
    listRecords<T>(job.id, table, { cursor, limit }, signal),
  );
  const next = polled.value?.next ?? null;
  return {
    ...polled,
    first: (cursors.length - 1) * limit + 1,
    back: cursors.length > 1 ? () => setCursors(cursors.slice(0, -1)) : null,
    forth: next === null ? null : () => setCursors([...cursors, next]),
  };
}

function Downloads({ job, table }: { readonly job: Job; readonly table: Table }) {
  const { busy, problem, run } = useAction();
  const under = useRef<AbortController | null>(null);
  const start = (form: FileForm) =>
    run(async () => {
      const controller = (under.current = new AbortController());
      await download(job.id, table, form, controller.signal).catch((error: unknown) => {
        if (!controller.signal.aborted) throw error;
      });
    });
  if (busy)
    return (
      <p class="downloads" role="status">
        Fetching {NAMES[table]} …{" "}
        <button type="button" class="small" onClick={() => under.current?.abort()}>
          Cancel
        </button>
      </p>
    );
  return (
    <p class="downloads">
      <button type="button" class="small" onClick={() => start("csv")}>
        Download CSV
      </button>
      <button type="button" class="small" onClick={() => start("ndjson")}>
        Download NDJSON
      </button>
      {problem !== null && (
        <span class="problem" role="alert">
          {problem}
        </span>
      )}
    </p>
  );
}

interface FrameProps {
  readonly job: Job;
  readonly table: Table;
  readonly records: ReturnType<typeof useRecords>;
  readonly empty: string;
  readonly children: ComponentChildren;
}

/** Around every table: downloads, problems, and turning pages. */
function Frame({ job, table, records, empty, children }: FrameProps) {
  const { value, problem, first, back, forth } = records;
  const shown = value?.entries.length ?? 0;
  return (
    <>
      <div class="tabhead">
        <h2>{capital(NAMES[table])}</h2>
        <Downloads job={job} table={table} />
      </div>
      {problem !== null && <Notice kind="bad">{capital(problem)}</Notice>}
      {value === null && problem === null && <p class="soft">Loading …</p>}
      {value !== null && shown === 0 && <p class="empty">{back === null ? empty : "There are no more."}</p>}
      {shown > 0 && children}
      {(back !== null || forth !== null) && (
        <nav class="pager" aria-label={`Pages of the ${NAMES[table]}`}>
          <button type="button" aria-disabled={back === null} onClick={() => back?.()}>
            Previous
          </button>
          <span class="figure soft" role="status">
            {count(first)} to {count(first + shown - 1)}
          </span>
          <button type="button" aria-disabled={forth === null} onClick={() => forth?.()}>
            Next
          </button>
        </nav>
      )}
    </>
  );
}

const PAGE_COLUMNS = ["Status", "Outcome", "Page", "Depth", "Size", "Time"];

function PageRow({ job, page }: { readonly job: Job; readonly page: Page }) {
  return (
    <tr>
      <td>
        <span class={`code code-${String(page.status ?? "x").charAt(0)}`}>{page.status ?? "–"}</span>
      </td>
      <td>
        {page.outcome ?? "–"}
        {page.error !== undefined && <span class="soft second">{page.error.code}</span>}
      </td>
      <td class="main">
        <Address url={page.url} />
        {(page.title !== undefined || page.error !== undefined) && <span class="soft second">{page.title ?? page.error?.message}</span>}
      </td>
      <td class="figure">{page.depth ?? "–"}</td>
      <td class="figure">{page.bytes === undefined ? "–" : bytes(page.bytes)}</td>
      <td class="figure">{page.durationMs === undefined ? "–" : duration(page.durationMs)}</td>
      <td>
        {page.url !== undefined && (
          <a href={hrefOf(`jobs/${job.id}/explain`, { url: page.url })} aria-label={`Why: ${page.url}`}>
            Why?
          </a>
        )}
      </td>
    </tr>
  );
}

function Pages({ job, entries }: { readonly job: Job; readonly entries: readonly Page[] }) {
  return (
    <table class="records">
      <thead>
        <tr>
          {PAGE_COLUMNS.map((name) => (
            <th key={name} scope="col" {...(/Depth|Size|Time/.test(name) ? { class: "figure" } : {})}>
              {name}
            </th>
          ))}
          <th scope="col">
            <span class="hidden">Explanation</span>
          </th>
        </tr>
      </thead>
      <tbody>
        {entries.map((page, at) => (
          <PageRow key={`${page.url}${at}`} job={job} page={page} />
        ))}
      </tbody>
    </table>
  );
}

/** A value of any form in a cell. */
function Cell({ value }: { readonly value: unknown }) {
  if (value === null || value === undefined) return <span class="soft">–</span>;
  if (typeof value === "number") return <span class="figure">{value}</span>;
  if (typeof value === "string" && /^https?:\/\/\S+$/i.test(value)) return <Address url={value} />;
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return (
    <span class="cell" title={text.length > 60 ? text.slice(0, 2_000) : undefined}>
      {text.length > 300 ? `${text.slice(0, 300)} …` : text}
    </span>
  );
}

/** Of all records on this page, in the order in which they are met. */
function columnsOf(entries: readonly Record_[]): readonly string[] {
  const names = new Set<string>();
  for (const entry of entries) for (const name of Object.keys(entry)) if (name !== "_meta") names.add(name);
  return [...names];
}

function AnyRecords({ entries }: { readonly entries: readonly Record_[] }) {
  const all = columnsOf(entries);
  const columns = all.slice(0, MOST_COLUMNS);
  const others = all.slice(MOST_COLUMNS);
  const rest = (entry: Record_) => Object.fromEntries(others.filter((name) => name in entry).map((name) => [name, entry[name]]));
  const keyed = entries.map((entry, at) => ({ entry, key: String(at) }));
  return (
    <table class="records">
      <thead>
        <tr>
          {columns.map((name) => (
            <th key={name} scope="col">
              {name}
            </th>
          ))}
          {others.length > 0 && <th scope="col">{count(others.length)} more</th>}
        </tr>
      </thead>
      <tbody>
        {keyed.map(({ entry, key }) => (
          <tr key={key}>
            {columns.map((name) => (
              <td key={name}>
                <Cell value={entry[name]} />
              </td>
            ))}
            {others.length > 0 && (
              <td>
                <Cell value={rest(entry)} />
              </td>
            )}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

const EMPTY: Readonly<Record<Table, string>> = {
  pages: "No page is settled yet.",
  items: "There are no items. Items come from a scraper or from extract fields, under Options.",
  skipped: "Nothing was skipped.",
  images: "No images were found. They are collected when the option Images is on.",
};

export function RecordsTab({ job, table }: { readonly job: Job; readonly table: "pages" | "items" | "skipped" }) {
  const records = useRecords<Record_>(job, table, PAGE);
  const entries = records.value?.entries ?? [];
  return (
    <Frame job={job} table={table} records={records} empty={EMPTY[table]}>
      <TableBox label={capital(NAMES[table])}>{table === "pages" ? <Pages job={job} entries={entries} /> : <AnyRecords entries={entries} />}</TableBox>
    </Frame>
  );
}

/** Of a name in the public web, as far as a name can tell: a thumbnail must not make this browser ask machines beside it. */
export function isPublicImage(url: string): boolean {
  const host = URL.parse(url)?.hostname ?? "";
  return webAddressOnly(url) && /\.[a-z][a-z0-9-]*$/i.test(host) && !/\.(local|localhost|internal|intranet|lan|home|arpa|test|invalid)$/i.test(host);
}
const webAddressOnly = (url: string) => /^https?:\/\//i.test(url);

/** The page allows images of others only when it was asked for in this way. */
const allowsThumbnails = () => new URLSearchParams(location.search).has("thumbnails");

export function ImagesTab({ job }: { readonly job: Job }) {
  const records = useRecords<string>(job, "images", PAGE_OF_IMAGES);
  const shown = allowsThumbnails();
  const entries = records.value?.entries ?? [];
  return (
    <Frame job={job} table="images" records={records} empty={EMPTY.images}>
      <p class="soft">
        {shown ? "Your browser fetches these images from their sites. " : "Thumbnails are fetched by your browser from the sites that have them. "}
        <a href={`${shown ? "./" : "./?thumbnails"}${hrefOf(`jobs/${job.id}/images`)}`}>{shown ? "Hide thumbnails" : "Show thumbnails"}</a>
      </p>
      <ul class={shown ? "images thumbnails" : "images"}>
        {entries.map((url) => (
          <li key={url}>
            {shown && (isPublicImage(url) ? <img src={url} alt="" loading="lazy" decoding="async" referrerpolicy="no-referrer" /> : <span class="noimage" />)}
            <Address url={url} />
          </li>
        ))}
      </ul>
    </Frame>
  );
}
