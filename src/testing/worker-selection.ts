// The conformance suite of worker-selection policies, for vitest.
import { beforeAll, describe, expect, test } from "vitest";
import { Random } from "../core/random.js";
import { guardViews } from "../plugins/worker-selection/guarded-views.js";
import type { WorkerSelectionPolicy } from "../plugins/worker-selection/policy.js";
import { PATIENCE_MS, within } from "./patience.js";
import {
  anyPlan,
  distinctPlan,
  type PlannedRequest,
  type PoolPlan,
  ranksOf,
  shuffled,
  workerIds,
} from "./pool-plan.js";
import { openAny, policyFault, TestPool } from "./test-pool.js";

type Make = () => WorkerSelectionPolicy;

const ROUNDS = 16;

/** Runs one property on random pools, of which each is the same in every run. */
function forPlans(plan: (random: Random) => PoolPlan, check: (plan: PoolPlan, random: Random) => Promise<void>) {
  return async () => {
    for (let round = 0; round < ROUNDS; round++) {
      const random = new Random(BigInt(round));
      await check(plan(random), random);
    }
  };
}

/** What the policy chooses for each request in turn; every other booking ends before the next one. */
async function choices(pool: TestPool, requests: readonly PlannedRequest[]): Promise<string[]> {
  const out: string[] = [];
  for (const [i, request] of requests.entries()) {
    const { rank, booking } = await pool.select(request);
    out.push(rank);
    if (i % 2 === 1) booking?.free();
  }
  return out;
}

/** The ranks that a request's constraints leave. */
function eligible({ workers }: PoolPlan, { allowed, requiredTaints = [], pinned }: PlannedRequest): string[] {
  const fits = workers.filter(
    ({ name, taints }) => (allowed?.includes(name) ?? true) && requiredTaints.every((taint) => taints.includes(taint)),
  );
  const names = ranksOf(fits).map(({ worker, dpRank }) => `${worker}/${dpRank}`);
  return pinned ? names.filter((name) => name === `${pinned.worker}/${pinned.dpRank}`) : names;
}

/**
 * Declares the tests that every worker-selection policy must pass. `make` returns a new policy, as its factory would
 * for one pool.
 *
 * Each policy runs on real routers, over pools whose workers have ids from the whole u64 range. Where its choice
 * rests on chance (it drew from the generator, or gave another candidate the same cost) it is not compared under
 * other ids; nor does a policy conform whose choice depends on ids themselves, as a hash over them does.
 */
