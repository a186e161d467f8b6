// A kernel with ranks alone: bookings and predictions are made of sequence hashes, and columns read by slot.
import "../../src/kernel/inlined.js";
import { Column } from "../../src/kernel/abi.js";
import { Kernel } from "../../src/kernel/kernel.js";

export interface Handle {
  id: number;
  generation: number;
}

export class Ranks {
  readonly kernel: Kernel;

  /** Ranks of workers 1, 2, … in the slots given. */
  constructor(slots: readonly number[], budgetBytes = 2 ** 26) {
    this.kernel = new Kernel({ blockSize: 16, maxRanks: 1024, budgetBytes, ownNames: false, seed: 1n });
    for (const slot of slots) this.add(slot);
  }

  add(slot: number): void {
    this.kernel.exports.rankAdd(slot, BigInt(slot + 1), 0);
  }

  /** Books a request of these sequence hashes; undefined where there is no room. */
  book(slot: number, hashes: readonly bigint[], prefillTokens = 0): Handle | undefined {
    this.kernel.roomForEvent(hashes.length).names.set(hashes);
    return this.handle(this.kernel.exports.reserve(slot, hashes.length, 0, prefillTokens));
  }

  handle(id: number): Handle | undefined {
    return id === 0 ? undefined : { id, generation: this.kernel.exports.bookingGeneration(id) };
  }

  at(column: keyof typeof Column, slot: number): number {
    return this.kernel.column(Column[column])[this.kernel.exports.rowOf(slot)]!;
  }
}
