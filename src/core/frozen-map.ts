/** A map that nobody changes: `Object.freeze` does not stop a Map's own methods. */
export class FrozenMap<K, V> extends Map<K, V> {
  constructor(entries: Iterable<readonly [K, V]>) {
    super();
    for (const [key, value] of entries) super.set(key, value);
    Object.freeze(this);
  }

  override set(): never {
    throw new TypeError("this map cannot be changed");
  }

  override delete(): never {
    return this.set();
  }

  override clear(): never {
    return this.set();
  }
}

/** The same for a set. */
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
