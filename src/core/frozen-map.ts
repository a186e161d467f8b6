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
