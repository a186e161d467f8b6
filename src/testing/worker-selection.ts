// The conformance suite of worker-selection policies, for vitest.
import { afterEach, beforeAll, describe, expect, test } from "vitest";
import { Random } from "../core/random.js";
import { guardViews } from "../plugins/worker-selection/guarded-views.js";
import type { WorkerSelectionPolicy } from "../plugins/worker-selection/policy.js";
import { anyPlan, distinctPlan, labelsInTurn, type PoolPlan, shuffled, taints, workerIds } from "./pool-plan.js";
import { choices, difference, eligible, replaceLast } from "./pool-play.js";
import { TestPool, type TestPoolOptions } from "./test-pool.js";
import { checkValues, defaultAttributes, defaultLabels, listed, type Values } from "./values.js";

type Make = () => WorkerSelectionPolicy;

export interface WorkerSelectionSuiteOptions {
  /** Labels of the suite's workers, each with the values that workers take in turn: those that the policy reads. */
  labels?: Values;
  /** Attributes that the policy reads, each with some of its values, beside `tenant`, `tier` and `user`. */
  attributes?: Values;
}

const ROUNDS = 16;
const DRAWS = 32;

/** Runs one property on random pools, of which each is the same in every run. */
function forPlans(plan: (random: Random) => PoolPlan, check: (plan: PoolPlan, random: Random) => Promise<void>) {
  return async () => {
    for (let round = 0; round < ROUNDS; round++) {
      const random = new Random(BigInt(round));
      await check(plan(random), random);
    }
  };
}

/**
 * Declares the tests that every worker-selection policy must pass. `make` returns a new policy, as its factory would
 * for one pool.
 *
 * Each policy runs on real routers, over pools whose workers have ids from the whole u64 range; views are guarded from
 * the first suite on. Where a choice rests on chance (the generator was moved, or another candidate has the same cost)
 * only how often each worker is chosen is compared under other ids. A policy whose choice depends on the ids themselves,
 * as a hash over them does, does not conform.
 *
 * The suite's workers have the label `zone` with the value `zone-0` or `zone-1`, or the labels of `options` instead,
 * and some have none; they have any of the taints `gpu-a`, `gpu-b` and `spot`. Requests have any of the attributes
 * `tenant` (`acme`, `globex`, `initech`), `tier` (`gold`, `silver`, empty), `user` (`ann`, `bob`, `cy`) and those of
 * `options`, which go first. A policy may filter all candidates of a request; one that does so for all requests does
 * not conform, for nothing is known of it then.
 */
