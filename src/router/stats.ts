import { Counter } from "../kernel/abi.js";
import type { QueueStats } from "../scheduling/queue/contract.js";
import type { SelectionCore } from "../scheduling/selection-core.js";
import type { LoadRow, RouterStats } from "./contract.js";
import type { RouterParts } from "./parts.js";

/** Figures of a router, over all its pools; `refused` are the events that reached none. */
export function statsOf(
  { pools, requestIds, admission, installed, leases, handles }: RouterParts,
  refused: number,
): RouterStats {
  const cores = [...pools];
  const sum = (f: (core: SelectionCore) => number) => cores.reduce((total, core) => total + f(core), 0);
  const { classifier } = installed;
  return {
    index: {
      blocks: sum((core) => core.counter(Counter.heldBlocks)),
      bytes: sum((core) => core.counter(Counter.bytes)),
      budgetBytes: sum((core) => core.counter(Counter.budget)),
      orphans: sum((core) => core.contents.orphans),
      refused: refused + sum((core) => core.contents.refused),
      duplicates: sum((core) => core.counter(Counter.duplicates)),
    },
    bookings: { live: requestIds.size, forgotten: handles.forgotten, expired: leases.expired },
    queue: { ...queueStats(cores.map(({ queue }) => queue.stats())), unknownClasses: admission.unknownClasses },
    ...sessionStats(cores),
    ...predictionStats(cores),
    ...(classifier && { classifier: classifier.stats() }),
    decisions: sum((core) => core.decisions),
  };
}

/** The sessions of all pools; nothing without affinity. */
function sessionStats(cores: readonly SelectionCore[]): Pick<RouterStats, "sessions"> {
  const sessions = { known: 0, expired: 0, evicted: 0 };
  let any = false;
  for (const { affinity } of cores) {
    if (!affinity) continue;
    any = true;
    sessions.known += affinity.size;
    sessions.expired += affinity.expired;
    sessions.evicted += affinity.evicted;
  }
  return any ? { sessions } : {};
}

/** What is predicted in all pools; nothing where only events count. */
function predictionStats(cores: readonly SelectionCore[]): Pick<RouterStats, "predictions"> {
  const stats = cores.flatMap(({ predictions }) => (predictions ? [predictions.stats] : []));
  const sum = (of: "live" | "dropped") => stats.reduce((total, one) => total + one[of], 0);
  return stats.length > 0 ? { predictions: { live: sum("live"), dropped: sum("dropped") } } : {};
}

/** The figures of all queues together. */
function queueStats(queues: readonly QueueStats[]): QueueStats {
  const total = { pending: 0, pendingIslTokens: 0, rejected: 0, overdue: 0, cancelled: 0 };
  const byClass: Record<string, number> = {};
  for (const queue of queues) {
    for (const key of Object.keys(total) as (keyof typeof total)[]) total[key] += queue[key];
    for (const [name, waiting] of Object.entries(queue.byClass)) byClass[name] = (byClass[name] ?? 0) + waiting;
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
