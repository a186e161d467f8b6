import { expect, test } from "vitest";
import { BlockPool } from "../../src/replay/block-pool.js";

const ids = (...list: number[]): Uint32Array => Uint32Array.from(list);

function hold(pool: BlockPool, blocks: Uint32Array): boolean[] {
  return Array.from(blocks, (block) => pool.hold(block));
}

test("blocks are shared while held, kept when released, and found again", () => {
  const pool = new BlockPool(8);
  expect(hold(pool, ids(1, 2, 3))).toEqual([true, true, true]);
  expect(hold(pool, ids(1, 2, 4))).toEqual([false, false, true]);
  expect([pool.used, pool.inactive, pool.free]).toEqual([4, 0, 4]);
  pool.release(ids(1, 2, 3), 3);
  expect([pool.used, pool.inactive, pool.free]).toEqual([3, 1, 4]);
  pool.release(ids(1, 2, 4), 3);
  expect([pool.used, pool.inactive, pool.free]).toEqual([0, 4, 4]);
  expect(pool.resident(ids(1, 2, 3, 9), 4)).toBe(3);
  expect(pool.resident(ids(1, 2, 3, 9), 2)).toBe(2);
  expect(pool.hold(1)).toBe(false);
  expect([pool.used, pool.inactive]).toEqual([1, 3]);
});

test("eviction takes leaves first, of the prompt released longest ago", () => {
  const pool = new BlockPool(6);
  hold(pool, ids(1, 2, 3));
  hold(pool, ids(1, 2, 4));
  hold(pool, ids(7));
  pool.release(ids(1, 2, 3), 3);
  pool.release(ids(7), 1);
  pool.release(ids(1, 2, 4), 3);
  pool.takeOwn(6);
  expect(pool.takeEvicted()).toEqual([3, 7, 4, 2, 1]);
  expect(pool.takeEvicted()).toEqual([]);
  expect([pool.used, pool.inactive, pool.free]).toEqual([6, 0, 0]);
});

test("a block used again is evicted later", () => {
  const pool = new BlockPool(2);
  hold(pool, ids(1));
  hold(pool, ids(2));
  pool.release(ids(1), 1);
  pool.release(ids(2), 1);
  pool.hold(1);
  pool.release(ids(1), 1);
  pool.takeOwn(1);
  expect(pool.takeEvicted()).toEqual([2]);
});

test("fits() counts inactive blocks that are wanted as room once, not twice", () => {
  const pool = new BlockPool(4);
  hold(pool, ids(1, 2));
  pool.release(ids(1, 2), 2);
  expect(pool.fits(ids(1, 2, 3, 4), 0, 4, 0)).toBe(true);
  expect(pool.fits(ids(1, 2, 3, 4), 0, 4, 1)).toBe(false);
  expect(pool.fits(ids(1, 2), 0, 2, 2)).toBe(true);
  expect(pool.fits(ids(1, 2), 0, 2, 3)).toBe(false);
  pool.takeOwn(2);
  expect(pool.fits(ids(1, 2, 3), 0, 3, -1)).toBe(true);
  expect(pool.fits(ids(1, 2, 3), 0, 3, 0)).toBe(false);
});
