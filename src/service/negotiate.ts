/** Which of several media types a client would rather have, by its Accept header (RFC 9110 §12.5.1). */

interface Wish {
  readonly type: string;
  readonly subtype: string;
  readonly quality: number;
}

/** Longer headers are no wishes of anybody. */
const MOST_WISHES = 64;

function wishesOf(accept: string): readonly Wish[] {
  return accept
    .split(",", MOST_WISHES)
    .map((part): Wish => {
      const [name = "", ...parameters] = part.split(";").map((piece) => piece.trim().toLowerCase());
      const [type = "", subtype = ""] = name.split("/");
      const q = parameters.find((parameter) => parameter.startsWith("q="));
      const quality = q === undefined ? 1 : Number(q.slice(2));
      return { type, subtype, quality: quality >= 0 && quality <= 1 ? quality : 0 };
    })
    .filter(({ type, subtype }) => type !== "" && subtype !== "");
}

/** The quality of the most specific wish that covers the type; -1: none does. */
function qualityOf(offer: string, wishes: readonly Wish[]): number {
  const [type = "", subtype = ""] = offer.split("/");
  let best = -1;
  let quality = -1;
  for (const wish of wishes) {
    const specific =
      wish.type === type && wish.subtype === subtype ? 2 : wish.type === type && wish.subtype === "*" ? 1 : wish.type === "*" && wish.subtype === "*" ? 0 : -1;
    if (specific > best) {
      best = specific;
      quality = wish.quality;
    }
  }
  return quality;
}

/** The offer with the highest quality, the first among equals; null: none is acceptable. Without the header anything is. */
export function preferred<T extends string>(accept: string | null, offers: readonly T[]): T | null {
  const wishes = accept === null ? [] : wishesOf(accept);
  if (wishes.length === 0) return offers[0] ?? null;
  let best: T | null = null;
  let most = 0;
  for (const offer of offers) {
    const quality = qualityOf(offer, wishes);
    if (quality > most) {
      most = quality;
      best = offer;
    }
  }
  return best;
}
