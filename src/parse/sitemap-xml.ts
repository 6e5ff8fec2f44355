/**
 * The marks of an XML text, piece by piece and forgiving: sitemaps are full of bare ampersands and files that were cut off, and a strict parser loses pages there.
 * Knows nothing of sitemaps, resolves no entities, opens nothing. DOCTYPE, comments and instructions are passed over and never kept.
 */

/** Who is told. Strings are parts of the input: copy what is to last. */
export interface XmlTaker {
  /** `attributes`: the raw text after the name. An empty element is opened and closed. */
  open(name: string, attributes: string): void;
  close(name: string): void;
  /** A piece of text; with `data` it comes from a CDATA section, else its references are not resolved yet. Only while `collecting`. */
  text(piece: string, data: boolean): void;
  /** Something that XML forbids was met and passed over. */
  fault(what: string): void;
  readonly collecting: boolean;
  /** No more is wanted. */
  readonly done: boolean;
}

export interface XmlScanner {
  write(text: string): void;
  /** Where the input ended: outside of any mark, within a closing tag, or within some other mark. */
  end(): "outside" | "closing" | "inside";
}

/** A longer tag is damage: an attribute whose quote never ends. Characters. */
const MAX_TAG = 65_536;

const COMMENT_END = "-->";
const DATA_END = "]]>";
const INSTRUCTION_END = "?>";

/** What the scanner is in at the end of a piece; within `rest` nothing has been told yet. */
type Within = "text" | "comment" | "data" | "instruction" | "doctype";

const isSpace = (code: number) => code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09;
/** What may begin a name: letters, "_", ":" and everything beyond ASCII. */
const beginsName = (code: number) => (code >= 0x61 && code <= 0x7a) || (code >= 0x41 && code <= 0x5a) || code === 0x5f || code === 0x3a || code >= 0x80;

export function createXmlScanner(taker: XmlTaker): XmlScanner {
  let within: Within = "text";
  let rest = "";
  // How far an unfinished tag in `rest` has been looked at, and the quote it is in.
  let tagSeen = 0;
  let tagQuote = 0;
  // Of a DOCTYPE: depth of brackets, and the quote or "-" (comment) it is in.
  let brackets = 0;
  let doctypeIn = "";
  // Characters at the start of `rest` that were looked at and are kept only because a comment's mark may have begun in them.
  let doctypeSeen = 0;

  /** Position after the end mark of what the scanner is in; −1 keeps what may be its beginning. */
  function passTo(mark: string, text: string, from: number): number {
    const at = text.indexOf(mark, from);
    const stop = at < 0 ? Math.max(from, text.length - mark.length + 1) : at;
    if (within === "data" && taker.collecting && stop > from) taker.text(text.slice(from, stop), true);
    if (at < 0) {
      rest = text.slice(stop);
      return -1;
    }
    within = "text";
    return at + mark.length;
  }

  /** A DOCTYPE ends at the first ">" outside of brackets, quotes and comments. Quotes count only where declarations have them. */
  function passDoctype(text: string, from: number): number {
    const start = from + doctypeSeen;
    doctypeSeen = 0;
    for (let at = start; at < text.length; at++) {
      const c = text[at]!;
      if (doctypeIn === "-") {
        if (c === ">" && text.startsWith(COMMENT_END, at - 2)) doctypeIn = "";
      } else if (doctypeIn !== "") {
        if (c === doctypeIn) doctypeIn = "";
      } else if (c === '"' || c === "'") doctypeIn = c;
      else if (c === "[") brackets++;
      else if (c === "]") brackets--;
      else if (c === "-" && text.startsWith("<!--", at - 3)) doctypeIn = "-";
      else if (c === ">" && brackets <= 0) {
        within = "text";
        return at + 1;
      }
    }
    rest = text.slice(Math.max(from, text.length - 3));
    doctypeSeen = rest.length;
    return -1;
  }

  /** Index of the ">" that ends the tag at `from`; −1 when it is not there yet. */
  function tagEnd(text: string, from: number): number {
    for (let at = Math.max(from + 1, from + tagSeen); at < text.length; at++) {
      const c = text.charCodeAt(at);
      if (tagQuote !== 0) {
        if (c === tagQuote) tagQuote = 0;
      } else if (c === 0x3e) return at;
      else if (c === 0x22 || c === 0x27) tagQuote = c;
    }
    tagSeen = text.length - from;
    return -1;
  }

  function tellTag(text: string, from: number, end: number): void {
    const closing = text.charCodeAt(from + 1) === 0x2f;
    const start = closing ? from + 2 : from + 1;
    let nameEnd = start;
    while (nameEnd < end && !isSpace(text.charCodeAt(nameEnd)) && text.charCodeAt(nameEnd) !== 0x2f) nameEnd++;
    const name = text.slice(start, nameEnd);
    if (closing) {
      taker.close(name);
      return;
    }
    const empty = text.charCodeAt(end - 1) === 0x2f;
    taker.open(name, nameEnd === end ? "" : text.slice(nameEnd, empty ? end - 1 : end));
    if (empty) taker.close(name);
  }

  /** The mark at `from`; the position after it, or −1 when more input is needed. */
  function mark(text: string, from: number): number {
    const code = text.charCodeAt(from + 1);
    if (code === 0x21) {
      const known = markup(text, from);
      if (known !== 0) return known;
    } else if (code === 0x3f) {
      within = "instruction";
      return from + 2;
    } else if (beginsName(code) || code === 0x2f) {
      const end = tagEnd(text, from);
      if (end >= 0) {
        tellTag(text, from, end);
        tagSeen = 0;
        return end + 1;
      }
      if (text.length - from <= MAX_TAG) {
        rest = text.slice(from);
        return -1;
      }
      tagSeen = 0;
      tagQuote = 0;
      taker.fault("a tag does not end");
    } else if (from + 1 === text.length) {
      rest = "<";
      return -1;
    } else taker.fault('"<" stands alone');
    if (taker.collecting) taker.text("<", true);
    return from + 1;
  }

  /** `<!…`: as `mark`, or 0 when it is nothing that XML knows. */
  function markup(text: string, from: number): number {
    for (const [opening, inside] of [
      ["<!--", "comment"],
      ["<![CDATA[", "data"],
      ["<!DOCTYPE", "doctype"],
    ] as const) {
      const given = text.slice(from, from + opening.length);
      const wanted = opening.slice(0, given.length);
      if (given !== wanted && !(inside === "doctype" && given.toUpperCase() === wanted)) continue;
      if (given.length < opening.length) {
        rest = text.slice(from);
        return -1;
      }
      within = inside;
      brackets = 0;
      return from + opening.length;
    }
    taker.fault('"<!" begins nothing that is known');
    return 0;
  }

  function step(text: string, at: number): number {
    switch (within) {
      case "comment":
        return passTo(COMMENT_END, text, at);
      case "data":
        return passTo(DATA_END, text, at);
      case "instruction":
        return passTo(INSTRUCTION_END, text, at);
      case "doctype":
        return passDoctype(text, at);
      case "text": {
        const from = text.indexOf("<", at);
        const stop = from < 0 ? text.length : from;
        if (stop > at && taker.collecting) taker.text(text.slice(at, stop), false);
        return from < 0 ? -1 : mark(text, from);
      }
    }
  }

  return {
    write(piece) {
      const text = rest === "" ? piece : rest + piece;
      rest = "";
      for (let at = 0; at >= 0 && !taker.done; ) at = step(text, at);
    },
    end() {
      if (rest.startsWith("</")) return "closing";
      return within === "text" && rest === "" ? "outside" : "inside";
    },
  };
}
