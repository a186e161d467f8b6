// One kernel instance with ranks and bookings, and its columns by slot.
import { instantiateEntry } from "../compile.js";

interface LoadExports {
  memory: WebAssembly.Memory;
  arenaInit(from: number, budget: bigint): void;
  arenaInUse(): bigint;
  take(bytes: number): number;
  extentsInit(): number;
  extentWords: WebAssembly.Global;
  ranksInit(maxRanks: number): number;
  bookingsInit(): number;
  rankAdd(slot: number, workerId: bigint, dpRank: number): number;
  rankRemove(slot: number): number;
  rankFlags(slot: number, flags: number): number;
  rankFlagsOf(slot: number): number;
  rankCount(): number;
  rankWorkerId(slot: number): bigint;
  rankDpRank(slot: number): number;
  rowOf(slot: number): number;
  slotOf(row: number): number;
  columnAddress(column: number): number;
  book(slot: number, hashes: number, n: number, privateBlocks: number, prefillTokens: number): number;
  bookingCount(): number;
  bookingGeneration(id: number): number;
  bookingPrefillComplete(id: number, generation: number): number;
  bookingOutputBlocks(id: number, generation: number, more: number, fraction: number): number;
  bookingFree(id: number, generation: number): number;
  projectActive(hashes: number, n: number, wanted: boolean): void;
  clearActive(): void;
  runCount(): number;
  randomSeed(seed: bigint): void;
  randomNext(): bigint;
  exportLoadBegin(random: number): void;
  exportLoadNext(out: number, capacity: number): number;
  exportLoadNeeds(): number;
  importLoadRecord(at: number, bytes: number): number;
}

export const STATUS = { ok: 0, memoryBudget: -1, unknownRank: -5, unknownBooking: -6, tooManyRanks: -7, badRecord: -8 };
const COLUMN = { prefill: 0, decode: 1, requests: 2, gate: 3, active: 8, cost: 10 } as const;
const HASHES = 1 << 16;

export interface Handle {
  id: number;
  generation: number;
}

export class LoadPool {
  readonly kernel = instantiateEntry<LoadExports>("load");
  private hashes = 0;

  reset({ maxRanks = 16_384, budget = 1n << 30n, from = 0 } = {}): this {
    const { kernel } = this;
    kernel.arenaInit(from, budget);
    this.hashes = kernel.take(HASHES * 8) >>> 0;
    if (!kernel.extentsInit() || !kernel.ranksInit(maxRanks) || !kernel.bookingsInit()) throw new Error("no room");
    return this;
  }

  /** Ranks in slots 0, 1, …, worker ids 1, 2, … */
  addRanks(n: number): this {
    for (let slot = 0; slot < n; slot++) this.kernel.rankAdd(slot, BigInt(slot + 1), 0);
    return this;
  }

  private write(hashes: readonly bigint[]): number {
    new BigUint64Array(this.kernel.memory.buffer, this.hashes, HASHES).set(hashes);
    return this.hashes;
  }

  book(slot: number, hashes: readonly bigint[], privateBlocks = 0, prefillTokens = 0): Handle | undefined {
    const id = this.kernel.book(slot, this.write(hashes), hashes.length, privateBlocks, prefillTokens);
    return id ? { id, generation: this.kernel.bookingGeneration(id) } : undefined;
  }

  prefillComplete({ id, generation }: Handle): number {
    return this.kernel.bookingPrefillComplete(id, generation);
  }

  outputBlock({ id, generation }: Handle, fraction = Number.NaN): number {
    return this.kernel.bookingOutputBlocks(id, generation, 1, fraction);
  }

  free({ id, generation }: Handle): number {
    return this.kernel.bookingFree(id, generation);
  }

  at(column: keyof typeof COLUMN, slot: number): number {
    const address = this.kernel.columnAddress(COLUMN[column]) >>> 0;
    return new Float64Array(this.kernel.memory.buffer, address, this.kernel.rankCount())[this.kernel.rowOf(slot)]!;
  }

  load(slot: number): { activeDecodeBlocks: number; activePrefillTokens: number; activeRequests: number } {
    return {
      activeDecodeBlocks: this.at("decode", slot),
      activePrefillTokens: this.at("prefill", slot),
      activeRequests: this.at("requests", slot),
    };
  }

  /** Leading blocks of the prompt that each of the slots is working on. */
  active(hashes: readonly bigint[], slots: readonly number[]): number[] {
    this.kernel.projectActive(this.write(hashes), hashes.length, true);
    const active = slots.map((slot) => this.at("active", slot));
    this.kernel.clearActive();
    return active;
  }

  /** The load part of a snapshot, record by record. */
  exportLoad(random = true): Uint8Array[] {
    const { kernel } = this;
    const records: Uint8Array[] = [];
    let capacity = 64;
    kernel.exportLoadBegin(random ? 1 : 0);
    for (;;) {
      const at = kernel.take(capacity) >>> 0;
      const bytes = kernel.exportLoadNext(at, capacity);
      if (bytes === 0) return records;
      if (bytes < 0) {
        capacity = kernel.exportLoadNeeds();
        continue;
      }
      for (let from = at; from < at + bytes; ) {
        const length = new DataView(kernel.memory.buffer).getUint32(from + 4, true);
        records.push(new Uint8Array(kernel.memory.buffer.slice(from, from + length)));
        from += length;
      }
    }
  }

  importRecord(record: Uint8Array): number {
    const { kernel } = this;
    const at = record.length <= HASHES * 8 ? this.hashes : kernel.take(record.length) >>> 0;
    new Uint8Array(kernel.memory.buffer).set(record, at);
    return kernel.importLoadRecord(at, record.length);
  }
}

/** `prefix`, continued by `n` blocks of the content `id`: each hash names all that is before it. */
export function chain(id: number, n: number, prefix: readonly bigint[] = []): bigint[] {
  const hashes = [...prefix];
  let last = hashes.at(-1) ?? 0n;
  for (let k = 0; k < n; k++) {
    last = BigInt.asUintN(64, (last ^ BigInt(id)) * 0x9e3779b97f4a7c15n + 0x632be59bd9b4e019n);
    hashes.push(last);
  }
  return hashes;
}