export function testWorkerSelectionPolicy(name: string, make: Make, options: WorkerSelectionSuiteOptions = {}): void {
  checkValues({ ...options }, ["labels", "attributes"]);
  const { labels = defaultLabels } = options;
  const values = { labels, attributes: { ...defaultAttributes, ...options.attributes } };
  const anyPool = (random: Random) => anyPlan(random, values);
  const distinctPool = (random: Random, n?: number) => distinctPlan(random, values, n);

  describe(`worker-selection policy ${name}`, { timeout: 30_000 }, () => {
    const opened: TestPool[] = [];
    const openUnder = async (ids: readonly bigint[], plan: PoolPlan, more: Partial<TestPoolOptions> = {}) => {
      const pool = await TestPool.open(make, plan, { ids, ...more });
      opened.push(pool);
      return pool;
    };
    const open = (plan: PoolPlan, random: Random) => openUnder(workerIds(random, plan.workers.length), plan);

    beforeAll(() => guardViews(true));
    afterEach(() => {
      for (const { router } of opened.splice(0)) void router.close();
    });

    test("makes a policy that a router takes, and another one each time", async () => {
      const [one, other] = [make(), make()];
      expect(one, "make() must return a new policy each time: pools share nothing").not.toBe(other);
      await open({ workers: [], stores: [], loads: [], requests: [] }, new Random(0n));
    });

    test(
      "chooses an eligible candidate, and leaves a finite cost for each",
      forPlans(anyPool, async (plan, random) => {
        const pool = await open(plan, random);
        for (const request of plan.requests) {
          const { rank } = await pool.select(request);
          const ranks = eligible(plan, request);
          const allowed = ranks.length > 0 ? [...ranks, filtered] : refusals;
          expect(allowed, "the choice must be one of the candidates").toContain(rank);
        }
      }),
    );

    test("selects a worker for some request", async () => {
      let selected = 0;
      for (const plan of [anyPool, distinctPool]) {
        await forPlans(plan, async ({ requests, ...parts }, random) => {
          const pool = await open({ requests, ...parts }, random);
          selected += (await choices(pool, requests)).filter(
            (rank) => rank !== filtered && !refusals.includes(rank),
          ).length;
        })();
      }
      expect(selected, selectsNothing(labels)).toBeGreaterThan(0);
    });

    test(
      "looks at values, not at the order of rows, ids or slots",
      forPlans(distinctPool, async (plan, random) => {
        const ids = workerIds(random, plan.workers.length);
        const pool = await openUnder(ids, plan);
        const twin = await openUnder(shuffled(random, ids), plan, { order: shuffled(random, plan.workers) });
        for (const request of plan.requests) {
          const here = await pool.select(request);
          const there = await twin.select(request);
          if (here.byChance || there.byChance) break;
          const why =
            "the same workers under other ids: rows come in any order, and equal ones are for ctx.randomBelow()";
          expect(there.rank, why).toBe(here.rank);
        }
      }),
    );

    test("draws for workers, not for rows", async () => {
      const random = new Random(8n);
      const plan = distinctPool(random, 6);
      const ids = workerIds(random, 6).sort((a, b) => (a < b ? -1 : 1));
      const drawn = async (under: readonly bigint[], from: number) => {
        const ranks: string[] = [];
        for (let i = 0; i < DRAWS; i++) {
          const pool = await openUnder(under, plan, { seed: BigInt(from + i) });
          ranks.push((await pool.select(plan.requests[0]!)).rank);
        }
        return ranks;
      };
      const [here, there] = [await drawn(ids, 0), await drawn(ids.toReversed(), DRAWS)];
      // Equal distributions differ by about a quarter of the draws.
      const why = "the same workers under other ids must be drawn as often as before: rows come in any order";
      expect(difference(here, there), why).toBeLessThan(0.75 * DRAWS);
    });

    test(
      "decides alike from the same seed",
      forPlans(anyPool, async (plan, random) => {
        const ids = workerIds(random, plan.workers.length);
        const requests = [...plan.requests, ...plan.requests, ...plan.requests];
        const pools = await Promise.all([1, 2].map(() => openUnder(ids, plan, { seed: 7n })));
        const [one, other] = await Promise.all(pools.map((pool) => choices(pool, requests)));
        expect(other, sameSeed).toEqual(one);
      }),
    );

    test(
      "answers a probe as it would answer the selection, and books nothing for it",
      forPlans(anyPool, async (plan, random) => {
        const ids = workerIds(random, plan.workers.length);
        const [pool, twin] = await Promise.all([1, 2].map(() => openUnder(ids, plan)));
        const before = plan.requests.slice(0, random.below(4));
        expect(await choices(twin!, before), sameSeed).toEqual(await choices(pool!, before));
        const state = () => [twin!.router.loads(), twin!.generator(), twin!.router.stats().bookings];
        const unprobed = state();
        const request = plan.requests[4]!;
        const probed = twin!.probe(request);
        expect(state(), "a probe leaves the pool as it was").toEqual(unprobed);
        expect(probed, "a probe shows what a selection would choose").toBe((await pool!.select(request)).rank);
      }),
    );

    test("keeps no view beyond the call that lent it", async () => {
      const played = async (guarded: boolean) => {
        const random = new Random(1n);
        const plan = anyPool(random);
        guardViews(guarded);
        try {
          const pool = await open(plan, random);
          const ranks: string[] = [];
          for (let i = 0; i < 12; i++) {
            ranks.push((await pool.select(plan.requests[i % 8]!)).rank);
            if (i % 4 === 3) pool.add({ name: `late-${i}`, dpSize: 2, taints: [], labels: {} }, random.u64());
          }
          return ranks;
        } finally {
          guardViews(true);
        }
      };
      const lent = await played(false);
      const takenBack = await played(true).catch(({ message }) => expect.fail(`${message} ${readsAnew}`));
      expect(takenBack, readsAnew).toEqual(lent);
    });

    test("asks for the same inputs whenever it is asked", async () => {
      const random = new Random(2n);
      const plan = anyPool(random);
      const inputs = ({ policy: { filters, scorers, picker } }: TestPool) =>
        [...filters, ...scorers, picker].map(({ requiredInputs = 0 }) => requiredInputs);
      const [pool, other] = [await open(plan, random), await open(plan, random)];
      const atFirst = inputs(pool);
      await choices(pool, plan.requests);
      const frozen = "requiredInputs is read once, when the pool is built: what is added later is never seen";
      expect(inputs(pool), frozen).toEqual(atFirst);
      expect(inputs(other), frozen).toEqual(atFirst);
    });

    test.each([
      [1, ROUNDS],
      [2000, 1],
    ])("works with %d candidates", async (n, rounds) => {
      for (let round = 0; round < rounds; round++) {
        const random = new Random(BigInt(n + round));
        const labelsOf = labelsInTurn(random, labels);
        const workers = Array.from({ length: n }, (_, i) => ({
          name: `w${i}`,
          dpSize: 1,
          taints: [],
          labels: labelsOf(i),
        }));
        const loads = workers
          .slice(0, 20)
          .map(({ name: worker }) => ({ worker, dpRank: 0, prefillTokens: 9, blocks: 2 }));
        const { requests } = distinctPool(random);
        const pool = await open({ workers, stores: [], loads, requests }, random);
        const allowed = [...workers.map((worker) => `${worker.name}/0`), filtered];
        for (const rank of await choices(pool, requests)) expect(allowed).toContain(rank);
      }
    });

    test(
      "treats a new rank in a used slot as a new rank",
      forPlans(distinctPool, async (plan, random) => {
        const ids = workerIds(random, plan.workers.length + 2);
        const [used, fresh] = [await openUnder(ids, plan), await openUnder(ids, plan)];
        await replaceLast(used, plan, ids, ["new", "passing"]);
        await replaceLast(fresh, plan, ids, ["passing", "new"]);
        const requests = [...plan.requests, ...plan.requests];
        const forgets = "drop what you keep for a slot in onSlotReleased(): its next rank is another one";
        expect(await choices(used, requests), forgets).toEqual(await choices(fresh, requests));
        expect([...used.log.faults, ...fresh.log.faults], "onSlotReleased() must not throw").toEqual([]);
      }),
    );

    test(
      "shares nothing with the policies of other pools",
      forPlans(anyPool, async (plan, random) => {
        const other = anyPool(random);
        const ids = workerIds(random, 12);
        const alone = await choices(await openUnder(ids, plan), plan.requests);
        const [pool, neighbour] = [await openUnder(ids, plan), await openUnder(ids, other)];
        const beside: string[] = [];
        for (const [i, request] of plan.requests.entries()) {
          const { rank, booking } = await pool.select(request);
          beside.push(rank);
          await neighbour.select(other.requests[i]!);
          if (i % 2 === 1) booking?.free();
        }
        expect(beside, "keep state in what make() builds, not in the module: another pool ran beside it").toEqual(
          alone,
        );
      }),
    );

    test("closes once, soon and quietly, also with requests in flight", async () => {
      const random = new Random(3n);
      const plan = anyPool(random);
      const pool = await open(plan, random);
      await choices(pool, plan.requests);
      const { router } = pool;
      await Promise.all([router.close(), router.close()]);
      expect(pool.log.faults, "close() must end soon, and neither it nor onSlotReleased() may throw").toEqual([]);
    });
  });
}

const sameSeed = "draw from ctx.random() and ctx.randomBelow(), and read no clock but that of the factory's init";
const readsAnew = "This is so only where views and columns are taken back after each call: read them anew in each call";
const refusals = ["no_endpoints", "pinned_worker_not_allowed"];
const filtered = "all_eligible_workers_filtered";

const selectsNothing = (labels: Values) =>
  "the policy filtered all candidates of all requests, so the other tests tell nothing of it. The suite's workers have " +
  `the labels ${listed(labels) || "(none)"}, some of them no labels, and the taints ${taints.join(", ")}. Name the ` +
  'labels that the policy reads: testWorkerSelectionPolicy(name, make, { labels: { zone: ["east", "west"] } })';
