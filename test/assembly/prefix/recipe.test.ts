// The recipe must be able to fail.
import { describe, expect, it } from "vitest";
import { KernelIndex } from "./harness.js";
import { runRecipe, type Subject } from "./recipe.js";

describe("the recipe itself", () => {
  it("fails on an index that ignores removals", () => {
    class Forgetful extends KernelIndex implements Subject {
      override remove(_slot: number, _tier: number, names: readonly bigint[]): number {
        return names.length;
      }
    }
    const run = () =>
      runRecipe(new Forgetful({ maxRanks: 8 }), { seed: 1, operations: 200, ownNames: false, slots: [0, 1, 2] });
    expect(run).toThrow(/operation \d+/);
  });

  it("fails on an index whose scores ignore holes", () => {
    class Hopeful extends KernelIndex implements Subject {
      override find(chain: readonly bigint[]): Map<number, number> {
        const exact = super.find(chain);
        return new Map([...exact].map(([slot, depth]) => [slot, depth === chain.length - 1 ? depth + 1 : depth]));
      }
    }
    const run = () =>
      runRecipe(new Hopeful({ maxRanks: 8 }), { seed: 2, operations: 200, ownNames: false, slots: [0, 1, 2] });
    expect(run).toThrow(/scores \d+, the model \d+/);
  });
});
