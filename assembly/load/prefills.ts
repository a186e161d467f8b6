// The active prefills of each rank, first come first served, and how far the one in front has got by now
// (spec/scheduling.md §1.4). Its clock starts when it comes to the front, its anchor:
//
//   done   = floor(tokens · elapsed / duration)      0 where the duration is not known
//   active = sum − min(done, sum)                    every duration is known: it eats into those behind it
//   active = sum − min(done, its tokens)             some are not known
//
// The column `prefill` is `sum − done`. A rank's bookings are listed newest first, so who comes next is found
// by going back from the front; each booking is passed once.
import { OK, UNKNOWN_BOOKING } from "../status";
import { PREFILL, valueAt } from "./columns";
import { BELIEVED, chargeColumn, rowOf, slotAt } from "./ranks";
import { bookingAt, recordOf } from "./records";

const END: u32 = 0xffffffff;

/** The kernel's time in ms. */
let now: f64 = 0;
/** First of the slots whose front may have a duration, plus 1: others have nothing done. */
let listed: u32 = END;

export function prefillsInit(): void {
  listed = END;
}

/** Sets the time in ms; loads that are read from now on are those of that instant. */
export function prefillClock(nowMs: f64): void {
  now = nowMs;
  let next = listed;
  listed = END;
  while (next != END) {
    const s = slotAt(next - 1);
    const slot = next - 1;
    next = load<u32>(s, 56);
    store<u32>(s, 0, 56);
    settle(slot);
  }
}

/** A booking without prefill tokens begins to have `tokens`. */
export function prefillBegin(id: u32, slot: u32, tokens: f64): void {
  const s = slotAt(slot);
  store<f64>(bookingAt(id), tokens, 40);
  store<f64>(bookingAt(id), -1, 56);
  if (!tokens) return;
  chargeColumn(PREFILL, slot, tokens);
  store<u32>(s, load<u32>(s, 52) + 1, 52);
  if (!load<u32>(s, 48)) front(s, id);
  settle(slot);
}

/** A booking's prefill tokens count no longer, if it has any; it must still be in its rank's list. */
export function prefillEnd(id: u32): void {
  const b = bookingAt(id);
  const tokens = load<f64>(b, 40);
  if (!tokens) return;
  const slot = load<u32>(b, 20);
  const s = slotAt(slot);
  store<f64>(b, 0, 40);
  chargeColumn(PREFILL, slot, -tokens);
  if (load<f64>(b, 56) < 0) store<u32>(s, load<u32>(s, 52) - 1, 52);
  if (load<u32>(s, 48) == id) {
    let next = id;
    do next = load<u32>(bookingAt(next), 24);
    while (next && !load<f64>(bookingAt(next), 40));
    front(s, next);
  }
  settle(slot);
}

/** Tells how long the prefill of a booking takes alone, in ms; at most once, right after it is booked. */
export function bookingPrefillDuration(id: u32, generation: u32, ms: f64): i32 {
  const b = recordOf(id, generation);
  if (!b) return UNKNOWN_BOOKING;
  if (!load<f64>(b, 40) || load<f64>(b, 56) >= 0 || !(ms >= 0)) return OK;
  const slot = load<u32>(b, 20);
  const s = slotAt(slot);
  store<f64>(b, ms, 56);
  store<u32>(s, load<u32>(s, 52) - 1, 52);
  settle(slot);
  return OK;
}

/** How long a booking has been its rank's front, in ms; −1 when it is not. */
export function prefillElapsed(id: u32): f64 {
  const s = slotAt(load<u32>(bookingAt(id), 20) & ~BELIEVED);
  return load<u32>(s, 48) == id ? max(0, now - load<f64>(s, 32)) : -1;
}

/** A restored booking that is its rank's front has been so for `elapsed` ms. */
export function prefillResume(id: u32, elapsed: f64): void {
  const slot = load<u32>(bookingAt(id), 20) & ~BELIEVED;
  const s = slotAt(slot);
  if (elapsed < 0 || load<u32>(s, 48) != id) return;
  store<f64>(s, now - elapsed, 32);
  settle(slot);
}

/** Makes a booking the front as of now. */
function front(s: usize, id: u32): void {
  store<u32>(s, id, 48);
  store<f64>(s, now, 32);
}

/** Takes out of a rank's column what its front has done by now. */
function settle(slot: u32): void {
  const s = slotAt(slot);
  const id = load<u32>(s, 48);
  const before = load<f64>(s, 40);
  const b = bookingAt(id);
  const ms = id ? load<f64>(b, 56) : -1;
  let done: f64 = 0;
  if (ms >= 0) {
    const tokens = load<f64>(b, 40);
    done = tokens;
    if (ms > 0) done = Math.floor(tokens * max(0, now - load<f64>(s, 32)) / ms);
    done = min(done, load<u32>(s, 52) ? tokens : valueAt(PREFILL, rowOf(slot)) + before);
    if (!load<u32>(s, 56)) {
      store<u32>(s, listed, 56);
      listed = slot + 1;
    }
  }
  if (done == before) return;
  store<f64>(s, done, 40);
  chargeColumn(PREFILL, slot, before - done);
}
