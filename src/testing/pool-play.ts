// Plans played on pools: what is chosen, and what may be.
import { type PlannedRequest, type PoolPlan, ranksOf } from "./pool-plan.js";
import type { TestPool } from "./test-pool.js";

/** What the policy chooses for each request in turn; every other booking ends before the next one. */
export async function choices(pool: TestPool, requests: readonly PlannedRequest[]): Promise<string[]> {
  const out: string[] = [];
  for (const [i, request] of requests.entries()) {
    const { rank, booking } = await pool.select(request);
    out.push(rank);
    if (i % 2 === 1) booking?.free();
  }
  return out;
}

/** The ranks that a request's constraints leave. */
export function eligible({ workers }: PoolPlan, { allowed, requiredTaints = [], pinned }: PlannedRequest): string[] {
  const fits = workers.filter(
    ({ name, taints }) => (allowed?.includes(name) ?? true) && requiredTaints.every((taint) => taints.includes(taint)),
  );
  const names = ranksOf(fits).map(({ worker, dpRank }) => `${worker}/${dpRank}`);
  return pinned ? names.filter((name) => name === `${pinned.worker}/${pinned.dpRank}`) : names;
}

/** How many of the first list are left when each of the second takes an equal one out. */
export function difference(list: readonly string[], other: readonly string[]): number {
  const left = [...list];
  for (const item of other) {
    const at = left.indexOf(item);
    if (at >= 0) left.splice(at, 1);
  }
  return left.length;
}

/**
 * Lets a pool serve the plan's requests, and replaces the worker that served the last one: the first newcomer gets
 * its slot, the second one a new slot, and the one that is called `passing` leaves at once. The other one has a little
 * more to do than the idlest worker, so that nothing but a mistake speaks for it.
 */
export async function replaceLast(
  pool: TestPool,
  plan: PoolPlan,
  ids: readonly bigint[],
  newcomers: readonly string[],
): Promise<void> {
  const last = (await choices(pool, plan.requests)).findLast((rank) => rank.startsWith("w"))?.split("/")[0];
  if (last) pool.remove(last);
  // The same labels, so that a filter lets it in.
  const { labels = {} } = plan.workers.find(({ name }) => name === last) ?? {};
  const idlest = Math.min(...pool.router.loads().map(({ activeRequests }) => activeRequests));
  for (const name of newcomers) {
    pool.add({ name, dpSize: 1, taints: [], labels }, ids.at(name === "new" ? -1 : -2)!);
  }
  pool.remove("passing");
  for (let i = 0; i < idlest + 2; i++) pool.load("new", 0, 500, 3);
}
