import type { SelectRequest } from "./contract.js";

/** What a request's headers say to the router beside its prompt. An empty header says nothing. */
export function hintsOf(headers: Headers): Pick<SelectRequest, "policyClass" | "sessionId"> {
  const policyClass = headers.get("x-dynamo-meta-policy-class");
  const sessionId = headers.get("x-session-id");
  return { ...(policyClass ? { policyClass } : {}), ...(sessionId ? { sessionId } : {}) };
}
