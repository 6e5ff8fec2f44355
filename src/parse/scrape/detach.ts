/** Strings cut loose: a part of a page's text, as an engine cuts it, would keep the whole page in memory for as long as it lives. */

/** An equal string of its own. Lone surrogates become U+FFFD. */
export function detached(text: string): string {
  return Buffer.from(text, "utf8").toString("utf8");
}
