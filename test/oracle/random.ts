// The pool's generator in plain TypeScript: xoshiro256**, filled by SplitMix64.

const MASK = (1n << 64n) - 1n;
const rotl = (x: bigint, k: bigint) => ((x << k) | (x >> (64n - k))) & MASK;

export class Random {
  private s: [bigint, bigint, bigint, bigint];

  constructor(seed: bigint) {
    let z = seed & MASK;
    const next = () => {
      z = (z + 0x9e3779b97f4a7c15n) & MASK;
      let x = z;
      x = ((x ^ (x >> 30n)) * 0xbf58476d1ce4e5b9n) & MASK;
      x = ((x ^ (x >> 27n)) * 0x94d049bb133111ebn) & MASK;
      return x ^ (x >> 31n);
    };
    this.s = [next(), next(), next(), next()];
  }

  u64(): bigint {
    const s = this.s;
    const result = (rotl((s[1] * 5n) & MASK, 7n) * 9n) & MASK;
    const t = (s[1] << 17n) & MASK;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotl(s[3], 45n);
    return result;
  }

  /** In [0, 1). */
  unit(): number {
    return Number(this.u64() >> 11n) * 2 ** -53;
  }

  /** A whole number in [0, n). */
  below(n: number): number {
    return Math.floor(this.unit() * n);
  }
}
