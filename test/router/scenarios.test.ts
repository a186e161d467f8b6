// What users of the reference complained about, by its number in scheduling.md §10. Those that are not here stand where
// their part is tested; the name of each says its number.
import { describe, expect, test } from "vitest";
import "../../src/kernel/inlined.js";
import { openAiEdge } from "../../src/frontend/index.js";
import { hashTokens } from "../../src/kernel/hash.js";
import { perRow, RouterPlugins, WorkerInputs, WorkerSelectionPolicy } from "../../src/plugins.js";
import type { RouterOptions, Selection } from "../../src/router/contract.js";
import { createRouter } from "../../src/router/create-router.js";
import type { KvRouter } from "../../src/router/kv-router.js";
import { VirtualClock } from "../../src/testing/virtual-clock.js";

const SIZE = 16;
const ids = (n: number) => Array.from({ length: n }, (_, i) => ({ workerId: `${i + 1}` }));
const open = (options: Partial<RouterOptions>) => createRouter({ ...{ blockSize: SIZE, seed: 1 }, ...options });

/** Tokens that no other range has. */
const range = (from: number, n: number) => Uint32Array.from({ length: n }, (_, i) => from * 100_000 + i);
const joined = (...parts: Uint32Array[]) => Uint32Array.from(parts.flatMap((part) => [...part]));

/** Tells the router that a rank's cache holds a prompt. */
function holds(r: KvRouter, workerId: string, tokens: Uint32Array): void {
  const { blockHashes, sequenceHashes } = hashTokens(tokens, SIZE);
  expect(r.storeBlocks({ workerId, dpRank: 0 }, "device", null, sequenceHashes, blockHashes).applied).toBe(true);
}

let reserved = 0;
/** Prompt tokens, and no blocks, that a rank has to work on. */
const backlog = (r: KvRouter, workerId: string, islTokens: number, dpRank = 0) =>
  r.reserve({ requestId: `b${reserved++}`, worker: { workerId, dpRank }, sequenceHashes: [], islTokens });

/** How many of the selections each rank has. */
function counts(selections: readonly Selection[]): number[] {
  const of = new Map<string, number>();
  for (const { worker } of selections) {
    const key = `${worker.workerId}/${worker.dpRank}`;
    of.set(key, (of.get(key) ?? 0) + 1);
  }
  return [...of.values()];
}

test("scenario 1: routers that know nothing of each other spread equal workers", async () => {
  for (const routerTemperature of [0, 0.5]) {
    const selections: Selection[] = [];
    for (let seed = 0; seed < 160; seed++) {
      const r = await open({ seed, workers: ids(4), config: { routerTemperature } });
      selections.push(await r.select({ tokens: range(1, 100) }));
    }
    const of = counts(selections);
    expect(of).toHaveLength(4);
    // 5σ of 40 of 160.
    for (const n of of) expect(Math.abs(n - 40)).toBeLessThanOrEqual(27);
  }
});

test("scenario 2: a system prompt that one of eight holds does not give it all requests", async () => {
  const r = await open({ workers: ids(8) });
  const system = range(1, 10 * SIZE);
  holds(r, "1", system);
  const held: Selection[] = [];
  for (let i = 0; i < 64; i++) held.push(await r.select({ tokens: joined(system, range(2 + i, 30 * SIZE)) }));
  expect(held[0]!.worker.workerId).toBe("1");
  const of = counts(held);
  expect(of).toHaveLength(8);
  expect(Math.max(...of)).toBeLessThanOrEqual(16);
});

test("scenario 3: a prompt below one block is a tie; once a block of it is stored, its holder wins", async () => {
  const r = await open({ workers: ids(2) });
  const winners = new Set<string>();
  for (let i = 0; i < 64; i++) {
    const { candidates, worker, booking, reason } = await r.select({ tokens: range(1, 9), explain: true });
    expect(candidates!.map(({ cost }) => cost)).toEqual([0.5625, 0.5625]);
    expect(reason).toBe("no_signal");
    winners.add(worker.workerId);
    booking.free();
  }
  expect(winners.size).toBe(2);
  holds(r, "2", range(1, SIZE));
  for (let turn = SIZE; turn < 200; turn += 9) {
    const { worker, booking, reason } = await r.select({ tokens: range(1, turn) });
    expect([worker.workerId, reason]).toEqual(["2", "cost"]);
    booking.free();
  }
});

