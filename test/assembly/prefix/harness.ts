// The kernel's index behind plain types, for tests.
import { compileEntry } from "../compile.js";

export interface PrefixExports {
  memory: WebAssembly.Memory;
  arenaInit(from: number, budget: bigint): void;
  arenaInUse(): bigint;
  take(bytes: number): number;
  extentsInit(): number;
  extentWords: WebAssembly.Global;
  chainStep(previous: bigint, local: bigint): bigint;
  indexInit(ownNames: number, maxRanks: number): number;
  indexStore(
    slot: number,
    tier: number,
    hasParent: number,
    parentName: bigint,
    n: number,
    names: number,
    locals: number,
  ): number;
  indexStoreSequence(slot: number, tier: number, n: number, sequences: number, names: number): number;
  indexRemove(slot: number, tier: number, names: number, n: number): number;
  indexClearRank(slot: number): number;
  indexFind(sequences: number, n: number): number;
  indexFindLower(sequences: number, n: number): number;
  indexOut: WebAssembly.Global;
  indexOutCount: WebAssembly.Global;
  indexLowerOut: WebAssembly.Global;
  indexLowerCount: WebAssembly.Global;
  indexHeld(tier: number): number;
  indexBlocksOf(slot: number): number;
  indexContent: WebAssembly.Global;
  indexDuplicates: WebAssembly.Global;
  indexUnknownRemoves: WebAssembly.Global;
  indexRuns(): number;
  indexLanes(): number;
  indexBytes(): bigint;
  indexCheck(ranks: number): number;
  exportIndexBegin(): void;
  exportIndexNeeds(): number;
  exportIndexNext(out: number, capacity: number): number;
  importIndexRecord(at: number, bytes: number): number;
}

export const STATUS = { OK: 0, MEMORY_BUDGET: -1, ORPHAN: -2, INVALID_SEQUENCE: -3, FOREIGN_NAME: -4, BAD_RECORD: -8 };

let module: WebAssembly.Module | undefined;

export interface IndexOptions {
  ownNames?: boolean;
  maxRanks?: number;
  budget?: bigint;
  /** Address of the arena; 0 = right behind the static data. */
  from?: number;
  /** Blocks in the longest store or query. */
  longest?: number;
}

export class KernelIndex {
  readonly raw: PrefixExports;
  readonly maxRanks: number;
  private readonly names: number;
  private readonly hashes: number;

  constructor({ ownNames = false, maxRanks = 64, budget = 256n << 20n, from = 0, longest = 4096 }: IndexOptions = {}) {
    module ??= compileEntry("prefix");
    this.raw = new WebAssembly.Instance(module).exports as unknown as PrefixExports;
    this.maxRanks = maxRanks;
    this.raw.arenaInit(from, budget);
    this.names = this.raw.take(longest * 8) >>> 0;
    this.hashes = this.raw.take(longest * 8) >>> 0;
    if (!this.raw.extentsInit() || !this.raw.indexInit(ownNames ? 1 : 0, maxRanks)) throw new Error("no room to start");
  }

  private put(address: number, values: readonly bigint[]): void {
    new BigUint64Array(this.raw.memory.buffer, address, values.length).set(values);
  }

  store(
    slot: number,
    tier: number,
    parent: bigint | null,
    names: readonly bigint[],
    locals: readonly bigint[],
  ): number {
    this.put(this.names, names);
    this.put(this.hashes, locals);
    return this.raw.indexStore(
      slot,
      tier,
      parent === null ? 0 : 1,
      parent ?? 0n,
      names.length,
      this.names,
      this.hashes,
    );
  }

  storeSequence(slot: number, tier: number, sequences: readonly bigint[], names?: readonly bigint[]): number {
    this.put(this.hashes, sequences);
    if (names) this.put(this.names, names);
    return this.raw.indexStoreSequence(slot, tier, sequences.length, this.hashes, names ? this.names : this.hashes);
  }

  remove(slot: number, tier: number, names: readonly bigint[]): number {
    this.put(this.names, names);
    return this.raw.indexRemove(slot, tier, this.names, names.length);
  }

  clearRank(slot: number): number {
    return this.raw.indexClearRank(slot);
  }

  /** Device depth by slot; checks that the list and the answer agree. */
  find(chain: readonly bigint[]): Map<number, number> {
    this.put(this.hashes, chain);
    const deepest = this.raw.indexFind(this.hashes, chain.length);
    const count = this.raw.indexOutCount.value as number;
    const rows = new Uint32Array(this.raw.memory.buffer, this.raw.indexOut.value >>> 0, count * 2);
    const out = new Map<number, number>();
    let most = 0;
    for (let i = 0; i < rows.length; i += 2) {
      const [slot, depth] = [rows[i] as number, rows[i + 1] as number];
      if (out.has(slot)) throw new Error(`slot ${slot} is listed twice`);
      out.set(slot, depth);
      most = Math.max(most, depth);
    }
    if (most !== deepest) throw new Error(`deepest is ${deepest}, listed ${most}`);
    return out;
  }

  /** Host and disk continuation by slot, for the chain of the last find(). */
  findLower(chain: readonly bigint[]): Map<number, { host: number; disk: number }> {
    this.find(chain);
    const count = this.raw.indexFindLower(this.hashes, chain.length);
    const rows = new Uint32Array(this.raw.memory.buffer, this.raw.indexLowerOut.value >>> 0, count * 3);
    const out = new Map<number, { host: number; disk: number }>();
    for (let i = 0; i < rows.length; i += 3) {
      const slot = rows[i] as number;
      if (out.has(slot)) throw new Error(`slot ${slot} is listed twice`);
      out.set(slot, { host: rows[i + 1] as number, disk: rows[i + 2] as number });
    }
    return out;
  }

  /** Throws when an invariant is broken. */
  check(): void {
    const broken = this.raw.indexCheck(this.maxRanks);
    if (broken) throw new Error(`invariant ${broken} is broken`);
  }
}

/** A small seeded generator: integers below n, and chances. */
export function generator(seed: number): { below(n: number): number; chance(p: number): boolean; u64(): bigint } {
  let state = (Math.imul(seed + 1, 0x9e3779b1) ^ 0x5bd1e995) | 1;
  const next = (): number => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return state >>> 0;
  };
  return {
    below: (n) => next() % n,
    chance: (p) => next() / 2 ** 32 < p,
    u64: () => (BigInt(next()) << 32n) | BigInt(next()),
  };
}
