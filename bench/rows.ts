// The table of the bench: what a row is, and how the rows of one suite are run and collected.
import type { Measured, Statistic } from "./harness.js";

/** One row of the table. `ratio` = figure of `of` ÷ figure of `against`, where `against` is not a plain unit. */
export interface Row {
  readonly name: string;
  readonly of: string;
  readonly against: string;
  readonly better: "lower" | "higher";
  readonly statistic: Statistic;
  readonly target: number;
  readonly aim?: number;
}

export interface Result extends Row {
  ratio?: number;
  samples: number[];
  /** Why the row was not run. */
  skipped?: string;
  /** Why the row has no ratio. */
  error?: string;
}

/** What a suite finds out about one of its rows. */
export type Outcome = Measured | { skipped: string } | { error: string };

export interface Run {
  /** Fewer rounds and smaller sizes: right answers, no figures. */
  readonly quick: boolean;
  wants(name: string): boolean;
  report(name: string, outcome: Outcome): void;
}

/** Rows that share their data. `run` reports each wanted row once. */
export interface Suite {
  readonly rows: readonly Row[];
  run(run: Run): void | Promise<void>;
}

/** `full` rounds, or a few in a quick run. */
export const roundsOf = (run: Run, full: number): number => (run.quick ? 3 : full);

/** Measures one wanted row and reports its ratio, or the error that kept it from one. */
export async function measure(run: Run, name: string, work: () => Outcome | Promise<Outcome>): Promise<void> {
  if (!run.wants(name)) return;
  try {
    run.report(name, await work());
  } catch (error) {
    run.report(name, { error: error instanceof Error ? error.message : String(error) });
  }
}

/** The sketch's version of one of our baselines: a slow baseline would flatter every ratio that rests on it. */
export const baselineRow = (name: string, ours: string, sketch: string): Row => ({
  name: `baseline/${name}`,
  of: ours,
  against: sketch,
  better: "lower",
  statistic: "median",
  target: 1.15,
});

/** Runs the wanted rows of the suites in order; `done` sees each result as soon as it is known. */
export async function runSuites(
  suites: readonly Suite[],
  wants: (name: string) => boolean,
  quick: boolean,
  done: (result: Result) => void = () => {},
): Promise<Result[]> {
  const results: Result[] = [];
  for (const suite of suites) {
    const open = new Map(suite.rows.filter((row) => wants(row.name)).map((row) => [row.name, row]));
    if (open.size === 0) continue;
    const report = (name: string, outcome: Outcome): void => {
      const row = open.get(name);
      if (!row) return;
      open.delete(name);
      const result: Result = { ...row, samples: [], ...outcome };
      results.push(result);
      done(result);
    };
    try {
      await suite.run({ quick, wants: (name) => open.has(name), report });
    } catch (error) {
      for (const name of [...open.keys()])
        report(name, { error: error instanceof Error ? error.message : String(error) });
    }
    for (const name of [...open.keys()]) report(name, { error: "the suite did not report this row" });
  }
  return results;
}
