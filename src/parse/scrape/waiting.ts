/** What waits for a parse worker: larger priority first, then by arrival. A binary heap. */

export interface Ranked {
  readonly priority: number;
  /** Number of arrival. */
  readonly order: number;
  readonly bytes: number;
}

export interface Waiting<T extends Ranked> {
  push(entry: T): void;
  /** The next one; undefined: nothing waits. */
  pop(): T | undefined;
  /** Everything, in no particular order; nothing waits afterwards. */
  clear(): readonly T[];
  readonly size: number;
  readonly bytes: number;
}

const before = (a: Ranked, b: Ranked) => (a.priority === b.priority ? a.order < b.order : a.priority > b.priority);

export function createWaiting<T extends Ranked>(): Waiting<T> {
  let heap: T[] = [];
  let bytes = 0;

  function rise(from: number): void {
    const entry = heap[from]!;
    let at = from;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (!before(entry, heap[parent]!)) break;
      heap[at] = heap[parent]!;
      at = parent;
    }
    heap[at] = entry;
  }

  function sink(entry: T): void {
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && before(heap[child + 1]!, heap[child]!)) child++;
      if (!before(heap[child]!, entry)) break;
      heap[at] = heap[child]!;
      at = child;
    }
    heap[at] = entry;
  }

  return {
    push(entry) {
      heap.push(entry);
      bytes += entry.bytes;
      rise(heap.length - 1);
    },
    pop() {
      const first = heap[0];
      const last = heap.pop();
      if (first === undefined || last === undefined) return undefined;
      bytes -= first.bytes;
      if (heap.length > 0) sink(last);
      return first;
    },
    clear() {
      const all = heap;
      heap = [];
      bytes = 0;
      return all;
    },
    get size() {
      return heap.length;
    },
    get bytes() {
      return bytes;
    },
  };
}
