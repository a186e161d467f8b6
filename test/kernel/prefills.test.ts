import { describe, expect, it } from "vitest";
import { Random } from "../../src/core/random.js";
import { Status } from "../../src/kernel/status.js";
import { exportPart, importPart, Part } from "../../src/scheduling/pool-records.js";
import { type Handle, Ranks } from "./ranks.js";

/** One rank whose clock starts at `t` ms, with the verbs of its prefills. */
function rank(t = 0) {
  const ranks = new Ranks([0]);
  const { exports } = ranks.kernel;
  exports.prefillClock(t);
  return {
    begin(tokens: number, ms?: number): Handle {
      const handle = ranks.book(0, [], tokens)!;
      if (ms !== undefined) exports.bookingPrefillDuration(handle.id, handle.generation, ms);
      return handle;
    },
    complete: ({ id, generation }: Handle) => exports.bookingPrefillComplete(id, generation),
    free: ({ id, generation }: Handle) => exports.bookingFree(id, generation),
    at(ms: number): number {
      exports.prefillClock(ms);
      return ranks.at("prefill", 0);
    },
    exports,
  };
}

describe("modelled prefills (spec: scheduling.md §1.4)", () => {
  it.each([0, 1_765_000_000_000])("decay in order, from %d ms on", (t) => {
    const { begin, complete, at } = rank(t);
    const first = begin(100, 10_000);
    begin(60, 6000);
    expect([at(t), at(t + 5000), at(t + 10_000)]).toEqual([160, 110, 60]);
    complete(first);
    expect([at(t + 10_000), at(t + 13_000), at(t + 16_000), at(t + 99_000)]).toEqual([60, 30, 0, 0]);
  });

  it("eat into those behind, down to nothing, when one takes longer than it should", () => {
    const { begin, at } = rank();
    begin(100, 1000);
    begin(50, 1000);
    expect([at(1200), at(1500), at(9000)]).toEqual([30, 0, 0]);
  });

  it("round up what is left", () => {
    const { begin, at } = rank();
    begin(10, 30);
    expect([1, 2, 3, 4, 29, 30].map(at)).toEqual([10, 10, 9, 9, 1, 0]);
  });

  it("of no duration are done at once", () => {
    const { begin, at } = rank();
    begin(100, 0);
    begin(60, 6000);
    expect(at(0)).toBe(60);
  });

  it("stay whole where no duration is known, before and behind others", () => {
    const { begin, complete, at } = rank();
    const whole = begin(100);
    const second = begin(60, 600);
    begin(7);
    expect([at(0), at(5000)]).toEqual([167, 167]);
    complete(whole);
    expect([at(5000), at(5300), at(5900)]).toEqual([67, 37, 7]); // only the front decays, to its own end
    complete(second);
    expect([at(5900), at(9000)]).toEqual([7, 7]);
  });

  it("keep the anchor when another than the front ends", () => {
    const { begin, complete, free, at } = rank();
    begin(100, 1000);
    const second = begin(50, 1000);
    const third = begin(30, 1000);
    at(500);
    free(second);
    expect(at(500)).toBe(80);
    complete(third);
    expect([at(500), at(750)]).toEqual([50, 25]);
  });

  it("are listed as long as they are active: the next in front may be one that came much later", () => {
    const { begin, complete, at } = rank();
    const [a, b, c] = [begin(10, 100), begin(20, 100), begin(40, 100)];
    complete(b);
    begin(80, 100);
    complete(c);
    at(50);
    complete(a);
    expect([at(50), at(100), at(150)]).toEqual([80, 40, 0]);
  });

  it("take a duration once, and only one that is a number of ms", () => {
    const { begin, at, exports } = rank();
    const { id, generation } = begin(100, -1);
    exports.bookingPrefillDuration(id, generation, Number.NaN);
    expect(at(500)).toBe(100);
    exports.bookingPrefillDuration(id, generation, 1000);
    exports.bookingPrefillDuration(id, generation, 10);
    expect(at(1000)).toBe(0);
    expect(exports.bookingPrefillDuration(id, generation + 1, 5)).toBe(Status.unknownBooking);
  });

  it("a clock that goes back undoes nothing that never was", () => {
    const { begin, at } = rank(1000);
    begin(100, 1000);
    expect([at(0), at(1500)]).toEqual([100, 50]);
  });
});

interface Prefill {
  handle: Handle;
  tokens: number;
  ms: number | undefined;
}

/** Prefills of one rank as the rules say it. */
class Oracle {
  active: Prefill[] = [];
  anchor = 0;

  remove(handle: Handle, now: number): void {
    const index = this.active.findIndex((prefill) => prefill.handle === handle);
    if (index === 0) this.anchor = now;
    if (index >= 0) this.active.splice(index, 1);
  }

