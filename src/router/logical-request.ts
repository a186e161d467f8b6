import type { RequestLifecycle } from "../scheduling/classifier/lifecycle.js";
import type { SelectionCore } from "../scheduling/selection-core.js";
import type { Selection, SelectRequest } from "./contract.js";

/** What the attempts of one logical request have in common. */
export interface LogicalRequest {
  readonly core: SelectionCore;
  readonly request: SelectRequest;
  /** When it came in, on the router's clock. */
  readonly ingressAtMs: number;
  readonly attributes: ReadonlyMap<string, string> | undefined;
  /** Only of a request that is classified. */
  readonly lifecycle: RequestLifecycle | undefined;
}

/** Who selects for one more attempt. */
export interface Reselecting {
  again(logical: LogicalRequest, signal: AbortSignal | undefined): Selection | Promise<Selection>;
}
