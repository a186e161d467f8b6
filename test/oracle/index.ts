// The prefix index as plain maps: for each rank and tier, which blocks it holds under which name.
// Slow, obvious and exact; everything the kernel's index answers can be read off it.

const MASK = (1n << 64n) - 1n;
const FLIP_LOW = 0x6782737bea423ef2n;
const FLIP_HIGH = 0xaf56bc3b09964d01n;

function swapBytes(x: bigint): bigint {
  let out = 0n;
  for (let i = 0n; i < 8n; i++) out = (out << 8n) | ((x >> (8n * i)) & 0xffn);
  return out;
}

/** XXH3-64 of LE64(previous) ‖ LE64(local) with seed 1337 (spec/indexer.md §1.3). */
export function chainStep(previous: bigint, local: bigint): bigint {
  const low = previous ^ FLIP_LOW;
  const high = local ^ FLIP_HIGH;
  const product = low * high;
  let h = (16n + swapBytes(low) + high + ((product & MASK) ^ (product >> 64n))) & MASK;
  h ^= h >> 37n;
  h = (h * 0x165667919e3779f9n) & MASK;
  return h ^ (h >> 32n);
}

/** The sequence hashes of a chain of local hashes, at the root or behind `previous`. */
export function sequenceHashes(locals: readonly bigint[], previous?: bigint): bigint[] {
  const out: bigint[] = [];
  let last = previous;
  for (const local of locals) {
    last = last === undefined ? local : chainStep(last, local);
    out.push(last);
  }
  return out;
}

export type StoreAnswer = "ok" | "orphan" | "invalid" | "foreign_name";

/** What one rank holds in one tier. */
class Holding {
  readonly sequenceOf = new Map<bigint, bigint>();
  readonly nameOf = new Map<bigint, bigint>();

  add(name: bigint, sequence: bigint): void {
    const elsewhere = this.sequenceOf.get(name);
    if (elsewhere !== undefined) this.nameOf.delete(elsewhere);
    const before = this.nameOf.get(sequence);
    if (before !== undefined) this.sequenceOf.delete(before);
    this.sequenceOf.set(name, sequence);
    this.nameOf.set(sequence, name);
  }

  remove(name: bigint): boolean {
    const sequence = this.sequenceOf.get(name);
    if (sequence === undefined) return false;
    this.sequenceOf.delete(name);
    this.nameOf.delete(sequence);
    return true;
  }

  /** Blocks of the chain held without a gap from `from` on. */
  reach(chain: readonly bigint[], from: number): number {
    let end = from;
    while (end < chain.length && this.nameOf.has(chain[end] as bigint)) end++;
    return end - from;
  }
}

export const TIERS = 4;

/** The exact model: a score is the number of leading blocks held. */
export class IndexModel {
  private readonly ranks = new Map<number, Holding[]>();

  constructor(private readonly ownNames = false) {}

  private tiers(slot: number): Holding[] {
    let tiers = this.ranks.get(slot);
    if (!tiers) {
      tiers = Array.from({ length: TIERS }, () => new Holding());
      this.ranks.set(slot, tiers);
    }
    return tiers;
  }

  private holding(slot: number, tier: number): Holding {
    return this.tiers(slot)[tier] as Holding;
  }

  /** The sequence hash behind a parent name: the store's own tier first, then the others in order. */
  private parent(slot: number, tier: number, name: bigint): bigint | undefined {
    for (let k = 0; k < TIERS; k++) {
      const found = this.holding(slot, (tier + k) % TIERS).sequenceOf.get(name);
      if (found !== undefined) return found;
    }
    return undefined;
  }

  store(
    slot: number,
    tier: number,
    parent: bigint | null,
    names: readonly bigint[],
    locals: readonly bigint[],
  ): StoreAnswer {
    let previous: bigint | undefined;
    if (parent !== null) {
      previous = this.parent(slot, tier, parent);
      if (previous === undefined) return "orphan";
    }
    const sequences = sequenceHashes(locals, previous);
    if (this.ownNames && names.some((name, i) => name !== sequences[i])) return "foreign_name";
    if (new Set(names).size !== names.length || (parent !== null && names.includes(parent))) return "invalid";
    const holding = this.holding(slot, tier);
    for (const [i, name] of names.entries()) holding.add(name, sequences[i] as bigint);
    return "ok";
  }

  /** How many of the names were held; each stands for itself. */
  remove(slot: number, tier: number, names: readonly bigint[]): number {
    const holding = this.holding(slot, tier);
    return names.filter((name) => holding.remove(name)).length;
  }

  clearRank(slot: number): number {
    const blocks = this.blocksOf(slot);
    this.ranks.delete(slot);
    return blocks;
  }

  blocksOf(slot: number): number {
    return (this.ranks.get(slot) ?? []).reduce((sum, holding) => sum + holding.nameOf.size, 0);
  }

  held(tier: number): number {
    let sum = 0;
    for (const tiers of this.ranks.values()) sum += (tiers[tier] as Holding).nameOf.size;
    return sum;
  }

  /** The name a rank has for a block, if it holds it. */
  nameOf(slot: number, tier: number, sequence: bigint): bigint | undefined {
    return this.holding(slot, tier).nameOf.get(sequence);
  }

  /** Device depth of each rank that has one. */
  find(chain: readonly bigint[]): Map<number, number> {
    const out = new Map<number, number>();
    for (const [slot, tiers] of this.ranks) {
      const depth = (tiers[0] as Holding).reach(chain, 0);
      if (depth) out.set(slot, depth);
    }
    return out;
  }

  /** What the lower tiers add beyond the device depth; external blocks count as disk. */
  findLower(chain: readonly bigint[]): Map<number, { host: number; disk: number }> {
    const out = new Map<number, { host: number; disk: number }>();
    for (const [slot, tiers] of this.ranks) {
      const [device, host, disk, external] = tiers as [Holding, Holding, Holding, Holding];
      const depth = device.reach(chain, 0);
      const onHost = host.reach(chain, depth);
      const onDisk = disk.reach(chain, depth + onHost);
      const beyond = external.reach(chain, depth + onHost + onDisk);
      if (onHost + onDisk + beyond) out.set(slot, { host: onHost, disk: onDisk + beyond });
    }
    return out;
  }
}
