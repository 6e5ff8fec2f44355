/** Whether a frameset may still replace the body of a document (HTML Standard §13.2.6.4.7, "frameset-ok"). Rare, old, and apart from the hot path. */
import { elementName, endScan, nextTag, type Scan, skipRawText, skipScript, startScan, TAG } from "./scan.ts";

/** Names of start tags after which a frameset is refused ("frameset-ok" becomes "not ok"), and those whose content is no text of the body. */
const NO_FRAMESET = new Set(
  "body pre listing li dd dt button applet marquee object table area br embed img image keygen wbr input hr textarea xmp iframe select plaintext".split(" "),
);

/** What may stand before the body. */
const HEAD_ONLY = new Set("html head base basefont bgsound link meta title noscript noframes style script template frameset".split(" "));

/**
 * Offset at which the body began, or that of the frameset tag the scan stands behind if there is none yet; −1 if something that counts as content
 * came before, so that the frameset is ignored. A second, slow pass, made once per document at most.
 */
export function replacedBody(scan: Scan): number {
  const before = startScan(scan.bytes.subarray(0, scan.nameStart - 1), true);
  before.everyTag = true;
  const bodyFrom = findReplacedBody(before);
  endScan(before);
  return bodyFrom;
}

function findReplacedBody(before: Scan): number {
  let bodyFrom = before.end;
  for (;;) {
    const from = before.at;
    const tag = nextTag(before);
    const upTo = tag === 0 ? before.end : before.nameStart - (tag < 0 ? 2 : 1);
    const between = before.bytes.latin1Slice(from, upTo).replace(/<!--(?:>|->|[\s\S]*?(?:-->|--!>|$))|<[!?/][^>]*>/g, "");
    if (/[^\t\n\f\r \0]/.test(between)) return -1;
    if (tag === 0) return bodyFrom;
    const name = elementName(before);
    if (tag > 0 ? NO_FRAMESET.has(name) : name === "br") return -1;
    if (tag > 0 ? !HEAD_ONLY.has(name) : name === "body" || name === "html" || name === "p") bodyFrom = Math.min(bodyFrom, before.nameStart);
    if (tag === TAG.SCRIPT) skipScript(before);
    else if (tag === TAG.RAW || tag === TAG.NOFRAMES || tag === TAG.TITLE) skipRawText(before);
  }
}
