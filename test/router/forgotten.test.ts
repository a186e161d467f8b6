// Bookings that nobody holds any more, in a process whose garbage collector runs when it is told to.
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { expect, test } from "vitest";

const library = new URL("../../dist/index.js", import.meta.url).href;

interface Said {
  bookings: { live: number; forgotten: number; expired: number };
  active: number[][];
  warned: string[];
  [more: string]: unknown;
}

/** Runs code with a router `r` of two workers; it may `collect()`, and answers what it adds to `said`. */
async function run(code: string, config = "{}"): Promise<Said> {
  const script = `
    import { createRouter } from ${JSON.stringify(library)};
    const warned = [];
    const log = { debug() {}, info() {}, error() {}, warn: (_, { requestId }) => warned.push(requestId) };
    const workers = [{ workerId: 1, maxNumBatchedTokens: 1000 }, { workerId: 2, maxNumBatchedTokens: 1000 }];
    const r = await createRouter({ blockSize: 16, log, workers, config: ${config} });
    const tokens = Uint32Array.from({ length: 64 }, (_, i) => i);
    /** Lets go of what nobody holds until so many bookings were forgotten, and then some more. */
    async function collect(forgotten) {
      for (let more = 5, turn = 0; more > 0 && turn < 200; turn++) {
        gc();
        await new Promise((resolve) => setTimeout(resolve, 5));
        if (r.stats().bookings.forgotten >= forgotten) more--;
      }
    }
    const said = await (async () => { ${code} })();
    const active = r.loads().map((row) => [row.activePrefillTokens, row.activeDecodeBlocks, row.activeRequests]);
    console.log(JSON.stringify({ ...said, warned: warned.sort(), active, bookings: r.stats().bookings }));`;
  const options = ["--expose-gc", "--input-type=module", "--eval", script];
  return JSON.parse((await promisify(execFile)(process.execPath, options)).stdout) as Said;
}

const idle = [
  [0, 0, 0],
  [0, 0, 0],
];

test("a booking that nobody holds is freed, counted once and told; its id may be used again", async () => {
  const said = await run(`
    async function forget() {
      for (let i = 0; i < 10; i++) await r.select({ requestId: "s" + i, tokens });
      r.reserve({ requestId: "reserved", worker: { workerId: 1 }, sequenceHashes: [5n], islTokens: 16 });
    }
    await forget();
    const before = r.stats().bookings.live;
    await collect(11);
    const again = await r.select({ requestId: "s0", tokens });
    again.booking.free();
    return { before };`);
  expect(said).toMatchObject({ before: 11, bookings: { live: 0, forgotten: 11, expired: 0 }, active: idle });
  expect(said.warned).toEqual(["reserved", ...Array.from({ length: 10 }, (_, i) => `s${i}`)]);
});

test("one that is held is not: by its selection, by its booking, or by the answer that it follows", async () => {
  const said = await run(`
    const pinned = (workerId) => ({ tokens, pinnedWorker: { workerId } });
    const selection = await r.select(pinned(1));
    const { booking } = await r.select(pinned(1));
    const body = new ReadableStream({ pull: (controller) => controller.enqueue(new Uint8Array(1)) });
    const answer = await (await r.select(pinned(2))).track(new Response(body));
    await collect(0);
    const bookings = r.stats().bookings;
    selection.booking.free();
    booking.free();
    await answer.body.cancel();
    return { held: bookings };`);
  expect(said).toMatchObject({ held: { live: 3, forgotten: 0 }, bookings: { live: 0, forgotten: 0 }, active: idle });
});

test("what has ended is not counted, and an object that was only looked up owns nothing", async () => {
  const said = await run(`
    async function end() {
      for (const verb of ["free", "complete", "abort"]) (await r.select({ tokens })).booking[verb]();
      await (await (await r.select({ tokens })).track(new Response("yes"))).text();
    }
    const held = await r.select({ requestId: "held", tokens });
    await end();
    for (let i = 0; i < 10; i++) r.booking("held").sent();
    await collect(0);
    const { live } = r.stats().bookings;
    held.booking.free();
    return { live };`);
  expect(said).toMatchObject({ live: 1, bookings: { live: 0, forgotten: 0 }, warned: [] });
});

test("a request that waits, and that nobody awaits, makes room for the next", async () => {
  const said = await run(
    `
    const holders = [];
    for (const workerId of [1, 2]) holders.push(await r.select({ tokens, pinnedWorker: { workerId } }));
    void r.select({ requestId: "unawaited", tokens });
    const next = r.select({ tokens });
    holders[0].booking.free();
    await collect(1);
    const { worker, booking } = await next;
    holders[1].booking.free();
    booking.free();
    return { workerId: worker.workerId, pending: r.stats().queue.pending };`,
    "{ routerQueueThreshold: 0 }",
  );
  expect(said).toMatchObject({ workerId: "1", pending: 0, bookings: { live: 0, forgotten: 1 }, active: idle });
  expect(said.warned).toEqual(["unawaited"]);
});
