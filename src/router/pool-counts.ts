import { Counter } from "../kernel/abi.js";
import type { SelectionCore } from "../scheduling/selection-core.js";

/** What a pool has counted since it was made; such figures only rise. */
export interface PoolCounts {
  orphans: number;
  refused: number;
  duplicates: number;
  decisions: number;
  rejected: number;
  overdue: number;
  cancelled: number;
  sessionsExpired: number;
  sessionsEvicted: number;
  predictionsDropped: number;
}

export function countsOf(core: SelectionCore): PoolCounts {
  const { contents, affinity, decisions } = core;
  const { rejected, overdue, cancelled } = core.queue.stats();
  return {
    ...{ orphans: contents.orphans, refused: contents.refused, duplicates: core.counter(Counter.duplicates) },
    ...{ decisions, rejected, overdue, cancelled },
    ...{ sessionsExpired: affinity?.expired ?? 0, sessionsEvicted: affinity?.evicted ?? 0 },
    predictionsDropped: core.predictions?.stats.dropped ?? 0,
  };
}

export function totalOf(all: Iterable<PoolCounts>): PoolCounts {
  const total: PoolCounts = {
    ...{ orphans: 0, refused: 0, duplicates: 0, decisions: 0, rejected: 0, overdue: 0, cancelled: 0 },
    ...{ sessionsExpired: 0, sessionsEvicted: 0, predictionsDropped: 0 },
  };
  for (const counts of all) for (const key of Object.keys(total) as (keyof PoolCounts)[]) total[key] += counts[key];
  return total;
}
