import type { SessionContext } from "../../core/types.js";

/** What plugins are told of a session: a copy of its known fields, for the original is the caller's. */
export function frozenSession(context: SessionContext): SessionContext {
  const { sessionId, parentSessionId, sessionFinal, inputTrigger } = context;
  return Object.freeze({
    sessionId,
    ...(parentSessionId !== undefined && { parentSessionId }),
    ...(sessionFinal !== undefined && { sessionFinal }),
    ...(inputTrigger !== undefined && { inputTrigger }),
  });
}
