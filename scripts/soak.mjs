// Looks for what only time shows: load that stays, memory that grows. Runs the build; exits 1 when something is left.
//   npm run soak                             real time: random requests of every kind, and in the end nothing is left
//   npm run soak -- --minutes 60
//   npm run soak -- --lifecycles 1000000     equal requests: the heap does not grow with their number
import { setTimeout as sleep, setImmediate as turn } from "node:timers/promises";
import { parseArgs } from "node:util";
import { createRouter, parsePolicy } from "../dist/index.js";
import { Counter } from "../dist/kernel/abi.js";
import { SelectionCore } from "../dist/scheduling/selection-core.js";

const { values } = parseArgs({
  options: {
    minutes: { type: "string", default: "10" },
    lifecycles: { type: "string" },
    /** Lifecycles before the heap is first measured, and between two measurements. */
    every: { type: "string", default: "100000" },
  },
});

/** Every pool there is, to ask its kernel what the router's own figures cannot say. */
const pools = new Set();
const { addRank } = SelectionCore.prototype;
SelectionCore.prototype.addRank = function (...args) {
  pools.add(this);
  return addRank.apply(this, args);
};

const blockSize = 16;
const log = { debug() {}, info() {}, warn() {}, error: (...line) => fail(line) };
const below = (n) => Math.floor(Math.random() * n);
const oneOf = (list) => list[below(list.length)];
const mib = (bytes) => `${(bytes / 2 ** 20).toFixed(1)} MiB`;
const faults = [];
const fail = (what) => {
  faults.push(what);
  if (faults.length < 10) console.error("fault:", what);
};

/** What is wrong with a router on which nothing should be live. */
function leftovers(router) {
  const { bookings, queue } = router.stats();
  const left = router
    .loads()
    .filter((row) => row.activePrefillTokens !== 0 || row.activeDecodeBlocks !== 0 || row.activeRequests !== 0)
    .map((row) => `a load of ${JSON.stringify(row)}`);
  if (bookings.live !== 0) left.push(`${bookings.live} live bookings`);
  if (queue.pending !== 0 || queue.pendingIslTokens !== 0 || Object.keys(queue.byClass).length > 0) {
    left.push(`a queue of ${JSON.stringify(queue)}`);
  }
  for (const pool of pools) {
    const live = pool.counter(Counter.liveBookings);
    if (live !== 0) left.push(`${live} live bookings in a kernel`);
  }
  return left;
}

// ---- random requests in real time

const policy = `
default_policy_family: chat
uncached_isl_buckets: [{ min_tokens: 0, bucket: short }, { min_tokens: 200, bucket: long }]
policy_classes:
  - { name: chat-short, policy_family: chat, cache_bucket: short, queue_policy: fcfs, quantum: 100, prefill_busy_threshold: 2000 }
  - { name: chat-long, policy_family: chat, cache_bucket: long, queue_policy: wspt, quantum: 50, prefill_busy_threshold_frac: 0.5 }
  - { name: batch, queue_policy: wspt, quantum: 10, prefill_busy_threshold: 400, request_queue_limit_per_worker: 3 }
`;
/** What a request may be refused with while workers come and go. */
const refusals = new Set([
  ...["no_endpoints", "all_eligible_workers_overloaded", "pinned_worker_overloaded", "pinned_worker_not_allowed"],
  ...["queue_rejected", "duplicate_request", "lifecycle_ended", "unknown_worker"],
]);
const gaveUp = new Error("gave up");

/** A prompt that shares its beginning with others. */
function prompt() {
  const [family, shared, length] = [below(20), below(8) * blockSize, 1 + below(400)];
  return Uint32Array.from({ length }, (_, i) => (i < shared ? family * 10_000 + i : below(2 ** 32)));
}

function randomRequest() {
  const some = (odds, field) => (Math.random() < odds ? field() : {});
  return {
    tokens: prompt(),
    ...some(0.3, () => ({ requestId: `r${below(60)}` })),
    ...some(0.5, () =>
      Math.random() < 0.2
        ? { sessionContext: { sessionId: `s${below(200)}`, sessionFinal: true } }
        : { sessionId: `s${below(200)}` },
    ),
    ...some(0.4, () => ({ policyClass: oneOf(["chat", "batch", "unknown"]) })),
    ...some(0.2, () => ({ strictPriority: below(3) })),
    ...some(0.2, () => ({ priorityJump: Math.random() * 10 })),
    ...some(0.1, () => ({ pinnedWorker: { workerId: 1 + below(8) } })),
    ...some(0.1, () => ({ allowedWorkerIds: [1 + below(8), 1 + below(8)] })),
    ...some(0.1, () => ({ routingConstraints: { requiredTaints: ["fast"] } })),
    ...some(0.3, () => ({ expectedOutputTokens: below(500) })),
    ...some(0.2, () => ({ routingGroup: "other" })),
    ...some(0.1, () => ({ explain: true })),
  };
}

