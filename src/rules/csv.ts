/** Values as a row of comma-separated text (RFC 4180 §2), placed by column name. Writes no file. */

const NEEDS_QUOTES = /[",\r\n]/;

/** Lists and objects are JSON; what is absent or null is an empty cell, an empty text a quoted one. */
function cell(value: unknown): string {
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
  for (const [index, column] of columns.entries()) row += index === 0 ? cell(values[column]) : `,${cell(values[column])}`;
  // A row of one empty cell would be an empty line, which readers leave out.
  return `${row === "" ? '""' : row}\r\n`;
}

export function csvHeader(columns: readonly string[]): string {
  return `${columns.map(cell).join(",")}\r\n`;
}
