/** Whether a regular expression in a job body could keep the service busy: a strict reading that refuses some harmless ones. Those of the operator are not asked. */

const LONGEST = 1_000;

/** A repetition without a small bound, at this place: `*`, `+`, `{2,}`, `{1,9999}`. */
function unboundedAt(text: string, at: number): boolean {
  const c = text[at];
  if (c === "*" || c === "+") return true;
  const range = /^\{(\d+)(,(\d*))?\}/.exec(text.slice(at, at + 12));
  if (range === null) return false;
  const most = range[2] === undefined ? range[1] : range[3];
  return most === "" || Number(most) > 20;
}

/** Reads a class `[…]`; answers the place after it. */
function afterClass(text: string, from: number): number {
  let at = from + 1;
  while (at < text.length && text[at] !== "]") at += text[at] === "\\" ? 2 : 1;
  return at + 1;
}

/**
 * Says what is risky, or null. Refused are back references and look-around (never linear), a repeated group with a repetition or a choice inside (its time can
 * grow exponentially with the URL), and more than a handful of repetitions (whose degree is the exponent otherwise).
 */
export function riskyExpression(text: string): string | null {
  if (text.length > LONGEST) return `is longer than ${LONGEST} characters`;
  const groups: { repeats: boolean }[] = [];
  let repetitions = 0;
  for (let at = 0; at < text.length; ) {
    const c = text[at];
    if (c === "\\") {
      if (/[1-9k]/.test(text[at + 1] ?? "")) return "refers back to a group, which is not allowed in a job";
      at += 2;
    } else if (c === "[") at = afterClass(text, at);
    else if (c === "(") {
      if (/^\(\?(?:<?[=!])/.test(text.slice(at, at + 4))) return "looks ahead or behind, which is not allowed in a job";
      groups.push({ repeats: false });
      at++;
    } else if (c === ")") {
      const group = groups.pop();
      const outer = groups.at(-1);
      if (group?.repeats && unboundedAt(text, at + 1)) return "repeats a group in which something is repeated or chosen, which is not allowed in a job";
      if (outer && (group?.repeats || unboundedAt(text, at + 1))) outer.repeats = true;
      at++;
    } else {
      const inner = groups.at(-1);
      if (inner && (c === "|" || unboundedAt(text, at))) inner.repeats = true;
      if (unboundedAt(text, at) && ++repetitions > 6) return "has more than six repetitions, which is not allowed in a job";
      at++;
    }
  }
  return null;
}
