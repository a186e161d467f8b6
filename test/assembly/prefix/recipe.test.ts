// The recipe must be able to fail, with a failure that can be read.
import { describe, expect, it } from "vitest";
import { IndexModel, type StoreAnswer } from "../../oracle/index.js";
import { KernelIndex, STATUS } from "./harness.js";
import { makeStream, OPERATIONS, runRecipe } from "./recipe.js";
import type { Subject } from "./stream.js";

const STATUSES: Record<StoreAnswer, number> = {
  ok: STATUS.OK,
  orphan: STATUS.ORPHAN,
  invalid: STATUS.INVALID_SEQUENCE,
  foreign_name: STATUS.FOREIGN_NAME,
};

/** Answers every verb as it should, and queries as if nothing had ever been removed, or no rank cleared. */
class Forgetful implements Subject {
  private readonly exact = new IndexModel();
  private readonly asked = new IndexModel();
  constructor(private readonly forgets: "removals" | "clears") {}

  store(slot: number, tier: number, parent: bigint | null, names: readonly bigint[], locals: readonly bigint[]) {
    this.asked.store(slot, tier, parent, names, locals);
    return STATUSES[this.exact.store(slot, tier, parent, names, locals)];
  }
  remove(slot: number, tier: number, names: readonly bigint[]) {
    if (this.forgets === "clears") this.asked.remove(slot, tier, names);
    return this.exact.remove(slot, tier, names);
  }
  clearRank(slot: number) {
    if (this.forgets === "removals") this.asked.clearRank(slot);
    return this.exact.clearRank(slot);
  }
  find(chain: readonly bigint[]) {
    return this.asked.find(chain);
  }
  findLower(chain: readonly bigint[]) {
    return this.asked.findLower(chain);
  }
  check() {}
}

describe("the recipe itself", () => {
  it.each([1, 2, 3, 4])("fails on an index that ignores removals, and shrinks the stream, seed %i", (seed) => {
    const run = () => runRecipe(() => new Forgetful("removals"), { seed, operations: 200, ownNames: false });
    // Stored, removed and asked for.
    expect(run).toThrow(
      /^seed \d, operation \d+ of \d+: .*\nshrunk to 3 operations:\nrank \d join\nrank \d store, tier \d, after the root: [\d= ]+\nrank \d remove, tier \d: \d+\n {2}ask [\d ]+$/,
    );
  });

  it("fails on an index that keeps what a rank held, and shrinks the stream", () => {
    const run = () => runRecipe(() => new Forgetful("clears"), { seed: 5, operations: 200, ownNames: false });
    expect(run).toThrow(/shrunk to 3 operations:\nrank \d join\nrank \d store.*\nrank \d (leave|clear)\n {2}ask/);
  });

  it("fails on an index whose scores ignore holes", () => {
    class Hopeful extends KernelIndex implements Subject {
      override find(chain: readonly bigint[]): Map<number, number> {
        const exact = super.find(chain);
        return new Map([...exact].map(([slot, depth]) => [slot, depth === chain.length - 1 ? depth + 1 : depth]));
      }
    }
    const run = () => runRecipe(() => new Hopeful({ maxRanks: 8 }), { seed: 2, operations: 200, ownNames: false });
    expect(run).toThrow(/score of rank \d: \d+, the model \d+\nshrunk to 2 operations/);
  });

  it("fails on an index that traps", () => {
    class Trapping extends KernelIndex implements Subject {
      override remove(): number {
        throw new WebAssembly.RuntimeError("unreachable");
      }
    }
    const run = () => runRecipe(() => new Trapping({ maxRanks: 8 }), { seed: 2, operations: 200, ownNames: false });
    expect(run).toThrow(/unreachable\nshrunk to 2 operations:\nrank \d join\nrank \d remove, tier \d: $/);
  });

  it("makes ranks leave and come back, under their own numbers and new ones, into slots that others had", () => {
    let left = 0;
    let returned = 0;
    let replaced = 0;
    for (let seed = 1; seed <= 10; seed++) {
      const seen = new Set<number>();
      for (const { operation } of makeStream({ seed, operations: OPERATIONS, ownNames: false })) {
        if (operation.kind === "leave") left++;
        if (operation.kind !== "join") continue;
        if (seen.has(operation.rank)) returned++;
        else if (operation.rank >= 8) replaced++;
        seen.add(operation.rank);
      }
    }
    // 3 % of the operations.
    expect(left).toBeGreaterThan(10 * OPERATIONS * 0.025);
    expect(returned).toBeGreaterThan(0.4 * left);
    expect(replaced).toBeGreaterThan(0.4 * left);
  });
});
