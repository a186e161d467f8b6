import { expect } from "vitest";
import { KernelIndex } from "./harness.js";
import { OPERATIONS, runRecipe, SEEDS } from "./recipe.js";

export const NAME = `agrees with the model over ${SEEDS} seeds × ${OPERATIONS} operations`;
export const LIMIT = { timeout: 180_000 };

/** Runs the whole recipe against the kernel's index in one name mode; each stream ends with an empty index. */
export function expectRecipe(ownNames: boolean): void {
  let queries = 0;
  for (let seed = 1; seed <= SEEDS; seed++) {
    let index: KernelIndex | undefined;
    const make = () => {
      index = new KernelIndex({ ownNames, maxRanks: 8, budget: 16n << 20n, longest: 128 });
      return index;
    };
    queries += runRecipe(make, { seed, operations: OPERATIONS, ownNames });
    const { raw } = index as unknown as KernelIndex;
    expect([raw.indexRuns(), raw.indexLanes(), raw.extentWords.value]).toEqual([0, 0, 0]);
  }
  expect(queries).toBeGreaterThan(SEEDS * OPERATIONS * 5);
}
