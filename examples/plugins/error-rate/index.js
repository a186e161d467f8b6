// Makes ranks that fail dearer: a request that must be sent again costs its prompt twice.
import { perRow, WorkerInputs, WorkerSelectionPolicy } from "warmroute/plugins";
import { z } from "zod";

const parameters = z.strictObject({
  penalty_blocks: z.number().min(0).default(100),
  min_samples: z.number().int().min(1).default(20),
});

export function register(registry) {
  registry.registerWorkerSelection("example-error-rate", (given) => {
    const { penalty_blocks: penalty, min_samples: least } = given.parse(parameters);
    const work = perRow(WorkerInputs.CACHE | WorkerInputs.LOAD, (ctx, { cache, load }, row) => {
      const prefill = ctx.requestBlocks - cache.deviceOverlapBlocks[row];
      return prefill + load.activePrefillTokens[row] / ctx.blockSize + load.decodeCostBlocks[row];
    });
    // Unknown rates are NaN, and few samples say little: both count as no errors.
    const errors = perRow(WorkerInputs.LATENCY, (_ctx, { latency }, row) => {
      return latency.samples[row] >= least ? penalty * latency.errorRate[row] : 0;
    });
    return () => new WorkerSelectionPolicy({ label: "error-rate", scorers: [work, errors] });
  });
}
