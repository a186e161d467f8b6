import { type AffinityTarget, affinityOf, bindingOf, isWithin, pinOf } from "./binding.js";
import { exclusionOf, readConstraints } from "./eligibility.js";
import type { Pool, PoolRequest } from "./pool.js";
import type { LaneKey } from "./queue/contract.js";

/** The lanes that the requests of a pool wait in: one for all that may go to the same ranks. */
export class Lanes {
  readonly #pool: Pool;
  /** Of requests that may go anywhere. */
  readonly #free: LaneKey;

  constructor(pool: Pool) {
    this.#pool = pool;
    let slots: readonly number[] = [];
    let topology = Number.NaN;
    this.#free = {
      key: "",
      slots: () => {
        if (topology !== pool.ranks.topology) {
          topology = pool.ranks.topology;
          slots = slotsFor(pool, {});
        }
        return slots;
      },
    };
  }

  /** Throws `invalid_request`. */
  of(request: PoolRequest): LaneKey {
    const key = keyOf(this.#pool, request);
    return key === "" ? this.#free : { key, slots: () => slotsFor(this.#pool, request) };
  }
}

function keyOf(pool: Pool, request: PoolRequest): string {
  const constraints = readConstraints(request, pool.ranks);
  const affinity = affinityOf(request);
  const bound = boundTo(pool, request, affinity);
  const allowed = constraints?.allowed && [...constraints.allowed].sort();
  const required = [...new Set(constraints?.required)].sort();
  const lora = constraints?.lora ?? null;
  if (!bound && !allowed && required.length === 0 && lora === null) return "";
  return JSON.stringify([bound, allowed ?? null, required, lora]);
}

/** Where the request would like to go, as far as that may bind it, now or once the rank is there. */
function boundTo(pool: Pool, request: PoolRequest, affinity: AffinityTarget | undefined): unknown[] | null {
  const pin = pinOf(request);
  if (pin) return ["pinned", pin.workerId, pin.dpRank];
  if (!affinity || request.softAffinity || !pool.policy.exclusiveAffinity) return null;
  return ["affinity", affinity.workerId, affinity.dpRank ?? null];
}

/**
 * Ranks that may take the request as the pool is now, in row order. Where all of them are overloaded, those: they may be
 * busy, too, and what is overloaded when a request's turn comes is for the selection to say.
 */
function slotsFor(pool: Pool, request: Omit<PoolRequest, "tokens">): number[] {
  const constraints = readConstraints(request, pool.ranks);
  const binding = bindingOf(pool, request, affinityOf(request), constraints);
  const slots: number[] = [];
  const overloaded: number[] = [];
  for (const rank of pool.ranks) {
    if (!isWithin(rank, binding)) continue;
    const exclusion = exclusionOf(rank, constraints);
    if (exclusion === undefined) slots.push(rank.slot);
    else if (exclusion === "overloaded") overloaded.push(rank.slot);
  }
  return slots.length > 0 ? slots : overloaded;
}