async function randomSoak(minutes) {
  const router = await createRouter({
    ...{ blockSize, log, decisionLog: true, policy: await parsePolicy(policy) },
    prefillLoadModel: ({ newTokens }) => newTokens / 10,
    config: { routerTrackOutputBlocks: true, sessionAffinityTtlSecs: 2, activeRequestExpirySecs: 1 },
  });
  const end = performance.now() + minutes * 60_000;
  let lifecycles = 0;
  const counts = { booked: 0, refused: 0, gaveUp: 0, silent: 0, dropped: 0 };
  const controllers = new Set();
  /** Bookings that somebody holds and says nothing of: their lease ends them. */
  const silent = new Set();

  const addWorker = (workerId) =>
    router.addWorker({
      ...{ workerId, dpSize: 1 + (workerId % 2), maxNumBatchedTokens: 1000, totalKvBlocks: 200 },
      ...{ taints: workerId % 3 === 0 ? ["fast"] : [], routingGroup: workerId > 6 ? "other" : "default" },
    });
  for (let id = 1; id <= 8; id++) addWorker(id);

  const pause = () => (Math.random() < 0.7 ? turn() : sleep(below(15)));

  /** Reads the answer of a dispatch that was given to the booking, as far as it gets. */
  async function follow(selection) {
    const kind = below(4);
    if (kind === 0) return selection.track(Promise.reject(gaveUp)).catch(() => {});
    const body = new ReadableStream({
      pull(controller) {
        const what = below(3);
        if (what === 0) controller.close();
        else if (what === 1 && kind === 1) controller.error(gaveUp);
        else controller.enqueue(new Uint8Array(10));
      },
      cancel: () => (Math.random() < 0.5 ? Promise.reject(gaveUp) : undefined),
    });
    const answer = await selection.track(new Response(body, { status: oneOf([200, 200, 500]) }));
    const reader = answer.body.getReader();
    try {
      while (!(await reader.read()).done) if (kind === 2 && Math.random() < 0.3) return void (await reader.cancel());
    } catch {
      // It broke off, as it was made to.
    }
  }

  /** From a selection to its end. */
  async function live(first) {
    let selection = first;
    for (let step = below(8); step > 0; step--) {
      await pause();
      const { booking } = selection;
      switch (below(6)) {
        case 0:
          booking.sent();
          break;
        case 1:
          booking.prefillComplete();
          break;
        case 2:
          booking.firstToken();
          booking.tokens(below(50));
          break;
        case 3:
          booking.outputBlock(Math.random() < 0.5 ? undefined : Math.random());
          break;
        case 4:
          booking.renew();
          break;
        default:
          if (Math.random() < 0.3) selection = await selection.retry();
      }
    }
    const { booking } = selection;
    switch (below(8)) {
      case 0:
        return follow(selection);
      case 1:
        booking.abort(Math.random() < 0.5 ? gaveUp : undefined);
        break;
      case 2:
        booking[Symbol.dispose]();
        break;
      case 3:
        booking.complete({ total_tokens: 100 });
        break;
      case 4:
        if (Math.random() < 0.8) break;
        if (Math.random() < 0.5) {
          counts.dropped++;
          return;
        }
        counts.silent++;
        silent.add(booking);
        return;
      default:
        booking.free();
    }
    booking.free();
    await pause();
    // Late verbs do nothing, also when the id lives again.
    oneOf([() => booking.free(), () => booking.prefillComplete(), () => booking.tokens(100), () => booking.abort()])();
    booking.free();
  }

  async function caller() {
    while (performance.now() < end) {
      const controller = new AbortController();
      controllers.add(controller);
      const giveUp = () => controller.abort(gaveUp);
      const when = below(20);
      if (when === 0) giveUp();
      try {
        const selecting = router.select(randomRequest(), { signal: controller.signal });
        if (when === 1) giveUp();
        if (when === 2) queueMicrotask(giveUp);
        if (when === 3) void turn().then(giveUp);
        if (when === 4) void sleep(below(30)).then(giveUp);
        const selection = await selecting;
        counts.booked++;
        await live(selection);
      } catch (error) {
        if (error === gaveUp) counts.gaveUp++;
        else if (refusals.has(error.code)) counts.refused++;
        else fail(error);
      }
      controllers.delete(controller);
      lifecycles++;
      await pause();
    }
  }

  /** Workers come, go, start anew and are taken out, and their engines report. */
  async function fleet() {
    let name = 1n;
    while (performance.now() < end) {
      await sleep(below(100));
      const workerId = 1 + below(8);
      const known = router.workers().some((worker) => worker.workerId === `${workerId}`);
      switch (below(8)) {
        case 0:
          router.removeWorker(workerId);
          break;
        case 1:
        case 2:
          addWorker(workerId);
          break;
        case 3:
          if (known) router.addWorker({ workerId, incarnation: `${below(3)}`, maxNumBatchedTokens: 1000 });
          break;
        case 4:
          router.setOverloaded(known && Math.random() < 0.5 ? [{ workerId }] : []);
          break;
        case 5:
          router.setAvailable(Math.random() < 0.3 ? [1, 2, 3, 7] : null);
          break;
        case 6:
          router.busyThresholds(Math.random() < 0.3 ? { activePrefillTokensThreshold: 3000 } : {});
          break;
        default: {
          const block = { block_hash: name++, tokens_hash: name * 7n };
          const data = Math.random() < 0.2 ? "cleared" : { stored: { parent_hash: null, blocks: [block] } };
          router.applyEvent({ worker_id: workerId, event: { data } });
        }
      }
      for (const booking of silent) if (!booking.live) silent.delete(booking);
      router.probe({ tokens: prompt() });
    }
    router.setOverloaded([]);
    router.setAvailable(null);
  }

  const line = () => {
    const { bookings, queue } = router.stats();
    const { live, forgotten, expired } = bookings;
    const left = Math.max(0, Math.round((end - performance.now()) / 1000));
    console.log(
      `${left} s to go: ${lifecycles} lifecycles, ${live} live, ${queue.pending} waiting, ` +
        `${forgotten} forgotten, ${expired} expired, heap ${mib(process.memoryUsage().heapUsed)}`,
    );
  };
  const report = setInterval(line, 30_000);
  const callers = Array.from({ length: 64 }, caller);
  const running = Promise.all([...callers, fleet()]);
  await sleep(Math.max(0, end - performance.now()));
  for (const controller of controllers) controller.abort(gaveUp);
  await running;
  clearInterval(report);
  for (const booking of silent) booking.free();
  // What was dropped is found by the collector, or by the lease.
  const patience = performance.now() + 10_000;
  while (router.stats().bookings.live > 0 && performance.now() < patience) await sleep(100);
  line();
  const { rejected, cancelled, overdue } = router.stats().queue;
  console.log(`ended: ${JSON.stringify({ ...counts, rejected, cancelled, overdue })}`);
  if (counts.booked === 0 || cancelled === 0) fail("nothing happened");
  for (const left of leftovers(router)) fail(left);
  await router.close();
}

