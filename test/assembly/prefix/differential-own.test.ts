// The whole recipe in a pool of own names; a file of its own, so that both modes run side by side.
import { expect, it } from "vitest";
import { KernelIndex } from "./harness.js";
import { OPERATIONS, runRecipe, SEEDS } from "./recipe.js";

it(`agrees with the model over ${SEEDS} seeds × ${OPERATIONS} operations`, { timeout: 180_000 }, () => {
  const ownNames = true;
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
});
