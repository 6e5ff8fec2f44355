/** The text of the scripts in lua/. The build puts the texts in the place of this file (scripts/build.mjs). */
import { readFileSync } from "node:fs";

/** A script, or a part of scripts, by its file name without `.lua`. */
export function luaText(name: string): string {
  return readFileSync(new URL(`./lua/${name}.lua`, import.meta.url), "utf8");
}