// ---- equal requests

/**
 * After the warm-up V8 itself still moves by half of this. Over 900,000 lifecycles it is 1.2 bytes for each, so that the
 * smallest object that stays with every tenth is found.
 */
const mostGrowth = 2 ** 20;

async function equalSoak(total, every) {
  if (!globalThis.gc) throw new Error("the heap is measured after gc(): run node with --expose-gc");
  const router = await createRouter({
    ...{ blockSize, log, seed: 1, decisionLog: true },
    config: { routerQueueThreshold: 0, routerTrackOutputBlocks: true, sessionAffinityTtlSecs: 60 },
    workers: [1, 2, 3, 4].map((workerId) => ({ workerId, maxNumBatchedTokens: 1000 })),
  });
  const prompts = Array.from({ length: 64 }, (_, n) =>
    Uint32Array.from({ length: 100 }, (_, i) => (n >> 2) * 1000 + i),
  );
  /** Four go at once and four wait, of which one gives up; each is one lifecycle. */
  async function eight(n) {
    const controller = new AbortController();
    const select = (i) =>
      router.select(
        { tokens: prompts[(n + i) % prompts.length], sessionId: `s${i}`, expectedOutputTokens: 64 },
        i === 5 ? { signal: controller.signal } : {},
      );
    const selecting = Array.from({ length: 8 }, (_, i) => select(i));
    const lost = selecting[5].catch((error) => error);
    const first = await Promise.all(selecting.slice(0, 1));
    controller.abort(gaveUp);
    if ((await lost) !== gaveUp) fail("the one that gave up got a worker");
    const pending = selecting.filter((_, i) => i !== 0 && i !== 5);
    const end = ({ booking }) => {
      booking.firstToken();
      booking.tokens(100);
      booking.complete();
      booking.free();
    };
    first.forEach(end);
    await Promise.all(pending.map((selection) => selection.then(end)));
  }
  const measured = [];
  for (let done = 0; done < total; ) {
    for (const next = done + every; done < next; done += 8) await eight(done);
    // What one collection finds, its finalizers let go only after it.
    for (let i = 0; i < 3; i++) {
      gc();
      await sleep(10);
    }
    const { heapUsed } = process.memoryUsage();
    const { bytes } = router.stats().index;
    measured.push({ heapUsed, bytes });
    console.log(`${done} lifecycles: heap ${mib(heapUsed)}, kernel ${mib(bytes)}`);
  }
  const [first, last] = [measured[0], measured.at(-1)];
  if (measured.length < 2) fail("one measurement says nothing: give more lifecycles");
  const growth = last.heapUsed - first.heapUsed;
  console.log(`the heap grew by ${growth} bytes, the kernel by ${last.bytes - first.bytes}`);
  if (growth > mostGrowth) fail(`the heap grew by more than ${mib(mostGrowth)}`);
  if (last.bytes > first.bytes) fail("the kernel's memory grew");
  for (const left of leftovers(router)) fail(left);
  await router.close();
}

process.on("unhandledRejection", fail);
if (values.lifecycles === undefined) await randomSoak(Number(values.minutes));
else await equalSoak(Number(values.lifecycles), Number(values.every));
console.log(faults.length === 0 ? "nothing is left" : `${faults.length} faults`);
process.exitCode = faults.length === 0 ? 0 : 1;
