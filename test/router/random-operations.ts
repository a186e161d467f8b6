import { hashTokens } from "../../src/kernel/hash.js";
import type { KvRouter } from "../../src/router/kv-router.js";

/** A small generator for tests: uniform in [0, 1), the same for the same seed. */
export function randomSource(seed: number): () => number {
  let state = (seed * 2654435761) >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

const tiers = ["device", "device", "device", "host_pinned", "disk", "external"] as const;

/**
 * A stream of operations and queries on a router, the same for the same source: events, selections, bookings'
 * verbs, probes. Each call does one and answers all that a caller can see of it.
 */
export function randomOperations(router: KvRouter, random: () => number): () => Promise<unknown> {
  const below = (n: number) => Math.floor(random() * n);
  const ranks = router.loads().map(({ workerId, dpRank }) => ({ workerId, dpRank }));
  const { blockSize } = router;
  const own = router.ownNames;
  // Prompts are walks in a small tree, so that prefixes are shared.
  const prompt = () => {
    const depth = 1 + below(6);
    const tokens: number[] = [];
    for (let i = 0, branch = 0; i < depth; i++) {
      branch = branch * 3 + below(i < 2 ? 2 : 3);
      for (let j = 0; j < blockSize; j++) tokens.push(branch * 64 + i * 7 + j);
    }
    return Uint32Array.from(tokens);
  };
  const names = (rank: number, hashes: BigUint64Array) => (own ? hashes : hashes.map((h) => h ^ BigInt(rank + 1)));
  return async () => {
    const r = below(ranks.length);
    const rank = ranks[r]!;
    const tier = tiers[below(tiers.length)]!;
    const id = `r${below(6)}`;
    const hashes = hashTokens(prompt(), blockSize);
    const held = names(r, hashes.sequenceHashes);
    switch (below(10)) {
      case 0:
      case 1: {
        const from = below(held.length);
        const parent = from === 0 ? null : held[from - 1]!;
        return router.storeBlocks(rank, tier, parent, held.subarray(from), hashes.blockHashes.subarray(from));
      }
      case 2:
        return router.removeBlocks(
          rank,
          tier,
          held.filter(() => random() < 0.5),
        );
      case 3:
        return random() < 0.1
          ? router.applyEvent({ worker_id: rank.workerId, event: { dp_rank: rank.dpRank, data: "cleared" } })
          : router.overlap({ blockHashes: hashes.blockHashes });
      case 4:
        router.booking(id)?.prefillComplete();
        return router.loads();
      case 5:
        router.booking(id)?.outputBlock(random() < 0.5 ? undefined : below(5) / 4);
        return router.loads();
      case 6:
        router.booking(id)?.free();
        return router.loads();
      case 7:
        return router.probe({ tokens: prompt(), configOverride: { routerTemperature: below(2) } });
      default:
        try {
          const s = await router.select({
            requestId: id,
            tokens: prompt(),
            configOverride: { routerTemperature: below(2) },
          });
          return [s.worker, s.overlap, s.cachedTokens, s.reason, s.tieDraw];
        } catch (error) {
          return (error as { code: string }).code;
        }
    }
  };
}
