import type { WorkerPicker } from "./components.js";

/** Takes the lowest cost; among equals, one draw decides, evenly. */
export const lowestCost: WorkerPicker = {
  pick(ctx, { costs }) {
    let lowest = Number.POSITIVE_INFINITY;
    let tied = 0;
    let first = 0;
    for (let row = 0; row < costs.length; row++) {
      const cost = costs[row]!;
      if (cost > lowest) continue;
      if (cost < lowest) {
        lowest = cost;
        tied = 0;
        first = row;
      }
      tied++;
    }
    if (tied < 2) return first;
    let left = ctx.randomBelow(tied);
    for (let row = first; ; row++) if (costs[row] === lowest && left-- === 0) return row;
  },
};
