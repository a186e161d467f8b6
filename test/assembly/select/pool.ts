// One kernel instance with rows that a test fills directly.
import { type CostParams, type CostRequest, type CostRow, type CostTerms, DEFAULT_PARAMS } from "../../oracle/cost.js";
import { instantiateEntry } from "../compile.js";

interface SelectExports {
  memory: WebAssembly.Memory;
  arenaInit(from: number, budget: bigint): void;
  take(bytes: number): number;
  ranksInit(maxRanks: number): number;
  rankAdd(slot: number, workerId: bigint, dpRank: number): number;
  rankFlags(slot: number, flags: number): number;
  columnAddress(column: number): number;
  scoreRows(params: number, tokens: number, size: number, request: number, sequences: number, flags: number): void;
  scoreRow(
    row: number,
    params: number,
    tokens: number,
    size: number,
    request: number,
    sequences: number,
    flags: number,
    out: number,
  ): number;
  explainRow(row: number, out: number): number;
  scoreTwoTier(params: number, requestBlocks: number, masked: number): number;
  pickRow(temperature: number): number;
  pickMinimum(): number;
  pickTied(): number;
  pickTieIndex(): number;
  pickDraw(): number;
  fillProbabilities(temperature: number): void;
  randomSeed(seed: bigint): void;
  randomNext(): bigint;
  randomUnit(): number;
  randomSave(out: number): void;
  randomRestore(from: number): number;
  exp(x: number): number;
  tanh(x: number): number;
  taintMultiplier(sum: number): number;
}

export const FLAG = { track: 1, decode: 2, lower: 4, shared: 8, taints: 16, mask: 32 } as const;

const COLUMNS = {
  prefill: 0,
  decode: 1,
  requests: 2,
  device: 4,
  host: 5,
  disk: 6,
  shared: 7,
  active: 8,
  taint: 9,
} as const;
const COST = 10;
const PROBABILITY = 11;
const MASK = 13;

const TERMS = [
  "rawPrefillBlocks",
  "decay",
  "deviceCredit",
  "hostCredit",
  "diskCredit",
  "sharedCredit",
  "prefillCost",
  "decodeBlocks",
  "activeRequestCost",
  "taintMultiplier",
] as const satisfies (keyof CostTerms)[];

export class Pool {
  readonly kernel = instantiateEntry<SelectExports>("select");
  private rows = 0;
  private scratch = 0;

  /** Starts again with `rows` idle ranks, worker ids 1, 2, … */
  reset(rows: number): void {
    const { kernel } = this;
    kernel.arenaInit(0, 1n << 30n);
    kernel.ranksInit(Math.max(rows, 1));
    for (let slot = 0; slot < rows; slot++) kernel.rankAdd(slot, BigInt(slot + 1), 0);
    this.rows = rows;
    this.scratch = kernel.take(256) >>> 0;
  }

  column(column: number): Float64Array {
    return new Float64Array(this.kernel.memory.buffer, this.kernel.columnAddress(column) >>> 0, this.rows);
  }

  fill(rows: readonly CostRow[]): void {
    this.reset(rows.length);
    for (const [name, column] of Object.entries(COLUMNS)) {
      const view = this.column(column);
      for (const [i, row] of rows.entries()) view[i] = row[name as keyof typeof COLUMNS];
    }
    this.exclude(rows);
  }

  /** Excludes every other ineligible row by flag, the rest by mask. */
  private exclude(rows: readonly CostRow[]): void {
    const mask = new Uint8Array(this.kernel.memory.buffer, this.kernel.columnAddress(MASK) >>> 0, rows.length);
    for (const [i, row] of rows.entries()) {
      if (row.eligible) continue;
      if (i % 2) mask[i] = 1;
      else this.kernel.rankFlags(i, 1);
    }
  }

  private writeParams(p: CostParams): void {
    const { credit, decay, prefillScale, requestWeight, hostWeight, diskWeight, sharedWeight, temperature } = p;
    const values = [credit, decay, prefillScale, requestWeight, hostWeight, diskWeight, sharedWeight, temperature];
    new Float64Array(this.kernel.memory.buffer, this.scratch, 8).set(values);
  }

  score(
    request: CostRequest,
    params: CostParams = DEFAULT_PARAMS,
    more = FLAG.lower | FLAG.shared | FLAG.mask,
  ): number[] {
    this.writeParams(params);
    const { promptTokens, blockSize, requestBlocks, sequenceBlocks } = request;
    const flags = flagsOf(request) | more;
    this.kernel.scoreRows(this.scratch, promptTokens, blockSize, requestBlocks, sequenceBlocks, flags);
    return [...this.column(COST)];
  }

  scoreOne(row: number, request: CostRequest, params: CostParams): number {
    this.writeParams(params);
    const { promptTokens: n, blockSize: b, requestBlocks: r, sequenceBlocks: s } = request;
    const flags = flagsOf(request) | FLAG.lower | FLAG.shared;
    return this.kernel.scoreRow(row, this.scratch, n, b, r, s, flags, this.scratch + 64);
  }

  explain(row: number): { terms: CostTerms; cost: number } {
    const cost = this.kernel.explainRow(row, this.scratch + 64);
    const values = new Float64Array(this.kernel.memory.buffer, this.scratch + 64, TERMS.length);
    return { cost, terms: Object.fromEntries(TERMS.map((name, i) => [name, values[i]!])) as unknown as CostTerms };
  }

  twoTier(
    requestBlocks: number,
    theta: number,
    absolute: number,
    relative: number,
  ): "imbalanced" | "cached" | "least_loaded" {
    new Float64Array(this.kernel.memory.buffer, this.scratch, 3).set([theta, absolute, relative]);
    return (["imbalanced", "cached", "least_loaded"] as const)[
      this.kernel.scoreTwoTier(this.scratch, requestBlocks, 1)
    ]!;
  }

  costs(): number[] {
    return [...this.column(COST)];
  }

  setCosts(costs: readonly number[]): void {
    this.column(COST).set(costs);
  }

  probabilities(temperature: number): number[] {
    this.kernel.fillProbabilities(temperature);
    return [...this.column(PROBABILITY)];
  }
}

function flagsOf(request: CostRequest): number {
  return (request.track ? FLAG.track : 0) | (request.decodeRole ? FLAG.decode : 0) | (request.taints ? FLAG.taints : 0);
}
