// The two-tier policy of the router as a policy of components: load first, then cache. The built-in one runs inside
// the kernel; the two choose alike, draw for draw.
import { WorkerInputs, WorkerSelectionPolicy } from "warmroute/plugins";
import { z } from "zod";

const parameters = z.strictObject({
  cache_threshold: z.number().min(0).max(1).default(0.5),
  balance_abs_threshold: z.number().int().min(0).default(32),
  balance_rel_threshold: z.number().min(1).default(1.1),
});

const highest = (column) => column.reduce((a, b) => Math.max(a, b));
const lowest = (column) => column.reduce((a, b) => Math.min(a, b));

/** A row with the fewest active requests among those that `isMeant` names; ties are drawn. */
function leastLoaded(ctx, activeRequests, isMeant) {
  let rows = [];
  for (let row = 0; row < activeRequests.length; row++) {
    if (!isMeant(row)) continue;
    const least = rows.length > 0 ? activeRequests[rows[0]] : Number.POSITIVE_INFINITY;
    if (activeRequests[row] < least) rows = [row];
    else if (activeRequests[row] === least) rows.push(row);
  }
  return rows.length > 1 ? rows[ctx.randomBelow(rows.length)] : rows[0];
}

export function register(registry) {
  registry.registerWorkerSelection("example-two-tier", (given) => {
    const {
      cache_threshold: cacheThreshold,
      balance_abs_threshold: absolute,
      balance_rel_threshold: relative,
    } = given.parse(parameters);
    const picker = {
      requiredInputs: WorkerInputs.CACHE | WorkerInputs.LOAD,
      pick(ctx, { cache, load: { activeRequests } }) {
        const least = lowest(activeRequests);
        const most = highest(activeRequests);
        const isImbalanced = most - least > absolute && most > relative * least;
        const overlap = highest(cache.deviceOverlapBlocks);
        const isCached = !isImbalanced && overlap / ctx.requestBlocks > cacheThreshold;
        return leastLoaded(ctx, activeRequests, (row) => !isCached || cache.deviceOverlapBlocks[row] === overlap);
      },
    };
    return () => new WorkerSelectionPolicy({ label: "example-two-tier", picker });
  });
}
