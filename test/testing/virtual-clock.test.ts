import { expect, test } from "vitest";
import { armTimer } from "../../src/core/clock.js";
import { VirtualClock } from "../../src/testing/virtual-clock.js";

test("timers run as the clock passes them, the earliest first, those of one instant as they were armed", async () => {
  const clock = new VirtualClock(1000);
  const ran: [string, number][] = [];
  const arm = (name: string, ms: number) => armTimer(clock, () => ran.push([name, clock.now()]), ms);
  arm("late", 300);
  arm("early", 100);
  arm("early too", 100);
  const back = arm("taken back", 50);
  back();
  expect(clock.armed).toBe(3);
  await clock.advance(299);
  expect(ran).toEqual([
    ["early", 1100],
    ["early too", 1100],
  ]);
  await clock.advance(1);
  expect(ran.at(-1)).toEqual(["late", 1300]);
  expect([clock.now(), clock.armed]).toEqual([1300, 0]);
});

test("what a timer starts settles before the next runs, also timers that it arms", async () => {
  const clock = new VirtualClock();
  const ran: string[] = [];
  armTimer(
    clock,
    () => {
      void Promise.resolve().then(() => ran.push("started by the first"));
      armTimer(clock, () => ran.push("armed by the first"), 5);
    },
    10,
  );
  armTimer(clock, () => ran.push("second"), 12);
  await clock.advance(20);
  expect(ran).toEqual(["started by the first", "second", "armed by the first"]);
});
