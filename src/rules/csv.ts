/** Values as a row of comma-separated text (RFC 4180 §2), placed by column name. Writes no file. */

const NEEDS_QUOTES = /[",\r\n]/;

/** Lists and objects are JSON; what is absent or null is an empty cell, an empty text a quoted one. */
export function csvCell(value: unknown): string {
  if (value === undefined || value === null) return "";
  if (value === "") return '""';
  const text = typeof value === "string" ? value : typeof value === "object" ? JSON.stringify(value) : String(value);
  return NEEDS_QUOTES.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** One row with its CRLF. A field that is not among the columns is left out. */
export function csvRow(record: object, columns: readonly string[]): string {
  // `as`: only read, by names that are fields of the record or absent from it.
  const values = record as Readonly<Record<string, unknown>>;
  let row = "";
  for (const [index, column] of columns.entries()) row += index === 0 ? csvCell(values[column]) : `,${csvCell(values[column])}`;
  return csvLine(row);
}

/** Cells, with the commas between them, as a line. One empty cell would be an empty line, which readers leave out. */
export function csvLine(row: string): string {
  return `${row === "" ? '""' : row}\r\n`;
}

/** The cells of the first `most` rows as they stand there, quotes included; null when the text ends before. */
export function rawRows(text: string, most: number): string[][] | null {
  const plainEnd = /[,\r\n]/g;
  const rows: string[][] = [];
  let row: string[] = [];
  for (let at = 0; rows.length < most; ) {
    let end = at;
    if (text[at] === '"') {
      do end = text.indexOf('"', end + 1) + 1;
      while (end > 0 && text[end] === '"');
      if (end === 0) return null;
    } else {
      plainEnd.lastIndex = at;
      end = plainEnd.exec(text)?.index ?? text.length;
    }
    row.push(text.slice(at, end));
    if (text[end] === ",") at = end + 1;
    else if (text.startsWith("\r\n", end)) {
      rows.push(row);
      row = [];
      at = end + 2;
    } else return null;
  }
  return rows;
}

export function csvHeader(columns: readonly string[]): string {
  return `${columns.map(csvCell).join(",")}\r\n`;
}
