// The default cost of every row (spec/plugins.md §4.1, spec/scheduling.md §4.3), lower is better:
//
//   C       = round((device + host·h + disk·k) · B)            half away from zero
//   decay   = 1 / (1 + δ · ((A − Amin)⁺ / B) / R)              if prefill is tracked and δ > 0, else 1
//   credit  = γ·decay·device + h·host + k·disk + σ·shared
//   cost    = λ · max(0, ((A + max(0, N − C)) + C) / B − credit) + D + ω·Q
//   cost    = max(0, D − credit) + ω·Q                         plain decode: not tracked, γ > 0
//   cost    = D + ω·Q                                          not tracked otherwise
//
// with N prompt tokens, R request blocks, B block size, A prefill, Q requests,
// D = decode + (sequence blocks − active); then times the taint multiplier. Two rows at a time in
// f64, in the order written, so that equal rows are equal to the bit. Credits stay at γ = 0.
//
//   params, 8 f64   | γ | δ | λ | ω | h | k | σ | T |
import {
  ACTIVE,
  activeColumn,
  costColumn,
  DECODE,
  decodeColumn,
  DEVICE,
  deviceColumn,
  DISK,
  diskColumn,
  HOST,
  hostColumn,
  paddedRows,
  PREFILL,
  prefillColumn,
  REQUESTS,
  requestsColumn,
  SHARED,
  sharedColumn,
  TAINT,
  taintColumn,
  valueAt,
} from "../load/columns";
import { eligibleColumn } from "./eligible";
import { taintMultiplier, taintPair } from "./exp";

/** Prefill tokens are tracked: the prefill term counts. */
export const FLAG_TRACK: u32 = 1;
/** The pool's role is decode, without conditional disaggregation. */
export const FLAG_DECODE: u32 = 2;
/** The columns host and disk are filled. */
export const FLAG_LOWER: u32 = 4;
/** The column shared is filled. */
export const FLAG_SHARED: u32 = 8;
/** The column taint is filled. */
export const FLAG_TAINTS: u32 = 16;
/** The column mask is filled. */
export const FLAG_MASK: u32 = 32;

/** Costs end at 2^1021: a rank that may be chosen never looks like one that may not. */
const CAP: f64 = 2.247116418577895e307;
/** Weights up to this cannot carry a cost to CAP. */
const SAFE: f64 = 1e200;

let credit: f64 = 0;
let decay: f64 = 0;
let prefillScale: f64 = 0;
let requestWeight: f64 = 0;
let hostWeight: f64 = 0;
let diskWeight: f64 = 0;
let sharedWeight: f64 = 0;
let tokens: f64 = 0;
let size: f64 = 0;
let promptBlocks: f64 = 0;
let sequences: f64 = 0;
let tracks: bool = false;
let plainDecode: bool = false;
let taints: bool = false;
let lowestPrefill: f64 = 0;

function setUp(params: usize, promptTokens: f64, blockSize: f64, requestBlocks: f64, sequenceBlocks: f64, flags: u32): void {
  const lower = (flags & FLAG_LOWER) != 0;
  tracks = (flags & FLAG_TRACK) != 0;
  taints = (flags & FLAG_TAINTS) != 0;
  credit = load<f64>(params);
  plainDecode = !tracks && (flags & FLAG_DECODE) != 0 && credit > 0;
  decay = tracks && requestBlocks > 0 ? load<f64>(params, 8) : 0;
  prefillScale = tracks ? load<f64>(params, 16) : 0;
  requestWeight = load<f64>(params, 24);
  hostWeight = lower ? load<f64>(params, 32) : 0;
  diskWeight = lower ? load<f64>(params, 40) : 0;
  sharedWeight = flags & FLAG_SHARED ? load<f64>(params, 48) : 0;
  tokens = promptTokens;
  size = blockSize;
  promptBlocks = requestBlocks;
  sequences = sequenceBlocks;
}

/**
 * Fills the cost column: +Infinity for rows that may not be chosen. Tokens, block size and blocks
 * are whole numbers; `sequenceBlocks` are the complete blocks that the column `active` is out of.
 */
export function scoreRows(
  params: usize,
  promptTokens: f64,
  blockSize: f64,
  requestBlocks: f64,
  sequenceBlocks: f64,
  flags: u32,
): void {
  setUp(params, promptTokens, blockSize, requestBlocks, sequenceBlocks, flags);
  const gates = eligibleColumn((flags & FLAG_MASK) != 0);
  const plain = tracks && credit <= 1 && prefillScale <= SAFE && !(decay > 0 || requestWeight > 0);
  if (plain && !(flags & (FLAG_LOWER | FLAG_SHARED)) && popcnt(<u64>blockSize) == 1) scoreDevice(gates);
  else {
    lowestPrefill = decay > 0 ? leastPrefill(gates) : 0;
    scoreAll(gates);
  }
  if (taints) multiplyTaints();
}

