/**
 * A map for what comes and goes all the time: the leases that are out, under their tokens. Not for anything large.
 *
 * V8's Map is not fit for that. It copies itself into a new table every few dozen changes, and each old table goes on pointing to the next one. Once one of
 * them is old, all later ones and everything they hold are kept as well, until the next full collection: about 1 kB a page, and the time to copy it.
 */
export interface TokenMap<T> {
  readonly size: number;
  get(token: string): T | undefined;
  set(token: string, value: T): void;
  /** False when it was not there. */
  delete(token: string): boolean;
  clear(): void;
  /** In no order. */
  tokens(): string[];
}

const FIRST_CAPACITY = 256;

/** Open addressing with linear probing; a deletion moves what follows back, so that no mark stays behind. */
export function createTokenMap<T>(): TokenMap<T> {
  let mask = FIRST_CAPACITY - 1;
  let tokens: (string | undefined)[] = new Array<string | undefined>(FIRST_CAPACITY).fill(undefined);
  let values: (T | undefined)[] = new Array<T | undefined>(FIRST_CAPACITY).fill(undefined);
  let size = 0;

  /** Where the token is, or the free place at which it would be. */
  function find(token: string): number {
    let at = hash(token) & mask;
    for (let held = tokens[at]; held !== undefined && held !== token; held = tokens[at]) at = (at + 1) & mask;
    return at;
  }

  function grow(): void {
    const [oldTokens, oldValues] = [tokens, values];
    mask = mask * 2 + 1;
    tokens = new Array<string | undefined>(mask + 1).fill(undefined);
    values = new Array<T | undefined>(mask + 1).fill(undefined);
    for (const [from, token] of oldTokens.entries()) {
      if (token === undefined) continue;
      const at = find(token);
      tokens[at] = token;
      values[at] = oldValues[from];
    }
  }

  /** Frees a place; each later one of the same stretch that may lie there moves up. */
  function close(free: number): void {
    for (let at = (free + 1) & mask, token = tokens[at]; token !== undefined; at = (at + 1) & mask, token = tokens[at]) {
      const away = (at - (hash(token) & mask)) & mask;
      if (away < ((at - free) & mask)) continue;
      tokens[free] = token;
      values[free] = values[at];
      free = at;
    }
    tokens[free] = undefined;
    values[free] = undefined;
  }

  return {
    get size() {
      return size;
    },
    get: (token) => values[find(token)],
    set(token, value) {
      let at = find(token);
      if (tokens[at] === undefined) {
        if (++size * 2 > mask) {
          grow();
          at = find(token);
        }
        tokens[at] = token;
      }
      values[at] = value;
    },
    delete(token) {
      const at = find(token);
      if (tokens[at] === undefined) return false;
      size--;
      close(at);
      return true;
    },
    clear() {
      tokens.fill(undefined);
      values.fill(undefined);
      size = 0;
    },
    tokens: () => tokens.filter((token) => token !== undefined),
  };
}

/** Of the last characters, in which tokens differ. */
function hash(token: string): number {
  let sum = 0;
  for (let i = Math.max(0, token.length - 6); i < token.length; i++) sum = (Math.imul(sum, 31) + token.charCodeAt(i)) | 0;
  return sum;
}
