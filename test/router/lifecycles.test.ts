// Whatever happens to requests, in whatever order: after each step the loads are those of the plain model, and in the
// end everything is at zero.
import fc from "fast-check";
import { expect, test } from "vitest";
import "../../src/kernel/inlined.js";
import { hashTokens } from "../../src/kernel/hash.js";
import type { Selection } from "../../src/router/contract.js";
import { createRouter } from "../../src/router/create-router.js";
import { VirtualClock } from "../../src/testing/virtual-clock.js";
import { LoadOracle, type OracleBooking } from "../oracle/load.js";

const SIZE = 4;
const RUNS = 200;
const STEPS = 1000;
const log = { error: () => {}, warn: () => {}, info: () => {}, debug: () => {} };

/** Prompts with shared beginnings, some with a partial block. */
const prompts = Array.from({ length: 12 }, (_, i) => {
  const blocks = 1 + (i % 5);
  const length = blocks * SIZE + (i % 3);
  const tokens = Uint32Array.from({ length }, (_, at) => (at < 2 * SIZE ? at + (i % 2) * 100 : at + i * 100));
  return { tokens, hashes: [...hashTokens(tokens, SIZE).sequenceHashes] };
});

const refusals = [
  ...["duplicate_request", "no_endpoints", "pinned_worker_overloaded", "all_eligible_workers_overloaded"],
  "AbortError",
];

interface Live {
  selection: Selection;
  oracle: OracleBooking;
}

