/** Which page killed a thread: those that it held are tried again, one by one, in a thread that does nothing else meanwhile. A page that was alone in a thread that died is lost to a crash (docs/decisions/0011 for processes). */
import { type Lease, MAX_CRASHES } from "../core/frontier.ts";

export interface Trials {
  /** Something is still to be tried. */
  readonly open: boolean;
  /** A thread died with these. */
  suspect(lost: readonly Lease[]): void;
  /** It is under suspicion, and kept for its trial. */
  detains(lease: Lease): boolean;
  next(): Lease | null;
  passed(lease: Lease): void;
  /** What is kept goes back; nothing more will be tried. */
  release(): readonly Lease[];
}

const nameOf = ({ request }: Lease): string => `${request.hop === "robots" ? "robots" : "page"} ${request.idHi}:${request.idLo} ${request.url}`;

export function createTrials(): Trials {
  const suspects = new Set<string>();
  let kept: Lease[] = [];
  return {
    get open() {
      return suspects.size > 0 || kept.length > 0;
    },
    suspect(lost) {
      for (const lease of lost) suspects.add(nameOf(lease));
      const [only] = lost;
      // Given up: it does not come again.
      if (lost.length === 1 && only !== undefined && only.crashes + 1 >= MAX_CRASHES) suspects.delete(nameOf(only));
    },
    detains(lease) {
      if (!suspects.has(nameOf(lease))) return false;
      kept.push(lease);
      return true;
    },
    next: () => kept.shift() ?? null,
    passed: (lease) => void suspects.delete(nameOf(lease)),
    release() {
      const leases = kept;
      kept = [];
      suspects.clear();
      return leases;
    },
  };
}
