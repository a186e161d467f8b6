// The seed of local hashes: a LoRA adapter and a cache salt separate otherwise equal tokens.
import { BASE_SEED } from "./chain";
import { xxh3_64 } from "./xxh3";

/**
 * BASE_SEED + XXH3-64(LoRA name, seed 0) + XXH3-64(salt, seed 1), modulo 2^64, both UTF-8.
 * A length of 0 means absent. The inner seeds keep a name apart from an equal salt.
 */
export function localSeed(lora: usize, loraLen: u32, salt: usize, saltLen: u32): u64 {
  let seed = BASE_SEED;
  if (loraLen) seed += xxh3_64(lora, loraLen, 0);
  if (saltLen) seed += xxh3_64(salt, saltLen, 1);
  return seed;
}