describe("scenario 4: five idle equal ranks get a fifth each of what is never freed", () => {
  test.each([
    ["by all their load", {}],
    ["without that of prefills", { routerTrackPrefillTokens: false }],
    ["without that of blocks", { routerTrackActiveBlocks: false }],
  ])("%s", async (_, more) => {
    const workers = ids(5).map((worker) => ({ ...worker, role: "decode" as const }));
    const r = await open({ workers, config: { overlapScoreCredit: 0, routerAssumeKvReuse: false, ...more } });
    const held: Selection[] = [];
    for (let i = 0; i < 500; i++) held.push(await r.select({ tokens: range(i % 7, 100), role: "decode" }));
    expect(counts(held)).toEqual([100, 100, 100, 100, 100]);
  });
});

describe("scenario 5: ties between the ranks of one worker", () => {
  const draw = async (seed: number, workers: RouterOptions["workers"]) => {
    const r = await open({ seed, workers: workers! });
    const picks: number[] = [];
    for (let i = 0; i < 4000; i++) {
      const { worker, booking } = await r.select({ tokens: range(1, 9) });
      picks.push(worker.dpRank + 2 * Number(worker.workerId));
      booking.free();
    }
    return picks;
  };
  const two = { workerId: "1", dpSize: 2 };
  const others = { workerId: "2", dpSize: 2 };

  test("are drawn evenly, whatever order they came in", async () => {
    for (const seed of [1, 2, 3]) {
      const picks = await draw(seed, [two, others]);
      // 5σ of 1,000 of 4,000.
      for (const rank of [2, 3, 4, 5]) {
        expect(Math.abs(picks.filter((pick) => pick === rank).length - 1000)).toBeLessThanOrEqual(137);
      }
      expect(await draw(seed, [others, two])).toEqual(picks);
    }
  });
});

test("scenario 6: with a weight for them, requests count, and for their rank alone", async () => {
  for (const decodeActiveRequestWeight of [0, 1]) {
    const r = await open({ workers: [{ workerId: "1", dpSize: 2 }], config: { decodeActiveRequestWeight } });
    for (let i = 0; i < 10; i++) backlog(r, "1", 0);
    const { candidates, selected } = r.probe({ tokens: range(1, SIZE) });
    const [busy, idle] = candidates.map(({ cost }) => cost!);
    expect(busy! - idle!).toBe(10 * decodeActiveRequestWeight);
    if (decodeActiveRequestWeight) expect(selected).toEqual({ workerId: "1", dpRank: 1 });
  }
});

test("scenario 7: ranks that start at 8 are 8 to 15, and a pin beside them is refused and books nothing", async () => {
  const r = await open({ workers: [{ workerId: "1", dpStart: 8, dpSize: 8 }] });
  const { candidates } = r.probe({ tokens: range(1, SIZE) });
  for (const rows of [candidates, r.loads()]) {
    expect(rows.map(({ dpRank }) => dpRank)).toEqual([8, 9, 10, 11, 12, 13, 14, 15]);
  }
  for (const dpRank of [0, 3, 7, 16]) {
    const pinnedWorker = { workerId: "1", dpRank };
    await expect(r.select({ tokens: range(1, SIZE), pinnedWorker })).rejects.toMatchObject({ code: "no_endpoints" });
  }
  expect(r.stats().bookings.live).toBe(0);
});

test("scenario 8: the chosen rank goes with the selection, its booking and its dispatch, also rank 0", async () => {
  const workers = [{ workerId: "1", dpSize: 2, url: "http://w", engine: "vllm" as const }];
  const r = await createRouter({ blockSize: SIZE, seed: 1, workers }, { entryPoint: "createRouter", edge: openAiEdge });
  const seen = new Set<number>();
  for (let i = 0; i < 4; i++) {
    const selection = await r.route({ prompt: `prompt ${i}` });
    const { dpRank } = selection.worker;
    seen.add(dpRank);
    expect(selection.booking.worker).toEqual({ workerId: "1", dpRank });
    expect(new Headers(selection.dispatch!.init.headers).get("x-data-parallel-rank")).toBe(`${dpRank}`);
    expect(r.booking(selection.requestId)!.worker.dpRank).toBe(dpRank);
  }
  expect([...seen].sort()).toEqual([0, 1]);
  for (const dpRank of [0, 1]) expect(backlog(r, "1", 1, dpRank).worker).toEqual({ workerId: "1", dpRank });
});

