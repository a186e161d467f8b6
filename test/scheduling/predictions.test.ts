// What ranks are believed to hold, against an independent reading of spec/indexer.md §3: block by block.
import { describe, expect, test } from "vitest";
import { Random } from "../../src/core/random.js";
import { Counter } from "../../src/kernel/abi.js";
import { hashTokens } from "../../src/kernel/hash.js";
import { WorkerInputs } from "../../src/plugins/worker-selection/components.js";
import type { PoolBooking } from "../../src/scheduling/bookings/booking.js";
import type { SelectionCore } from "../../src/scheduling/selection-core.js";
import { corePool, custom, holds, prompt, SIZE, workers } from "./pool.js";

/** Leading blocks that each of the workers 1, 2, … is known or believed to hold. */
function overlapOf(core: SelectionCore, tokens: Uint32Array): number[] {
  core.refresh();
  const { kernel } = core;
  const rows = core.contents.overlap(
    kernel.hashPrompt(kernel.writeTokens(tokens), SIZE, kernel.localSeed(undefined, undefined)),
  );
  return Array.from(core.ranks, (rank) => rows.find((row) => row.workerId === rank.workerId)?.deviceBlocks ?? 0);
}

/** A clock that the test sets. */
function handClock() {
  const clock = { at: 0, now: () => clock.at };
  return clock;
}

const on = (workerId: number) => ({ pinnedWorker: { workerId, dpRank: 0 } });

interface Copy {
  /** Place in its prompt; output comes behind. */
  readonly position: number;
  readonly users: Set<PoolBooking>;
  /** When it was last let go of; below 0 = never. */
  epoch: number;
  /** When each of its predictions ends, where time decides. */
  readonly ends: Map<PoolBooking, number>;
}

/** One rank's cache, block by block. */
class Cache {
  readonly copies = new Map<string, Copy>();
  readonly capacity: number;
  #epoch = 0;

  constructor(capacity: number) {
    this.capacity = capacity;
  }

  use(booking: PoolBooking, key: string, position: number, ends: number): void {
    let copy = this.copies.get(key);
    if (!copy) {
      copy = { position, users: new Set(), epoch: -1, ends: new Map() };
      this.copies.set(key, copy);
    }
    copy.users.add(booking);
    copy.ends.set(booking, ends);
  }

  release(booking: PoolBooking): void {
    const epoch = this.#epoch++;
    for (const copy of this.copies.values()) if (copy.users.delete(booking)) copy.epoch = epoch;
    this.evict();
  }

  undo(booking: PoolBooking): void {
    for (const [key, copy] of this.copies) {
      copy.ends.delete(booking);
      copy.users.delete(booking);
      if (this.capacity === Infinity ? copy.ends.size === 0 : copy.users.size === 0 && copy.epoch < 0) {
        this.copies.delete(key);
      }
    }
  }

  evict(): void {
    while (this.copies.size > this.capacity) {
      const free = [...this.copies].filter(([, copy]) => copy.users.size === 0);
      if (free.length === 0) return;
      free.sort(([, a], [, b]) => a.epoch - b.epoch || b.position - a.position);
      this.copies.delete(free[0]![0]);
    }
  }

  expire(now: number): void {
    for (const [key, { ends }] of this.copies) {
      for (const [booking, end] of ends) if (end <= now) ends.delete(booking);
      if (ends.size === 0) this.copies.delete(key);
    }
  }
}

/** A prompt of a few families that part here and there, so that much is shared. */
function somePrompt(random: Random): Uint32Array {
  const blocks = random.below(14);
  const tokens: number[] = [];
  let branch = random.below(3);
  for (let i = 0; i < blocks; i++) {
    if (random.below(5) === 0) branch = branch * 2 + random.below(2);
    for (let k = 0; k < SIZE; k++) tokens.push(branch * 100 + k);
  }
  for (let rest = random.below(SIZE); rest > 0 || tokens.length === 0; rest--) tokens.push(7);
  return Uint32Array.from(tokens);
}

