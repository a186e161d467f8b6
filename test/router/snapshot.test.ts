import { describe, expect, it } from "vitest";
import "../../src/kernel/inlined.js";
import { checksum, hashTokens } from "../../src/kernel/hash.js";
import type { RouterOptions } from "../../src/router/contract.js";
import { createRouter } from "../../src/router/create-router.js";
import type { KvRouter } from "../../src/router/kv-router.js";
import { randomOperations, randomSource } from "./random-operations.js";

const SIZE = 4;
const workers = [{ workerId: "1", dpSize: 2 }, { workerId: "2" }, { workerId: "18446744073709551615" }];
const open = (options: RouterOptions = {}) =>
  createRouter({
    model: "m",
    blockSize: SIZE,
    seed: 7,
    workers,
    maxRanks: 8,
    memoryBudgetBytes: 2 ** 22,
    config: { routerTrackOutputBlocks: true },
    ...options,
  });
const coded = (code: string) => expect.objectContaining({ code });

/** Both routers decide, load and match alike over `n` random operations. */
async function expectAlike(a: KvRouter, b: KvRouter, seed: number, n: number): Promise<void> {
  const left = randomOperations(a, randomSource(seed));
  const right = randomOperations(b, randomSource(seed));
  for (let i = 0; i < n; i++) expect(await left(), `operation ${i}`).toEqual(await right());
  expect(b.loads()).toEqual(a.loads());
}

describe.each(["engine", "sequence"] as const)("round trip, blocks named by the %s", (blockNames) => {
  it("a restored router goes on identically, from 30 random points", async () => {
    for (let seed = 1; seed <= 30; seed++) {
      const router = await open({ blockNames });
      const step = randomOperations(router, randomSource(seed));
      for (let i = 0; i < seed * 11; i++) await step();
      const bytes = router.snapshot();
      const again = await open({ blockNames, seed: 99 });
      again.restore(bytes);
      expect(again.loads()).toEqual(router.loads());
      expect(again.stats().index.blocks).toBe(router.stats().index.blocks);
      for (const id of ["r0", "r1", "r2"]) expect(again.booking(id)?.worker).toEqual(router.booking(id)?.worker);
      await expectAlike(router, again, 1000 + seed, 60);
    }
  });
});

