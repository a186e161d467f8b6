interface Entry<T> {
  at: number;
  order: number;
  event: T;
}

/** A binary heap of events by time; events of one instant leave in the order in which they entered. */
export class EventQueue<T> {
  private readonly heap: Entry<T>[] = [];
  private order = 0;

  get size(): number {
    return this.heap.length;
  }

  /** The time of the event that leaves next. */
  get next(): number | undefined {
    return this.heap[0]?.at;
  }

  push(at: number, event: T): void {
    const heap = this.heap;
    const entry = { at, order: this.order++, event };
    let hole = heap.length;
    heap.push(entry);
    while (hole > 0) {
      const above = (hole - 1) >> 1;
      if (!before(entry, heap[above]!)) break;
      heap[hole] = heap[above]!;
      hole = above;
    }
    heap[hole] = entry;
  }

  pop(): { at: number; event: T } | undefined {
    const heap = this.heap;
    const first = heap[0];
    const last = heap.pop();
    if (heap.length === 0) return first;
    let hole = 0;
    for (;;) {
      let child = 2 * hole + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && before(heap[child + 1]!, heap[child]!)) child++;
      if (!before(heap[child]!, last!)) break;
      heap[hole] = heap[child]!;
      hole = child;
    }
    heap[hole] = last!;
    return first;
  }
}

function before(a: Entry<unknown>, b: Entry<unknown>): boolean {
  return a.at < b.at || (a.at === b.at && a.order < b.order);
}