function leastPrefill(gates: usize): f64 {
  const prefill = prefillColumn();
  const end = <usize>paddedRows() << 3;
  let least = f64x2.splat(Infinity);
  for (let i: usize = 0; i < end; i += 16) {
    least = f64x2.pmin(least, f64x2.add(v128.load(prefill + i), v128.load(gates + i)));
  }
  return min(f64x2.extract_lane(least, 0), f64x2.extract_lane(least, 1));
}

/** raw / B − credit of two rows: A / B + max(N / B, device) − γ·device. */
// @ts-ignore: decorator
@inline function deviceBlocks(A: v128, device: v128, inverse: v128, prompt: v128, full: v128): v128 {
  return f64x2.sub(f64x2.add(f64x2.mul(A, inverse), f64x2.pmax(device, prompt)), f64x2.mul(full, device));
}

/** λ·blocks + D + gate of two rows. */
// @ts-ignore: decorator
@inline function deviceCost(blocks: v128, decode: v128, active: v128, gate: v128, scale: v128, S: v128): v128 {
  return f64x2.add(f64x2.add(f64x2.mul(scale, blocks), f64x2.add(decode, f64x2.sub(S, active))), gate);
}

/**
 * The usual case, eight rows a turn: prefill is tracked, no credit but for device overlap and at most
 * the whole of it, no weight on requests, and B a power of two. Then C = device · B is whole, 1 / B is
 * exact, so is raw / B as it is written above, and no credit exceeds it.
 */
function scoreDevice(gates: usize): void {
  const prefill = prefillColumn();
  const decode = decodeColumn();
  const device = deviceColumn();
  const active = activeColumn();
  const out = costColumn();
  const end = <usize>paddedRows() << 3;
  const inverse = f64x2.splat(1 / size);
  const prompt = f64x2.splat(tokens / size);
  const full = f64x2.splat(credit);
  const scale = f64x2.splat(prefillScale);
  const S = f64x2.splat(sequences);
  for (let i: usize = 0; i < end; i += 64) {
    const a = deviceBlocks(v128.load(prefill + i), v128.load(device + i), inverse, prompt, full);
    const b = deviceBlocks(v128.load(prefill + i, 16), v128.load(device + i, 16), inverse, prompt, full);
    const c = deviceBlocks(v128.load(prefill + i, 32), v128.load(device + i, 32), inverse, prompt, full);
    const d = deviceBlocks(v128.load(prefill + i, 48), v128.load(device + i, 48), inverse, prompt, full);
    const to = out + i;
    const D = decode + i;
    const live = active + i;
    const gate = gates + i;
    v128.store(to, deviceCost(a, v128.load(D), v128.load(live), v128.load(gate), scale, S));
    v128.store(to, deviceCost(b, v128.load(D, 16), v128.load(live, 16), v128.load(gate, 16), scale, S), 16);
    v128.store(to, deviceCost(c, v128.load(D, 32), v128.load(live, 32), v128.load(gate, 32), scale, S), 32);
    v128.store(to, deviceCost(d, v128.load(D, 48), v128.load(live, 48), v128.load(gate, 48), scale, S), 48);
  }
}

