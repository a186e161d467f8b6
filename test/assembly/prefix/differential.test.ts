import { describe, expect, it } from "vitest";
import { KernelIndex } from "./harness.js";
import { runRecipe, type Subject } from "./recipe.js";

const SEEDS = Array.from({ length: 40 }, (_, i) => i + 1);
const OPERATIONS = 2000;

/** Two to four workers with one or two ranks each, as slots. */
function slotsOf(seed: number): number[] {
  const workers = 2 + (seed % 3);
  const ranks = 1 + (seed % 2);
  return Array.from({ length: workers }, (_, w) => Array.from({ length: ranks }, (_, r) => w * 2 + r)).flat();
}

describe.each([
  { names: "foreign names", ownNames: false },
  { names: "own names", ownNames: true },
])("differential recipe, $names", ({ ownNames }) => {
  it(`agrees with the model over ${SEEDS.length} seeds × ${OPERATIONS} operations`, () => {
    let queries = 0;
    for (const seed of SEEDS) {
      const index = new KernelIndex({ ownNames, maxRanks: 8, budget: 16n << 20n, longest: 128 });
      queries += runRecipe(index, { seed, operations: OPERATIONS, ownNames, slots: slotsOf(seed) });
      expect(index.raw.indexRuns() + index.raw.indexLanes() + (index.raw.extentWords.value as number)).toBe(0);
    }
    expect(queries).toBeGreaterThan(SEEDS.length * OPERATIONS * 5);
  });
});

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
