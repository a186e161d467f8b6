import type { Clock } from "../../core/clock.js";
import type { PolicyClass } from "../../plugins/policy/contract.js";
import type { LaneKey, Parked, QueuePool, QueueStats } from "./contract.js";

export class PoolQueue {
  pending = 0;
  constructor(options: { pool: QueuePool; clock: Clock; strictPriorityMaxWaitMs: number; recheckMs: number }) {
    void options;
  }
  mustWait(_c: PolicyClass, _l: LaneKey): boolean {
    return false;
  }
  park<T>(_p: Parked, _run: () => T, _signal?: AbortSignal): Promise<T> {
    throw new Error();
  }
  changed(_slot?: number): void {}
  drain(): void {}
  close(_error: Error): void {}
  stats(): QueueStats {
    return { pending: 0, pendingIslTokens: 0, byClass: {}, rejected: 0, overdue: 0, cancelled: 0 };
  }
}
