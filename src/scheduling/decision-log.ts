/** The last entries of something that never ends. */
export class DecisionLog<T> {
  readonly #entries: T[] = [];
  readonly #size: number;
  #added = 0;

  /** Keeps `size` entries, 256 unless given. */
  constructor(size = 256) {
    this.#size = size;
  }

  add(entry: T): void {
    this.#entries[this.#added % this.#size] = entry;
    this.#added++;
  }

  /** Newest last. */
  list(): T[] {
    const oldest = this.#added > this.#size ? this.#added % this.#size : 0;
    return [...this.#entries.slice(oldest), ...this.#entries.slice(0, oldest)];
  }
}