  tokens(now: number): number {
    const [front] = this.active;
    const sum = this.active.reduce((n, { tokens }) => n + tokens, 0);
    if (front?.ms === undefined) return sum;
    const elapsed = Math.max(0, now - this.anchor);
    if (this.active.every(({ ms }) => ms !== undefined)) {
      return Math.max(0, sum - (front.ms === 0 ? front.tokens : Math.floor((front.tokens * elapsed) / front.ms)));
    }
    const share = front.ms === 0 ? 0 : Math.min(1, Math.max(0, 1 - elapsed / front.ms));
    return sum - front.tokens + Math.ceil(front.tokens * share);
  }
}

it.each([1n, 2n, 3n])("20,000 random operations on ranks that come and go, seed %d", (seed) => {
  const random = new Random(seed);
  const slots = [0, 7, 100, 600];
  const ranks = new Ranks(slots);
  const { exports } = ranks.kernel;
  const oracles = new Map(slots.map((slot) => [slot, new Oracle()]));
  let live: { slot: number; handle: Handle }[] = [];
  let now = 0;
  for (let step = 0; step < 20_000; step++) {
    const slot = slots[random.below(slots.length)]!;
    const oracle = oracles.get(slot);
    const chosen = live[random.below(live.length + 1)];
    switch (random.below(live.length > 40 ? 7 : 5)) {
      case 0:
      case 1: {
        if (!oracle) {
          ranks.add(slot);
          oracles.set(slot, new Oracle());
          break;
        }
        const tokens = random.below(5) && 1 + random.below(1000);
        const handle = ranks.book(slot, [BigInt(step)], tokens)!;
        // A power of two: 1 − elapsed / ms is exact.
        const ms = random.below(8) ? random.below(8) && 2 ** random.below(10) : undefined;
        if (ms !== undefined) exports.bookingPrefillDuration(handle.id, handle.generation, ms);
        live.push({ slot, handle });
        if (tokens === 0) break;
        if (oracle.active.length === 0) oracle.anchor = now;
        oracle.active.push({ handle, tokens, ms });
        break;
      }
      case 2:
        now += random.below(200);
        exports.prefillClock(now);
        break;
      case 3:
        if (!chosen) break;
        exports.bookingPrefillComplete(chosen.handle.id, chosen.handle.generation);
        oracles.get(chosen.slot)!.remove(chosen.handle, now);
        break;
      default:
        if (!random.below(100) && oracle) {
          exports.rankRemove(slot);
          oracles.delete(slot);
          live = live.filter((booking) => booking.slot !== slot);
        } else if (chosen) {
          exports.bookingFree(chosen.handle.id, chosen.handle.generation);
          oracles.get(chosen.slot)!.remove(chosen.handle, now);
          live.splice(live.indexOf(chosen), 1);
        }
    }
    for (const [s, model] of oracles) expect(ranks.at("prefill", s)).toBe(model.tokens(now));
  }
  for (const { handle } of live) exports.bookingFree(handle.id, handle.generation);
  for (const s of oracles.keys()) expect(ranks.at("prefill", s)).toBe(0);
});

it("prefills that are restored go on as they were, in their order", () => {
  const source = new Ranks([0, 3]);
  const { exports } = source.kernel;
  exports.prefillClock(1000);
  // Ids that are used again do not tell the order.
  const used = [1, 2, 3].map(() => source.book(0, [1n], 5)!);
  for (const { id, generation } of [used[1]!, used[0]!, used[2]!]) exports.bookingFree(id, generation);
  const booked = [100, 60, 30, 20].map((tokens, i) => {
    const handle = source.book(0, [BigInt(i)], tokens)!;
    if (i !== 2) exports.bookingPrefillDuration(handle.id, handle.generation, tokens * 10);
    return handle;
  });
  source.book(3, [9n], 40);
  exports.prefillClock(1500);
  const target = new Ranks([0, 3]);
  target.kernel.exports.prefillClock(1500);
  importPart(target.kernel, Part.load, exportPart(source.kernel, Part.load));
  const both = [source, target];
  const at = (ms: number) =>
    both.map((ranks) => {
      ranks.kernel.exports.prefillClock(ms);
      return [ranks.at("prefill", 0), ranks.at("prefill", 3)];
    });
  expect(at(1500)).toEqual([
    [160, 40],
    [160, 40],
  ]);
  for (const [i, { id, generation }] of booked.entries()) {
    for (let ms = 1600 + i * 1000; ms < 2500 + i * 1000; ms += 300) {
      const [original, restored] = at(ms);
      expect(restored).toEqual(original);
    }
    for (const ranks of both) ranks.kernel.exports.bookingPrefillComplete(id, generation);
  }
  expect(at(9000)).toEqual([
    [0, 40],
    [0, 40],
  ]);
});
