// What a pool is asked for a request of the router.
import type { SessionContext } from "../core/types.js";
import type { ClassifyOverrides } from "../scheduling/classifier/overrides.js";
import type { PoolRequest } from "../scheduling/pool.js";
import type { SelectRequest } from "./contract.js";
import type { LogicalRequest } from "./logical-request.js";

/**
 * The request as the pool takes it: what the classifier set goes before what the caller said, and that before where the
 * session was.
 */
export function poolRequest(
  { core, request, attributes }: Pick<LogicalRequest, "core" | "request" | "attributes">,
  overrides: ClassifyOverrides | undefined,
): PoolRequest {
  const sessionContext = sessionOf(request);
  const { affinity } = core;
  if (attributes === undefined && overrides === undefined && sessionContext === undefined) return request;
  const { affinityTarget, ...rest } = request;
  const bound = affinity && sessionContext && affinity.target(sessionContext.sessionId);
  const given = overrides?.target === undefined ? affinityTarget : overrides.target;
  const target = given === undefined ? bound : given;
  const { strictPriority, priorityJump } = overrides ?? {};
  return {
    ...rest,
    ...(target && { affinityTarget: target }),
    ...(target && target === bound && core.config.sessionAffinitySoft && { softAffinity: true }),
    ...(sessionContext && { sessionContext }),
    ...(attributes && { attributes }),
    ...(strictPriority !== undefined && { strictPriority }),
    ...(priorityJump !== undefined && { priorityJump }),
  };
}

export function sessionOf({ sessionId, sessionContext }: SelectRequest): SessionContext | undefined {
  return sessionContext ?? (sessionId === undefined ? undefined : { sessionId });
}
