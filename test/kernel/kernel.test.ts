import { describe, expect, it } from "vitest";
import "../../src/kernel/inlined.js";
import { hashTokens } from "../../src/kernel/hash.js";
import { init, kernelModule } from "../../src/kernel/module.js";
import type { SelectionCore } from "../../src/scheduling/selection-core.js";
import { golden } from "../golden.js";
import { corePool, workers } from "../scheduling/pool.js";

const SIZE = 16;
const coded = (code: string) => expect.objectContaining({ code });

function pool(from = 0, budgetBytes = 2 ** 24): SelectionCore {
  return corePool({ workers: workers(8), seed: 5n, from, budgetBytes });
}

const prompt = (seed: number, blocks: number) => Uint32Array.from({ length: blocks * SIZE }, (_, i) => seed * 1000 + i);

/** A stream of stores, selections and frees; answers every decision. */
function drive(core: SelectionCore, rounds: number): unknown[] {
  const seen: unknown[] = [];
  for (let i = 0; i < rounds; i++) {
    const tokens = prompt(i % 7, 5 + (i % 50));
    const selection = core.select({ tokens, explain: i % 5 === 0 });
    seen.push([selection.worker, selection.overlap, selection.tieDraw, selection.candidates]);
    const { blockHashes, sequenceHashes } = hashTokens(tokens, SIZE);
    const rank = core.ranks.get(selection.worker.workerId, 0)!;
    seen.push(core.contents.store(rank, i % 3 === 0 ? "host_pinned" : "device", null, sequenceHashes, blockHashes));
    if (i % 2 === 0) selection.booking.free();
    else selection.booking.prefillComplete();
  }
  seen.push(core.loads());
  return seen;
}

describe("the release module", () => {
  it("imports nothing", () => {
    expect(WebAssembly.Module.imports(kernelModule())).toEqual([]);
  });

  it("init() is idempotent and takes a module, bytes or a response", async () => {
    const module = kernelModule();
    await init();
    await init(module);
    await init(Promise.resolve(module));
    expect(kernelModule()).toBe(module);
  });
});

describe("memory", () => {
  it("decides alike with everything above 2 GiB", () => {
    const high = pool(2 ** 31 + 4096);
    expect(high.kernel.exports.tokensArea(16)).toBeLessThan(0); // a pointer that JavaScript sees as negative
    expect(drive(high, 200)).toEqual(drive(pool(), 200));
  });

  it("views follow when memory grows in the middle of use", () => {
    const core = pool(0, 2 ** 28);
    const tokens = prompt(1, 4);
    core.select({ tokens }).booking.free();
    const before = core.kernel.exports.memory.buffer;
    const rank = core.ranks.get("3", 0)!;
    for (let i = 0; core.kernel.exports.memory.buffer === before; i++) {
      const chain = BigUint64Array.from({ length: 4000 }, (_, j) => BigInt(i * 10_000 + j));
      expect(core.contents.store(rank, "device", null, chain, chain)).toBeUndefined();
    }
    const { blockHashes } = hashTokens(tokens, SIZE);
    expect(core.contents.store(rank, "device", null, blockHashes, blockHashes)).toBeUndefined();
    expect(core.select({ tokens })).toMatchObject({ worker: { workerId: "3" }, overlap: { deviceBlocks: 4 } });
    const long = prompt(2, 40_000); // a prompt that makes the token area move
    expect(core.select({ tokens: long }).effectivePrefillTokens).toBe(long.length);
    expect(core.select({ tokens, pinnedWorker: { workerId: "3" } }).overlap.deviceBlocks).toBe(4);
  });
});

describe("a trap", () => {
  it("fails its own pool and no other", () => {
    const [broken, sound] = [pool(), pool()];
    const { booking } = broken.select({ tokens: prompt(1, 2) });
    expect(() => broken.kernel.exports.xxh3(-16, 1000, 0n)).toThrowError(coded("kernel_failed"));
    expect(broken.kernel.failed).toBe(true);
    expect(() => broken.select({ tokens: prompt(1, 2) })).toThrowError(coded("kernel_failed"));
    expect(() => broken.loads()).toThrowError(coded("kernel_failed"));
    expect(() => booking.free()).not.toThrow();
    expect(drive(sound, 20)).toEqual(drive(pool(), 20));
  });
});

describe("golden hashes, through the public function", () => {
  type Case = { tokens: number[]; block_size: number; block_hashes: string[]; sequence_hashes: string[] };
  it.each(golden<Case[]>("hashes").map((c, i) => [i, c] as const))("case %i", (_, c) => {
    for (const tokens of [c.tokens, Uint32Array.from(c.tokens)]) {
      const { blockHashes, sequenceHashes } = hashTokens(tokens, c.block_size);
      expect(Array.from(blockHashes, String)).toEqual(c.block_hashes);
      expect(Array.from(sequenceHashes, String)).toEqual(c.sequence_hashes);
    }
  });

  it("an adapter and a salt seed the chain (spec: indexer.md §1.9)", () => {
    const hashes = (options: object) => String(hashTokens([1, 2, 3, 4, 5, 6, 7, 8], 4, options).sequenceHashes[1]);
    expect(hashes({ loraName: "adapter-a" })).toBe("17518568667535815909");
    expect(hashes({ cacheSalt: "tenant-a" })).toBe("1076233986426276607");
    expect(hashes({ loraName: "adapter-a", cacheSalt: "tenant-a" })).toBe("8253787442643436499");
    expect(hashes({ loraName: "", cacheSalt: "" })).toBe("4945711292740353085");
  });
});
