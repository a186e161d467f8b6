// Keeps a session on the rank that served it last, as long as that rank is not much busier than the idlest one.
import { lowestCost, perRow, WorkerInputs, WorkerSelectionPolicy } from "warmroute/plugins";
import { z } from "zod";

const parameters = z.strictObject({
  max_extra_requests: z.number().int().min(0).default(8),
  max_sessions: z.number().int().min(1).default(100_000),
});

const least = (column) => column.reduce((lowest, value) => Math.min(lowest, value));

export function register(registry) {
  registry.registerWorkerSelection("example-session-affinity", (given) => {
    const { max_extra_requests: slack, max_sessions: room } = given.parse(parameters);
    return () => {
      const homes = new Map(); // session → slot, the least recently used first
      return new WorkerSelectionPolicy({
        label: "session-affinity",
        scorers: [
          // Blocks that must be computed, and one for each request in the way.
          perRow(WorkerInputs.CACHE | WorkerInputs.LOAD, (ctx, { cache, load }, row) => {
            return ctx.requestBlocks - cache.deviceOverlapBlocks[row] + load.activeRequests[row];
          }),
        ],
        picker: {
          requiredInputs: WorkerInputs.LOAD,
          pick(ctx, rows) {
            const session = ctx.sessionContext?.sessionId;
            if (session === undefined) return lowestCost.pick(ctx, rows);
            const { activeRequests } = rows.load;
            const home = rows.slot.indexOf(homes.get(session) ?? -1);
            const stays = home >= 0 && activeRequests[home] <= least(activeRequests) + slack;
            const chosen = stays ? home : lowestCost.pick(ctx, rows);
            homes.delete(session);
            homes.set(session, rows.slot[chosen]);
            if (homes.size > room) homes.delete(homes.keys().next().value);
            return chosen;
          },
        },
        // The slot may be given to another rank: nobody is at home there any more.
        onSlotReleased(slot) {
          for (const [session, home] of homes) if (home === slot) homes.delete(session);
        },
      });
    };
  });
}
