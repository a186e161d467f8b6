// The default cost, the two-tier choice and the picking of a row in plain TypeScript
// (spec/plugins.md §4, spec/scheduling.md §4).

export interface CostParams {
  credit: number;
  decay: number;
  prefillScale: number;
  requestWeight: number;
  hostWeight: number;
  diskWeight: number;
  sharedWeight: number;
  temperature: number;
}

export const DEFAULT_PARAMS: CostParams = {
  credit: 1,
  decay: 0,
  prefillScale: 1,
  requestWeight: 0,
  hostWeight: 0.75,
  diskWeight: 0.25,
  sharedWeight: 0,
  temperature: 0,
};

export interface CostRow {
  eligible: boolean;
  prefill: number;
  decode: number;
  requests: number;
  device: number;
  host: number;
  disk: number;
  shared: number;
  active: number;
  taint: number;
}

export const IDLE_ROW: CostRow = {
  eligible: true,
  prefill: 0,
  decode: 0,
  requests: 0,
  device: 0,
  host: 0,
  disk: 0,
  shared: 0,
  active: 0,
  taint: 0,
};

export interface CostRequest {
  promptTokens: number;
  blockSize: number;
  requestBlocks: number;
  sequenceBlocks: number;
  track: boolean;
  decodeRole: boolean;
  taints: boolean;
}

export interface CostTerms {
  rawPrefillBlocks: number;
  decay: number;
  deviceCredit: number;
  hostCredit: number;
  diskCredit: number;
  sharedCredit: number;
  prefillCost: number;
  decodeBlocks: number;
  activeRequestCost: number;
  taintMultiplier: number;
}

/** Terms of one row, in the order in which the kernel writes them, and its cost if it were eligible. */
export function rowCost(
  row: CostRow,
  p: CostParams,
  request: CostRequest,
  leastPrefill: number,
): { terms: CostTerms; cost: number } {
  const { promptTokens: N, blockSize: B, requestBlocks: R, track } = request;
  const exact = (row.device + row.host * p.hostWeight + row.disk * p.diskWeight) * B;
  const cached = Math.floor(exact) + (exact - Math.floor(exact) >= 0.5 ? 1 : 0);
  const raw = track ? (row.prefill + Math.max(0, N - cached) + cached) / B : 0;
  const backlog = Math.max(0, row.prefill - leastPrefill) / B;
  const decay = track && p.decay > 0 && R > 0 ? 1 / (1 + (p.decay * backlog) / R) : 1;
  const deviceCredit = p.credit * decay * row.device;
  const hostCredit = p.hostWeight * row.host;
  const diskCredit = p.diskWeight * row.disk;
  const sharedCredit = p.sharedWeight * row.shared;
  const credit = deviceCredit + hostCredit + diskCredit + sharedCredit;
  const prefillCost = p.prefillScale * Math.max(0, raw - credit);
  const decodeBlocks = row.decode + (request.sequenceBlocks - row.active);
  const activeRequestCost = p.requestWeight * row.requests;
  const taintMultiplier = request.taints ? Math.exp(-Math.tanh(row.taint)) : 1;
  const plainDecode = request.decodeRole && !track && p.credit > 0;
  const work = plainDecode ? Math.max(0, decodeBlocks - credit) : prefillCost + decodeBlocks;
  return {
    terms: {
      rawPrefillBlocks: raw,
      decay,
      deviceCredit,
      hostCredit,
      diskCredit,
      sharedCredit,
      prefillCost,
      decodeBlocks,
      activeRequestCost,
      taintMultiplier,
    },
    cost: (work + activeRequestCost) * taintMultiplier,
  };
}

/** The cost of each row; Infinity where it is not eligible. */
export function rowCosts(rows: readonly CostRow[], p: CostParams, request: CostRequest): number[] {
  const least = Math.min(...rows.filter((r) => r.eligible).map((r) => r.prefill));
  return rows.map((row) => (row.eligible ? rowCost(row, p, request, least).cost : Infinity));
}

