/** Strings held by number and count: the referrer of a page's links is kept once while any of them is queued. */
import { flat } from "./place.ts";

export interface StringPool {
  /** Number (from 1) under which the string is held; one more holder. */
  hold(text: string): number;
  get(id: number): string;
  /** One holder less; answers the string. */
  release(id: number): string;
}

/** Only neighbours are joined: the links of one page arrive together, and a map of all strings would cost more than it saves. */
export function createStringPool(): StringPool {
  const strings: string[] = [""];
  let holders = new Uint32Array(64);
  const free: number[] = [];
  let last = 0;
  let lastText = "";

  function grow(): void {
    const wider = new Uint32Array(holders.length * 2);
    wider.set(holders);
    holders = wider;
  }

  return {
    hold(text) {
      if (last !== 0 && lastText === text) {
        holders[last]!++;
        return last;
      }
      const id = free.pop() ?? strings.length;
      if (id >= holders.length) grow();
      strings[id] = lastText = flat(text);
      holders[id] = 1;
      last = id;
      return id;
    },
    get: (id) => strings[id]!,
    release(id) {
      const text = strings[id]!;
      if (--holders[id]! === 0) {
        strings[id] = "";
        free.push(id);
        if (id === last) last = 0;
      }
      return text;
    },
  };
}
