import { Counter } from "../kernel/abi.js";
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
    queue: { pending: 0, pendingIslTokens: 0, byClass: {}, unknownClasses: admission.unknownClasses },
    ...(classifier && { classifier: classifier.stats() }),
    decisions: sum((core) => core.decisions),
  };
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
