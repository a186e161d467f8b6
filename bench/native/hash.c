// The native side of the hash rows: libxxhash, inlined, over the same 32,768 tokens.
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "rounds.h"

enum { TOKENS = 32768 };
static const uint64_t seed = 1337;
static unsigned char *bytes;
static uint64_t *locals, *sequences;

static inline void hash_locals(size_t block) {
  for (size_t i = 0; i < TOKENS * 4 / block; i++) locals[i] = XXH3_64bits_withSeed(bytes + i * block, block, seed);
}

static inline void hash_fused(size_t block) {
  sequences[0] = locals[0] = XXH3_64bits_withSeed(bytes, block, seed);
  for (size_t i = 1; i < TOKENS * 4 / block; i++) {
    locals[i] = XXH3_64bits_withSeed(bytes + i * block, block, seed);
    uint64_t pair[2] = {sequences[i - 1], locals[i]};
    sequences[i] = XXH3_64bits_withSeed(pair, sizeof pair, seed);
  }
}

static uint32_t word_sum(const uint64_t *words, size_t count) {
  const uint32_t *half = (const uint32_t *)words;
  uint32_t sum = 0;
  for (size_t i = 0; i < 2 * count; i++) sum = (sum ^ half[i]) * 0x01000193u + (sum >> 15);
  return sum;
}

#define TIMED(work)                                       \
  do {                                                    \
    work;                                                 \
    double start = nanoseconds();                         \
    for (unsigned i = 0; i < repetitions; i++) {          \
      work;                                               \
      __asm__ volatile("" ::"r"(locals) : "memory");      \
    }                                                     \
    round.nanoseconds = (nanoseconds() - start) / repetitions; \
  } while (0)

static Round answer(const char *verb, unsigned block_tokens, unsigned repetitions) {
  Round round = {-1, 0};
  size_t block = (size_t)block_tokens * 4;
  size_t blocks = TOKENS * 4 / block;
  if (!strcmp(verb, "locals")) {
    switch (block) {
      case 64: TIMED(hash_locals(64)); break;
      case 128: TIMED(hash_locals(128)); break;
      default: TIMED(hash_locals(block));
    }
    round.sum = word_sum(locals, blocks);
  } else if (!strcmp(verb, "fused")) {
    TIMED(hash_fused(64));
    round.sum = word_sum(locals, blocks) ^ word_sum(sequences, blocks);
  }
  return round;
}

int main(void) {
  bytes = aligned_alloc(64, TOKENS * 4);
  locals = aligned_alloc(64, TOKENS * 4);
  sequences = aligned_alloc(64, TOKENS * 4);
  for (uint32_t i = 0; i < TOKENS; i++) ((uint32_t *)bytes)[i] = mix32(i + 12345) % 128000;
  return serve_rounds();
}
