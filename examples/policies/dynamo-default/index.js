// The default policy of the router as a policy of components. The built-in one runs inside the kernel, and also
// takes what one request overrides; without overrides the two choose alike, draw for draw.
import { lowestCost, WorkerInputs, WorkerSelectionPolicy } from "warmroute/plugins";
import { z } from "zod";

const parameters = z.strictObject({});

/** Work that a rank would have, in blocks: prefill that no cache saves, and decoding. */
function cost(config, role) {
  const {
    overlapScoreCredit: credit,
    overlapScoreCreditDecay: decay,
    prefillLoadScale: scale,
    decodeActiveRequestWeight: requestWeight,
    hostCacheHitWeight: hostWeight,
    diskCacheHitWeight: diskWeight,
    sharedCacheMultiplier: sharedWeight,
  } = config;
  return {
    requiredInputs: WorkerInputs.CACHE | WorkerInputs.LOAD | WorkerInputs.PREFERRED_TAINT,
    score(ctx, { cache, load, preferredTaintMultiplier }, costs) {
      const { promptTokens, requestBlocks, blockSize, tracksPrefillTokens } = ctx;
      const { activePrefillTokens } = load;
      const decays = tracksPrefillTokens && decay > 0;
      const leastPrefill = decays ? activePrefillTokens.reduce((least, tokens) => Math.min(least, tokens)) : 0;
      for (let row = 0; row < costs.length; row++) {
        // A rank that is busier than the idlest gets less credit for its cache.
        const backlog = decays ? (activePrefillTokens[row] - leastPrefill) / blockSize : 0;
        const deviceCredit = credit * (1 / (1 + (decay * backlog) / requestBlocks));
        const credits =
          deviceCredit * cache.deviceOverlapBlocks[row] +
          hostWeight * cache.hostOverlapBlocks[row] +
          diskWeight * cache.diskOverlapBlocks[row] +
          sharedWeight * cache.sharedBeyondDeviceBlocks[row];
        const cached = cache.estimatedTokens[row];
        const decode = load.decodeCostBlocks[row];
        let work = decode;
        if (tracksPrefillTokens) {
          const prefill = activePrefillTokens[row] + Math.max(0, promptTokens - cached) + cached;
          work = scale * Math.max(0, prefill / blockSize - credits) + decode;
        } else if (role === "decode" && credit > 0) {
          work = Math.max(0, decode - credits);
        }
        const whole = work + requestWeight * load.activeRequests[row];
        costs[row] = whole * (preferredTaintMultiplier?.[row] ?? 1);
      }
    },
  };
}

/** Draws by e^(−(cost − lowest) / (spread · temperature)), in row order. */
function softmax(temperature) {
  return {
    pick(ctx, { costs }) {
      if (ctx.pinnedWorker) return 0;
      const lowest = costs.reduce((a, b) => Math.min(a, b));
      const spread = costs.reduce((a, b) => Math.max(a, b)) - lowest;
      const weights = costs.map((c) => (spread > 0 ? Math.exp(-(c - lowest) / (spread * temperature)) : 1));
      const target = ctx.random() * weights.reduce((a, b) => a + b);
      let reached = 0;
      let chosen = 0;
      for (let row = 0; row < weights.length && (reached < target || reached === 0); row++) {
        if (weights[row] === 0) continue;
        chosen = row;
        reached += weights[row];
      }
      return chosen;
    },
  };
}

export function register(registry) {
  registry.registerWorkerSelection("example-default-cost", (given) => {
    given.parse(parameters);
    return ({ config, role }) =>
      new WorkerSelectionPolicy({
        label: "example-default-cost",
        scorers: [cost(config, role)],
        picker: config.routerTemperature > 0 ? softmax(config.routerTemperature) : lowestCost,
        exclusiveAffinity: true,
      });
  });
}
