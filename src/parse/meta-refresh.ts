/** The content of `<meta http-equiv=refresh>`, and of the Refresh field, which is read in the same way (HTML Standard §4.2.5.3, shared declarative refresh steps). */

export interface Refresh {
  /** Whole seconds. */
  readonly delay: number;
  /** As written, not resolved; null: the page itself. */
  readonly url: string | null;
}

const SPACE = /[\t\n\f\r ]/;

/** Null where the content asks for no refresh. */
export function parseRefresh(content: string): Refresh | null {
  const head = /^[\t\n\f\r ]*(?:([0-9]+)|(?=\.))[0-9.]*/.exec(content);
  if (head === null) return null;
  const delay = Number(head[1] ?? 0);
  let at = head[0].length;
  if (at >= content.length) return { delay, url: null };
  if (content[at] !== ";" && content[at] !== "," && !SPACE.test(content[at]!)) return null;
  at = skipSpace(content, at);
  if (content[at] === ";" || content[at] === ",") at = skipSpace(content, at + 1);
  const rest = content.slice(at);
  if (rest === "") return { delay, url: null };
  return { delay, url: refreshUrl(rest) };
}

function skipSpace(text: string, from: number): number {
  let at = from;
  while (at < text.length && SPACE.test(text[at]!)) at++;
  return at;
}

/** An optional `url =`, then the URL, which a quote before it ends at the next such quote. */
function refreshUrl(rest: string): string {
  const prefix = /^url[\t\n\f\r ]*=[\t\n\f\r ]*/i.exec(rest)?.[0].length ?? 0;
  const url = rest.slice(prefix);
  const quote = url[0];
  if (quote !== '"' && quote !== "'") return trimmedEnd(url);
  const close = url.indexOf(quote, 1);
  return close < 0 ? url.slice(1) : url.slice(1, close);
}

/** Not by a regular expression: those take quadratic time for long runs of blanks in the middle. */
function trimmedEnd(text: string): string {
  let end = text.length;
  while (end > 0 && SPACE.test(text[end - 1]!)) end--;
  return text.slice(0, end);
}
