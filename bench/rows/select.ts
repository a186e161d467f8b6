// Scoring all ranks and choosing one: exact f64 costs over typed arrays in JavaScript, against the kernel.
import { Random } from "../baselines/random.js";
import { type Columns, type Prompt, scoring } from "../baselines/scoring.js";
import {
  compare,
  Disagreement,
  fresh,
  passesFor,
  ratio,
  type Side,
  takeTurns,
  timed,
  warmUp,
  wellBuilt,
} from "../harness.js";
import { type Exports, Pool } from "../kernel.js";
import { baselineRow, measure, type Row, type Run, roundsOf, type Suite } from "../rows.js";
import { sketchedScoring, sketchMissing } from "../sketches.js";
import { hex, wordSum } from "../workload/checksum.js";
import { mix32 } from "../workload/mix.js";

const ROUND_MS = 5;
const ROUNDS = 15;
const WARM_CALLS = 20_000;
const SEED = 7n;
const BLOCK_SIZE = 16;
const TEMPERATURE = 0.5;
/** The kernel's flag for tracked prefill, and its numbers of columns (assembly/select/cost.ts, assembly/load/ranks.ts). */
const TRACK = 1;
const COLUMN = { prefill: 0, decode: 1, device: 4, active: 8, cost: 10 } as const;
/** overlap credit, decay, prefill scale, request weight, host, disk and shared weights, temperature */
const PARAMETERS = [1, 0, 1, 0, 0.75, 0.25, 0, 0];

const weights = { blockSize: BLOCK_SIZE, overlapCredit: 1, prefillScale: 1 };

/** Ranks under load; one in eight holds some of the prompt, and one in sixteen works on some of it. */
function columnsOf(ranks: number): Columns {
  const column = (value: (rank: number) => number) => Float64Array.from({ length: ranks }, (_, rank) => value(rank));
  return {
    prefill: column((rank) => mix32(rank) % 8000),
    decode: column((rank) => mix32(rank + 100_000) % 900),
    device: column((rank) => (rank % 8 === 3 ? mix32(rank + 200_000) % 100 : 0)),
    active: column((rank) => (rank % 16 === 5 ? mix32(rank + 300_000) % 50 : 0)),
  };
}

/** Prompts of 1,600 to 12,000 tokens, or of one block. */
const promptsOf = (oneBlock: boolean): Prompt[] =>
  Array.from({ length: 64 }, (_, i) => {
    const tokens = oneBlock ? BLOCK_SIZE : 1600 + (mix32(i + 400_000) % 10_400);
    return { tokens, blocks: Math.floor(tokens / BLOCK_SIZE) };
  });

/** A side that chooses for each prompt. `reseed` makes the draws of a check start alike. */
function choosingSide(
  name: string,
  prompts: readonly Prompt[],
  pass: () => number,
  choose: (prompt: Prompt) => { row: number; cost: number },
  reseed: () => void,
): Side {
  const check = () => {
    reseed();
    const costs = new Float64Array(prompts.length);
    const rows = new Uint32Array(prompts.length);
    for (const [i, prompt] of prompts.entries()) {
      const chosen = choose(prompt);
      rows[i] = chosen.row;
      costs[i] = chosen.cost;
    }
    return hex(wordSum(rows) ^ wordSum(new Uint32Array(costs.buffer)));
  };
  warmUp(WARM_CALLS, prompts.length, pass);
  const passes = passesFor(ROUND_MS, pass);
  return { name, round: () => timed(prompts.length, passes, pass, check) };
}

/** Chooses for every prompt; refers to nothing outside itself. */
function choosing(
  { scoreRows, pickRow }: Exports,
  prompts: readonly Prompt[],
  parameters: number,
  size: number,
  flags: number,
  temperature: number,
): () => number {
  return () => {
    let sum = 0;
    for (let i = 0; i < prompts.length; i++) {
      const { tokens, blocks } = prompts[i]!;
      scoreRows(parameters, tokens, size, Math.ceil(tokens / size), blocks, flags);
      sum += pickRow(temperature);
    }
    return sum;
  };
}

function kernelSide(columns: Columns, prompts: readonly Prompt[], temperature: number): Side {
  const ranks = columns.prefill.length;
  const pool = new Pool({ ranks, budgetMiB: 64 });
  const { exports } = pool;
  for (const [name, values] of Object.entries(columns) as [keyof Columns, Float64Array][]) {
    pool.write(exports.column(COLUMN[name]) >>> 0, new Uint32Array(values.buffer));
  }
  const parameters = pool.put(new Uint32Array(Float64Array.from(PARAMETERS).buffer));
  const pass = fresh(choosing)(exports, prompts, parameters, BLOCK_SIZE, TRACK, temperature);
  const choose = ({ tokens, blocks }: Prompt) => {
    exports.scoreRows(parameters, tokens, BLOCK_SIZE, Math.ceil(tokens / BLOCK_SIZE), blocks, TRACK);
    const row = exports.pickRow(temperature);
    const cost = new Float64Array(exports.memory.buffer, exports.column(COLUMN.cost) >>> 0, ranks)[row]!;
    return { row, cost };
  };
  return choosingSide("kernel", prompts, pass, choose, () => exports.randomSeed(SEED));
}

