// Random pools and requests, written with names in place of worker ids, so that one plan can be played under many ids.
import type { Random } from "../core/random.js";
import type { SessionContext, StorageTier } from "../core/types.js";
import { combination, someOf, type Values } from "./values.js";

/** Tokens a block of every plan. */
export const BLOCK_SIZE = 16;

export interface PlannedWorker {
  readonly name: string;
  readonly dpSize: number;
  readonly taints: readonly string[];
  readonly labels: Readonly<Record<string, string>>;
}

export interface PlannedRank {
  readonly worker: string;
  readonly dpRank: number;
}

/** Leading blocks of a prompt that a rank holds. */
export interface PlannedStore extends PlannedRank {
  readonly tier: StorageTier;
  readonly prompt: Uint32Array;
  readonly blocks: number;
}

/** A request in flight on a rank. */
export interface PlannedLoad extends PlannedRank {
  readonly prefillTokens: number;
  readonly blocks: number;
}

export interface PlannedRequest {
  readonly tokens: Uint32Array;
  readonly sessionContext?: SessionContext;
  readonly allowed?: readonly string[];
  readonly requiredTaints?: readonly string[];
  readonly preferredTaints?: Readonly<Record<string, number>>;
  readonly pinned?: PlannedRank;
  readonly affinity?: PlannedRank;
  readonly expectedOutputTokens?: number;
  readonly priorityJump?: number;
  readonly strictPriority?: number;
  readonly attributes?: Readonly<Record<string, string>>;
}

export interface PoolPlan {
  readonly workers: readonly PlannedWorker[];
  readonly stores: readonly PlannedStore[];
  readonly loads: readonly PlannedLoad[];
  readonly requests: readonly PlannedRequest[];
}

export const taints = ["gpu-a", "gpu-b", "spot"];

/** What a policy may read of workers and of requests by name. */
export interface PlanValues {
  readonly labels: Values;
  readonly attributes: Values;
}

const tiers: readonly StorageTier[] = ["device", "host_pinned", "disk"];

const pick = <T>(random: Random, list: readonly T[]): T => list[random.below(list.length)]!;
const some = <T>(random: Random, list: readonly T[]): T[] => list.filter(() => random.below(2) === 0);

/** The same things in a random order (Fisher–Yates). */
export function shuffled<T>(random: Random, list: readonly T[]): T[] {
  const out = [...list];
  for (let i = out.length - 1; i > 0; i--) {
    const j = random.below(i + 1);
    [out[i], out[j]] = [out[j]!, out[i]!];
  }
  return out;
}

/** Distinct ids from the whole range, the ends and what a double cannot hold among them. */
export function workerIds(random: Random, n: number): bigint[] {
  const ids = new Set<bigint>();
  while (ids.size < n) ids.add(random.u64() >> BigInt(pick(random, [0, 0, 1, 11, 32, 56])));
  const [first, ...rest] = shuffled(random, [...ids]);
  return [
    pick(
      random,
      [first!, 2n ** 64n - 1n, 2n ** 53n + 1n].filter((id) => !rest.includes(id)),
    ),
    ...rest,
  ];
}

function prompt(random: Random, blocks: number, start?: Uint32Array): Uint32Array {
  const tokens = Uint32Array.from({ length: blocks * BLOCK_SIZE + random.below(BLOCK_SIZE) }, () =>
    random.below(2 ** 32),
  );
  if (start) tokens.set(start.subarray(0, Math.min(start.length, tokens.length)));
  return tokens.length > 0 ? tokens : Uint32Array.of(random.below(2 ** 32));
}

export function ranksOf(workers: readonly PlannedWorker[]): PlannedRank[] {
  return workers.flatMap(({ name, dpSize }) =>
    Array.from({ length: dpSize }, (_, dpRank) => ({ worker: name, dpRank })),
  );
}

/** The labels of each worker in turn, from any combination on. */
export function labelsInTurn(random: Random, labels: Values): (i: number) => Record<string, string> {
  const from = random.below(2 ** 20);
  return (i) => combination(labels, from + i);
}