const keysOf = (tokens: Uint32Array) =>
  Array.from({ length: Math.floor(tokens.length / SIZE) }, (_, i) => tokens.subarray(0, (i + 1) * SIZE).join());

describe("against an independent reading, block by block", () => {
  test.each([
    ["by capacity", { useKvEvents: false }, [40, 25]],
    ["by time", { useKvEvents: false, routerTtlSecs: 20 }, [undefined, undefined]],
    ["by time, beside events", { routerPredictedTtlSecs: 20 }, [1000, undefined]],
  ] as const)("20,000 random steps %s", (_, config, totals) => {
    const random = new Random(11n);
    const clock = handClock();
    const core = corePool({
      ...{ config, clock },
      workers: totals.map((totalKvBlocks, i) => ({ workerId: i + 1, ...(totalKvBlocks && { totalKvBlocks }) })),
    });
    const byCapacity = totals[0] === 40;
    const caches = totals.map((total) => new Cache(byCapacity ? total! : Infinity));
    const live: { booking: PoolBooking; cache: Cache; tokens: Uint32Array; generated: number; answered: boolean }[] =
      [];

    for (let step = 0; step < 20_000; step++) {
      const one = live[random.below(live.length || 1)];
      switch (random.below(one ? 7 : 2)) {
        case 0:
        case 1: {
          const tokens = somePrompt(random);
          const at = random.below(caches.length);
          const { booking } = core.select({ tokens, ...on(at + 1) });
          const cache = caches[at]!;
          const entry = { booking, cache, tokens, generated: 0, answered: false };
          live.push(entry);
          for (const [i, key] of keysOf(tokens).entries()) cache.use(booking, key, i, clock.now() + 20_000);
          output(entry);
          // Undone later, what was kept for it alone goes first, whenever it was used.
          if (byCapacity && random.below(4) > 0) {
            entry.answered = true;
            booking.firstToken();
            cache.evict();
          } else if (byCapacity) {
            live.pop();
            booking.abort();
            cache.undo(booking);
          }
          break;
        }
        case 2:
          one!.answered = true;
          one!.booking.firstToken();
          one!.cache.evict();
          break;
        case 3: {
          const n = random.below(40);
          one!.answered = true;
          one!.generated += n;
          one!.booking.tokens(n);
          output(one!);
          one!.cache.evict();
          break;
        }
        case 4:
        case 5: {
          live.splice(live.indexOf(one!), 1);
          const ends = (["free", "abort", "retry"] as const)[random.below(3)]!;
          one!.booking[ends]();
          if (ends === "free" || one!.answered) one!.cache.release(one!.booking);
          else one!.cache.undo(one!.booking);
          break;
        }
        default:
          if (!byCapacity) pass(random.below(2000));
      }
      const tokens = somePrompt(random);
      const want = caches.map((cache) => {
        const missing = keysOf(tokens).findIndex((key) => !cache.copies.has(key));
        return missing < 0 ? keysOf(tokens).length : missing;
      });
      expect(overlapOf(core, tokens)).toEqual(want);
    }

    function pass(ms: number): void {
      clock.at += ms;
      for (const cache of caches) cache.expire(clock.now());
    }
    /** Where capacity decides, output and the rest of the prompt take blocks too. */
    function output({ booking, cache, tokens, generated }: (typeof live)[number]): void {
      if (!byCapacity) return;
      const blocks = Math.floor(tokens.length / SIZE);
      const own = Math.ceil((tokens.length - blocks * SIZE + generated) / SIZE);
      for (let i = 0; i < own; i++) cache.use(booking, `${booking.requestId}/${i}`, blocks + i, Infinity);
    }
    for (const { booking } of live) booking.free();
    if (!byCapacity) {
      pass(20_000);
      core.refresh();
      expect(core.predictions!.stats).toEqual({ live: 0, dropped: 0 });
      expect(core.counter(Counter.predictions)).toBe(0);
    }
  });
});

