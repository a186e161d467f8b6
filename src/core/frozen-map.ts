/**
 * A map that nobody changes, not even through `Map.prototype`: it is no Map, it only reads one of its own.
 */
export class FrozenMap<K, V> implements ReadonlyMap<K, V> {
  readonly #entries: ReadonlyMap<K, V>;

  constructor(entries: Iterable<readonly [K, V]>) {
    this.#entries = new Map(entries);
    Object.freeze(this);
  }

  get size(): number {
    return this.#entries.size;
  }

  get(key: K): V | undefined {
    return this.#entries.get(key);
  }

  has(key: K): boolean {
    return this.#entries.has(key);
  }

  forEach(visit: (value: V, key: K, map: ReadonlyMap<K, V>) => void, self?: unknown): void {
    for (const [key, value] of this.#entries) visit.call(self, value, key, this);
  }

  entries(): MapIterator<[K, V]> {
    return this.#entries.entries();
  }

  keys(): MapIterator<K> {
    return this.#entries.keys();
  }

  values(): MapIterator<V> {
    return this.#entries.values();
  }

  [Symbol.iterator](): MapIterator<[K, V]> {
    return this.#entries[Symbol.iterator]();
  }
}
Object.freeze(FrozenMap.prototype);

/** A set that nobody changes by its methods. */
export class FrozenSet<T> extends Set<T> {
  constructor(members: Iterable<T>) {
    super();
    for (const member of members) super.add(member);
    Object.freeze(this);
  }

  override add(): never {
    throw new TypeError("this set cannot be changed");
  }

  override delete(): never {
    return this.add();
  }

  override clear(): never {
    return this.add();
  }
}
