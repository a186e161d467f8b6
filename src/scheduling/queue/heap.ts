/** What a heap holds: each entry knows its place, so that it can be taken out from the middle. */
export interface HeapEntry {
  /** Index in its heap; -1 outside. Written by the heap. */
  place: number;
}

/** A binary heap; every change takes a number of comparisons that grows with the logarithm of its size. */
export class Heap<T extends HeapEntry> {
  readonly #before: (a: T, b: T) => boolean;
  readonly #entries: T[] = [];

  /** `before` says which of two entries comes first. */
  constructor(before: (a: T, b: T) => boolean) {
    this.#before = before;
  }

  get size(): number {
    return this.#entries.length;
  }

  get first(): T | undefined {
    return this.#entries[0];
  }

  add(entry: T): void {
    this.#entries.push(entry);
    this.#up(entry, this.#entries.length - 1);
  }

  /** Takes out an entry that is in this heap. */
  remove(entry: T): void {
    const { place } = entry;
    const entries = this.#entries;
    const last = entries.pop()!;
    entry.place = -1;
    if (last === entry) return;
    // The hole goes down to a leaf: half the comparisons of letting the last entry sink from there.
    let hole = place;
    for (let below = 2 * hole + 1; below < entries.length; below = 2 * hole + 1) {
      if (below + 1 < entries.length && this.#before(entries[below + 1]!, entries[below]!)) below++;
      this.#put(entries[below]!, hole);
      hole = below;
    }
    this.#up(last, hole);
  }

  #up(entry: T, from: number): void {
    let place = from;
    while (place > 0) {
      const parent = this.#entries[(place - 1) >> 1]!;
      if (!this.#before(entry, parent)) break;
      this.#put(parent, place);
      place = (place - 1) >> 1;
    }
    this.#put(entry, place);
  }

  #put(entry: T, place: number): void {
    this.#entries[place] = entry;
    entry.place = place;
  }
}
