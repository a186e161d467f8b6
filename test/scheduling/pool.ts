// One pool as the tests of worker selection build it.
import { expect } from "vitest";
import "../../src/kernel/inlined.js";
import type { Clock } from "../../src/core/clock.js";
import { type KvRouterConfig, parseConfig } from "../../src/core/config.js";
import type { Logger } from "../../src/core/log.js";
import type { WorkerInput, WorkerRole } from "../../src/core/types.js";
import { parseWorker } from "../../src/core/worker.js";
import { hashTokens } from "../../src/kernel/hash.js";
import { Kernel } from "../../src/kernel/kernel.js";
import type { PluginParameters } from "../../src/plugins/parameters.js";
import { builtInProviders, defaultSelection } from "../../src/plugins/worker-selection/built-in.js";
import type {
  WorkerPicker,
  WorkerScorer,
  WorkerSelectionFactory,
} from "../../src/plugins/worker-selection/contract.js";
import { WorkerSelectionPolicy, type WorkerSelectionPolicyOptions } from "../../src/plugins/worker-selection/policy.js";
import { createPool } from "../../src/scheduling/policy-factory.js";
import type { SelectionCore } from "../../src/scheduling/selection-core.js";

export const SIZE = 16;

/** Parameters as a policy file gives them; a schema's first issue is thrown. */
export function parametersOf(raw: Record<string, unknown>): PluginParameters {
  return {
    raw,
    parse(schema) {
      const parsed = schema.safeParse(raw);
      if (parsed.success) return parsed.data;
      throw Object.assign(new Error(parsed.error.issues[0]!.message), { issues: parsed.error.issues });
    },
  };
}

/** The factory of a shipped type. */
export const builtIn = (type: string, parameters: Record<string, unknown> = {}): WorkerSelectionFactory =>
  builtInProviders[type]!(parametersOf(parameters));

/** The factory of a policy made of these components. */
export const custom =
  (options: Partial<WorkerSelectionPolicyOptions>): WorkerSelectionFactory =>
  () =>
    new WorkerSelectionPolicy({ label: "test", ...options });

export const silent: Logger = { debug() {}, info() {}, warn() {}, error() {} };

export interface PoolSetUp {
  policy?: WorkerSelectionFactory;
  workers?: readonly WorkerInput[];
  config?: Partial<KvRouterConfig>;
  role?: WorkerRole;
  seed?: bigint;
  maxRanks?: number;
  from?: number;
  budgetBytes?: number;
  log?: Logger;
  clock?: Clock;
}

export function corePool(setUp: PoolSetUp = {}): SelectionCore {
  const { policy = defaultSelection, workers = [], role = "aggregated", log = silent } = setUp;
  const kernel = new Kernel({
    blockSize: SIZE,
    maxRanks: setUp.maxRanks ?? 64,
    budgetBytes: setUp.budgetBytes ?? 2 ** 26,
    ownNames: false,
    seed: setUp.seed ?? 1n,
    from: setUp.from ?? 0,
  });
  const core = createPool({
    kernel,
    config: parseConfig(setUp.config ?? {}),
    role,
    factory: policy,
    partition: { model: "m", routingGroup: "default" },
    clock: setUp.clock ?? { now: () => 42 },
    log,
  });
  for (const worker of workers) {
    const record = parseWorker(worker);
    for (let i = 0; i < record.dpSize; i++) core.addRank(record, record.dpStart + i);
  }
  return core;
}

/** Workers `1`, `2`, … */
export const workers = (n: number): WorkerInput[] => Array.from({ length: n }, (_, i) => ({ workerId: i + 1 }));

/** A prompt of `blocks` complete blocks and `extra` tokens; equal seeds are equal prompts. */
export const prompt = (seed: number, blocks: number, extra = 0): Uint32Array =>
  Uint32Array.from({ length: blocks * SIZE + extra }, (_, i) => seed * 100_000 + i);

/** Tells the pool that a rank holds the first `blocks` blocks of a prompt. */
export function holds(
  core: SelectionCore,
  workerId: string,
  tokens: Uint32Array,
  blocks: number,
  tier: "device" | "host_pinned" | "disk" = "device",
  from = 0,
): void {
  const { blockHashes, sequenceHashes } = hashTokens(tokens, SIZE);
  const parent = from === 0 ? null : sequenceHashes[from - 1]!;
  const rank = core.ranks.get(workerId, 0)!;
  const refused = core.contents.store(
    rank,
    tier,
    parent,
    sequenceHashes.slice(from, blocks),
    blockHashes.slice(from, blocks),
  );
  if (refused) throw new Error(`the store was refused: ${refused}`);
}

let nextHash = 1n << 40n;

/** Puts requests in flight on a rank, each with prefill tokens and blocks of its own. */
export function load(core: SelectionCore, workerId: string, requests: number, prefillTokens = 0, blocks = 0): void {
  const rank = core.ranks.get(workerId, 0)!;
  for (let i = 0; i < requests; i++) {
    const hashes = BigUint64Array.from({ length: blocks }, () => nextHash++);
    core.reserve(`load-${nextHash++}`, rank, hashes, prefillTokens, prefillTokens);
  }
}

// ---- components

/** A pool of four workers under a policy made of these components. */
export const policyPool = (options: Partial<WorkerSelectionPolicyOptions>, setUp: PoolSetUp = {}) =>
  corePool({ workers: workers(4), ...setUp, policy: custom(options) });

/** A scorer that gives these costs. */
export const costs = (...values: number[]): WorkerScorer => ({ score: (_ctx, _rows, out) => out.set(values) });

/** A picker that returns this, whatever it is. */
export const picks = (row: unknown): WorkerPicker => ({ pick: () => row as number });

/** Notes what a component saw, and answers for it. */
export function noted<T>(list: unknown[], seen: unknown, answer: T): T {
  list.push(seen);
  return answer;
}

/** The next number of a pool's generator. */
export const nextDraw = (core: SelectionCore): number => core.kernel.random();

export const coded = (code: string, more: object = {}) => expect.objectContaining({ code, ...more });
