// examples/policies against the built-in policies: 10,000 random selections, draw for draw.
import { describe, expect, it, vi } from "vitest";
import type { KvRouterConfig } from "../../src/core/config.js";
import type { WorkerInput, WorkerRole } from "../../src/core/types.js";
import type { WorkerSelectionFactory, WorkerSelectionProvider } from "../../src/plugins/worker-selection/contract.js";
import type { PoolBooking } from "../../src/scheduling/bookings/booking.js";
import type { PoolRequest } from "../../src/scheduling/pool.js";
import type { SelectionCore } from "../../src/scheduling/selection-core.js";
import { builtIn, corePool, holds, parametersOf, prompt } from "./pool.js";

// The examples import the package; here they get its source, whose classes the pool knows.
vi.mock("warmroute/plugins", async () => ({
  ...(await import("../../src/plugins/worker-selection/contract.js")),
  ...(await import("../../src/plugins/worker-selection/lowest-cost.js")),
  ...(await import("../../src/plugins/worker-selection/policy.js")),
}));

async function example(name: string, parameters: Record<string, unknown> = {}): Promise<WorkerSelectionFactory> {
  const { register } = (await import(`../../examples/policies/${name}/index.js`)) as {
    register(registry: { registerWorkerSelection(type: string, provider: WorkerSelectionProvider): void }): void;
  };
  let factory: WorkerSelectionFactory | undefined;
  register({
    registerWorkerSelection(_, provider) {
      factory = provider(parametersOf(parameters));
    },
  });
  return factory!;
}

/** mulberry32: a small generator for the test's own choices. */
function numbers(seed: number): { below(n: number): number; chance(p: number): boolean } {
  let a = seed;
  const unit = () => {
    a = (a + 0x6d2b79f5) | 0;
    let t = Math.imul(a ^ (a >>> 15), 1 | a);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
  return { below: (n) => Math.floor(unit() * n), chance: (p) => unit() < p };
}

const taints = ["gpu-a", "gpu-b", "spot"];
const tiers = ["device", "device", "host_pinned", "disk"] as const;

interface SetUp {
  seed: number;
  config: Partial<KvRouterConfig>;
  role: WorkerRole;
  ours: WorkerSelectionFactory;
  theirs: WorkerSelectionFactory;
}

/** Does the same to both pools, at random, with `selections` selections among it. */
function drive({ seed, config, role, ours, theirs }: SetUp, selections: number): void {
  const { below, chance } = numbers(seed);
  const workers: WorkerInput[] = Array.from({ length: 1 + below(40) }, (_, i) => ({
    workerId: i + 1,
    taints: taints.filter(() => chance(0.4)),
  }));
  const pools = [ours, theirs].map((policy) => corePool({ policy, workers, config, role, seed: BigInt(seed) }));
  const both = (act: (pool: SelectionCore) => void) => {
    for (const pool of pools) act(pool);
  };
  const live: PoolBooking[][] = [];
  const anyId = () => String(1 + below(workers.length));
  for (let done = 0; done < selections; ) {
    const what = below(10);
    const tokens = prompt(below(6), 1 + below(20), below(16));
    if (what < 2) {
      const id = anyId();
      const tier = tiers[below(tiers.length)]!;
      const blocks = Math.max(1, below(Math.floor(tokens.length / 16)));
      both((pool) => holds(pool, id, tokens, blocks, tier));
    } else if (what === 2 && live.length > 0) {
      const at = below(live.length);
      for (const booking of chance(0.5) ? live[at]! : live.splice(at, 1)[0]!) {
        if (live[at]?.includes(booking)) booking.prefillComplete();
        else booking.free();
      }
    } else if (what === 3) {
      const id = anyId();
      const isOver = chance(0.3);
      both((pool) => pool.ranks.setOverloaded(pool.ranks.get(id, 0)!, isOver));
    } else {
      const request: PoolRequest = { tokens };
      if (chance(0.2)) request.allowedWorkerIds = workers.filter(() => chance(0.6)).map(({ workerId }) => workerId);
      if (chance(0.3)) {
        const preferredTaints = Object.fromEntries(taints.map((taint) => [taint, below(9) / 4 - 1]));
        request.routingConstraints = { preferredTaints, ...(chance(0.2) ? { requiredTaints: ["spot"] } : {}) };
      }
      if (chance(0.05)) request.pinnedWorker = { workerId: anyId() };
      if (chance(0.1)) request.affinityTarget = { workerId: anyId() };
      if (chance(0.1)) request.configOverride = { trackPrefillTokens: chance(0.5) };
      const [mine, its] = pools.map((pool) => {
        try {
          const { worker, overlap, cachedTokens, effectivePrefillTokens, booking } = pool.select(request);
          return { said: { worker, overlap, cachedTokens, effectivePrefillTokens }, booking };
        } catch (error) {
          return { said: (error as { code: string }).code, booking: undefined };
        }
      });
      expect(its!.said).toEqual(mine!.said);
      if (mine!.booking) live.push([mine!.booking, its!.booking!]);
      if (live.length > 60) for (const booking of live.shift()!) booking.free();
      done++;
    }
  }
  expect(pools[1]!.loads()).toEqual(pools[0]!.loads());
  expect(pools[1]!.kernel.random()).toBe(pools[0]!.kernel.random());
}

const POOLS = 20;
const EACH = 500;

describe("examples/policies choose as the built-in policies do", () => {
  const { below } = numbers(7);
  const set = Array.from({ length: POOLS }, (_, i) => {
    const config: Partial<KvRouterConfig> = {
      routerTemperature: i % 2 === 0 ? 0 : [0.1, 0.5, 1, 5][below(4)]!,
      overlapScoreCredit: [1, 1, 0, 0.3, 2][below(5)]!,
      overlapScoreCreditDecay: [0, 0, 0.5, 2][below(4)]!,
      prefillLoadScale: [1, 1, 0.7, 0][below(4)]!,
      decodeActiveRequestWeight: [0, 0, 1.5][below(3)]!,
    };
    return [i, i % 5 === 4 ? "decode" : "aggregated", config] as const;
  });

  it.each(set)("dynamo-default, pool %i, %s, %j", async (i, role, config) => {
    const ours = builtIn("dynamo-default-cost-fn");
    drive({ seed: i + 1, config, role, ours, theirs: await example("dynamo-default") }, EACH);
  });

  it.each(set)("dynamo-two-tier, pool %i", async (i, role) => {
    const parameters = {
      cache_threshold: i / POOLS,
      balance_abs_threshold: i % 4,
      balance_rel_threshold: 1 + (i % 3) / 4,
    };
    const ours = builtIn("dynamo-two-tier-cost-fn", parameters);
    drive({ seed: 100 + i, config: {}, role, ours, theirs: await example("dynamo-two-tier", parameters) }, EACH);
  });
});
