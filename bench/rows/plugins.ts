// What plugins cost: nothing where none is chosen, and a policy in JavaScript against the built-in one.
import type { RouterOptions } from "../../src/router/contract.js";
import type { KvRouter } from "../../src/router/kv-router.js";
import { collect, compare, type Side } from "../harness.js";
import { measure, type Row, type Run, roundsOf, type Suite } from "../rows.js";

/** What these rows need of the library that lies beside them. */
interface Library {
  createRouter(options: RouterOptions): Promise<KvRouter>;
  RouterPlugins: typeof import("../../src/plugins/bundle.js").RouterPlugins;
  WorkerSelectionPolicy: typeof import("../../src/plugins/worker-selection/policy.js").WorkerSelectionPolicy;
  WorkerInputs: typeof import("../../src/plugins/worker-selection/contract.js").WorkerInputs;
}

const BLOCK_SIZE = 16;
const ROUNDS = 31;
const NONE_RANKS = 64;

const oneBlock = Uint32Array.from({ length: BLOCK_SIZE }, (_, i) => i);
const prompts = Array.from({ length: 16 }, (_, prompt) =>
  Uint32Array.from({ length: 2048 }, (_, i) => prompt * 100_000 + i),
);

const routerOf = ({ createRouter }: Library, ranks: number, plugins?: InstanceType<Library["RouterPlugins"]>) =>
  createRouter({
    blockSize: BLOCK_SIZE,
    seed: 1,
    workers: Array.from({ length: ranks }, (_, rank) => ({ workerId: rank + 1 })),
    ...(plugins && { plugins }),
  });

/** A bundle with a policy of one scorer, which adds three columns. */
function addingPolicy({ RouterPlugins, WorkerSelectionPolicy, WorkerInputs }: Library) {
  return new RouterPlugins().withWorkerSelection(
    () =>
      new WorkerSelectionPolicy({
        label: "sum",
        scorers: [
          {
            requiredInputs: WorkerInputs.CACHE | WorkerInputs.LOAD,
            score(_, { cache, load }, costs) {
              const { deviceOverlapBlocks } = cache!;
              const { activePrefillTokens, decodeCostBlocks } = load!;
              for (let row = 0; row < costs.length; row++) {
                costs[row] = activePrefillTokens[row]! + decodeCostBlocks[row]! - deviceOverlapBlocks[row]!;
              }
            },
          },
        ],
      }),
  );
}

/** One round: `passes` calls of `pass`, each worth `operations` operations, after one that is not timed. */
function side(name: string, passes: number, operations: number, pass: () => unknown): Side {
  return {
    name,
    async round() {
      await pass();
      const start = performance.now();
      for (let i = 0; i < passes; i++) await pass();
      return { nanoseconds: ((performance.now() - start) * 1e6) / (passes * operations), sum: "" };
    },
  };
}

/** The same with request ids, which a classifier needs. */
function classifying(name: string, router: KvRouter): Side {
  let next = 0;
  return side(name, 40, prompts.length, async () => {
    for (const tokens of prompts) (await router.select({ requestId: `r${next++}`, tokens })).booking.free();
  });
}

function selecting(name: string, router: KvRouter): Side {
  return side(name, 40, prompts.length, async () => {
    for (const tokens of prompts) (await router.select({ tokens })).booking.free();
  });
}

function probing(name: string, router: KvRouter, ranks: number): Side {
  const calls = Math.ceil(4096 / ranks);
  return side(name, 8, calls, () => {
    for (let i = 0; i < calls; i++) router.probe({ tokens: oneBlock });
  });
}

/** Time of `of` ÷ time of `against`, both warm; the routers are closed. */
async function paired(run: Run, sides: readonly [of: Side, against: Side], routers: readonly KvRouter[]) {
  for (let i = 0; i < (run.quick ? 1 : 8); i++) for (const one of sides) await one.round();
  collect();
  const measured = await compare(sides[0], sides[1], roundsOf(run, ROUNDS), "median");
  for (const router of routers) await router.close();
  return measured;
}

const probes = [
  { name: "plugins/ts-64", ranks: 64, target: 4 },
  { name: "plugins/ts-1024", ranks: 1024, target: 3 },
] as const;

const row = (name: string, of: string, against: string, target: number): Row => ({
  ...{ name, of, against, target },
  ...{ better: "lower", statistic: "median" },
});

export const pluginsSuite: Suite = {
  rows: [
    row("plugins/none", `select + free with an empty bundle, ${NONE_RANKS} ranks`, "without the option", 1.03),
    row("plugins/none-self", `select + free without the option, ${NONE_RANKS} ranks`, "the same once more", 1.03),
    ...probes.map(({ name, ranks, target }) =>
      row(name, `probe with a scorer in JavaScript, ${ranks} ranks`, "with the built-in policy", target),
    ),
    row("plugins/classifier", "select + free, 2048 tokens, a classifier that lets all pass", "without it", 1.6),
  ],
  async run(run) {
    const library = (await import(new URL("./index.js", import.meta.url).href)) as Library;
    for (const [name, plugins] of [
      ["plugins/none", new library.RouterPlugins()],
      ["plugins/none-self", undefined],
    ] as const) {
      await measure(run, name, async () => {
        const routers = [await routerOf(library, NONE_RANKS, plugins), await routerOf(library, NONE_RANKS)] as const;
        return paired(run, [selecting("of", routers[0]), selecting("against", routers[1])], routers);
      });
    }
    for (const { name, ranks } of probes) {
      await measure(run, name, async () => {
        const custom = await routerOf(library, ranks, addingPolicy(library));
        const builtIn = await routerOf(library, ranks);
        const sides = [probing("JavaScript", custom, ranks), probing("built-in", builtIn, ranks)] as const;
        return paired(run, sides, [custom, builtIn]);
      });
    }
    await measure(run, "plugins/classifier", async () => {
      const passing = new library.RouterPlugins().withRequestClassifier(() => ({
        classify: (request) => request,
        onEvent() {},
      }));
      const routers = [await routerOf(library, NONE_RANKS, passing), await routerOf(library, NONE_RANKS)] as const;
      return paired(run, [classifying("classifier", routers[0]), classifying("none", routers[1])], routers);
    });
  },
};
