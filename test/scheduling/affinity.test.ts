import { describe, expect, test } from "vitest";
import { SessionAffinity } from "../../src/scheduling/sessions/affinity.js";
import { VirtualClock } from "../../src/testing/virtual-clock.js";

const rank = (n: number) => ({ workerId: `${n}`, dpRank: 0 });

function setUp(maxIdle?: number) {
  const clock = new VirtualClock();
  const affinity = new SessionAffinity({ clock, ttlMs: 1000, ...(maxIdle !== undefined && { maxIdle }) });
  const turn = (session: string, n: number) => {
    affinity.began(session);
    affinity.answered(session, rank(n));
    affinity.ended(session);
  };
  return { clock, affinity, turn };
}

describe("session affinity (scheduling.md §6)", () => {
  test("a binding ends when the session was idle for its time, and is counted", async () => {
    const { clock, affinity, turn } = setUp();
    turn("s", 1);
    await clock.advance(999);
    expect(affinity.target("s")).toEqual(rank(1));
    await clock.advance(1);
    expect(affinity.target("s")).toBeUndefined();
    expect([affinity.size, affinity.expired, clock.armed]).toEqual([0, 1, 0]);
  });

  test("live requests hold it, and the last of them begins its time", async () => {
    const { clock, affinity, turn } = setUp();
    turn("s", 1);
    affinity.began("s");
    affinity.began("s");
    await clock.advance(5000);
    affinity.ended("s");
    await clock.advance(5000);
    expect(affinity.target("s")).toEqual(rank(1));
    affinity.answered("s", rank(1));
    affinity.ended("s");
    await clock.advance(999);
    expect(affinity.target("s")).toEqual(rank(1));
    await clock.advance(1);
    expect(affinity.target("s")).toBeUndefined();
  });

  test("requests that no worker answered hold it while they are live, and no longer", async () => {
    const { clock, affinity, turn } = setUp();
    turn("s", 1);
    await clock.advance(600);
    affinity.began("s");
    await clock.advance(300);
    affinity.ended("s");
    turn("other", 2);
    await clock.advance(99);
    expect(affinity.target("s")).toEqual(rank(1));
    await clock.advance(1);
    expect(affinity.target("s")).toBeUndefined();
    expect(affinity.target("other")).toEqual(rank(2));
    affinity.began("s");
    await clock.advance(5000);
    affinity.ended("s");
    expect([affinity.target("s"), affinity.size]).toEqual([undefined, 0]);
  });

  test("beyond the most idle ones the longest idle goes, and is counted", () => {
    const { affinity, turn } = setUp(2);
    for (const [n, session] of ["a", "b", "a", "c"].entries()) turn(session, n);
    expect(["a", "b", "c"].map((session) => affinity.target(session)?.workerId)).toEqual(["2", undefined, "3"]);
    expect([affinity.size, affinity.evicted, affinity.expired]).toEqual([2, 1, 0]);
  });

  test("a session that no rank answered is not kept", () => {
    const { affinity } = setUp();
    affinity.began("s");
    expect(affinity.size).toBe(1);
    affinity.ended("s");
    affinity.ended("s");
    expect(affinity.size).toBe(0);
  });

  test("a rank that goes takes its bindings, also of sessions with live requests", () => {
    const { affinity, turn } = setUp();
    turn("idle", 1);
    turn("live", 1);
    turn("other", 2);
    affinity.began("live");
    affinity.rankGone(rank(1));
    expect(["idle", "live", "other"].map((session) => affinity.target(session)?.workerId)).toEqual([
      undefined,
      undefined,
      "2",
    ]);
  });
});
