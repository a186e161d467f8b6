import { describe, expect, test } from "vitest";
import type { WorkerRank } from "../../src/core/types.js";
import { type BookingObserver, type BookingOwner, PoolBooking } from "../../src/scheduling/bookings/booking.js";

const rank: WorkerRank = { workerId: "7", dpRank: 1 };

/** A booking of a 10-token prompt on blocks of 4, and what its observer and its pool hear, in order. */
function follow({ tracksOutputBlocks = false, observed = true } = {}) {
  const heard: string[] = [];
  const at = ({ workerId, dpRank }: WorkerRank) => `${workerId}/${dpRank}`;
  const owner: BookingOwner = {
    blockSize: 4,
    tracksOutputBlocks,
    nowMs: () => 0,
    bookingPrefillComplete: () => heard.push("pool: prefill complete"),
    bookingOutputBlocks: (_, more) => heard.push(`pool: ${more} output blocks`),
    bookingFree: (booking) => {
      booking.live = false;
      heard.push("pool: free");
    },
  };
  const observer: BookingObserver = {
    selected: (worker) => heard.push(`selected ${at(worker)}`),
    sent: (worker) => heard.push(`sent ${at(worker)}`),
    responding: (worker) => heard.push(`responding ${at(worker)}`),
    generated: (n) => heard.push(`generated ${n}`),
    contextFloor: (tokens) => heard.push(`floor ${tokens}`),
    retry: () => heard.push("retry"),
    completed: () => heard.push("completed"),
    aborted: (error) => heard.push(error === undefined ? "aborted" : `aborted ${error}`),
  };
  const booking = new PoolBooking(owner, "r", rank, 0, 1, 1, 10, 0);
  if (observed) booking.observe(observer);
  return { booking, heard };
}

type Verbs = (booking: PoolBooking) => void;

const began = ["sent 7/1", "responding 7/1", "pool: prefill complete"];

describe("what an observer hears, before the pool frees the charges", () => {
  const rows: [name: string, verbs: Verbs, heard: string[]][] = [
    ["nothing but the rank", () => {}, []],
    ["sent", (b) => b.sent(), ["sent 7/1"]],
    ["the first token implies sent", (b) => b.firstToken(), began],
    ["so does the end of prefill", (b) => b.prefillComplete(), began],
    ["tokens imply the first one", (b) => b.tokens(3), [...began, "generated 3"]],
    ["tokens after the first one", (b) => [b.firstToken(), b.tokens(3)], [...began, "generated 3"]],
    ["no tokens", (b) => b.tokens(0), ["generated 0"]],
    ["an output block is no token", (b) => b.outputBlock(), ["pool: 1 output blocks"]],
    ["complete", (b) => b.complete(), ["completed", "pool: free"]],
    ["free", (b) => b.free(), ["completed", "pool: free"]],
    ["abort", (b) => b.abort(), ["aborted", "pool: free"]],
    ["abort with an error", (b) => b.abort("why"), ["aborted why", "pool: free"]],
    ["its rank is lost", (b) => b.lost("worker removed"), ["aborted worker removed"]],
    ["dispose", (b) => b[Symbol.dispose](), ["aborted", "pool: free"]],
    ["retry", (b) => b.retry(), ["retry", "pool: free"]],
  ];
  test.each(rows)("%s", (_, verbs, expected) => {
    const { booking, heard } = follow();
    verbs(booking);
    expect(heard).toEqual(["selected 7/1", ...expected]);
  });
});

test("a booking ends once, and says nothing afterwards", () => {
  const ends: Verbs[] = [
    (b) => b.complete(),
    (b) => b.abort(),
    (b) => b.free(),
    (b) => b.retry(),
    (b) => b[Symbol.dispose](),
  ];
  for (const first of ends) {
    const { booking, heard } = follow();
    first(booking);
    const soFar = heard.length;
    for (const second of ends) second(booking);
    booking.sent();
    booking.firstToken();
    booking.tokens(5);
    booking.outputBlock();
    booking.complete({ total_tokens: 50 });
    expect(heard.length).toBe(soFar);
    expect(soFar).toBe(3);
  }
});

test("an observer that comes after the end hears nothing", () => {
  const { booking, heard } = follow({ observed: false });
  booking.free();
  const late = follow();
  booking.observe({ ...({} as BookingObserver), selected: () => heard.push("selected") });
  expect(heard).toEqual(["pool: free"]);
  expect(late.heard).toEqual(["selected 7/1"]);
});

test("tokens are heard whether or not output blocks are charged", () => {
  const { booking, heard } = follow({ tracksOutputBlocks: true });
  booking.tokens(1);
  booking.tokens(5);
  // 10 prompt tokens fill 2 blocks of 4; 11 still 2; 16 fill 4.
  expect(heard).toEqual(["selected 7/1", ...began, "generated 1", "generated 5", "pool: 2 output blocks"]);
  expect(booking.generated).toBe(6);
  expect(() => booking.tokens(-1)).toThrow("tokens is not an integer");
});

describe("complete(usage) floors the context by what the engine reports", () => {
  const rows: [usage: unknown, floor: number | undefined][] = [
    [{ prompt_tokens: 10, completion_tokens: 5, total_tokens: 16 }, 16],
    [{ prompt_tokens: 10, completion_tokens: 5 }, 15],
    [{ completion_tokens: 5, total_tokens: Number.NaN }, 5],
    [{ prompt_tokens: -4, completion_tokens: "5", total_tokens: 1.5 }, 0],
    [{}, 0],
    ["usage", 0],
    [null, undefined],
    [undefined, undefined],
  ];
  test.each(rows)("%j", (usage, floor) => {
    const { booking, heard } = follow();
    booking.complete(usage as never);
    expect(heard).toEqual([
      "selected 7/1",
      ...(floor === undefined ? [] : [`floor ${floor}`]),
      "completed",
      "pool: free",
    ]);
  });
});

test("without an observer the pool hears the same", () => {
  const { booking, heard } = follow({ observed: false });
  booking.sent();
  booking.firstToken();
  booking.tokens(3);
  booking.complete({ total_tokens: 5 });
  expect(heard).toEqual(["pool: prefill complete", "pool: free"]);
});
