// The two-tier choice (spec/plugins.md §4.3): load first, then device overlap. It becomes costs,
// active requests for rows in question and +Infinity for others, so that the choice among them, its
// ties and its probabilities are those of temperature 0 (pick.ts).
//
//   params, 3 f64   | cache threshold θ | balance absolute threshold a | balance relative threshold r |
import { costColumn, deviceColumn, paddedRows, requestsColumn } from "../load/columns";
import { eligibleColumn } from "./eligible";

export const IMBALANCED: u32 = 0;
export const CACHED: u32 = 1;
export const LEAST_LOADED: u32 = 2;

/** Fills the cost column; answers the branch taken. `masked`: the column mask is filled. */
export function scoreTwoTier(params: usize, requestBlocks: f64, masked: bool): u32 {
  const gates = eligibleColumn(masked);
  const requests = requestsColumn();
  const device = deviceColumn();
  const out = costColumn();
  const end = <usize>paddedRows() << 3;
  let fewest = f64x2.splat(Infinity);
  let most = f64x2.splat(-Infinity);
  let longest = f64x2.splat(-Infinity);
  for (let i: usize = 0; i < end; i += 16) {
    const gate = v128.load(gates + i);
    const q = v128.load(requests + i);
    fewest = f64x2.pmin(fewest, f64x2.add(q, gate));
    most = f64x2.pmax(most, f64x2.sub(q, gate));
    longest = f64x2.pmax(longest, f64x2.sub(v128.load(device + i), gate));
  }
  const low = min(f64x2.extract_lane(fewest, 0), f64x2.extract_lane(fewest, 1));
  const high = max(f64x2.extract_lane(most, 0), f64x2.extract_lane(most, 1));
  const overlap = max(f64x2.extract_lane(longest, 0), f64x2.extract_lane(longest, 1));
  const imbalanced = high - low > load<f64>(params, 8) && high > load<f64>(params, 16) * low;
  const cached = !imbalanced && requestBlocks > 0 && overlap / requestBlocks > load<f64>(params);
  const wanted = f64x2.splat(cached ? overlap : -Infinity);
  for (let i: usize = 0; i < end; i += 16) {
    const cost = f64x2.add(v128.load(requests + i), v128.load(gates + i));
    const excluded = f64x2.lt(v128.load(device + i), wanted);
    v128.store(out + i, v128.bitselect(f64x2.splat(Infinity), cost, excluded));
  }
  return imbalanced ? IMBALANCED : cached ? CACHED : LEAST_LOADED;
}
