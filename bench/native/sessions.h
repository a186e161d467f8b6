// The workload of bench/workload/sessions.ts, hash for hash.
enum { SYSTEM_PROMPTS = 16, SYSTEM_BLOCKS = 128, UNKNOWN_BLOCKS = 32, LONGEST_CHAIN = SYSTEM_BLOCKS + 943 + UNKNOWN_BLOCKS };
enum { STREAM_SYSTEM = 0, STREAM_TAIL = 1, STREAM_UNKNOWN = 2 };

static uint32_t tail_blocks(uint32_t session) { return 64 + mix32(session ^ 0x51ed270b) % 880; }
static uint32_t rank_count(uint32_t session) { return 1 + mix32(session ^ 0x2545f491) % 3; }
static uint32_t rank_of(uint32_t session, uint32_t k, uint32_t ranks) { return mix32(session << 2 | k) % ranks; }
static uint32_t held_tail(uint32_t session, uint32_t k) {
  static const uint32_t shares[] = {10, 6, 3};
  return tail_blocks(session) * shares[k] / 10;
}

static void write_hashes(uint64_t *out, uint32_t count, uint32_t stream, uint32_t owner) {
  uint32_t low = mix32(mix32(owner << 3 | stream));
  uint32_t high = mix32(mix32((owner << 3 | stream) ^ 0x5bd1e995));
  for (uint32_t i = 0; i < count; i++)
    out[i] = (uint64_t)mix32(high + i * 0x165667b1u) << 32 | mix32(low + i * 0x27d4eb2fu);
}

// One step of the chain: XXH3-64 with seed 1337 over the 16 bytes previous, local.
static inline uint64_t chain_step(uint64_t previous, uint64_t local) {
  uint64_t a = previous ^ 0x6782737bea423ef2ull, b = local ^ 0xaf56bc3b09964d01ull;
  unsigned __int128 product = (unsigned __int128)a * b;
  uint64_t hash = 16 + __builtin_bswap64(a) + b + ((uint64_t)product ^ (uint64_t)(product >> 64));
  hash = (hash ^ (hash >> 37)) * 0x165667919E3779F9ull;
  return hash ^ (hash >> 32);
}

// Sequence hashes of a session: system prompt, `tail` blocks, `unknown` blocks. Answers how many.
static uint32_t write_sequences(uint64_t *out, uint32_t session, uint32_t tail, uint32_t unknown) {
  uint32_t count = SYSTEM_BLOCKS + tail + unknown;
  write_hashes(out, SYSTEM_BLOCKS, STREAM_SYSTEM, session % SYSTEM_PROMPTS);
  write_hashes(out + SYSTEM_BLOCKS, tail, STREAM_TAIL, session);
  write_hashes(out + SYSTEM_BLOCKS + tail, unknown, STREAM_UNKNOWN, session);
  for (uint32_t i = 1; i < count; i++) out[i] = chain_step(out[i - 1], out[i]);
  return count;
}

static uint32_t sessions_for(uint32_t blocks) {
  uint32_t distinct = SYSTEM_PROMPTS * SYSTEM_BLOCKS, session = 0;
  while (distinct < blocks) distinct += tail_blocks(session++);
  return session;
}