/** A pool with constraints, ties, idle ranks and partial blocks: whatever may come. A third of it has no labels. */
export function anyPlan(random: Random, values: PlanValues): PoolPlan {
  const labelsOf = labelsInTurn(random, values.labels);
  const workers = Array.from({ length: 1 + random.below(6) }, (_, i) => ({
    name: `w${i}`,
    dpSize: 1 + random.below(3),
    taints: some(random, taints),
    labels: random.below(3) === 0 ? {} : labelsOf(i),
  }));
  const ranks = ranksOf(workers);
  const base = prompt(random, 1 + random.below(20));
  const prompts = [base, ...Array.from({ length: 4 }, () => prompt(random, random.below(30), base.subarray(0, 64)))];
  const stores = Array.from({ length: random.below(10) }, () => {
    const tokens = pick(random, prompts);
    const blocks = random.below(Math.floor(tokens.length / BLOCK_SIZE) + 1);
    return { ...pick(random, ranks), tier: pick(random, tiers), prompt: tokens, blocks };
  });
  const loads = Array.from({ length: random.below(12) }, () => ({
    ...pick(random, ranks),
    prefillTokens: random.below(5000),
    blocks: random.below(20),
  }));
  const requests = Array.from({ length: 8 }, () => ({
    ...anyRequest(random, pick(random, prompts), workers),
    attributes: someOf(random, values.attributes),
  }));
  return { workers, stores, loads, requests };
}

function anyRequest(random: Random, tokens: Uint32Array, workers: readonly PlannedWorker[]): PlannedRequest {
  const names = workers.map(({ name }) => name);
  const maybe = <T extends object>(oneIn: number, make: () => T): T | object =>
    random.below(oneIn) === 0 ? make() : {};
  return {
    tokens,
    ...maybe(2, () => ({ sessionContext: anySession(random) })),
    ...maybe(3, () => ({ allowed: some(random, names) })),
    ...maybe(3, () => ({ requiredTaints: some(random, taints.slice(0, 2)) })),
    ...maybe(2, () => ({ preferredTaints: { [pick(random, taints)]: 2 * random.double() - 1 } })),
    ...maybe(6, () => ({ pinned: pick(random, ranksOf(workers)) })),
    ...maybe(4, () => ({ affinity: pick(random, ranksOf(workers)) })),
    ...maybe(2, () => ({ expectedOutputTokens: random.below(500) })),
    ...maybe(4, () => ({ priorityJump: 10 * random.double() - 5, strictPriority: random.below(3) })),
  };
}

function anySession(random: Random): SessionContext {
  const sessionId = `session-${random.below(3)}`;
  if (random.below(2) === 0) return { sessionId };
  return { sessionId, parentSessionId: "session-0", sessionFinal: random.below(2) === 0, inputTrigger: "tool_result" };
}

/**
 * A pool in which no two ranks are alike in load or cache, for requests of one prompt and no constraints: a policy
 * that looks at these has one answer. Requests differ by more than blocks do, and prefill tokens by more than either,
 * so that simple sums do not come out equal by chance.
 */
export function distinctPlan(random: Random, values: PlanValues, n = 3 + random.below(4)): PoolPlan {
  const order = () => shuffled(random, [...Array(n).keys()]);
  const labelsOf = labelsInTurn(random, values.labels);
  const workers = Array.from({ length: n }, (_, i) => ({
    name: `w${i}`,
    dpSize: 1,
    taints: [],
    labels: labelsOf(i),
  }));
  const tokens = prompt(random, n + random.below(8));
  const held = order();
  const stores = workers.map(({ name }, i) => ({
    worker: name,
    dpRank: 0,
    tier: "device" as const,
    prompt: tokens,
    blocks: held[i]!,
  }));
  const busy = order();
  const loads = workers.flatMap(({ name }, i) =>
    Array.from({ length: 16 * busy[i]! + 1 }, () => ({
      worker: name,
      dpRank: 0,
      prefillTokens: 1 + random.below(997),
      blocks: 1 + random.below(5),
    })),
  );
  const requests = Array.from({ length: 8 }, () => ({
    tokens,
    ...(random.below(3) > 0 && { sessionContext: anySession(random) }),
    ...(random.below(2) > 0 && { expectedOutputTokens: random.below(500) }),
    attributes: someOf(random, values.attributes),
  }));
  return { workers, stores, loads, requests };
}
