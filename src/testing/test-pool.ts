import "../kernel/inlined.js";
import { WarmrouteError } from "../core/errors.js";
import { hashTokens } from "../kernel/hash.js";
import { RouterPlugins } from "../plugins/bundle.js";
import type { WorkerSelectionPolicy } from "../plugins/worker-selection/policy.js";
import type { Booking, SelectRequest } from "../router/contract.js";
import { createRouter } from "../router/create-router.js";
import type { KvRouter } from "../router/kv-router.js";
import { FaultLog } from "./fault-log.js";
import { BLOCK_SIZE, type PlannedRequest, type PlannedWorker, type PoolPlan } from "./pool-plan.js";
import { watchedPolicy } from "./watched-policy.js";

export interface TestPoolOptions {
  readonly seed?: bigint;
  /** The id of each worker of the plan. */
  readonly ids: readonly bigint[];
  /** The plan's workers in the order in which they are added; as planned unless given. */
  readonly order?: readonly PlannedWorker[];
}

/** One decision, in the plan's names. */
export interface Choice {
  /** `w0/1`, or the code of an empty outcome. */
  readonly rank: string;
  /** It rests on chance: the generator was moved, or another candidate has the same cost. */
  readonly byChance: boolean;
  readonly booking: Booking | undefined;
}

const outcomes = ["no_endpoints", "all_eligible_workers_filtered", "pinned_worker_not_allowed"];

/** A plan played on a real router, whose policy is the one under test. */
export class TestPool {
  readonly router: KvRouter;
  readonly policy: WorkerSelectionPolicy;
  readonly log: FaultLog;
  readonly #ids = new Map<string, string>();
  readonly #names = new Map<string, string>();
  #reserved = 0;
  /** What the router is told of the attributes of the next request. */
  readonly #told: { attributes: Readonly<Record<string, string>> };

  private constructor(
    router: KvRouter,
    policy: WorkerSelectionPolicy,
    log: FaultLog,
    told: { attributes: Readonly<Record<string, string>> },
  ) {
    this.router = router;
    this.policy = policy;
    this.log = log;
    this.#told = told;
  }

  static async open(
    make: () => WorkerSelectionPolicy,
    plan: PoolPlan,
    { seed = 1n, ids, order = plan.workers }: TestPoolOptions,
  ): Promise<TestPool> {
    const log = new FaultLog();
    const told = { attributes: {} };
    let policy: WorkerSelectionPolicy | undefined;
    const workerSelection = () => {
      policy = make();
      return watchedPolicy(policy);
    };
    const router = await createRouter({
      model: "conformance",
      blockSize: BLOCK_SIZE,
      seed,
      plugins: new RouterPlugins({ workerSelection }),
      attributes: () => told.attributes,
      memoryBudgetBytes: 2 ** 27,
      log,
    }).catch((error) => {
      throw policyFault(error);
    });
    const pool = new TestPool(router, policy!, log, told);
    for (const [i, { name }] of plan.workers.entries()) pool.#name(name, ids[i]!);
    for (const worker of order) pool.add(worker);
    for (const { worker, dpRank, tier, prompt, blocks } of plan.stores) {
      const { blockHashes, sequenceHashes } = hashTokens(prompt, BLOCK_SIZE);
      const at = { workerId: pool.#ids.get(worker)!, dpRank };
      router.storeBlocks(at, tier, null, sequenceHashes.slice(0, blocks), blockHashes.slice(0, blocks));
    }
    for (const load of plan.loads) pool.load(load.worker, load.dpRank, load.prefillTokens, load.blocks);
    return pool;
  }

  #name(name: string, id: bigint): void {
    this.#ids.set(name, String(id));
    this.#names.set(String(id), name);
  }

  /** Adds a worker; `id` for one that the plan does not have. */
  add({ name, dpSize, taints, labels }: PlannedWorker, id?: bigint): void {
    if (id !== undefined) this.#name(name, id);
    this.router.addWorker({ workerId: this.#ids.get(name)!, dpSize, taints, labels, totalKvBlocks: 16384 });
  }

  remove(name: string): void {
    this.router.removeWorker(this.#ids.get(name)!);
  }

  /** Puts a request in flight on a rank, with blocks that no other has. */
  load(worker: string, dpRank: number, prefillTokens: number, blocks: number): void {
    const requestId = `load-${++this.#reserved}`;
    const from = BigInt(this.#reserved) << 32n;
    const sequenceHashes = BigUint64Array.from({ length: blocks }, (_, i) => from + BigInt(i));
    const at = { workerId: this.#ids.get(worker)!, dpRank };
    this.router.reserve({ requestId, worker: at, sequenceHashes, islTokens: prefillTokens });
  }

  #request(plan: PlannedRequest): SelectRequest {
    const { tokens, sessionContext, allowed, requiredTaints, preferredTaints, pinned, affinity } = plan;
    const { expectedOutputTokens, priorityJump, strictPriority } = plan;
    const idOf = (worker: string) => this.#ids.get(worker)!;
    this.#told.attributes = plan.attributes ?? {};
    return {
      tokens,
      explain: true,
      routingConstraints: { ...(requiredTaints && { requiredTaints }), ...(preferredTaints && { preferredTaints }) },
      ...(sessionContext && { sessionContext }),
      ...(allowed && { allowedWorkerIds: allowed.map(idOf) }),
      ...(pinned && { pinnedWorker: { workerId: idOf(pinned.worker), dpRank: pinned.dpRank } }),
      ...(affinity && { affinityTarget: { workerId: idOf(affinity.worker), dpRank: affinity.dpRank } }),
      ...(expectedOutputTokens !== undefined && { expectedOutputTokens }),
      ...(priorityJump !== undefined && { priorityJump }),
      ...(strictPriority !== undefined && { strictPriority }),
    };
  }

  #nameOf({ workerId, dpRank }: { workerId: string; dpRank: number }): string {
    return `${this.#names.get(workerId)}/${dpRank}`;
  }

  /** Selects and books. Throws what the policy did wrong, in words for its author. */
  async select(plan: PlannedRequest): Promise<Choice> {
    const before = this.generator();
    try {
      const { worker, candidates, booking } = await this.router.select(this.#request(plan));
      const cost = candidates!.find((row) => row.workerId === worker.workerId && row.dpRank === worker.dpRank)!.cost;
      const equals = candidates!.filter((row) => cost !== undefined && isClose(row.cost!, cost));
      return { rank: this.#nameOf(worker), byChance: equals.length > 1 || this.generator() !== before, booking };
    } catch (error) {
      const { code } = error as WarmrouteError;
      if (outcomes.includes(code)) return { rank: code, byChance: false, booking: undefined };
      throw policyFault(error);
    }
  }

  probe(plan: PlannedRequest): string {
    try {
      const { outcome, selected } = this.router.probe(this.#request(plan));
      return selected ? this.#nameOf(selected) : outcome;
    } catch (error) {
      throw policyFault(error);
    }
  }

  /** The state of the pool's generator. */
  generator(): string {
    return this.router.snapshot({ include: ["random"] }).join();
  }
}

// The same rows in another order may round a sum over all rows in another way.
const isClose = (a: number, b: number) => Math.abs(a - b) <= 1e-9 * Math.max(Math.abs(a), Math.abs(b));

/** What a plugin did wrong, with how to mend it and its own error as the cause. */
function policyFault(error: unknown): unknown {
  if (!(error instanceof WarmrouteError)) return error;
  const { code, message, help, cause } = error;
  const own = cause instanceof Error ? ` It threw ${cause}.` : "";
  return new Error(`${code}: ${message}.${own} ${help}`, { cause });
}