describe("restore", () => {
  const tokens = Uint32Array.from({ length: 40 }, (_, i) => i);
  const { blockHashes, sequenceHashes } = hashTokens(tokens, SIZE);
  const at = { workerId: "2", dpRank: 0 };

  async function busy(): Promise<KvRouter> {
    const router = await open();
    router.storeBlocks(at, "device", null, sequenceHashes, blockHashes);
    await router.select({ requestId: "a", tokens });
    return router;
  }

  it("takes the parts that are asked for and leaves the rest", async () => {
    const from = await busy();
    const bytes = from.snapshot();
    const cold = await open();
    const own = await cold.select({ requestId: "own", tokens: [9, 9, 9, 9] });
    cold.restore(bytes, { parts: ["index"] });
    expect(cold.overlap({ tokens })).toEqual(from.overlap({ tokens }));
    expect(cold.booking("a")).toBeUndefined();
    expect(cold.loads().reduce((n, row) => n + row.activeRequests, 0)).toBe(1);
    own.booking.free();
    expect(cold.loads().every((row) => row.activeRequests === 0 && row.activeDecodeBlocks === 0)).toBe(true);

    const loaded = await open();
    loaded.restore(bytes, { parts: ["load"] });
    expect(loaded.overlap({ tokens })).toEqual([]);
    expect(loaded.loads()).toEqual(from.loads());
    loaded.booking("a")!.free();
    expect(loaded.loads().every((row) => row.activeRequests === 0 && row.activeDecodeBlocks === 0)).toBe(true);
  });

  it("refuses a part that the snapshot does not have", async () => {
    const bytes = (await busy()).snapshot({ include: ["load"] });
    const router = await open();
    expect(() => router.restore(bytes)).toThrowError(coded("snapshot_mismatch"));
    expect(() => router.restore(bytes, { parts: ["index"] })).toThrowError(
      expect.objectContaining({
        code: "snapshot_mismatch",
        message: "cannot restore the snapshot: it does not have the part index, only load",
      }),
    );
    expect(() => router.restore(bytes, { parts: ["load"] })).not.toThrow();
  });

  it("matches ranks by worker id and rank, whatever their slots, and drops strangers", async () => {
    const bytes = (await busy()).snapshot();
    const other = await open({ workers: [{ workerId: "77" }, { workerId: "2" }] });
    // Of the four ranks only 2/0 is here.
    expect(other.restore(bytes)).toEqual({ ranks: 1, droppedRanks: 3, droppedBookings: 0 });
    expect(other.overlap({ tokens })).toMatchObject([{ workerId: "2", deviceBlocks: 10 }]);
    expect(other.booking("a")?.worker).toEqual(at);
    expect(other.stats()).toMatchObject({ index: { blocks: 10 }, bookings: { live: 1 } });
    const strangers = await open({ workers: [{ workerId: "77" }] });
    const indexOnly = { parts: ["index"] } as const;
    expect(strangers.restore(bytes, indexOnly)).toEqual({ ranks: 0, droppedRanks: 4, droppedBookings: 0 });
    expect(strangers.restore(bytes)).toEqual({ ranks: 0, droppedRanks: 4, droppedBookings: 1 });
    expect(strangers.stats()).toMatchObject({ index: { blocks: 0 }, bookings: { live: 0 } });
    expect((await strangers.select({ tokens })).worker.workerId).toBe("77");
  });

  it("says what it dropped of a routing group that is not here", async () => {
    const from = await open({ workers: [{ workerId: "1" }, { workerId: "2", routingGroup: "g", dpSize: 2 }] });
    await from.select({ tokens, routingGroup: "g" });
    const here = await open({ workers: [{ workerId: "1" }] });
    expect(here.restore(from.snapshot())).toEqual({ ranks: 1, droppedRanks: 2, droppedBookings: 1 });
  });

  it.each([
    [{ model: "other" }, 'its model is "m", but this router\'s is "other"', "model", "m", "other"],
    [{ blockSize: 8 }, "its blockSize is 4, but this router's is 8", "blockSize", 4, 8],
    [
      { blockNames: "sequence" },
      'its blockNames is "engine", but this router\'s is "sequence"',
      "blockNames",
      "engine",
      "sequence",
    ],
    // Its four ranks have the slots 0 to 3, and the worker 8 needs one more.
    [{ maxRanks: 3, workers: [] }, "maxRanks is 3 here, but its ranks and this router's need 4", "maxRanks", 4, 3],
    [
      { maxRanks: 4, workers: [{ workerId: "8" }] },
      "maxRanks is 4 here, but its ranks and this router's need 5",
      "maxRanks",
      5,
      4,
    ],
  ] as const)(
    "into a router of %o says what differs, with both values",
    async (options, what, field, snapshot, own) => {
      const bytes = (await busy()).snapshot();
      const other = await open(options);
      const before = JSON.stringify([other.loads(), other.stats()]);
      expect(() => other.restore(bytes)).toThrowError(
        expect.objectContaining({
          code: "snapshot_mismatch",
          message: `cannot restore the snapshot: ${what}`,
          details: { field, snapshot, router: own },
        }),
      );
      expect(JSON.stringify([other.loads(), other.stats()])).toBe(before);
    },
  );

  it("a handle of the same request goes on; one that the snapshot does not know ends", async () => {
    const router = await busy();
    const bytes = router.snapshot();
    const a = router.booking("a")!;
    const later = (await router.select({ requestId: "later", tokens })).booking;
    router.restore(bytes);
    later.free();
    expect(router.loads().reduce((n, row) => n + row.activeRequests, 0)).toBe(1);
    a.free();
    expect(router.loads().every((row) => row.activeRequests === 0)).toBe(true);
  });

  it("refuses what does not fit, and changes nothing", async () => {
    const router = await busy();
    const bytes = router.snapshot();
    const before = JSON.stringify([router.loads(), router.overlap({ tokens })]);
    const refusals: [Uint8Array, string][] = [
      [new Uint8Array(0), "snapshot_truncated"],
      [new Uint8Array(100), "snapshot_magic"],
      [bytes.subarray(0, bytes.length - 8), "snapshot_checksum"],
      [changed(bytes, (copy) => copy.setUint32(4, 2, true)), "snapshot_version"],
      [changed(bytes, (copy) => copy.setUint8(bytes.length - 1, 255)), "snapshot_checksum"],
      [sealed(bytes.subarray(0, bytes.length - 8)), "snapshot_truncated"],
      [sealed(changed(bytes, (copy) => copy.setUint8(24, 0))), "snapshot_corrupt"],
    ];
    for (const [input, code] of refusals) expect(() => router.restore(input)).toThrowError(coded(code));
    for (const options of [{ model: "other" }, { blockSize: 8 }, { blockNames: "sequence" }] as const) {
      const other = await open(options);
      expect(() => other.restore(bytes)).toThrowError(coded("snapshot_mismatch"));
    }
    expect(JSON.stringify([router.loads(), router.overlap({ tokens })])).toBe(before);
  });
});

