/** A class in the round robin. */
export interface RingClass {
  /** Credit a round, above 0. */
  readonly quantum: number;
  /** Requests that wait, whether or not they may go. */
  readonly size: number;
  /** What its next request costs; undefined when none may go now. */
  nextCost(): number | undefined;
}

/**
 * Deficit round robin with carry (spec: scheduling.md §5.4): over time each class with requests that may go gets a
 * share of the cost as large as its quantum.
 */
export class DeficitRoundRobin<C extends RingClass> {
  readonly #ring: C[] = [];
  readonly #deficits: number[] = [];
  #cursor = 0;
  /** The class that goes on with what it has left; -1 for none. */
  #carry = -1;

  add(ringClass: C): void {
    this.#ring.push(ringClass);
    this.#deficits.push(0);
  }

  /** The class whose next request goes, which must be taken and told to `took`; undefined when none may go. */
  next(): C | undefined {
    const at = this.#choose();
    return at < 0 ? undefined : this.#ring[at];
  }

  /** A request of a class left without its turn: a class without requests has no credit. */
  left(ringClass: C): void {
    if (ringClass.size === 0) this.#deficits[this.#ring.indexOf(ringClass)] = 0;
  }

  /** A request of a class went at this cost. */
  took(ringClass: C, cost: number): void {
    const at = this.#ring.indexOf(ringClass);
    this.#cursor = (at + 1) % this.#ring.length;
    const left = ringClass.size === 0 ? 0 : this.#deficits[at]! - cost;
    this.#deficits[at] = left;
    this.#carry = left > 0 ? at : -1;
  }

  #choose(): number {
    const ring = this.#ring;
    const deficits = this.#deficits;
    if (this.#carry >= 0) {
      const cost = ring[this.#carry]!.nextCost();
      if (cost !== undefined && cost <= deficits[this.#carry]!) return this.#carry;
    }
    const candidates: { at: number; cost: number }[] = [];
    let rounds = Number.POSITIVE_INFINITY;
    for (let i = 0; i < ring.length; i++) {
      const at = (this.#cursor + i) % ring.length;
      const { quantum } = ring[at]!;
      const cost = ring[at]!.nextCost();
      if (cost === undefined) continue;
      if (cost > deficits[at]!) deficits[at]! += quantum;
      if (cost <= deficits[at]!) return at;
      candidates.push({ at, cost });
      rounds = Math.min(rounds, Math.ceil((cost - deficits[at]!) / quantum));
    }
    for (const { at } of candidates) deficits[at]! += rounds * ring[at]!.quantum;
    return candidates.find(({ at, cost }) => cost <= deficits[at]!)?.at ?? -1;
  }
}
