/** Which parts each script is made of, and the digest by which the server knows it. */
import { hash } from "node:crypto";
import { luaText } from "./lua-text.ts";

const STEP = ["base", "seen", "pace", "hosts", "queue", "places", "out", "finish"] as const;

const PARTS = {
  create: ["owners"],
  files: ["owners"],
  configure: ["base"],
  add: [...STEP, "links"],
  claim: [...STEP, "cookies"],
  settle: [...STEP, "cookies", "values", "links"],
  progress: STEP,
  renew: STEP,
  control: STEP,
  tune: [...STEP, "cookies", "values"],
  counts: STEP,
  views: STEP,
  robots: STEP,
  remaining: STEP,
  checkpoint: ["base"],
  retire: [],
  "cache-put": [],
  "cache-drop": [],
} as const satisfies Readonly<Record<string, readonly string[]>>;

export type ScriptName = keyof typeof PARTS;

export interface Script {
  readonly text: string;
  readonly sha: string;
}

const made = new Map<ScriptName, Script>();

/** Stands where the parts begin that not every script has. */
const AFTER_BASE = "afterBase()\n";

/** Statements that only declare: functions, values, and blocks that give the functions declared before them. */
const DECLARES = /^local function (\w+)|^local ([\w, ]+)(?: =(?!.*\bcall\()|$)/;

function declaredBy(statement: string): readonly string[] | null {
  if (statement.startsWith("do\n")) {
    const functions = [...statement.matchAll(/^ {2}function (\w+)\(/gm)].map(([, name]) => name!); // the group is not optional
    return functions.length > 0 ? functions : null;
  }
  const [, one, several] = DECLARES.exec(statement.split("\n", 1)[0]!) ?? []; // split answers one part at least
  return one !== undefined ? [one] : (several?.split(", ") ?? null);
}

/**
 * The text without what nothing after it names: each call makes all functions of its script anew, which costs more than many a call does.
 * In Lua only later text can name a local, so one pass from the end is enough.
 */
function needed(text: string): string {
  const statements = text.split(/^(?=[a-zA-Z](?!(?<=e)(?:nd|lse)))/m);
  const kept: string[] = [];
  const named = new Set<string>();
  for (const statement of statements.reverse()) {
    const names = declaredBy(statement);
    if (names !== null && !names.some((name) => named.has(name))) continue;
    kept.push(statement);
    for (const [word] of statement.matchAll(/\w+/g)) named.add(word);
  }
  return kept.reverse().join("");
}

/** Functions of a function find what lies outside of it at once; what lies beside them is searched for, one by one, whenever they are made. */
function nested(text: string): string {
  const at = text.indexOf(AFTER_BASE);
  return at < 0 ? text : `${text.slice(0, at)}return (function()\n${text.slice(at + AFTER_BASE.length)}\nend)()\n`;
}

/** Comments are left out: the server keeps the text. */
export function scriptOf(name: ScriptName): Script {
  const known = made.get(name);
  if (known !== undefined) return known;
  const body = (part: string): string => luaText(part).replaceAll(/^\s*--.*\n/gm, "") + (part === "base" ? AFTER_BASE : "");
  const text = nested(needed([...PARTS[name], name].map(body).join("\n")));
  const script: Script = { text, sha: hash("sha1", text) };
  made.set(name, script);
  return script;
}

export const scriptNames: readonly ScriptName[] = Object.keys(PARTS) as ScriptName[]; // the keys of PARTS
