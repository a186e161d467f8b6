import { expect, test } from "vitest";
import { Random } from "../../src/core/random.js";
import { EventQueue } from "../../src/replay/event-queue.js";

test("events leave by time, and in order of entry within one instant", () => {
  const random = new Random(7n);
  const queue = new EventQueue<number>();
  const entered: { at: number; event: number }[] = [];
  const left: { at: number; event: number }[] = [];
  const drain = (n: number): void => {
    for (let i = 0; i < n; i++) {
      const { at, event } = queue.pop()!;
      left.push({ at, event });
    }
  };
  // Entries after a pop are never earlier than what left, as in a simulation.
  let now = 0;
  for (let i = 0; i < 2000; i++) {
    const at = now + random.below(20);
    queue.push(at, i);
    entered.push({ at, event: i });
    if (random.below(3) === 0) {
      drain(1);
      now = left[left.length - 1]!.at;
    }
  }
  drain(queue.size);
  expect(queue.pop()).toBeUndefined();
  expect(left).toEqual(entered.sort((a, b) => a.at - b.at || a.event - b.event));
});

test("an empty queue has nothing", () => {
  expect(new EventQueue().pop()).toBeUndefined();
});
