/** The known word a misspelt one was probably meant to be. */

/** Edits (insert, delete, replace, swap of neighbours) between two short words. */
function distance(from: string, to: string): number {
  let beforeLast: number[] = [];
  let last = Array.from({ length: to.length + 1 }, (_, column) => column);
  for (let row = 1; row <= from.length; row++) {
    const current = [row];
    for (let column = 1; column <= to.length; column++) {
      const same = from[row - 1] === to[column - 1];
      let best = Math.min((last[column] ?? 0) + 1, (current[column - 1] ?? 0) + 1, (last[column - 1] ?? 0) + (same ? 0 : 1));
      if (row > 1 && column > 1 && from[row - 1] === to[column - 2] && from[row - 2] === to[column - 1])
        best = Math.min(best, (beforeLast[column - 2] ?? 0) + 1);
      current.push(best);
    }
    beforeLast = last;
    last = current;
  }
  return last[to.length] ?? 0;
}

/** The candidate fewest edits away, letter case and dashes apart; null when none is near enough to be meant. */
export function nearest(word: string, candidates: Iterable<string>): string | null {
  const plain = (text: string) => text.toLowerCase().replaceAll(/[-_.]/g, "");
  const wanted = plain(word);
  let best: string | null = null;
  let least = Math.max(1, Math.floor(wanted.length / 3)) + 1;
  for (const candidate of candidates) {
    const given = plain(candidate);
    const edits = given !== wanted && wanted.length >= 3 && given.startsWith(wanted) ? 1 : distance(wanted, given);
    if (edits < least) {
      least = edits;
      best = candidate;
    }
  }
  return best;
}
