// What an explained selection says of its candidates.
import { expect, test } from "vitest";
import { WorkerInputs } from "../../src/plugins/worker-selection/components.js";
import { builtIn, corePool, custom, holds, load, type PoolSetUp, prompt, workers } from "./pool.js";

const pools: Record<string, PoolSetUp> = {
  "the default cost": { config: { decodeActiveRequestWeight: 1 } },
  "two tiers": { policy: builtIn("dynamo-two-tier-cost-fn") },
  components: {
    policy: custom({
      scorers: [
        {
          requiredInputs: WorkerInputs.LOAD | WorkerInputs.CACHE,
          score: (_ctx, rows, out) => out.set(rows.load!.decodeCostBlocks),
        },
      ],
    }),
  },
};

test.each(Object.keys(pools))("the candidates under %s are those of a probe just before", (name) => {
  const core = corePool({ ...pools[name], workers: workers(3) });
  holds(core, "2", prompt(1, 8), 4);
  load(core, "3", 2, 100, 3);
  for (let i = 0; i < 5; i++) {
    const { candidates, selected } = core.probe({ tokens: prompt(1, 8) });
    const selection = core.select({ tokens: prompt(1, 8), explain: true });
    expect(selection.candidates).toEqual(candidates);
    expect(selection.worker).toEqual(selected);
    expect(core.loads().reduce((n, row) => n + row.activeRequests, 0)).toBe(3 + i);
  }
});

test("an explained selection that finds no room for its booking leaves nothing", () => {
  const core = corePool({ workers: workers(2), budgetBytes: 2 ** 20 });
  let refused = 0;
  for (let i = 0; i < 400 && refused < 3; i++) {
    const before = core.loads();
    try {
      core.select({ tokens: prompt(i, 300), explain: true });
    } catch (error) {
      expect(error).toMatchObject({ code: "memory_budget" });
      expect(core.loads()).toEqual(before);
      refused++;
    }
  }
  expect(refused).toBe(3);
  core.contents.clear(core.ranks.get("1", 0)!);
  expect(core.probe({ tokens: prompt(1, 2) }).outcome).toBe("selected");
});
