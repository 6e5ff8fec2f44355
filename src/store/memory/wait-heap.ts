/** A binary heap of things by due time, ties by turn: each member knows its place, so that it can be moved or taken out. */

export interface HeapMember {
  /** Index in the heap, −1 when it is not in it. */
  heapAt: number;
  /** Clock ms; Infinity waits until it is moved. */
  dueAt: number;
  /** Among equal due times the smaller goes first. */
  turn: number;
}

export interface WaitHeap<T extends HeapMember> {
  readonly size: number;
  first(): T | null;
  /** Inserts, or moves a member whose `dueAt` or `turn` changed. */
  put(member: T): void;
  remove(member: T): void;
  /** Every member, in no particular order. */
  members(): readonly T[];
  clear(): void;
}

export function createWaitHeap<T extends HeapMember>(): WaitHeap<T> {
  const heap: T[] = [];
  const before = (a: T, b: T): boolean => a.dueAt < b.dueAt || (a.dueAt === b.dueAt && a.turn < b.turn);

  function up(member: T, from: number): number {
    let at = from;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      const other = heap[parent]!;
      if (!before(member, other)) break;
      heap[at] = other;
      other.heapAt = at;
      at = parent;
    }
    heap[at] = member;
    member.heapAt = at;
    return at;
  }

  function down(member: T, from: number): void {
    let at = from;
    for (;;) {
      let child = at * 2 + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && before(heap[child + 1]!, heap[child]!)) child++;
      const other = heap[child]!;
      if (!before(other, member)) break;
      heap[at] = other;
      other.heapAt = at;
      at = child;
    }
    heap[at] = member;
    member.heapAt = at;
  }

  return {
    get size() {
      return heap.length;
    },
    first: () => heap[0] ?? null,
    put(member) {
      const from = member.heapAt >= 0 ? member.heapAt : heap.push(member) - 1;
      if (up(member, from) === from) down(member, from);
    },
    remove(member) {
      const at = member.heapAt;
      if (at < 0) return;
      member.heapAt = -1;
      const last = heap.pop()!;
      if (last === member) return;
      if (up(last, at) === at) down(last, at);
    },
    members: () => heap,
    clear() {
      for (const member of heap) member.heapAt = -1;
      heap.length = 0;
    },
  };
}