async function run(predicts: boolean, steps: readonly (readonly [number, number, number])[]): Promise<void> {
  const clock = new VirtualClock();
  const router = await createRouter({
    ...{ blockSize: SIZE, seed: 5, clock, log, decisionLog: 16 },
    config: {
      ...{ routerQueueThreshold: 0.02, routerTrackOutputBlocks: true, sessionAffinityTtlSecs: 60 },
      ...(predicts && { routerPredictedTtlSecs: 5 }),
    },
  });
  const oracle = new LoadOracle();
  const live = new Map<string, Live>();
  const ended: Selection[] = [];
  const waiting = new Map<string, AbortController>();
  const settled = async () => {
    for (let i = 0; i < 12; i++) await null;
  };
  const key = (workerId: string, dpRank: number) => `${workerId}/${dpRank}`;
  const addWorker = (id: number) => {
    const known = router.workers().some(({ workerId }) => workerId === `${id}`);
    router.addWorker({ workerId: id, dpSize: 1 + (id % 2), maxNumBatchedTokens: 1000 });
    if (!known) for (let rank = 0; rank <= id % 2; rank++) oracle.addRank(key(`${id}`, rank));
  };
  const removeWorker = (id: number) => {
    if (!router.removeWorker(id)) return;
    for (let rank = 0; rank <= id % 2; rank++) {
      for (const booking of oracle.removeRank(key(`${id}`, rank))) {
        for (const [requestId, one] of live) if (one.oracle === booking) end(requestId, one);
      }
    }
  };
  const end = (requestId: string, { selection }: Live) => {
    live.delete(requestId);
    ended.push(selection);
  };
  const select = (a: number, b: number) => {
    const requestId = `r${a % 24}`;
    const { tokens, hashes } = prompts[b % prompts.length]!;
    const controller = new AbortController();
    const pin = a % 7 === 0 ? { pinnedWorker: { workerId: 1 + (b % 4), dpRank: 0 } } : {};
    const session = a % 3 === 0 ? { sessionId: `s${b % 5}` } : {};
    const isTaken = live.has(requestId) || waiting.has(requestId);
    if (!isTaken) waiting.set(requestId, controller);
    router
      .select(
        { ...{ requestId, tokens, strictPriority: b % 2, priorityJump: a % 4 }, ...pin, ...session },
        { signal: controller.signal },
      )
      .then(
        (selection) => {
          expect(isTaken).toBe(false);
          waiting.delete(requestId);
          const { worker, effectivePrefillTokens } = selection;
          if (predicts) expect(effectivePrefillTokens).toBeLessThanOrEqual(tokens.length);
          else expect(effectivePrefillTokens).toBe(tokens.length);
          const booking = oracle.book(key(worker.workerId, worker.dpRank), hashes, 0, effectivePrefillTokens);
          live.set(requestId, { selection, oracle: booking });
        },
        (error) => {
          if (!isTaken) waiting.delete(requestId);
          expect(refusals).toContain(error.name === "AbortError" ? error.name : error.code);
          if (isTaken) expect(error.code).toBe("duplicate_request");
        },
      );
  };
  const verb = (a: number, b: number) => {
    const [requestId, one] = [...live][a % (live.size || 1)] ?? [];
    if (requestId === undefined || !one) return;
    const { booking } = one.selection;
    const fraction = b % 3 === 0 ? undefined : (b % 5) / 4;
    switch (b % 6) {
      case 0:
      case 1:
        booking.prefillComplete();
        oracle.prefillComplete(one.oracle);
        return;
      case 2:
        booking.outputBlock(fraction);
        oracle.outputBlock(one.oracle, fraction);
        return;
      case 3:
        booking.abort(new Error("failed"));
        break;
      case 4:
        booking.complete();
        break;
      default:
        booking.free();
        booking.free();
    }
    oracle.free(one.oracle);
    end(requestId, one);
  };
  const late = (a: number) => {
    const booking = ended[a % (ended.length || 1)]?.booking;
    booking?.prefillComplete();
    booking?.outputBlock(0.5);
    booking?.tokens(99);
    booking?.free();
    booking?.abort();
  };
  const check = () => {
    for (const { workerId, dpRank, ...load } of router.loads())
      expect(load).toEqual(oracle.load(key(workerId, dpRank)));
    expect(router.stats()).toMatchObject({ bookings: { live: live.size }, queue: { pending: waiting.size } });
  };

  addWorker(1);
  addWorker(2);
  for (const [dice, a, b] of steps) {
    if (dice < 38) select(a, b);
    else if (dice < 82) verb(a, b);
    else if (dice < 87) late(a);
    else if (dice < 92) [...waiting.values()][a % (waiting.size || 1)]?.abort();
    else if (dice < 95) addWorker(1 + (a % 4));
    else if (dice < 97) removeWorker(1 + (a % 4));
    else
      router.setOverloaded(
        dice < 99
          ? [{ workerId: 1 + (a % 4) }].filter(({ workerId }) =>
              router.workers().some((w) => w.workerId === `${workerId}`),
            )
          : [],
      );
    await settled();
    // An overloaded fleet refuses; that is not what this is about.
    if (dice >= 97) router.setOverloaded([]);
    check();
  }
  while (live.size + waiting.size > 0) {
    for (const controller of waiting.values()) controller.abort();
    for (const [requestId, one] of [...live]) {
      one.selection.booking.free();
      oracle.free(one.oracle);
      end(requestId, one);
    }
    await settled();
  }
  check();
  for (const load of router.loads()) {
    expect(load).toMatchObject({ activePrefillTokens: 0, activeDecodeBlocks: 0, activeRequests: 0 });
  }
  expect(router.stats()).toMatchObject({ bookings: { live: 0, forgotten: 0, expired: 0 } });
  expect(router.stats().queue).toMatchObject({ pending: 0, pendingIslTokens: 0, byClass: {} });
  if (predicts) {
    await clock.advance(5000);
    expect(router.stats().predictions).toEqual({ live: 0, dropped: 0 });
  }
  expect(clock.armed).toBe(0);
  await router.close();
}

test(`scenario 11: ${RUNS} runs of ${STEPS} random steps end at zero`, { timeout: 300_000 }, async () => {
  const step = fc.tuple(fc.nat(99), fc.nat(1000), fc.nat(1000));
  const steps = fc.array(step, { minLength: STEPS, maxLength: STEPS });
  await fc.assert(fc.asyncProperty(fc.boolean(), steps, run), { numRuns: RUNS, endOnFailure: true });
});
