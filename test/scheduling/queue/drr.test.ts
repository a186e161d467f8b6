import { describe, expect, test } from "vitest";
import { Random } from "../../../src/core/random.js";
import { DeficitRoundRobin, type RingClass } from "../../../src/scheduling/queue/drr.js";
import { Heap } from "../../../src/scheduling/queue/heap.js";

/** A class whose requests cost what the list says; `blocked` holds the first back. */
class Costs implements RingClass {
  readonly name: string;
  readonly quantum: number;
  readonly costs: number[];
  blocked = false;

  constructor(name: string, quantum: number, costs: number[]) {
    this.name = name;
    this.quantum = quantum;
    this.costs = costs;
  }
  get size() {
    return this.costs.length;
  }
  nextCost() {
    return this.blocked ? undefined : this.costs[0];
  }
}

function served(ring: DeficitRoundRobin<Costs>, most = 1000): string {
  let went = "";
  for (let queue = ring.next(); queue && went.length < most; queue = ring.next()) {
    const cost = queue.costs.shift()!;
    went += queue.name;
    ring.took(queue, cost);
  }
  return went;
}

function ringOf(...classes: Costs[]) {
  const ring = new DeficitRoundRobin<Costs>();
  for (const queue of classes) ring.add(queue);
  return ring;
}

const of = (n: number, cost: number) => new Array<number>(n).fill(cost);

describe("deficit round robin with carry (scheduling.md §5.4)", () => {
  test("one class alone keeps its order", () => {
    expect(served(ringOf(new Costs("a", 1, [500, 1, 70])))).toBe("aaa");
  });

  test("what is left of a quantum is carried: bursts stay together", () => {
    expect(served(ringOf(new Costs("a", 30, of(6, 10)), new Costs("b", 10, of(2, 10))))).toBe("aaabaaab");
  });

  test("shares are of cost, not of requests", () => {
    const a = new Costs("a", 100, of(1000, 100));
    const b = new Costs("b", 100, of(1000, 10));
    const went = served(ringOf(a, b), 440);
    expect([...went].filter((name) => name === "a").length).toBe(40);
  });

  test("when nobody can pay, all get as many rounds as the nearest needs", () => {
    expect(served(ringOf(new Costs("a", 1, [1000]), new Costs("b", 1, [900])))).toBe("ba");
    expect(served(ringOf(new Costs("a", 2, [1000]), new Costs("b", 1, [900])))).toBe("ab");
  });

  test("a class whose requests are held back earns nothing and keeps what it had; an empty one loses it", () => {
    const a = new Costs("a", 10, [5, 5, 5]);
    const b = new Costs("b", 10, of(3, 10));
    const ring = ringOf(a, b);
    expect(served(ring, 1)).toBe("a");
    // It has 5 left, and carries on with it once it may.
    a.blocked = true;
    expect(served(ring, 2)).toBe("bb");
    a.blocked = false;
    expect(served(ring)).toBe("aba");
    a.costs.push(15);
    b.costs.push(10);
    expect(served(ring, 1)).toBe("b");
  });
});

describe("the heap", () => {
  test("answers in order, also when entries leave from the middle", () => {
    const random = new Random(7n);
    const heap = new Heap<{ key: number; place: number }>((a, b) => a.key < b.key);
    let there: { key: number; place: number }[] = [];
    for (let i = 0; i < 20_000; i++) {
      if (random.double() < 0.55) {
        const entry = { key: random.double(), place: -1 };
        heap.add(entry);
        there.push(entry);
      } else if (there.length > 0) {
        const entry = random.double() < 0.5 ? heap.first! : there[Math.floor(random.double() * there.length)]!;
        if (entry === heap.first)
          expect(entry.key).toBe(Math.min(...there.slice(0, 500).map(({ key }) => key), entry.key));
        heap.remove(entry);
        there = there.filter((other) => other !== entry);
      }
      if (there.length > 300) {
        for (const entry of there.splice(50)) heap.remove(entry);
      }
      expect(heap.size).toBe(there.length);
    }
  });

  test("grows with the logarithm: 100 times as many take at most twice the comparisons", () => {
    const comparisons = (size: number) => {
      let count = 0;
      const random = new Random(3n);
      const heap = new Heap<{ key: number; place: number }>((a, b) => {
        count++;
        return a.key < b.key;
      });
      for (let i = 0; i < size; i++) heap.add({ key: random.double(), place: -1 });
      count = 0;
      for (let i = 0; i < 1000; i++) {
        heap.add({ key: random.double(), place: -1 });
        heap.remove(heap.first!);
      }
      return count / 1000;
    };
    const [few, many] = [comparisons(100), comparisons(10_000)];
    expect(many).toBeLessThanOrEqual(2.2 * few);
    expect(many).toBeLessThan(3 * Math.log2(10_000));
  });
});
