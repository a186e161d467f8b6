import { Counter } from "../kernel/abi.js";
import type { SelectionCore } from "../scheduling/selection-core.js";
import type { LoadRow, RouterStats } from "./contract.js";
import type { RouterParts } from "./parts.js";

/** Figures of a router, over all its pools; `refused` are the events that reached none. */
export function statsOf(
  { config, pools, requestIds, admission, installed, leases, handles }: RouterParts,
  refused: number,
): RouterStats {
  const cores = [...pools];
  const sum = (f: (core: SelectionCore) => number) => cores.reduce((total, core) => total + f(core), 0);
  // Sessions first: counting them lets those expire that are over.
  const known = sum(({ affinity }) => affinity?.size ?? 0);
  const counts = pools.counts();
  const { orphans, duplicates, decisions, rejected, overdue, cancelled } = counts;
  const { classifier } = installed;
  const { sessionsExpired: expired, sessionsEvicted: evicted } = counts;
  return {
    index: {
      blocks: sum((core) => core.counter(Counter.heldBlocks)),
      bytes: sum((core) => core.counter(Counter.bytes)),
      budgetBytes: sum((core) => core.counter(Counter.budget)),
      ...{ orphans, refused: refused + counts.refused, duplicates },
    },
    bookings: { live: requestIds.size, forgotten: handles.forgotten, expired: leases.expired },
    queue: {
      ...waitingOf(cores),
      ...{ rejected, overdue, cancelled, unknownClasses: admission.unknownClasses },
    },
    ...predictionsOf(cores, counts.predictionsDropped),
    ...(config.sessionAffinityTtlSecs && { sessions: { known, expired, evicted } }),
    ...(classifier && { classifier: classifier.stats() }),
    decisions,
  };
}

/** The predictions of all pools; nothing where only events count. */
function predictionsOf(cores: readonly SelectionCore[], dropped: number): Pick<RouterStats, "predictions"> {
  const all = cores.flatMap(({ predictions }) => predictions ?? []);
  if (all.length === 0) return {};
  return { predictions: { live: all.reduce((live, { stats }) => live + stats.live, 0), dropped } };
}

/** The requests that wait in any queue. */
function waitingOf(
  cores: readonly SelectionCore[],
): Pick<RouterStats["queue"], "pending" | "pendingIslTokens" | "byClass"> {
  const total = { pending: 0, pendingIslTokens: 0 };
  const byClass: Record<string, number> = {};
  for (const { queue } of cores) {
    const stats = queue.stats();
    total.pending += stats.pending;
    total.pendingIslTokens += stats.pendingIslTokens;
    for (const [name, waiting] of Object.entries(stats.byClass)) byClass[name] = (byClass[name] ?? 0) + waiting;
  }
  return { ...total, byClass };
}

/** Load of every rank, by worker id as u64 and rank. */
export function loadsOf({ pools }: RouterParts): LoadRow[] {
  return [...pools]
    .flatMap((core) => core.loads())
    .sort((a, b) => {
      if (a.workerId === b.workerId) return a.dpRank - b.dpRank;
      return BigInt(a.workerId) < BigInt(b.workerId) ? -1 : 1;
    });
}