function changed(bytes: Uint8Array, change: (copy: DataView) => void): Uint8Array {
  const copy = bytes.slice();
  change(new DataView(copy.buffer));
  return copy;
}

/** The bytes with a checksum that fits them. */
function sealed(bytes: Uint8Array): Uint8Array {
  return changed(bytes, (copy) => copy.setBigUint64(8, checksum(bytes.subarray(16)), true));
}

describe("a document that contradicts its records", () => {
  const document = (bytes: Uint8Array) => {
    const length = new DataView(bytes.buffer, bytes.byteOffset).getUint32(16, true);
    const start = 24 + Math.ceil(length / 8) * 8;
    return {
      input: JSON.parse(new TextDecoder().decode(bytes.subarray(24, 24 + length))),
      records: bytes.subarray(start),
    };
  };
  type Pool = { name: string; ranks: Record<string, unknown>[]; bookings: Record<string, unknown>[] };
  const changes: [string, (pools: Pool[], all: Record<string, unknown>) => void][] = [
    ["no handle for a live booking", ([pool]) => pool!.bookings.splice(0)],
    ["a handle for no booking", ([pool]) => pool!.bookings.push({ ...pool!.bookings[0], id: 77, requestId: "g" })],
    ["two handles of one booking", ([pool]) => pool!.bookings.push({ ...pool!.bookings[0], requestId: "g" })],
    ["one request twice", ([pool]) => pool!.bookings.push({ ...pool!.bookings[0] })],
    ["a booking on another rank", ([pool]) => Object.assign(pool!.bookings[0]!, { slot: 0 })],
    ["a booking of an unknown slot", ([pool]) => Object.assign(pool!.bookings[0]!, { slot: 7 })],
    ["another generation", ([pool]) => Object.assign(pool!.bookings[0]!, { generation: 9 })],
    ["a pool twice", (pools) => pools.push(pools[0]!)],
    ["a worker id beyond u64", ([pool]) => Object.assign(pool!.ranks[0]!, { workerId: "99999999999999999999" })],
    ["two ranks in one slot", ([pool]) => Object.assign(pool!.ranks[0]!, { slot: pool!.ranks[1]!.slot })],
    ["an unknown part", (_, all) => Object.assign(all, { parts: ["index", "load", "random", "more"] })],
  ];
  it.each(changes)("%s is snapshot_corrupt", async (_, change) => {
    const router = await open();
    await router.select({ requestId: "a", tokens: [1, 2, 3, 4, 5, 6, 7, 8], pinnedWorker: { workerId: "2" } });
    const { input, records } = document(router.snapshot());
    change(input.pools, input);
    const text = new TextEncoder().encode(JSON.stringify(input));
    const bytes = new Uint8Array(24 + Math.ceil(text.length / 8) * 8 + records.length);
    bytes.set(router.snapshot().subarray(0, 24));
    new DataView(bytes.buffer).setUint32(16, text.length, true);
    bytes.set(text, 24);
    bytes.set(records, bytes.length - records.length);
    const other = await open();
    const before = JSON.stringify([other.loads(), other.stats()]);
    expect(() => other.restore(sealed(bytes))).toThrowError(coded("snapshot_corrupt"));
    expect(JSON.stringify([other.loads(), other.stats()])).toBe(before);
  });

  it("a request that is live in a routing group which the snapshot does not know is refused", async () => {
    const from = await open();
    await from.select({ requestId: "a", tokens: [1] });
    const bytes = from.snapshot();
    const other = await open({ workers: [...workers, { workerId: "5", routingGroup: "g" }] });
    await other.select({ requestId: "a", tokens: [1], routingGroup: "g" });
    const before = JSON.stringify([other.loads(), other.stats()]);
    expect(() => other.restore(bytes)).toThrowError(coded("snapshot_mismatch"));
    expect(JSON.stringify([other.loads(), other.stats()])).toBe(before);
    other.booking("a")!.free();
    other.restore(bytes);
    expect(other.booking("a")?.worker.workerId).not.toBe("5");
  });

  it("ids that the router makes are fresh after a restore, too", async () => {
    const router = await open();
    await router.select({ tokens: [1] });
    const again = await open();
    again.restore(router.snapshot());
    await again.select({ tokens: [1] });
    expect(again.stats().bookings.live).toBe(2);
  });
});
