import { describe, expect, it } from "vitest";
import { compare, Disagreement, median, type Round, ratio, type Side } from "../../bench/harness.js";
import { line } from "../../bench/report.js";
import { measure, type Result, type Row, runSuites, type Suite } from "../../bench/rows.js";

const rounds = (...nanoseconds: number[]): Round[] => nanoseconds.map((n) => ({ nanoseconds: n, sum: "a" }));

const row = (name: string, better: "lower" | "higher" = "higher"): Row => ({
  name,
  of: "theirs",
  against: "ours",
  better,
  statistic: "median",
  target: 2,
  aim: 4,
});

/** A side that answers these rounds in turn and logs its turns. */
function side(name: string, list: readonly Round[], log: string[] = []): Side {
  let next = 0;
  return {
    name,
    round() {
      log.push(name);
      return list[next++]!;
    },
  };
}

describe("statistics", () => {
  it("takes the middle value", () => {
    expect(median([9, 1, 5])).toBe(5);
    expect(median([4, 1, 3, 2])).toBe(2.5);
  });

  it("takes the quotient of minima, or the median of paired quotients", () => {
    const theirs = rounds(10, 30, 8);
    const ours = rounds(2, 5, 4);
    expect(ratio(theirs, ours, "min")).toEqual({ ratio: 4, samples: [5, 6, 2] });
    expect(ratio(theirs, ours, "median")).toEqual({ ratio: 5, samples: [5, 6, 2] });
  });

  it("lets the sides alternate", async () => {
    const log: string[] = [];
    const result = await compare(side("a", rounds(4, 4, 4), log), side("b", rounds(2, 1, 2), log), 3, "median");
    expect(log).toEqual(["a", "b", "a", "b", "a", "b"]);
    expect(result).toEqual({ ratio: 2, samples: [2, 4, 2] });
  });

  it("has no ratio when answers differ in any round", () => {
    const theirs = rounds(1, 1);
    expect(() => ratio(theirs, [theirs[0]!, { nanoseconds: 1, sum: "b" }], "median")).toThrow(Disagreement);
  });
});

describe("suites", () => {
  const suite: Suite = {
    rows: [row("x/good"), row("x/bad"), row("x/absent"), row("x/forgotten")],
    async run(run) {
      await measure(run, "x/good", () => ({ ratio: 3, samples: [3, 2, 4] }));
      await measure(run, "x/bad", () => ratio(rounds(1), [{ nanoseconds: 1, sum: "b" }], "median"));
      run.report("x/absent", { skipped: "needs gcc" });
      run.report("x/unknown", { ratio: 1, samples: [] });
    },
  };

  it("reports each wanted row once, with a ratio, a note or an error", async () => {
    const results = await runSuites([suite], () => true, false);
    expect(results.map((result) => result.name)).toEqual(["x/good", "x/bad", "x/absent", "x/forgotten"]);
    const [good, bad, absent, forgotten] = results as [Result, Result, Result, Result];
    expect(good).toEqual({ ...row("x/good"), ratio: 3, samples: [3, 2, 4] });
    expect(bad.error).toContain("answers differ");
    expect("ratio" in bad).toBe(false);
    expect(absent).toEqual({ ...row("x/absent"), samples: [], skipped: "needs gcc" });
    expect(forgotten.error).toBeDefined();
  });

  it("leaves out what is not wanted and what does not exist", async () => {
    const wanted = new Set(["x/good", "no/such-row"]);
    const results = await runSuites([suite], (name) => wanted.has(name), false);
    expect(results.map((result) => result.name)).toEqual(["x/good"]);
  });

  it("turns a suite's failure into an error of its rows", async () => {
    const failing: Suite = {
      rows: [row("y/one"), row("y/two")],
      run(run) {
        run.report("y/one", { ratio: 1, samples: [1] });
        throw new Error("no memory");
      },
    };
    const results = await runSuites([failing], () => true, false);
    expect(results.map(({ ratio: value, error }) => [value, error])).toEqual([
      [1, undefined],
      [undefined, "no memory"],
    ]);
  });

  it("tells results as they come", async () => {
    const seen: string[] = [];
    await runSuites(
      [suite],
      () => true,
      false,
      (result) => seen.push(result.name),
    );
    expect(seen).toEqual(["x/good", "x/bad", "x/absent", "x/forgotten"]);
  });
});

describe("the table", () => {
  const verdict = (result: Partial<Result>, better: "lower" | "higher" = "higher") =>
    line({ ...row("z", better), samples: [], ...result });

  it("says whether target and aim are reached", () => {
    expect(verdict({ ratio: 1.9 })).toContain("missed");
    expect(verdict({ ratio: 2.1 })).toContain("met");
    expect(verdict({ ratio: 4 })).toContain("aim reached");
    expect(verdict({ ratio: 4.5 }, "lower")).toContain("missed");
    expect(verdict({ skipped: "needs gcc" })).toMatch(/skipped +needs gcc/);
    expect(verdict({ error: "answers differ" })).toMatch(/ERROR +answers differ/);
  });
});