describe("without events", () => {
  const config = { useKvEvents: false };

  test("a prompt is believed to be where it was sent, for 120 s, and again from each decision on", () => {
    const clock = handClock();
    const core = corePool({ workers: workers(2), config, clock });
    const first = core.select({ tokens: prompt(1, 8), ...on(2) });
    expect(first.evidence).toBe("none");
    clock.at += 100_000;
    const second = core.select({ tokens: prompt(1, 8, 3), ...on(2) });
    expect(second).toMatchObject({ evidence: "approximate", overlap: { deviceBlocks: 8 }, cachedTokens: 128 });
    clock.at += 119_999;
    expect(overlapOf(core, prompt(1, 8))).toEqual([0, 8]);
    clock.at += 1;
    expect(overlapOf(core, prompt(1, 8))).toEqual([0, 0]);
    expect(core.counter(Counter.liveBookings)).toBe(2);
  });

  test("the default policy goes where the prompt was sent", () => {
    const core = corePool({ workers: workers(4), config });
    const { worker, booking } = core.select({ tokens: prompt(1, 64) });
    booking.free();
    for (let i = 0; i < 8; i++) {
      const again = core.select({ tokens: prompt(1, 64) });
      expect(again.worker).toEqual(worker);
      again.booking.free();
    }
  });

  test("a request that failed before its first token leaves nothing; one that failed later does", () => {
    const core = corePool({ workers: workers(1), config });
    const ends: ((booking: PoolBooking) => void)[] = [
      (booking) => booking.abort(),
      (booking) => booking.abort(new Error("refused")),
      (booking) => booking.retry(),
    ];
    for (const end of ends) {
      const early = core.select({ tokens: prompt(1, 4) }).booking;
      early.sent();
      expect(overlapOf(core, prompt(1, 4))).toEqual([4]); // meanwhile it counts, for its siblings
      end(early);
      expect(overlapOf(core, prompt(1, 4))).toEqual([0]);
    }
    const late = core.select({ tokens: prompt(2, 4) }).booking;
    late.firstToken();
    late.abort(new Error("broken off"));
    core.select({ tokens: prompt(3, 4) }).booking.complete();
    expect([2, 3].map((seed) => overlapOf(core, prompt(seed, 4)))).toEqual([[4], [4]]);
  });

  test("what is booked without a selection counts too", () => {
    const core = corePool({ workers: workers(1), config });
    const { sequenceHashes } = hashTokens(prompt(1, 4), SIZE);
    core.reserve("r", core.ranks.get("1", 0)!, sequenceHashes, 64, 64);
    expect(overlapOf(core, prompt(1, 4))).toEqual([4]);
  });

  test("a rank that starts anew, or is removed and added, holds nothing", () => {
    for (const totalKvBlocks of [undefined, 100]) {
      const worker = { workerId: 1, ...(totalKvBlocks && { totalKvBlocks }) };
      const core = corePool({ workers: [worker, { workerId: 2 }], config });
      const kept = [core.select({ tokens: prompt(1, 4), ...on(1) })];
      core.restartRank(core.ranks.get("1", 0)!);
      expect(overlapOf(core, prompt(1, 4))).toEqual([0, 0]);
      kept.push(core.select({ tokens: prompt(1, 4), ...on(1) }));
      const { record } = core.ranks.get("1", 0)!;
      core.removeRank("1", 0);
      core.addRank(record, 0);
      expect(overlapOf(core, prompt(1, 4))).toEqual([0, 0]);
      expect(core.counter(Counter.predictions)).toBe(0);
      kept.push(core.select({ tokens: prompt(1, 4), ...on(1) }));
      expect(overlapOf(core, prompt(1, 4))).toEqual([4, 0]);
    }
  });

  test("a policy outside the kernel sees it as it sees any overlap", () => {
    const seen: unknown[] = [];
    const core = corePool({
      ...{ workers: workers(2), config },
      policy: custom({
        scorers: [
          {
            requiredInputs: WorkerInputs.CACHE,
            score: (_ctx, rows, out) => {
              seen.push([Array.from(rows.cache!.deviceOverlapBlocks), rows.cache!.hasTierMatches]);
              out.fill(0);
            },
          },
        ],
      }),
    });
    const kept = [1, 2].map(() => core.select({ tokens: prompt(1, 4), ...on(2) }));
    kept.push(core.select({ tokens: prompt(1, 4) }));
    expect(seen.at(-1)).toEqual([[0, 4], true]);
  });
});

