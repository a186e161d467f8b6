import { beforeAll, describe, expect, it } from "vitest";
import { compileEntry } from "../compile.js";

interface Extents {
  memory: WebAssembly.Memory;
  arenaInit(from: number, budget: bigint): void;
  arenaInUse(): bigint;
  extentsInit(): number;
  extentTake(words: number): number;
  extentGive(start: number, capacity: number): void;
  extentShrink(start: number, capacity: number, newCapacity: number): number;
  extentCapacity: WebAssembly.Global;
  extentWords: WebAssembly.Global;
}

let module: WebAssembly.Module;
beforeAll(() => {
  module = compileEntry("extents");
});

function fresh(budget: bigint, from = 0): Extents {
  const e = new WebAssembly.Instance(module).exports as unknown as Extents;
  e.arenaInit(from, budget);
  expect(e.extentsInit()).toBe(1);
  return e;
}

function generator(seed: number): (n: number) => number {
  let s = seed | 1;
  return (n) => {
    s ^= s << 13;
    s ^= s >>> 17;
    s ^= s << 5;
    return (s >>> 0) % n;
  };
}

describe("extents", () => {
  it("rounds up to eight words and refuses what is too long", () => {
    const e = fresh(64n << 20n);
    expect(e.extentTake(1)).not.toBe(0);
    expect(e.extentCapacity.value).toBe(8);
    expect(e.extentTake(0)).not.toBe(0);
    expect(e.extentTake(17)).not.toBe(0);
    expect(e.extentCapacity.value).toBe(24);
    expect(e.extentTake((1 << 21) + 1)).toBe(0);
    expect(e.extentWords.value).toBe(40);
  });

  it("takes little at the start of a 64 MiB budget", () => {
    const e = fresh(64n << 20n);
    expect(e.arenaInUse()).toBeLessThan(4096n);
  });

  it.each([0, 0x8000_0000 - 4096])("keeps extents apart and merges them again (arena at %i)", (from) => {
    const e = fresh(32n << 20n, from);
    const random = generator(7);
    const live: { start: number; capacity: number; mark: bigint }[] = [];
    let words = 0;
    let high = 0n;
    for (let i = 0; i < 40_000; i++) {
      if (live.length < 400 && random(2)) {
        const start = e.extentTake(1 + random(random(8) ? 200 : 3000)) >>> 0;
        expect(start).not.toBe(0);
        const capacity = e.extentCapacity.value as number;
        const mark = BigInt(i);
        new BigUint64Array(e.memory.buffer).fill(mark, start, start + capacity);
        live.push({ start, capacity, mark });
        words += capacity;
      } else if (live.length > 0) {
        const k = random(live.length);
        const x = live[k]!;
        const view = new BigUint64Array(e.memory.buffer, x.start * 8, x.capacity);
        if (view[0] !== x.mark || view[x.capacity - 1] !== x.mark) throw new Error(`overwritten after ${i}`);
        if (x.capacity > 8 && random(4) === 0) {
          const left = e.extentShrink(x.start, x.capacity, 1 + random(x.capacity));
          words -= x.capacity - left;
          x.capacity = left;
        } else {
          e.extentGive(x.start, x.capacity);
          words -= x.capacity;
          live[k] = live[live.length - 1]!;
          live.pop();
        }
      }
      if (e.extentWords.value !== words) throw new Error(`counter wrong after ${i}`);
      if (i === 20_000) high = e.arenaInUse();
    }
    expect(Number(e.arenaInUse())).toBeLessThan(Number(high) * 1.5);
    for (const x of live) e.extentGive(x.start, x.capacity);
    expect(e.extentWords.value).toBe(0);
    // Everything has merged: one extent of almost all of it fits without growing.
    const before = e.arenaInUse();
    expect(e.extentTake(1 << 15)).not.toBe(0);
    expect(e.arenaInUse()).toBe(before);
  });

  it("answers 0 at the budget and works again after a give", () => {
    const e = fresh(1n << 20n);
    const taken: number[] = [];
    for (let s = e.extentTake(512); s; s = e.extentTake(512)) taken.push(s);
    expect(taken.length).toBeGreaterThan(200);
    expect(e.extentTake(512)).toBe(0);
    e.extentGive(taken[5]!, 512);
    expect(e.extentTake(512)).toBe(taken[5]);
  });
});
