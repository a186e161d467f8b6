// Building a pool with its policy: the factory's call, and what may go wrong in it.
import type { Clock } from "../core/clock.js";
import { WarmrouteError } from "../core/errors.js";
import { disown, isPromise, reasonOf } from "../core/foreign.js";
import { describe } from "../core/ids.js";
import { type Logger, quietLogger } from "../core/log.js";
import type { RoutingPartition } from "../core/types.js";
import type { WorkerSelectionFactory, WorkerSelectionInit } from "../plugins/worker-selection/contract.js";
import { WorkerSelectionPolicy } from "../plugins/worker-selection/policy.js";
import { closePolicy } from "./policy/close-policy.js";
import { SelectionCore, type SelectionCoreOptions } from "./selection-core.js";

/** Calls a factory. Throws `provider` when it throws, `invalid_plugin` when what it returns is no policy. */
export function makePolicy(factory: WorkerSelectionFactory, init: WorkerSelectionInit): WorkerSelectionPolicy {
  let policy: unknown;
  try {
    policy = factory(Object.freeze(init));
  } catch (cause) {
    const { model, routingGroup } = init.partition;
    throw new WarmrouteError("provider", `the worker-selection factory failed for ${init.role} workers`, {
      cause,
      details: { model, routingGroup, role: init.role },
    });
  }
  const invalid = (given: string, cause?: unknown) =>
    new WarmrouteError("invalid_plugin", `a worker-selection factory must return a policy, not ${given}`, { cause });
  try {
    if (policy instanceof WorkerSelectionPolicy) return policy;
  } catch (cause) {
    throw invalid(`what cannot be read: ${reasonOf(cause)}`, cause);
  }
  if (isStranger(policy))
    throw invalid("one of another copy of warmroute: router and catalog must import the same one");
  if (!isPromise(policy)) throw invalid(describe(policy));
  disown(policy);
  throw invalid("a promise; it must not be async");
}

/** A policy whose class was loaded twice, as when a catalog has a package of its own beside the router's. */
function isStranger(policy: unknown): boolean {
  try {
    return (policy as object).constructor.name === WorkerSelectionPolicy.name;
  } catch {
    return false;
  }
}

export interface PoolOptions extends Omit<SelectionCoreOptions, "policy"> {
  factory: WorkerSelectionFactory;
  partition: RoutingPartition;
  clock: Clock;
  log: Logger;
}

/**
 * A pool with a policy of its own; the policy draws from the pool's generator. Throws as makePolicy() does, and
 * `invalid_plugin` for a component that is none; a policy that was made is closed then.
 */
export function createPool({ factory, partition, clock, ...options }: PoolOptions): SelectionCore {
  const { kernel, config, role } = options;
  const log = quietLogger(options.log);
  let core: SelectionCore | undefined;
  const policy = makePolicy(factory, {
    config: Object.freeze(config),
    role,
    partition: Object.freeze(partition),
    random: () => (core?.kernel ?? kernel).random(),
    now: () => clock.now(),
    log,
  });
  try {
    core = new SelectionCore({ ...options, clock, policy });
    return core;
  } catch (error) {
    void closePolicy(policy, log);
    throw error;
  }
}
