// xoshiro256** in 32-bit halves: the generator of the kernel, as a JavaScript program would carry it.

const WORD = 2 ** 32;

export class Random {
  private readonly state = new Uint32Array(8); // four words, low half first

  constructor(seed: bigint) {
    this.seed(seed);
  }

  /** Starts again from a seed. */
  seed(seed: bigint): void {
    let z = seed;
    for (let i = 0; i < 4; i++) {
      z = BigInt.asUintN(64, z + 0x9e3779b97f4a7c15n);
      let x = z;
      x = BigInt.asUintN(64, (x ^ (x >> 30n)) * 0xbf58476d1ce4e5b9n);
      x = BigInt.asUintN(64, (x ^ (x >> 27n)) * 0x94d049bb133111ebn);
      x ^= x >> 31n;
      this.state[2 * i] = Number(x & 0xffffffffn);
      this.state[2 * i + 1] = Number(x >> 32n);
    }
  }

  /** The next number in [0, 1), a multiple of 2^-53. */
  unit(): number {
    const s = this.state;
    const low = s[2]!;
    const high = s[3]!;
    // × 5, rotated left by 7, × 9
    const fiveLow = low * 5;
    const fiveHigh = (Math.imul(high, 5) + Math.floor(fiveLow / WORD)) >>> 0;
    const five = fiveLow >>> 0;
    const turnedLow = ((five << 7) | (fiveHigh >>> 25)) >>> 0;
    const turnedHigh = ((fiveHigh << 7) | (five >>> 25)) >>> 0;
    const nineLow = turnedLow * 9;
    const resultHigh = (Math.imul(turnedHigh, 9) + Math.floor(nineLow / WORD)) >>> 0;
    const resultLow = nineLow >>> 0;
    s[4]! ^= s[0]!;
    s[5]! ^= s[1]!;
    s[6]! ^= low;
    s[7]! ^= high;
    s[2]! ^= s[4]!;
    s[3]! ^= s[5]!;
    s[0]! ^= s[6]!;
    s[1]! ^= s[7]!;
    s[4]! ^= low << 17;
    s[5]! ^= (high << 17) | (low >>> 15);
    // rotated left by 45 = halves swapped and left by 13
    const last = s[6]!;
    const top = s[7]!;
    s[6] = (top << 13) | (last >>> 19);
    s[7] = (last << 13) | (top >>> 19);
    return (resultHigh * 0x200000 + (resultLow >>> 11)) * 2 ** -53;
  }
}