/** Every case: what does not apply has weight 0. */
function scoreAll(gates: usize): void {
  const prefill = prefillColumn();
  const decode = decodeColumn();
  const requests = requestsColumn();
  const devices = deviceColumn();
  const hosts = hostColumn();
  const disks = diskColumn();
  const shared = sharedColumn();
  const active = activeColumn();
  const out = costColumn();
  const end = <usize>paddedRows() << 3;
  const zero = f64x2.splat(0);
  const one = f64x2.splat(1);
  const B = f64x2.splat(size);
  const h = f64x2.splat(hostWeight);
  const k = f64x2.splat(diskWeight);
  const N = f64x2.splat(tokens);
  const S = f64x2.splat(sequences);
  const scale = f64x2.splat(prefillScale);
  const inverse = f64x2.splat(1 / size);
  const sigma = f64x2.splat(sharedWeight);
  const omega = f64x2.splat(requestWeight);
  const gamma = f64x2.splat(credit);
  const cap = f64x2.splat(CAP);
  const decays = decay > 0;
  const byPower = popcnt(<u64>size) == 1;
  for (let i: usize = 0; i < end; i += 16) {
    const A = v128.load(prefill + i);
    const device = v128.load(devices + i);
    const host = f64x2.mul(h, v128.load(hosts + i));
    const disk = f64x2.mul(k, v128.load(disks + i));
    const exact = f64x2.mul(f64x2.add(f64x2.add(device, host), disk), B);
    const whole = f64x2.floor(exact);
    const half = f64x2.ge(f64x2.sub(exact, whole), f64x2.splat(0.5));
    const cached = f64x2.add(whole, v128.and(half, one));
    const raw = f64x2.add(f64x2.add(A, f64x2.pmax(zero, f64x2.sub(N, cached))), cached);
    let full = gamma;
    if (decays) {
      const backlog = f64x2.div(f64x2.pmax(zero, f64x2.sub(A, f64x2.splat(lowestPrefill))), B);
      const share = f64x2.div(f64x2.mul(f64x2.splat(decay), backlog), f64x2.splat(promptBlocks));
      full = f64x2.mul(full, f64x2.div(one, f64x2.add(one, share)));
    }
    const beyond = f64x2.mul(sigma, v128.load(shared + i));
    const credits = f64x2.add(f64x2.add(f64x2.add(f64x2.mul(full, device), host), disk), beyond);
    const rawBlocks = byPower ? f64x2.mul(raw, inverse) : f64x2.div(raw, B);
    const blocks = f64x2.pmax(zero, f64x2.sub(rawBlocks, credits));
    let D = f64x2.add(v128.load(decode + i), f64x2.sub(S, v128.load(active + i)));
    if (plainDecode) D = f64x2.pmax(zero, f64x2.sub(D, credits));
    const work = f64x2.add(f64x2.mul(scale, blocks), D);
    const cost = f64x2.add(work, f64x2.mul(omega, v128.load(requests + i)));
    v128.store(out + i, f64x2.add(f64x2.pmin(cost, cap), v128.load(gates + i)));
  }
}

function multiplyTaints(): void {
  const taint = taintColumn();
  const out = costColumn();
  const end = <usize>paddedRows() << 3;
  for (let i: usize = 0; i < end; i += 16) {
    const sum = v128.load(taint + i);
    if (v128.any_true(sum)) v128.store(out + i, f64x2.mul(v128.load(out + i), taintPair(sum)));
  }
}

/**
 * The cost of one row after scoreRows(), and the terms it is made of, written to `out` as 10 f64:
 * raw prefill blocks, decay, device, host, disk and shared credit, prefill cost, decode blocks,
 * active request cost, taint multiplier. Gates and mask do not enter.
 */
export function explainRow(row: u32, out: usize): f64 {
  const A = valueAt(PREFILL, row);
  const device = valueAt(DEVICE, row);
  const hostCredit = hostWeight * valueAt(HOST, row);
  const diskCredit = diskWeight * valueAt(DISK, row);
  const sharedCredit = sharedWeight * valueAt(SHARED, row);
  const exact = (device + hostCredit + diskCredit) * size;
  const whole = Math.floor(exact);
  const cached = exact - whole >= 0.5 ? whole + 1 : whole;
  const raw = tracks ? (A + max(0, tokens - cached) + cached) / size : 0;
  const falls = decay > 0 ? 1 / (1 + (decay * (max(0, A - lowestPrefill) / size)) / promptBlocks) : 1;
  const deviceCredit = credit * falls * device;
  const credits = deviceCredit + hostCredit + diskCredit + sharedCredit;
  const prefillCost = prefillScale * max(0, raw - credits);
  const D = valueAt(DECODE, row) + (sequences - valueAt(ACTIVE, row));
  const requestCost = requestWeight * valueAt(REQUESTS, row);
  const multiplier = taints ? taintMultiplier(valueAt(TAINT, row)) : 1;
  store<f64>(out, raw);
  store<f64>(out, falls, 8);
  store<f64>(out, deviceCredit, 16);
  store<f64>(out, hostCredit, 24);
  store<f64>(out, diskCredit, 32);
  store<f64>(out, sharedCredit, 40);
  store<f64>(out, prefillCost, 48);
  store<f64>(out, D, 56);
  store<f64>(out, requestCost, 64);
  store<f64>(out, multiplier, 72);
  const work = plainDecode ? max(0, D - credits) : prefillCost + D;
  return min(work + requestCost, CAP) * multiplier;
}

/**
 * The cost of one row alone, as if no other could be chosen: for a pinned request. Arguments as
 * scoreRows(), `out` as explainRow().
 */
export function scoreRow(
  row: u32,
  params: usize,
  promptTokens: f64,
  blockSize: f64,
  requestBlocks: f64,
  sequenceBlocks: f64,
  flags: u32,
  out: usize,
): f64 {
  setUp(params, promptTokens, blockSize, requestBlocks, sequenceBlocks, flags);
  lowestPrefill = valueAt(PREFILL, row);
  return explainRow(row, out);
}
