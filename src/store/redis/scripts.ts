/** Which parts each script is made of, and the digest by which the server knows it. */
import { hash } from "node:crypto";
import { luaText } from "./lua-text.ts";

const STEP = ["base", "seen", "pace", "hosts", "queue", "places", "out", "finish"] as const;

const PARTS = {
  create: [],
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

/** Comments are left out: the server keeps the text. */
export function scriptOf(name: ScriptName): Script {
  const known = made.get(name);
  if (known !== undefined) return known;
  const text = [...PARTS[name], name].map((part) => luaText(part).replaceAll(/^\s*--.*\n/gm, "")).join("\n");
  const script: Script = { text, sha: hash("sha1", text) };
  made.set(name, script);
  return script;
}

export const scriptNames: readonly ScriptName[] = Object.keys(PARTS) as ScriptName[]; // the keys of PARTS
