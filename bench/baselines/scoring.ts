// Scoring and choosing over typed arrays: the reference's exact cost for an ordinary request (device overlap only,
// prefill tracked, no decay), in the order of operations of spec/scheduling.md §4.3.
import type { Random } from "./random.js";

/** What is known of each rank: prefill tokens, decode blocks, device overlap, blocks of the prompt already active. */
export interface Columns {
  prefill: Float64Array;
  decode: Float64Array;
  device: Float64Array;
  active: Float64Array;
}

/** One request: prompt tokens, complete blocks. */
export interface Prompt {
  tokens: number;
  blocks: number;
}

export interface Weights {
  blockSize: number;
  overlapCredit: number;
  prefillScale: number;
}

export class Scoring {
  private readonly costs: Float64Array;
  private readonly weights: Float64Array;
  /** Cost of the row chosen last. */
  cost = Number.NaN;

  constructor(
    private readonly columns: Columns,
    private readonly settings: Weights,
    private readonly random: Random,
  ) {
    this.costs = new Float64Array(columns.prefill.length);
    this.weights = new Float64Array(columns.prefill.length);
  }

  /** The row of the lowest cost; one draw among several. */
  argmin(prompt: Prompt): number {
    const { prefill, decode, device, active } = this.columns;
    const { blockSize, overlapCredit, prefillScale } = this.settings;
    const { tokens, blocks } = prompt;
    const rows = prefill.length;
    let lowest = Number.POSITIVE_INFINITY;
    let chosen = -1;
    let tied = 0;
    for (let i = 0; i < rows; i++) {
      const overlap = device[i]!;
      const cached = overlap * blockSize;
      const left = tokens - cached;
      const work = (prefill[i]! + Math.max(0, left) + cached) / blockSize - overlapCredit * overlap;
      const cost = prefillScale * Math.max(0, work) + (decode[i]! + (blocks - active[i]!));
      if (cost < lowest) {
        lowest = cost;
        chosen = i;
        tied = 1;
      } else if (cost === lowest) tied++;
    }
    this.cost = lowest;
    return tied > 1 ? this.tiedRow(prompt, lowest, Math.floor(this.random.unit() * tied)) : chosen;
  }

  private tiedRow(prompt: Prompt, lowest: number, which: number): number {
    this.score(prompt);
    let left = which;
    for (let i = 0; ; i++) if (this.costs[i] === lowest && left-- === 0) return i;
  }

  private score({ tokens, blocks }: Prompt): void {
    const { prefill, decode, device, active } = this.columns;
    const { blockSize, overlapCredit, prefillScale } = this.settings;
    const costs = this.costs;
    for (let i = 0; i < costs.length; i++) {
      const overlap = device[i]!;
      const cached = overlap * blockSize;
      const left = tokens - cached;
      const work = (prefill[i]! + Math.max(0, left) + cached) / blockSize - overlapCredit * overlap;
      costs[i] = prefillScale * Math.max(0, work) + (decode[i]! + (blocks - active[i]!));
    }
  }

  /** A row by softmax over the costs, normalised by their range; always one draw. */
  softmax(prompt: Prompt, temperature: number): number {
    this.score(prompt);
    const { costs, weights } = this;
    const rows = costs.length;
    let lowest = Number.POSITIVE_INFINITY;
    let highest = Number.NEGATIVE_INFINITY;
    for (let i = 0; i < rows; i++) {
      const cost = costs[i]!;
      if (cost < lowest) lowest = cost;
      if (cost > highest) highest = cost;
    }
    const range = highest - lowest;
    const slope = range > 0 ? -1 / (range * temperature) : 0;
    let total = 0;
    for (let i = 0; i < rows; i++) {
      const weight = Math.exp((costs[i]! - lowest) * slope);
      weights[i] = weight;
      total += weight;
    }
    const target = this.random.unit() * total;
    let reached = 0;
    let row = 0;
    for (; row < rows - 1; row++) {
      reached += weights[row]!;
      if (reached >= target) break;
    }
    this.cost = costs[row]!;
    return row;
  }
}