describe("where the capacity of a rank is known", () => {
  const open = (totalKvBlocks: number) =>
    corePool({ workers: [{ workerId: 1, totalKvBlocks }], config: { useKvEvents: false } });

  test("it never forgets what is in use, and makes room for it with what was used least recently, tail first", () => {
    const core = open(10);
    const first = core.select({ tokens: prompt(1, 6) }).booking;
    const second = core.select({ tokens: prompt(2, 6) }).booking;
    const held = () => [1, 2, 3].map((seed) => overlapOf(core, prompt(seed, 6))[0]);
    expect(held()).toEqual([6, 6, 0]); // 12 blocks, all in use
    first.free();
    expect(held()).toEqual([4, 6, 0]);
    second.free();
    core.select({ tokens: prompt(3, 3, 1) }).booking.free();
    expect(held()).toEqual([0, 6, 3]);
    core.select({ tokens: prompt(2, 6) }).booking.free();
    core.select({ tokens: prompt(1, 3) }).booking.free();
    expect(held()).toEqual([3, 6, 1]); // the second prompt was used again after the third
  });

  test("output takes room, and goes before the prompt it belongs to", () => {
    const core = open(10);
    core.select({ tokens: prompt(1, 4) }).booking.free();
    const talker = core.select({ tokens: prompt(2, 2) }).booking;
    talker.tokens(5 * SIZE);
    expect(overlapOf(core, prompt(1, 4))).toEqual([3]);
    talker.free();
    core.select({ tokens: prompt(3, 6) }).booking.free();
    expect([1, 2, 3].map((seed) => overlapOf(core, prompt(seed, 6))[0])).toEqual([0, 2, 6]);
  });

  test("what came to nothing has evicted nothing", () => {
    const core = open(10);
    for (const seed of [1, 2]) core.select({ tokens: prompt(seed, 5) }).booking.free();
    core.select({ tokens: prompt(3, 8, 1) }).booking.abort();
    expect([1, 2, 3].map((seed) => overlapOf(core, prompt(seed, 8))[0])).toEqual([5, 5, 0]);
  });

  test("no time ends it", () => {
    const clock = handClock();
    const core = corePool({ workers: [{ workerId: 1, totalKvBlocks: 9 }], config: { useKvEvents: false }, clock });
    core.select({ tokens: prompt(1, 4) }).booking.free();
    clock.at += 1e9;
    expect(overlapOf(core, prompt(1, 4))).toEqual([4]);
  });
});

