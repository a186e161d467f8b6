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

export interface Scoring {
  /** The row of the lowest cost; one draw among several. */
  argmin(prompt: Prompt): number;
  /** A row by softmax over the costs, normalised by their range; always one draw. */
  softmax(prompt: Prompt, temperature: number): number;
  /** Cost of the row chosen last. */
  cost(): number;
}

/** Refers to nothing outside itself, so that each user can have code of its own, with its arrays as constants. */
export function scoring(columns: Columns, weights: Weights, random: Random): Scoring {
  const { prefill, decode, device, active } = columns;
  const { blockSize, overlapCredit, prefillScale } = weights;
  const rows = prefill.length;
  const costs = new Float64Array(rows);
  const chances = new Float64Array(rows);
  let chosenCost = Number.NaN;

  function score({ tokens, blocks }: Prompt): void {
    for (let i = 0; i < rows; i++) {
      const cached = device[i]! * blockSize;
      const left = Math.max(0, tokens - cached);
      const work = Math.max(0, (prefill[i]! + left + cached) / blockSize - overlapCredit * device[i]!);
      costs[i] = prefillScale * work + (decode[i]! + (blocks - active[i]!));
    }
  }

  function tiedRow(prompt: Prompt, lowest: number): number {
    score(prompt);
    const tied: number[] = [];
    for (let i = 0; i < rows; i++) if (costs[i] === lowest) tied.push(i);
    return tied[Math.floor(random.unit() * tied.length)]!;
  }

  function argmin(prompt: Prompt): number {
    const { tokens, blocks } = prompt;
    let lowest = Number.POSITIVE_INFINITY;
    let first = -1;
    let last = -1;
    for (let i = 0; i < rows; i++) {
      const cached = device[i]! * blockSize;
      const left = Math.max(0, tokens - cached);
      const work = Math.max(0, (prefill[i]! + left + cached) / blockSize - overlapCredit * device[i]!);
      const cost = prefillScale * work + (decode[i]! + (blocks - active[i]!));
      // One branch, rarely taken: counting ties as they come costs a third more.
      if (cost <= lowest) {
        if (cost < lowest) first = i;
        last = i;
        lowest = cost;
      }
    }
    chosenCost = lowest;
    return first === last ? first : tiedRow(prompt, lowest);
  }

  function softmax(prompt: Prompt, temperature: number): number {
    score(prompt);
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
      const chance = Math.exp((costs[i]! - lowest) * slope);
      chances[i] = chance;
      total += chance;
    }
    const target = random.unit() * total;
    let reached = 0;
    let row = 0;
    for (; row < rows - 1; row++) {
      reached += chances[row]!;
      if (reached >= target) break;
    }
    chosenCost = costs[row]!;
    return row;
  }

  return { argmin, softmax, cost: () => chosenCost };
}
