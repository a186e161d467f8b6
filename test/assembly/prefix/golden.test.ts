// The streams of test/golden/index-streams.json: every score within its bounds.
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { sequenceHashes } from "../../oracle/index.js";
import { KernelIndex, STATUS } from "./harness.js";

interface Stored {
  parent_hash: string | null;
  blocks: { block_hash: string; tokens_hash: string }[];
}
interface Op {
  event?: {
    worker_id: string;
    dp_rank: number;
    data: "cleared" | { stored?: Stored; removed?: { block_hashes: string[] } };
  };
  remove_rank?: { worker_id: string; dp_rank: number };
  query?: { block_hashes: string[]; bounds: Record<string, [number, number]> };
}
interface Stream {
  seed: number;
  ranks: { worker_id: string; dp_rank: number }[];
  ops: Op[];
}

const streams = JSON.parse(
  readFileSync(new URL("../../golden/index-streams.json", import.meta.url), "utf8"),
) as Stream[];

describe("golden index streams", () => {
  it.each(streams)("stream $seed", ({ ranks, ops }) => {
    const index = new KernelIndex({ maxRanks: ranks.length });
    const slots = new Map(ranks.map((r, i) => [`${r.worker_id}/${r.dp_rank}`, i]));
    const slotOf = (r: { worker_id: string; dp_rank: number }) => slots.get(`${r.worker_id}/${r.dp_rank}`) as number;
    let queries = 0;
    for (const op of ops) {
      if (op.remove_rank) index.clearRank(slotOf(op.remove_rank));
      if (op.event) {
        const slot = slotOf(op.event);
        const { data } = op.event;
        if (data === "cleared") index.clearRank(slot);
        else if (data.removed) index.remove(slot, 0, data.removed.block_hashes.map(BigInt));
        else if (data.stored) {
          const { parent_hash, blocks } = data.stored;
          const status = index.store(
            slot,
            0,
            parent_hash === null ? null : BigInt(parent_hash),
            blocks.map((b) => BigInt(b.block_hash)),
            blocks.map((b) => BigInt(b.tokens_hash)),
          );
          expect([STATUS.OK, STATUS.ORPHAN]).toContain(status);
        }
        index.check();
      }
      if (op.query) {
        queries++;
        const found = index.find(sequenceHashes(op.query.block_hashes.map(BigInt)));
        for (const [rank, [low, high]] of Object.entries(op.query.bounds)) {
          const score = found.get(slots.get(rank) as number) ?? 0;
          expect(score, rank).toBeGreaterThanOrEqual(low);
          expect(score, rank).toBeLessThanOrEqual(high);
        }
        for (const slot of found.keys()) expect(slot).toBeLessThan(ranks.length);
      }
    }
    expect(queries).toBeGreaterThan(50);
  });
});