describe("beside events (predict on route)", () => {
  const config = { routerPredictedTtlSecs: 5 };

  test("scenario 19: a burst of siblings goes to one worker until load outweighs, and is forgotten after 5 s", () => {
    const clock = handClock();
    const burst = (more: object) => {
      const core = corePool({ workers: workers(4), config: more, clock });
      const kept = Array.from({ length: 16 }, () => core.select({ tokens: prompt(1, 64) }));
      const places = new Map<string, number>();
      for (const { worker } of kept) places.set(worker.workerId, (places.get(worker.workerId) ?? 0) + 1);
      for (const { booking } of kept) booking.free();
      return {
        core,
        kept,
        most: Math.max(...places.values()),
        prefilled: kept.reduce((n, one) => n + one.effectivePrefillTokens, 0),
      };
    };
    const blind = burst({});
    expect([blind.most, blind.prefilled]).toEqual([4, 16 * 1024]);
    const { core, kept, most, prefilled } = burst(config);
    expect(kept.slice(0, 2).map(({ evidence }) => evidence)).toEqual(["none", "predicted"]);
    expect(kept[1]!.worker).toEqual(kept[0]!.worker);
    expect(most).toBeGreaterThan(4);
    expect(prefilled).toBeLessThanOrEqual(4 * 1024); // at most once a worker
    clock.at += 4999;
    expect(Math.max(...overlapOf(core, prompt(1, 64)))).toBe(64);
    clock.at += 1;
    expect(overlapOf(core, prompt(1, 64))).toEqual([0, 0, 0, 0]);
  });

  test("the overlap is the greater of both, and the evidence says which it was", () => {
    const core = corePool({ workers: workers(2), config });
    const kept = [core.select({ tokens: prompt(1, 6), ...on(1) })];
    const evidence = (blocks: number) => {
      const selection = core.select({ tokens: prompt(1, blocks), ...on(1) });
      kept.push(selection);
      return [selection.evidence, selection.overlap.deviceBlocks];
    };
    holds(core, "1", prompt(1, 8), 4);
    expect(overlapOf(core, prompt(1, 8))).toEqual([6, 0]);
    expect(evidence(4)).toEqual(["events", 4]);
    expect(evidence(6)).toEqual(["predicted", 6]);
    holds(core, "1", prompt(1, 8), 8, "device", 4);
    expect(evidence(8)).toEqual(["events", 8]);
  });

  test("what is predicted on the device no longer counts in the tiers below", () => {
    const core = corePool({ workers: workers(1), config });
    const tokens = prompt(1, 10);
    holds(core, "1", tokens, 2);
    holds(core, "1", tokens, 6, "host_pinned", 2);
    holds(core, "1", tokens, 9, "disk", 6);
    const overlapAfter = (blocks: number) => {
      core.select({ tokens: prompt(1, blocks) }).booking.free();
      const { overlap, booking } = core.select({ tokens });
      booking.abort();
      return [overlap.deviceBlocks, overlap.hostBlocks, overlap.diskBlocks];
    };
    expect(overlapAfter(1)).toEqual([2, 4, 3]);
    expect(overlapAfter(5)).toEqual([5, 1, 3]);
    expect(overlapAfter(8)).toEqual([8, 0, 1]);
    expect(overlapAfter(10)).toEqual([10, 0, 0]);
    expect(overlapOf(core, prompt(2, 10))).toEqual([0]); // and nothing stays in the columns
  });

  test("a rank whose engine drops its cache is believed to hold nothing", () => {
    const core = corePool({ workers: workers(2), config });
    core.select({ tokens: prompt(1, 4), ...on(1) }).booking.free();
    core.contents.clear(core.ranks.get("1", 0)!);
    expect(overlapOf(core, prompt(1, 4))).toEqual([0, 0]);
  });
});

describe("the memory budget", () => {
  test("is kept by ending the oldest predictions, which are counted; decisions go on", () => {
    const core = corePool({ workers: workers(1), config: { useKvEvents: false }, budgetBytes: 3 * 2 ** 20 });
    for (let i = 0; i < 3000; i++) core.select({ tokens: prompt(i, 500) }).booking.free();
    const { live, dropped } = core.predictions!.stats;
    expect(dropped).toBeGreaterThan(0);
    expect(core.counter(Counter.predictions)).toBe(live);
    expect(core.counter(Counter.bytes)).toBeLessThanOrEqual(3 * 2 ** 20);
    expect(overlapOf(core, prompt(2999, 500))).toEqual([500]);
    expect(overlapOf(core, prompt(0, 500))).toEqual([0]);
  });
});
