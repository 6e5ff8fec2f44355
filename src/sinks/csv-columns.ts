/** Items as rows of CSV: which columns there are while they may still change, and afterwards. Writes no file. */
import { csvCell, csvLine, rawRows } from "../rules/csv.ts";
import { EXTRA_COLUMN, fieldsOf, META_COLUMNS, META_FIELDS, nameGiver, TYPE_COLUMN } from "./item-columns.ts";
import type { ItemsTable, TakenItem } from "./tables.ts";

/** Columns for fields at most; what more there are goes to `_extra`. */
const MOST_COLUMNS = 2_000;

/** Cells as they stand in the file: the type, where the item is from, `_extra`, then the fields. An absent cell is empty. */
export type Row = readonly (string | undefined)[];
const TYPE = 0;
const META = 1;
const EXTRA = META + META_FIELDS.length;
const FIELDS = EXTRA + 1;

/** What a resume must know to understand the rows. */
export interface ColumnsState {
  readonly fields: readonly string[];
  readonly types: readonly string[];
  readonly extra: boolean;
  readonly fixed: boolean;
}

export interface CsvColumns {
  /** Changes when the header does. */
  readonly version: number;
  row(taken: TakenItem): Row;
  header(): string;
  line(row: Row): string;
  /** From here on the header stays, with `_extra` for what it has no column for. */
  fix(): void;
  state(): ColumnsState;
  /** Reads back the header and the first `count` rows that were written with these columns, or with more; null when that is not what stands there. */
  read(text: string, count: number): Row[] | null;
}

export function csvColumns({ types, meta }: ItemsTable, at: ColumnsState | null): CsvColumns {
  const declared = types.length > 0 && types.every(({ columns }) => columns !== null);
  const give = nameGiver([TYPE_COLUMN, ...META_COLUMNS, EXTRA_COLUMN], (name) => name);
  const names: string[] = [TYPE_COLUMN, ...META_COLUMNS, EXTRA_COLUMN];
  const slots = new Map<string, number>();
  const seen = new Set(at?.types ?? types.map(({ name }) => name));
  let extra = at?.extra ?? false;
  let fixed = at?.fixed ?? false;
  let version = 0;
  /** The page of the last item, and its cells. */
  let from: TakenItem["page"] = null;
  let metaCells: readonly string[] = META_FIELDS.map(() => "");

  function add(field: string): number {
    const slot = names.push(give(field)) - 1;
    slots.set(field, slot);
    version++;
    return slot;
  }

  for (const field of at?.fields ?? types.flatMap(({ columns }) => columns ?? [])) if (!slots.has(field)) add(field);

  function shown(): readonly number[] {
    const fields = Array.from({ length: names.length - FIELDS }, (_, index) => FIELDS + index);
    return [...(seen.size > 1 ? [TYPE] : []), ...fields, ...(meta ? META_FIELDS.map((_, index) => META + index) : []), ...(extra ? [EXTRA] : [])];
  }
  let layout = { version: -1, order: shown() };
  const order = (): readonly number[] => {
    if (layout.version !== version) layout = { version, order: shown() };
    return layout.order;
  };

  /** Of a field without a column, or nothing when it gets one. */
  function slotFor(field: string): number | undefined {
    const slot = slots.get(field);
    return slot !== undefined || fixed || declared || slots.size >= MOST_COLUMNS ? slot : add(field);
  }

  /** Before the columns are fixed, a second type shows that a column for it is needed. */
  function noteType(type: string, left: [string, unknown][]): void {
    if (seen.has(type)) return;
    if (!fixed) {
      seen.add(type);
      version++;
    } else if (seen.size === 1) left.push([TYPE_COLUMN, type]);
  }

  return {
    get version() {
      return version;
    },
    row({ item, page }) {
      const row: (string | undefined)[] = new Array(names.length);
      const left: [string, unknown][] = [];
      noteType(item.type, left);
      row[TYPE] = csvCell(item.type);
      if (page !== from) metaCells = META_FIELDS.map((field) => csvCell(page?.[field]));
      from = page;
      for (let index = 0; index < metaCells.length; index++) row[META + index] = metaCells[index];
      const fields = fieldsOf(item.json);
      for (const field of Object.keys(fields)) {
        const slot = slotFor(field);
        if (slot === undefined) left.push([field, fields[field]]);
        else row[slot] = csvCell(fields[field]);
      }
      if (left.length > 0) {
        row[EXTRA] = csvCell(JSON.stringify(Object.fromEntries(left)));
        if (!extra) version++;
        extra = true;
      }
      return row;
    },
    header() {
      const shownNames = order().map((slot) => csvCell(names[slot]));
      return shownNames.length === 0 ? "" : csvLine(shownNames.join(","));
    },
    line: (row) =>
      csvLine(
        order()
          .map((slot) => row[slot] ?? "")
          .join(","),
      ),
    fix() {
      if (!extra) version++;
      extra = true;
      fixed = true;
    },
    state: () => ({ fields: [...slots.keys()], types: [...seen], extra, fixed }),
    read(text, count) {
      const [head, ...rows] = rawRows(text, count + 1) ?? [];
      if (head === undefined) return null;
      const places = new Map(head.map((cell, index) => [cell, index]));
      const from = order().map((slot) => [slot, places.get(csvCell(names[slot]))] as const);
      if (from.some(([, place]) => place === undefined)) return null;
      return rows.map((cells) => {
        const row: (string | undefined)[] = new Array(names.length);
        // Where no column tells it, there is one type.
        row[TYPE] = csvCell([...seen][0]);
        for (const [slot, place] of from) row[slot] = cells[place ?? 0];
        return row;
      });
    },
  };
}