export interface TwoTierParams {
  cacheThreshold: number;
  balanceAbsThreshold: number;
  balanceRelThreshold: number;
}

/** The two-tier choice as costs for temperature 0. */
export function twoTierCosts(
  rows: readonly CostRow[],
  requestBlocks: number,
  p: TwoTierParams,
): { branch: "imbalanced" | "cached" | "least_loaded"; costs: number[] } {
  const eligible = rows.filter((r) => r.eligible);
  const low = Math.min(...eligible.map((r) => r.requests));
  const high = Math.max(...eligible.map((r) => r.requests));
  const overlap = Math.max(...eligible.map((r) => r.device));
  const ratio = requestBlocks > 0 ? overlap / requestBlocks : 0;
  const imbalanced = high - low > p.balanceAbsThreshold && high > p.balanceRelThreshold * low;
  const cached = !imbalanced && ratio > p.cacheThreshold;
  const branch = imbalanced ? "imbalanced" : cached ? "cached" : "least_loaded";
  const costs = rows.map((r) => (r.eligible && (!cached || r.device === overlap) ? r.requests : Infinity));
  return { branch, costs };
}

/** Softmax weights before they are divided by their sum; 0 where the cost is Infinity. */
function weights(costs: readonly number[], temperature: number): number[] {
  const finite = costs.filter((c) => c < Infinity);
  const high = Math.max(...finite);
  const low = Math.min(...finite);
  const range = high * 0.25 - low * 0.25;
  const slope = range > 0 ? Math.max(-1 / (range * temperature), -Number.MAX_VALUE) : 0;
  return costs.map((c) => {
    if (c === Infinity) return 0;
    const x = (c * 0.25 - low * 0.25) * slope;
    return x >= -708 ? Math.exp(x) : 0;
  });
}

/** The sum of a group of 64 weights: that of its even rows plus that of its odd rows. */
function groupSum(group: readonly number[]): number {
  const sums = [0, 0];
  for (const [i, w] of group.entries()) sums[i % 2]! += w;
  return sums[0]! + sums[1]!;
}

function groupsOf(values: readonly number[]): number[][] {
  const groups: number[][] = [];
  for (let i = 0; i < values.length; i += 64) groups.push(values.slice(i, i + 64));
  return groups;
}

/** The chance of each row. */
export function probabilities(costs: readonly number[], temperature: number): number[] {
  const low = Math.min(...costs);
  if (low === Infinity) return costs.map(() => 0);
  if (temperature > 0) {
    const w = weights(costs, temperature);
    const total = groupsOf(w).reduce((sum, group) => sum + groupSum(group), 0);
    return w.map((x) => x / total);
  }
  const tied = costs.filter((c) => c === low).length;
  return costs.map((c) => (c === low ? 1 / tied : 0));
}

/** The chosen row, -1 when there is none. `unit` gives the next number in [0, 1). */
export function pickRow(costs: readonly number[], temperature: number, unit: () => number): number {
  const low = Math.min(...costs);
  if (low === Infinity) return -1;
  if (!(temperature > 0)) {
    const tied = [...costs.keys()].filter((row) => costs[row] === low);
    return tied.length === 1 ? tied[0]! : tied[Math.floor(unit() * tied.length)]!;
  }
  const w = weights(costs, temperature);
  const groups = groupsOf(w);
  const sums = groups.map(groupSum);
  const target = unit() * sums.reduce((a, b) => a + b, 0);
  let before = 0;
  let reached = 0;
  let chosen = 0;
  for (const [g, sum] of sums.entries()) {
    if (reached >= target && reached > 0) break;
    if (sum === 0) continue;
    chosen = g;
    before = reached;
    reached += sum;
  }
  let last = -1;
  for (const [i, weight] of groups[chosen]!.entries()) {
    if (weight === 0) continue;
    last = chosen * 64 + i;
    before += weight;
    if (before >= target) break;
  }
  return last;
}
