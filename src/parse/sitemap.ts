/** Sitemaps from bytes, in pieces and with flat memory: which pages and further sitemaps a file names. Fetching, nesting, and meeting a file twice are the caller's. */
import { mediaTypeOf } from "../rules/media-type.ts";
import { declaredCharset, encodingOfLabel } from "./charset.ts";
import { type Cut, unpacked } from "./sitemap-layers.ts";
import { createLineReader, createTally, createXmlReader, type SitemapOptions, type SitemapResult, type Tally, type TextTaker } from "./sitemap-tally.ts";

export { mayList, parseSitemapDate } from "./sitemap-rules.ts";
export type { ChangeFrequency, SitemapFacts, SitemapOptions, SitemapResult } from "./sitemap-tally.ts";

export interface SitemapParser {
  /** False: the parser wants no more (a limit, not a sitemap, or damage); further bytes are ignored. */
  push(bytes: Uint8Array): boolean;
  /** Once, after the last `push`. `cut`: why there are no more bytes although the file is longer. */
  end(cut?: Readonly<Cut>): SitemapResult;
}

const MAX_BYTES = 512 * 1024 * 1024;
const MAX_LAYERS = 3;
const WHOLE: Readonly<Cut> = { error: null, limit: null };
/** Decoded bytes between two pauses: some milliseconds of work. */
const TURN = 192 * 1024;
/** Bytes from which the encoding is told. */
const HEAD_BYTES = 1024;

/** Two bytes of which one is zero, as UTF-16 has them around a "<" or any other ASCII character, whatever the headers say (XML 1.0 appendix F). */
function encodingOf(head: Buffer, contentType: string | null): string {
  if (head.length >= 4 && head[0] !== 0 && head[1] === 0 && head[2] !== 0 && head[3] === 0) return "utf-16le";
  if (head.length >= 4 && head[0] === 0 && head[1] !== 0 && head[2] === 0 && head[3] !== 0) return "utf-16be";
  const label = mediaTypeOf(contentType).charset;
  // Blank lines before the XML declaration are a common mistake.
  let start = 0;
  while (start < head.length && (head[start]! === 0x20 || (head[start]! >= 0x09 && head[start]! <= 0x0d))) start++;
  const name = declaredCharset(head.subarray(start), label === null || !isWide(label) ? label : null, "xml")?.name ?? "utf-8";
  return name === "replacement" ? "utf-8" : name;
}

/** The bytes have just been seen not to be UTF-16. */
function isWide(label: string): boolean {
  return encodingOfLabel(label)?.startsWith("utf-16") === true;
}

/** Decoded bytes → text → lines or XML. */
function createByteReader(tally: Tally, options: SitemapOptions) {
  let head: Buffer | null = Buffer.alloc(0);
  let decoder: InstanceType<typeof TextDecoder> | null = null;
  let reader: TextTaker | null = null;
  let bytesRead = 0;

  function feed(text: string): void {
    let from = text;
    if (reader === null) {
      from = text.trimStart();
      if (from === "") return;
      reader = from.startsWith("<") ? createXmlReader(tally, options) : createLineReader(tally);
    }
    reader.write(from);
  }

  function begin(start: Buffer): void {
    head = null;
    decoder = new TextDecoder(encodingOf(start, options.contentType));
    feed(decoder.decode(start, { stream: true }));
  }

  return {
    push(piece: Uint8Array): void {
      bytesRead += piece.length;
      if (head !== null) {
        head = Buffer.concat([head, piece]);
        if (head.length >= HEAD_BYTES) begin(head);
      } else if (decoder !== null) feed(decoder.decode(piece, { stream: true }));
    },
    end(complete: boolean): SitemapResult["kind"] {
      // The last entries before the limit may be whole although the file is not; a character that was cut is dropped.
      const limited = tally.limit === "bytes";
      if (limited) tally.done = false;
      if (head !== null) begin(head);
      if (complete && decoder !== null && !tally.done) feed(decoder.decode());
      if (!tally.done) reader?.end(complete);
      if (limited) tally.done = true;
      return reader === null ? "empty" : reader.kind();
    },
    get bytes() {
      return bytesRead;
    },
  };
}

/**
 * Reads one file that is not compressed, in the caller's turn. Any bytes give a result: urlset, sitemapindex, RSS, Atom, or text; encoding by byte order
 * mark, Content-Type, XML declaration, else UTF-8 (RFC 7303 §3). Entities of a DTD, external ones and XInclude are never resolved nor opened.
 * The result does not depend on how the bytes are cut into pieces.
 */
export function createSitemapParser(options: SitemapOptions): SitemapParser {
  const tally = createTally(options);
  const reader = createByteReader(tally, options);
  const maxBytes = options.maxBytes ?? MAX_BYTES;

  return {
    push(given) {
      if (tally.done) return false;
      const bytes = given.subarray(0, maxBytes - reader.bytes);
      reader.push(bytes);
      if (bytes.length < given.length && !tally.done) {
        tally.limit = "bytes";
        tally.done = true;
      }
      return !tally.done;
    },
    end(cut = WHOLE) {
      const kind = reader.end(tally.limit === null && cut.limit === null && cut.error === null);
      // What the file is, or the limit that ended its reading, says more than damage behind it.
      const error = kind === "html" || kind === "other" || tally.limit !== null ? tally.error : (cut.error ?? tally.error);
      return { kind, urls: tally.urls, sitemaps: tally.sitemaps, rejected: tally.rejected, bytes: reader.bytes, error, limit: tally.limit ?? cut.limit };
    },
  };
}

/**
 * Reads a file as it came, giving the event loop its turn in between: `pause` resolves once the loop has handled what is ready. Gzip around the file is known
 * by its first bytes and undone, whatever the type says; of a damaged or cut file all is read that can be decoded.
 */
export async function readSitemap(bytes: Uint8Array, options: SitemapOptions, pause: () => Promise<void>): Promise<SitemapResult> {
  const parser = createSitemapParser(options);
  const cut: Cut = { error: null, limit: null };
  const limits = { maxBytes: options.maxBytes ?? MAX_BYTES, maxLayers: options.maxLayers ?? MAX_LAYERS };
  let unpaused = 0;
  for await (const piece of unpacked(bytes, limits, cut)) {
    if (unpaused >= TURN) {
      await pause();
      unpaused = 0;
    }
    unpaused += piece.length;
    if (!parser.push(piece)) break;
  }
  return parser.end(cut);
}
