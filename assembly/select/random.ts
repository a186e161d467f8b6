// The pool's generator: xoshiro256** (D. Blackman, S. Vigna), its state filled by SplitMix64.

let s0: u64 = 0;
let s1: u64 = 0;
let s2: u64 = 0;
let s3: u64 = 0;

/** Fills the state from a seed. */
export function randomSeed(seed: u64): void {
  s0 = splitMix(seed + 0x9e3779b97f4a7c15);
  s1 = splitMix(seed + 0x9e3779b97f4a7c15 * 2);
  s2 = splitMix(seed + 0x9e3779b97f4a7c15 * 3);
  s3 = splitMix(seed + 0x9e3779b97f4a7c15 * 4);
}

function splitMix(z: u64): u64 {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

/** The next 64 bits. */
export function randomNext(): u64 {
  const result = rotl<u64>(s1 * 5, 7) * 9;
  const t = s1 << 17;
  s2 ^= s0;
  s3 ^= s1;
  s1 ^= s2;
  s0 ^= s3;
  s2 ^= t;
  s3 = rotl<u64>(s3, 45);
  return result;
}

/** The next number in [0, 1), a multiple of 2^-53. */
export function randomUnit(): f64 {
  return <f64>(randomNext() >> 11) * (1.0 / 9007199254740992.0);
}

/** Writes the state, 32 bytes. */
export function randomSave(out: usize): void {
  store<u64>(out, s0);
  store<u64>(out, s1, 8);
  store<u64>(out, s2, 16);
  store<u64>(out, s3, 24);
}

/** Takes over a state that randomSave() wrote. False for the one state the generator cannot leave, all zeros. */
export function randomRestore(from: usize): bool {
  const a = load<u64>(from);
  const b = load<u64>(from, 8);
  const c = load<u64>(from, 16);
  const d = load<u64>(from, 24);
  if (!(a | b | c | d)) return false;
  s0 = a;
  s1 = b;
  s2 = c;
  s3 = d;
  return true;
}
