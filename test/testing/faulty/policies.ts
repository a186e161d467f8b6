// Policies with one fault each; the suite must name it (../faulty.test.ts). The fault is the suite's name.
import type { CandidateView, WorkerPicker } from "../../../src/plugins/worker-selection/components.js";
import { WorkerInputs } from "../../../src/plugins/worker-selection/components.js";
import { perRow } from "../../../src/plugins/worker-selection/per-row.js";
import {
  WorkerSelectionPolicy,
  type WorkerSelectionPolicyOptions,
} from "../../../src/plugins/worker-selection/policy.js";
import { testWorkerSelectionPolicy } from "../../../src/testing/worker-selection.js";

const { LOAD } = WorkerInputs;

/** What every policy here does right: it takes the rank with the fewest requests. */
const requests = () => perRow(LOAD, (_ctx, { load }, row) => load!.activeRequests[row]!);
const faulty = (name: string, make: () => Partial<WorkerSelectionPolicyOptions>) =>
  testWorkerSelectionPolicy(name, () => new WorkerSelectionPolicy({ label: name, scorers: [requests()], ...make() }));
const picks = (pick: WorkerPicker["pick"]) => ({ scorers: [], picker: { requiredInputs: LOAD, pick } });

faulty("none", () => ({}));

faulty("takes the first row", () => picks(() => 0));
faulty("takes the second row when there is one", () => picks((_ctx, { length }) => Math.min(1, length - 1)));
faulty("draws among the first rows", () => picks((ctx, { length }) => ctx.randomBelow(Math.min(3, length))));
faulty("prefers high ids", () => ({
  scorers: [perRow(LOAD, (_ctx, rows, row) => -Number(BigInt(rows.workerId(row)) >> 32n) - rows.dpRank[row]!)],
}));
faulty("prefers low slots", () => ({ scorers: [perRow(LOAD, (_ctx, rows, row) => rows.slot[row]!)] }));

faulty("forgets the last row", () => ({
  scorers: [{ score: (_ctx, rows, costs) => costs.fill(1, 0, Math.max(1, rows.length - 1)) }],
}));
faulty("divides by what may be zero", () => ({
  scorers: [perRow(LOAD, (_ctx, { load }, row) => 1 / load!.activeRequests[row]!)],
}));
faulty("picks one beyond the end", () => picks((_ctx, { length }) => (length > 2 ? length : 0)));
faulty("reads what it did not declare", () => ({
  scorers: [perRow(LOAD, (_ctx, { cache }, row) => cache!.deviceOverlapBlocks[row]!)],
}));
faulty("needs two candidates", () => picks((ctx, { length }) => ctx.randomBelow(length - 1)));

faulty("keeps a view", () => {
  let first: CandidateView | undefined;
  return picks((_ctx, rows) => {
    first ??= rows;
    return first.slot[0] === undefined ? 0 : 0;
  });
});
faulty("keeps a column", () => {
  let loads: Float64Array | undefined;
  return picks((_ctx, rows) => {
    loads ??= rows.load!.activeRequests;
    return loads[0]! >= 0 ? 0 : rows.length - 1;
  });
});

faulty("keeps a column in which it finds its row", () => {
  let loads: Float64Array | undefined;
  return picks((_ctx, rows) => {
    loads ??= rows.load!.activeRequests;
    return loads.indexOf(Math.min(...loads));
  });
});

faulty("draws from elsewhere", () => picks((_ctx, { length }) => Math.floor(Math.random() * length)));

let turn = 0;
faulty("counts for all pools together", () => picks((_ctx, { length }) => turn++ % length));

faulty("asks for more later", () => {
  const scorer = { ...requests(), requiredInputs: LOAD as number };
  const { score } = scorer;
  scorer.score = (...args) => {
    score(...args);
    scorer.requiredInputs |= WorkerInputs.CACHE;
  };
  return { scorers: [scorer] };
});

/** Every session stays in the slot that it was in first. */
const homes = (more: (homes: Map<string, number>) => Partial<WorkerSelectionPolicyOptions>) => () => {
  const map = new Map<string, number>();
  const pick: WorkerPicker["pick"] = (ctx, { costs, slot }) => {
    const session = ctx.sessionContext?.sessionId;
    const home = slot.indexOf(map.get(session ?? "") ?? -1);
    const chosen = home >= 0 ? home : costs.indexOf(Math.min(...costs));
    if (session !== undefined) map.set(session, slot[chosen]!);
    return chosen;
  };
  return { picker: { pick }, ...more(map) };
};
faulty(
  "keeps what it knew of a released slot",
  homes(() => ({})),
);
faulty(
  "throws as a slot is released",
  homes((map) => ({
    onSlotReleased(slot) {
      for (const [session, home] of map) if (home === slot) map.delete(session);
      throw new Error("no such slot");
    },
  })),
);

faulty("throws as it closes", () => ({
  close() {
    throw new Error("the file is gone");
  },
}));
faulty("never closes", () => ({ close: () => new Promise<void>(() => {}) }));

const only = new WorkerSelectionPolicy({ label: "only", scorers: [requests()] });
testWorkerSelectionPolicy("is one for all pools", () => only);
testWorkerSelectionPolicy("is no policy", () => ({ label: "no policy" }) as WorkerSelectionPolicy);

faulty("filters all", () => ({ filters: [{ keep: (_ctx, rows, row) => rows.label(row, "zone") === "east" }] }));
faulty("clears a column", () => ({
  scorers: [
    requests(),
    {
      requiredInputs: LOAD,
      score(_ctx, { load }, costs) {
        costs.fill(0);
        load!.activeRequests.fill(0);
      },
    },
  ],
}));
faulty("filters with a column that it changes", () => ({
  filters: [
    {
      requiredInputs: LOAD,
      keep(_ctx, { load }, row) {
        load!.activePrefillTokens[row]! += 1;
        return true;
      },
    },
  ],
}));
faulty("sorts slots to pick", () =>
  picks((_ctx, { slot }) => {
    slot.sort((a, b) => b - a);
    return 0;
  }),
);