test("scenario 16: a worker with the whole prompt and three like it to do does not get it", async () => {
  const costs = async (requests: number, overlapScoreCreditDecay: number) => {
    const r = await open({ workers: ids(2), config: { overlapScoreCreditDecay } });
    holds(r, "1", range(1, 10 * SIZE));
    if (requests > 0) backlog(r, "1", requests * 10 * SIZE);
    const { candidates, selected } = r.probe({ tokens: range(1, 10 * SIZE) });
    return [...candidates.map(({ cost }) => cost), selected!.workerId];
  };
  // 10 blocks to prefill less the credit for 10, backlog, 10 blocks to decode.
  expect(await costs(0, 1)).toEqual([10, 20, "1"]);
  expect((await costs(1, 0)).slice(0, 2)).toEqual([20, 20]);
  expect(await costs(1, 1)).toEqual([25, 20, "2"]);
  expect(await costs(3, 1)).toEqual([47.5, 20, "2"]);
});

describe("scenario 17: routing groups that come and go", () => {
  const events = (r: KvRouter, i: number) =>
    r.applyEvent({
      worker_id: "1",
      event: { data: { stored: { parent_hash: 99, blocks: [{ block_hash: i, tokens_hash: i }] } } },
    });

  test.each([
    [1000, "with their worker", (r: KvRouter) => void r.removeWorker("1")],
    [100, "as their worker moves on", () => {}],
  ])(
    "%i times, %s, leave no memory and no timer behind, and what they counted stays counted",
    async (times, _, leave) => {
      const clock = new VirtualClock();
      const closed: string[] = [];
      const plugins = new RouterPlugins().withWorkerSelection(({ partition: { routingGroup } }) => {
        const scorers = [perRow(WorkerInputs.CACHE, () => 0)];
        return new WorkerSelectionPolicy({ label: "own", scorers, close: () => void closed.push(routingGroup) });
      });
      const r = await open({ clock, plugins, workers: [] });
      const bytes: number[] = [];
      for (let i = 0; i < times; i++) {
        const routingGroup = `g${i}`;
        r.addWorker({ workerId: "1", routingGroup });
        events(r, i);
        (await r.select({ tokens: range(1, 100), routingGroup })).booking.free();
        leave(r);
        bytes.push(r.stats().index.bytes);
      }
      expect(Math.max(...bytes.slice(20))).toBe(bytes[20]);
      expect(r.stats()).toMatchObject({ decisions: times, index: { orphans: times } });
      expect(closed.length).toBeGreaterThanOrEqual(times - 10);
      expect(closed).not.toContain(`g${times - 1}`);
      expect(clock.armed).toBe(0);
      await r.close();
      expect(new Set(closed).size).toBe(closed.length);
    },
  );

  test("a group whose only worker starts anew stays what it was, and what waits there is answered", async () => {
    const config = { routerQueueThreshold: 0 };
    const r = await open({ clock: new VirtualClock(), config, workers: [{ workerId: "1", maxNumBatchedTokens: 100 }] });
    const holder = await r.select({ tokens: range(1, 100) });
    const waiting = r.select({ tokens: range(2, 100) });
    r.removeWorker("1");
    await expect(waiting).rejects.toMatchObject({ code: "no_endpoints" });
    holder.booking.free();
    await expect(r.select({ tokens: range(3, 100) })).rejects.toMatchObject({ code: "no_endpoints" });
    r.addWorker({ workerId: "1" });
    (await r.select({ tokens: range(4, 100) })).booking.free();
    expect(r.stats()).toMatchObject({ decisions: 2, bookings: { live: 0 }, queue: { pending: 0 } });
  });
});
