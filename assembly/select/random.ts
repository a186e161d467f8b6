// The pool's generator: xoshiro256** (D. Blackman, S. Vigna), its state filled by SplitMix64.

const state: usize = memory.data(32, 16);

/** Fills the state from a seed. */
export function randomSeed(seed: u64): void {
  for (let i: usize = 0; i < 32; i += 8) {
    seed += 0x9e3779b97f4a7c15;
    let z = (seed ^ (seed >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    store<u64>(state + i, z ^ (z >> 31));
  }
}

/** The next 64 bits. */
export function randomNext(): u64 {
  const s1 = load<u64>(state, 8);
  const s2 = load<u64>(state, 16) ^ load<u64>(state);
  const s3 = load<u64>(state, 24) ^ s1;
  store<u64>(state, load<u64>(state) ^ s3);
  store<u64>(state, s1 ^ s2, 8);
  store<u64>(state, s2 ^ (s1 << 17), 16);
  store<u64>(state, rotl<u64>(s3, 45), 24);
  return rotl<u64>(s1 * 5, 7) * 9;
}

/** The next number in [0, 1), a multiple of 2^-53. */
export function randomUnit(): f64 {
  return <f64>(randomNext() >> 11) * (1.0 / 9007199254740992.0);
}

/** Writes the state, 32 bytes. */
export function randomSave(out: usize): void {
  memory.copy(out, state, 32);
}

/** Takes over a state that randomSave() wrote. False for the one state the generator cannot leave, all zeros. */
export function randomRestore(from: usize): bool {
  if (!v128.any_true(v128.or(v128.load(from), v128.load(from, 16)))) return false;
  memory.copy(state, from, 32);
  return true;
}
