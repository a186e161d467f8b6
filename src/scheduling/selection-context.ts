import type { KvRouterConfig } from "../core/config.js";
import { FrozenMap } from "../core/frozen-map.js";
import type { SelectionContext } from "../plugins/worker-selection/components.js";
import type { AffinityTarget, Binding } from "./binding.js";
import type { PoolRequest } from "./pool.js";
import { frozenSession } from "./sessions/session.js";

/** The pool's generator, as a policy draws from it. */
export interface Draws {
  random(): number;
  randomBelow(n: number): number;
}

/** Draws of `unit`, a number in [0, 1). */
export function drawsOf(unit: () => number): Draws {
  return {
    random: unit,
    randomBelow(n) {
      if (!Number.isInteger(n) || n < 1) throw new RangeError("randomBelow() needs a whole number of at least 1");
      return Math.floor(unit() * n);
    },
  };
}

/** Of a request that the host says nothing of. */
export const noAttributes: ReadonlyMap<string, string> = new FrozenMap<string, string>([]);

/** One request as a policy's components see it. `config` has the request's override. */
export function selectionContext(
  request: PoolRequest,
  promptTokens: number,
  blockSize: number,
  config: KvRouterConfig,
  affinityTarget: AffinityTarget | undefined,
  binding: Binding | undefined,
  draws: Draws,
): SelectionContext {
  const { sessionContext, expectedOutputTokens, priorityJump = 0, strictPriority = 0 } = request;
  const override = request.configOverride?.routerTemperature;
  return Object.freeze({
    promptTokens,
    requestBlocks: Math.ceil(promptTokens / blockSize),
    blockSize,
    tracksPrefillTokens: config.routerTrackPrefillTokens,
    ...(sessionContext && { sessionContext: frozenSession(sessionContext) }),
    ...(affinityTarget && { affinityTarget }),
    ...(binding?.dpRank !== undefined && {
      pinnedWorker: Object.freeze({ workerId: binding.workerId, dpRank: binding.dpRank }),
    }),
    ...(expectedOutputTokens !== undefined && { expectedOutputTokens }),
    priorityJump,
    strictPriority,
    ...(override !== undefined && { routerTemperatureOverride: override }),
    attributes: request.attributes ?? noAttributes,
    random: draws.random,
    randomBelow: draws.randomBelow,
  });
}
