const OFFSET = 0xcbf29ce484222325n;
const PRIME = 0x100000001b3n;

/** FNV-1a, 64 bits, over the UTF-8 of a text. */
export function fnv1a64(text: string): bigint {
  let hash = OFFSET;
  for (const byte of new TextEncoder().encode(text)) hash = BigInt.asUintN(64, (hash ^ BigInt(byte)) * PRIME);
  return hash;
}

/** The seed of one pool's generator: the router's, plus the pool's name (`model/group/role`), mod 2^64. */
export function poolSeed(seed: bigint, pool: string): bigint {
  return BigInt.asUintN(64, seed + fnv1a64(pool));
}
