const MASK = (1n << 64n) - 1n;
const rotate = (x: bigint, k: bigint): bigint => ((x << k) | (x >> (64n - k))) & MASK;

/**
 * xoshiro256** with its state filled by SplitMix64, the generator of every random choice in the project
 * (Blackman & Vigna, 2018). One draw costs about a microsecond: right for replay, not for a hot path.
 */
export class Random {
  private readonly state: [bigint, bigint, bigint, bigint];

  constructor(seed: bigint) {
    let x = seed & MASK;
    const next = (): bigint => {
      x = (x + 0x9e3779b97f4a7c15n) & MASK;
      let z = x;
      z = ((z ^ (z >> 30n)) * 0xbf58476d1ce4e5b9n) & MASK;
      z = ((z ^ (z >> 27n)) * 0x94d049bb133111ebn) & MASK;
      return z ^ (z >> 31n);
    };
    this.state = [next(), next(), next(), next()];
  }

  u64(): bigint {
    const s = this.state;
    const result = (rotate((s[1] * 5n) & MASK, 7n) * 9n) & MASK;
    const t = (s[1] << 17n) & MASK;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotate(s[3], 45n);
    return result;
  }

  /** Uniform in [0, 1). */
  double(): number {
    return Number(this.u64() >> 11n) / 2 ** 53;
  }

  /** A whole number from 0 to n − 1; one draw. */
  below(n: number): number {
    return Math.floor(this.double() * n);
  }

  /** A whole number from `low` to `high`, both included; one draw. */
  between(low: number, high: number): number {
    return low + this.below(high - low + 1);
  }
}
