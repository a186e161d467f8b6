// The tiers' vector of spec/scheduling.md §4.2, from events to the booking.
import { describe, expect, it } from "vitest";
import "../../src/kernel/inlined.js";
import { hashTokens } from "../../src/kernel/hash.js";
import { createRouter } from "../../src/router/create-router.js";

const SIZE = 16;
const tokens = Uint32Array.from({ length: 20 * SIZE }, (_, i) => i);
const { blockHashes, sequenceHashes } = hashTokens(tokens, SIZE);
const worker = { workerId: "1", dpRank: 0 };

describe("2 blocks on the device, then 3 on the host, 4 on disk, 5 external", () => {
  async function open(more: object = {}) {
    const router = await createRouter({
      blockSize: SIZE,
      seed: 1,
      workers: [{ workerId: "1" }],
      config: { hostCacheHitWeight: 0.5, diskCacheHitWeight: 0.25, ...more },
    });
    let from = 0;
    for (const [tier, blocks] of [
      ["device", 2],
      ["host_pinned", 3],
      ["disk", 4],
      ["external", 5],
    ] as const) {
      const to = from + blocks;
      const parent = from === 0 ? null : sequenceHashes[from - 1]!;
      const stored = [sequenceHashes.subarray(from, to), blockHashes.subarray(from, to)] as const;
      expect(router.storeBlocks(worker, tier, parent, ...stored)).toEqual({ applied: true });
      from = to;
    }
    return router;
  }

  it("tier by tier: 2, 3 and 9", async () => {
    const tiers = { deviceBlocks: 2, hostBlocks: 3, diskBlocks: 9 };
    const router = await open();
    expect(router.overlap({ tokens })).toEqual([{ ...worker, ...tiers }]);
    expect(router.overlap({ blockHashes })).toEqual([{ ...worker, ...tiers }]);
  });

  it("an effective overlap of 5.75 blocks: 92 tokens are cached, the others charged", async () => {
    const router = await open();
    const selection = await router.select({ tokens });
    expect(selection).toMatchObject({
      worker,
      overlap: { deviceBlocks: 2, hostBlocks: 3, diskBlocks: 9, sharedBlocks: 0 },
      cachedTokens: 92,
      effectivePrefillTokens: 320 - 92,
      evidence: "events",
    });
    expect(router.loads()).toMatchObject([{ activePrefillTokens: 228, activeDecodeBlocks: 20 }]);
  });

  it("the booking weighs the device fully, whatever the credit of the choice", async () => {
    for (const config of [{ overlapScoreCredit: 0 }, { overlapScoreCredit: 0.25, overlapScoreCreditDecay: 1 }]) {
      const router = await open(config);
      expect(await router.select({ tokens })).toMatchObject({ cachedTokens: 92, effectivePrefillTokens: 228 });
    }
    const router = await open();
    const configOverride = { overlapScoreCredit: 0 };
    expect(await router.select({ tokens, configOverride })).toMatchObject({ cachedTokens: 92 });
  });

  it("the cost has the 5.75 blocks as credits", async () => {
    const router = await open();
    expect(router.probe({ tokens }).candidates).toMatchObject([
      {
        cost: 20 - 5.75 + 20,
        terms: { raw_prefill_blocks: 20, device_credit: 2, host_credit: 1.5, disk_credit: 2.25, decode_blocks: 20 },
      },
    ]);
  });
});

it("a hash is asked for as u64 or as i64 (spec/indexer.md §1.8)", async () => {
  const router = await createRouter({ blockSize: 4, seed: 1, workers: [{ workerId: "1" }] });
  const blocks = [{ block_hash: "-2", tokens_hash: "-3803038269031200164" }];
  router.applyEvent({ worker_id: "1", event: { data: { stored: { parent_hash: null, blocks } } } });
  const one = [{ ...worker, deviceBlocks: 1, hostBlocks: 0, diskBlocks: 0 }];
  expect(router.overlap({ tokens: [1, 2, 3, 4] })).toEqual(one);
  expect(router.overlap({ blockHashes: ["14643705804678351452"] })).toEqual(one);
  expect(router.overlap({ blockHashes: [-3803038269031200164n] })).toEqual(one);
  expect(router.removeBlocks(worker, "device", BigUint64Array.of(18446744073709551614n))).toBe(1);
});
