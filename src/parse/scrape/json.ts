/** The values of user code as JSON: written as they are when they are given, and refused where JSON would keep nothing of them. */
import { isRecord, whatIs } from "./define.ts";

/** Fresh text: nothing in it keeps the page alive. Throws TypeError for what JSON cannot hold; `what` begins its message. */
export function jsonOf(what: string, value: unknown): string {
  const json = asGiven(what, value);
  // A promise that nobody awaited, a Map, a Set …: JSON makes {} of them without a word. Looked for only where there is one, which is rare.
  const empty = json.includes("{}") ? emptied(value, "") : null;
  if (empty !== null) throw new TypeError(`${what} cannot be written as JSON: ${empty}`);
  return json;
}

/** The same for what is still to be changed, so that nothing is lost yet where JSON keeps nothing of it. */
export function asGiven(what: string, value: unknown): string {
  let json: string | undefined;
  try {
    json = JSON.stringify(value);
  } catch (cause) {
    // The messages of JSON.stringify draw a cycle over several lines.
    const why = cause instanceof Error ? (cause.message.split("\n")[0] ?? "") : String(cause);
    throw new TypeError(`${what} cannot be written as JSON: ${why}`, { cause });
  }
  if (json === undefined) throw new TypeError(`${what} cannot be written as JSON: it is ${whatIs(value)}`);
  return json;
}

const ADVICE: readonly (readonly [string, (value: object) => boolean, string])[] = [
  ["a promise", (value) => "then" in value && typeof value.then === "function", "await it"],
  ["a Map", (value) => value instanceof Map, "give an object: Object.fromEntries(map)"],
  ["a Set", (value) => value instanceof Set, "give an array: [...set]"],
  ["a RegExp", (value) => value instanceof RegExp, "give its source"],
  ["an Error", (value) => value instanceof Error, "give its message"],
];

/** JSON has been written of it, so there is no cycle. */
function emptied(value: unknown, path: string): string | null {
  if (typeof value !== "object" || value === null || "toJSON" in value) return null;
  for (const [name, is, advice] of ADVICE) if (is(value)) return `${path === "" ? "it" : path} is ${name}; ${advice}`;
  const entries = Array.isArray(value) ? value.map((each, i) => [`[${i}]`, each] as const) : isRecord(value) ? Object.entries(value) : [];
  for (const [name, each] of entries) {
    const found = emptied(each, Array.isArray(value) || path === "" ? path + name : `${path}.${name}`);
    if (found !== null) return found;
  }
  return null;
}