export function testWorkerSelectionPolicy(name: string, make: Make): void {
  describe(`worker-selection policy ${name}`, () => {
    beforeAll(() => guardViews(true));

    test("makes a policy that a router takes, and another one each time", async () => {
      const [one, other] = [make(), make()];
      expect(one, "make() must return a new policy each time: pools share nothing").not.toBe(other);
      await openAny(make, { workers: [], stores: [], loads: [], requests: [] }, new Random(0n)).catch((error) => {
        throw policyFault(error);
      });
    });

    test(
      "chooses an eligible candidate, and leaves a finite cost for each",
      forPlans(anyPlan, async (plan, random) => {
        const pool = await openAny(make, plan, random);
        for (const request of plan.requests) {
          const { rank } = await pool.select(request);
          const ranks = eligible(plan, request);
          const allowed = ranks.length > 0 ? [...ranks, "all_eligible_workers_filtered"] : refusals;
          expect(allowed, "the choice must be one of the candidates").toContain(rank);
        }
        await pool.close();
      }),
    );

    test(
      "looks at values, not at the order of rows, ids or slots",
      forPlans(distinctPlan, async (plan, random) => {
        const ids = workerIds(random, plan.workers.length);
        const pool = await TestPool.open(make, plan, { ids });
        const twin = await TestPool.open(make, plan, {
          ids: shuffled(random, ids),
          order: shuffled(random, plan.workers),
        });
        for (const request of plan.requests) {
          const here = await pool.select(request);
          const there = await twin.select(request);
          if (here.byChance || there.byChance) break;
          const why =
            "the same workers under other ids: rows come in any order, and equal ones are for ctx.randomBelow()";
          expect(there.rank, why).toBe(here.rank);
        }
        await Promise.all([pool.close(), twin.close()]);
      }),
    );

    test(
      "decides alike from the same seed",
      forPlans(anyPlan, async (plan, random) => {
        const ids = workerIds(random, plan.workers.length);
        const requests = [...plan.requests, ...plan.requests, ...plan.requests];
        const pools = await Promise.all([1, 2].map(() => TestPool.open(make, plan, { ids, seed: 7n })));
        const [one, other] = await Promise.all(pools.map((pool) => choices(pool, requests)));
        expect(other, "draw from ctx.random() and ctx.randomBelow(), and read no clock of your own").toEqual(one);
        await Promise.all(pools.map((pool) => pool.close()));
      }),
    );

    test(
      "answers a probe as it would answer the selection, and books nothing for it",
      forPlans(anyPlan, async (plan, random) => {
        const ids = workerIds(random, plan.workers.length);
        const [pool, twin] = await Promise.all([1, 2].map(() => TestPool.open(make, plan, { ids })));
        const before = plan.requests.slice(0, random.below(4));
        expect(await choices(twin!, before)).toEqual(await choices(pool!, before));
        const state = () => [twin!.router.loads(), twin!.generator(), twin!.router.stats().bookings];
        const unprobed = state();
        const request = plan.requests[4]!;
        const probed = twin!.probe(request);
        expect(state(), "a probe leaves the pool as it was").toEqual(unprobed);
        expect(probed, "a probe shows what a selection would choose").toBe((await pool!.select(request)).rank);
        await Promise.all([pool!.close(), twin!.close()]);
      }),
    );

    test("keeps no view beyond the call that lent it", async () => {
      const random = new Random(1n);
      const plan = anyPlan(random);
      const pool = await openAny(make, plan, random);
      const keeps = "keep values, never views: a view that is used after its call shows another request";
      for (let i = 0; i < 12; i++) {
        const fault = await pool.select(plan.requests[i % 8]!).catch((error: Error) => error);
        expect(fault instanceof Error ? `${fault.message} ${keeps}` : "no fault").toBe("no fault");
        if (i % 4 === 3) pool.add({ name: `late-${i}`, dpSize: 2, taints: [], labels: {} }, random.u64());
      }
      await pool.close();
    });

    test("asks for the same inputs whenever it is asked", async () => {
      const random = new Random(2n);
      const plan = anyPlan(random);
      const made: WorkerSelectionPolicy[] = [];
      const inputs = ({ filters, scorers, picker }: WorkerSelectionPolicy) =>
        [...filters, ...scorers, picker].map(({ requiredInputs = 0 }) => requiredInputs);
      const keep = () => {
        made.push(make());
        return made.at(-1)!;
      };
      const pools = [await openAny(keep, plan, random), await openAny(keep, plan, random)];
      const atFirst = inputs(made[0]!);
      await choices(pools[0]!, plan.requests);
      const frozen = "requiredInputs is read once, when the pool is built: what is added later is never seen";
      expect(inputs(made[0]!), frozen).toEqual(atFirst);
      expect(inputs(made[1]!), frozen).toEqual(atFirst);
      await Promise.all(pools.map((pool) => pool.close()));
    });

    test.each([1, 2000])("works with %d candidates", async (n) => {
      const random = new Random(BigInt(n));
      const workers = Array.from({ length: n }, (_, i) => ({ name: `w${i}`, dpSize: 1, taints: [], labels: {} }));
      const loads = workers
        .slice(0, 20)
        .map(({ name: worker }) => ({ worker, dpRank: 0, prefillTokens: 9, blocks: 2 }));
      const { requests } = distinctPlan(random);
      const pool = await openAny(make, { workers, stores: [], loads, requests }, random);
      for (const rank of await choices(pool, requests)) expect(rank).toMatch(/^w\d+\/0$/);
      await pool.close();
    });

    test(
      "treats a new rank in a used slot as a new rank",
      forPlans(distinctPlan, async (plan, random) => {
        const [ids, used, fresh] = await usedAndFreshSlot(make, plan, random);
        const requests = [...plan.requests, ...plan.requests];
        const forgets = "drop what you keep for a slot in onSlotReleased(): its next rank is another one";
        expect(await choices(used, requests), `${forgets} (ids ${ids})`).toEqual(await choices(fresh, requests));
        expect([...used.log.errors, ...fresh.log.errors], "onSlotReleased() must not throw").toEqual([]);
        await Promise.all([used.close(), fresh.close()]);
      }),
    );

    test(
      "shares nothing with the policies of other pools",
      forPlans(anyPlan, async (plan, random) => {
        const other = anyPlan(random);
        const ids = workerIds(random, 12);
        const open = (of: PoolPlan) => TestPool.open(make, of, { ids });
        const lonely = await open(plan);
        const alone = await choices(lonely, plan.requests);
        const pools = [await open(plan), await open(other), lonely];
        const beside: string[] = [];
        for (const [i, request] of plan.requests.entries()) {
          const { rank, booking } = await pools[0]!.select(request);
          beside.push(rank);
          await pools[1]!.select(other.requests[i]!);
          if (i % 2 === 1) booking?.free();
        }
        expect(beside, "keep state in what make() builds, not in the module: another pool ran beside it").toEqual(
          alone,
        );
        await Promise.all(pools.map((pool) => pool.close()));
      }),
    );

    test("closes once, soon and quietly, also with requests in flight", async () => {
      const random = new Random(3n);
      const plan = anyPlan(random);
      const pool = await openAny(make, plan, random);
      await choices(pool, plan.requests);
      const closed = await within(Promise.all([pool.close(), pool.close()]));
      expect(closed, `close() must settle within ${PATIENCE_MS} ms`).toBe(true);
      expect(pool.log.errors, "neither close() nor onSlotReleased() may throw").toEqual([]);
    });
  });
}

const refusals = ["no_endpoints", "pinned_worker_not_allowed"];

/**
 * Two pools with the same history and the same workers at the end. The rank that served the last request has left,
 * and another one came, which in the first pool has the slot of the one that left, in the second a new one.
 */
async function usedAndFreshSlot(make: Make, plan: PoolPlan, random: Random): Promise<[string, TestPool, TestPool]> {
  const ids = workerIds(random, plan.workers.length + 2);
  const pools = await Promise.all([1, 2].map(() => TestPool.open(make, plan, { ids })));
  const newcomers = ["new", "passing"].map((name) => ({ name, dpSize: 1, taints: [], labels: {} }));
  for (const [i, pool] of pools.entries()) {
    const served = await choices(pool, plan.requests);
    const last = served.findLast((rank) => rank.startsWith("w"));
    if (last) pool.remove(last.slice(0, last.indexOf("/")));
    for (const worker of i === 0 ? newcomers : newcomers.toReversed()) {
      pool.add(worker, ids.at(worker.name === "new" ? -1 : -2)!);
    }
    pool.remove("passing");
    pool.load("new", 0, 3001, 7);
  }
  return [ids.join(), pools[0]!, pools[1]!];
}
