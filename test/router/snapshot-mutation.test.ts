import { expect, it } from "vitest";
import "../../src/kernel/inlined.js";
import { WarmrouteError } from "../../src/core/errors.js";
import { checksum } from "../../src/kernel/hash.js";
import { createRouter } from "../../src/router/create-router.js";
import { randomOperations, randomSource } from "./random-operations.js";

const MUTATIONS = 100_000;
const SEALED = 0.95; // share whose checksum is made to fit again

const edges = [0, 1, 2, 3, 7, 8, 63, 64, 255, 4095, 4096, 4097, 16383, 16384, 2 ** 31 - 1, 2 ** 31, 2 ** 32 - 1];

/** Changes bytes somewhere behind the version field. */
function mutate(bytes: Uint8Array, random: () => number): Uint8Array {
  const below = (n: number) => Math.floor(random() * n);
  let out = bytes.slice();
  const view = new DataView(out.buffer);
  const start = 24 + Math.ceil(view.getUint32(16, true) / 8) * 8; // mostly in the records: the document is text
  const place = () => (random() < 0.8 ? start + below(out.length - start) : 16 + below(out.length - 16));
  for (let n = 1 + below(3); n > 0; n--) {
    switch (below(6)) {
      case 0:
        out[place()]! ^= 1 << below(8);
        break;
      case 1:
        view.setUint32(Math.min(place() & ~3, out.length - 4), edges[below(edges.length)]!, true);
        break;
      case 2:
        out[place()] = below(256);
        break;
      case 3: {
        const length = 8 * (1 + below(8));
        const from = place() & ~7;
        out.copyWithin(place() & ~7, from, from + length);
        break;
      }
      case 4: {
        const at = Math.min(place() & ~7, out.length - 8);
        view.setBigUint64(at, BigInt.asUintN(64, view.getBigUint64(at, true) + BigInt(below(5) - 2)), true);
        break;
      }
      default:
        view.setFloat64(
          Math.min(place() & ~7, out.length - 8),
          [Number.NaN, -1, 0.5, 1e300, Number.POSITIVE_INFINITY][below(5)]!,
          true,
        );
    }
  }
  if (random() < 0.02) out = out.slice(0, 24 + below(out.length - 24));
  return out;
}

it("mutated snapshots are refused with a reason, or survive 100 operations", async () => {
  const random = randomSource(2026);
  const common = { model: "m", blockSize: 4, seed: 3, maxRanks: 8, memoryBudgetBytes: 2 ** 21 };
  const options = { engine: common, sequence: { ...common, config: { routerPredictedTtlSecs: 600 } } };
  const workers = [{ workerId: "1", dpSize: 2 }, { workerId: "2" }];
  const bases: { bytes: Uint8Array; blockNames: "engine" | "sequence" }[] = [];
  for (const blockNames of ["engine", "sequence"] as const) {
    for (let seed = 1; seed <= 4; seed++) {
      const router = await createRouter({ ...options[blockNames], workers, blockNames });
      const step = randomOperations(router, randomSource(seed));
      for (let i = 0; i < 25 * seed; i++) await step();
      bases.push({ bytes: router.snapshot(), blockNames });
    }
  }
  const routers = {
    engine: await createRouter({ ...options.engine, workers, blockNames: "engine" }),
    sequence: await createRouter({ ...options.sequence, workers, blockNames: "sequence" }),
  };
  const refused = new Map<string, number>();
  let accepted = 0;
  let sealed = 0;
  for (let i = 0; i < MUTATIONS; i++) {
    const base = bases[i % bases.length]!;
    const router = routers[base.blockNames];
    const bytes = mutate(base.bytes, random);
    if (random() < SEALED) {
      sealed++;
      new DataView(bytes.buffer).setBigUint64(8, checksum(bytes.subarray(16)), true);
    }
    try {
      router.restore(bytes);
    } catch (error) {
      if (!(error instanceof WarmrouteError) || error.code === "kernel_failed") throw error;
      refused.set(error.code, (refused.get(error.code) ?? 0) + 1);
      continue;
    }
    accepted++;
    const step = randomOperations(router, randomSource(i));
    for (let k = 0; k < 100; k++) await step();
    // Whatever was taken over has a handle, and when all are freed nothing is left.
    expect(router.loads().reduce((n, row) => n + row.activeRequests, 0)).toBe(router.stats().bookings.live);
    router.freeAll();
    for (const row of router.loads()) {
      expect([row.activePrefillTokens, row.activeDecodeBlocks, row.activeRequests]).toEqual([0, 0, 0]);
    }
  }
  console.log(
    `mutated snapshots: ${accepted} of ${MUTATIONS} accepted, ${sealed} with a fitting checksum; refused:`,
    refused,
  );
  expect(sealed).toBeGreaterThanOrEqual(90_000);
  expect(accepted).toBeGreaterThan(1000);
  expect(accepted + [...refused.values()].reduce((a, b) => a + b, 0)).toBe(MUTATIONS);
}, 900_000);