function scriptSide(columns: Columns, prompts: readonly Prompt[], temperature: number): Side {
  const random = new Random(SEED);
  const baseline = fresh(scoring)(columns, weights, random);
  const pick =
    temperature === 0
      ? (prompt: Prompt) => baseline.argmin(prompt)
      : (prompt: Prompt) => baseline.softmax(prompt, temperature);
  const pass = () => {
    let sum = 0;
    for (let i = 0; i < prompts.length; i++) sum += pick(prompts[i]!);
    return sum;
  };
  const choose = (prompt: Prompt) => ({ row: pick(prompt), cost: baseline.cost() });
  return choosingSide("JavaScript", prompts, pass, choose, () => random.seed(SEED));
}

function sketchSide(columns: Columns, prompts: readonly Prompt[], temperature: number): Side {
  const random = new Random(SEED);
  const sketched = sketchedScoring(columns, weights, () => random.unit());
  const pick =
    temperature === 0
      ? (prompt: Prompt) => sketched.argmin(prompt)
      : (prompt: Prompt) => sketched.softmax(prompt, temperature);
  const pass = () => {
    let sum = 0;
    for (let i = 0; i < prompts.length; i++) sum += pick(prompts[i]!);
    return sum;
  };
  const choose = (prompt: Prompt) => {
    const row = pick(prompt);
    return { row, cost: sketched.cost(prompt, row) };
  };
  return choosingSide("b3.mjs", prompts, pass, choose, () => random.seed(SEED));
}

interface Shape {
  name: string;
  ranks: number;
  temperature: number;
  target: number;
  aim: number;
}

const shapes: readonly Shape[] = [
  { name: "argmin-512", ranks: 512, temperature: 0, target: 1.6, aim: 3 },
  { name: "argmin-4096", ranks: 4096, temperature: 0, target: 1.7, aim: 20 },
  { name: "softmax-512", ranks: 512, temperature: TEMPERATURE, target: 2, aim: 6 },
];

const selectRow = ({ name, ranks, target, aim }: Shape): Row => ({
  name: `select/${name}`,
  of: `JavaScript over typed arrays, ${ranks} ranks`,
  against: "kernel, exact f64 costs",
  better: "higher",
  statistic: "median",
  target,
  aim,
});

/** Time per rank at 10,000 ranks ÷ at 1,000. */
async function ranksRow(run: Run): Promise<void> {
  const sides = [10_000, 1000].map((ranks) => ({ ranks, side: kernelSide(columnsOf(ranks), promptsOf(true), 0) }));
  const turns = await takeTurns(
    sides.map(({ side }) => side),
    roundsOf(run, ROUNDS),
  );
  const [many, few] = sides.map(({ ranks }, i) => {
    const rounds = turns[i]!;
    if (rounds.some((round) => round.sum !== rounds[0]!.sum)) throw new Disagreement("the kernel's choices changed");
    return rounds.map((round) => ({ nanoseconds: round.nanoseconds / ranks, sum: "" }));
  });
  run.report("select/ranks-10k", ratio(many!, few!, "median"));
}

export const selectSuite: Suite = {
  rows: [
    ...shapes.map(selectRow),
    {
      name: "select/ranks-10k",
      of: "kernel, time per rank at 10,000 ranks, score and pick",
      against: "at 1,000 ranks",
      better: "lower",
      statistic: "median",
      target: 1.3,
      aim: 1,
    },
    ...shapes.map(({ name }) => baselineRow(name, "our loops", "b3.mjs, with the exact cost")),
  ],
  async run(run) {
    for (const { name, ranks, temperature } of shapes) {
      const columns = columnsOf(ranks);
      const prompts = promptsOf(false);
      const ours = () => wellBuilt(() => scriptSide(columns, prompts, temperature));
      await measure(run, `select/${name}`, async () =>
        compare(await ours(), kernelSide(columns, prompts, temperature), roundsOf(run, ROUNDS), "median"),
      );
      await measure(run, `baseline/${name}`, async () => {
        const missing = sketchMissing("b3.mjs");
        if (missing) return { skipped: missing };
        const sketched = await wellBuilt(() => sketchSide(columns, prompts, temperature));
        return compare(await ours(), sketched, roundsOf(run, ROUNDS), "median");
      });
    }
    if (run.wants("select/ranks-10k")) await ranksRow(run);
  },
};
