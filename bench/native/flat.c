// The native side of the lookup rows: an exact prefix lookup over one flat open-addressing table, keyed by sequence
// hash, with software prefetch of the slots ahead.
//
//   slot 16 B: key u64 (0 = empty) | set u64
//   set: low 4 bits 0…5 = that many 12-bit ranks, ascending, above them; 15 = address of a bitset, shifted left by 4
//
// With -DSKETCH='"…/ix.c"' the sketch's table is filled with the same data and answers "sketch".
#include <sys/mman.h>

#ifdef SKETCH
#define main sketch_main
#include SKETCH
#undef main
#endif

#include "rounds.h"
#include "sessions.h"

enum { INLINE_RANKS = 5, BITSET = 15, AHEAD = 32, QUERIES = 512 };
typedef struct {
  uint64_t key, set;
} Slot;

static uint32_t ranks, words;  // of the pool; 64-bit words of a bitset, a multiple of 4
static Slot *slots;
static uint64_t mask;
static uint32_t *depths;
static uint64_t *active;  // bitset of the ranks that still hold everything
static uint64_t *query[QUERIES];
static uint32_t query_length[QUERIES];

static void *zeroed(size_t bytes) { return mmap(0, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); }
static inline uint64_t *bits_of(uint64_t set) { return (uint64_t *)(set >> 4); }
static inline int is_bitset(uint64_t set) { return (set & 15) == BITSET; }

static uint64_t *new_bits(void) {
  uint64_t *bits = aligned_alloc(64, (words * 8 + 63) & ~63u);
  memset(bits, 0, words * 8);
  return bits;
}

static void set_bit(uint64_t *bits, uint32_t rank) { bits[rank >> 6] |= 1ull << (rank & 63); }

// The set with one more rank.
static uint64_t with_rank(uint64_t set, uint32_t rank) {
  if (is_bitset(set)) {
    set_bit(bits_of(set), rank);
    return set;
  }
  uint32_t count = set & 15, ids[INLINE_RANKS + 1], at = 0;
  for (uint32_t i = 0; i < count; i++) {
    ids[i] = (set >> (4 + 12 * i)) & 4095;
    if (ids[i] == rank) return set;
    if (ids[i] < rank) at = i + 1;
  }
  if (count == INLINE_RANKS) {
    uint64_t *bits = new_bits();
    for (uint32_t i = 0; i < count; i++) set_bit(bits, ids[i]);
    set_bit(bits, rank);
    return (uint64_t)bits << 4 | BITSET;
  }
  memmove(ids + at + 1, ids + at, (count - at) * sizeof *ids);
  ids[at] = rank;
  uint64_t next = count + 1;
  for (uint32_t i = 0; i <= count; i++) next |= (uint64_t)ids[i] << (4 + 12 * i);
  return next;
}

static void store(uint32_t rank, const uint64_t *sequences, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    uint64_t at = sequences[i] & mask;
    while (slots[at].key && slots[at].key != sequences[i]) at = (at + 1) & mask;
    slots[at].key = sequences[i];
    slots[at].set = with_rank(slots[at].set, rank);
  }
}

static inline uint64_t set_of(uint64_t sequence) {
  for (uint64_t at = sequence & mask;; at = (at + 1) & mask) {
    if (slots[at].key == sequence) return slots[at].set;
    if (!slots[at].key) return 0;
  }
}

static inline void leave(uint64_t bits, uint32_t base, uint32_t depth) {
  for (; bits; bits &= bits - 1) depths[base + __builtin_ctzll(bits)] = depth;
}

// The ranks still active: `few` as an inline set, or BITSET for the bitset `active`.
static inline uint64_t few_of_active(void) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < words; i++) count += __builtin_popcountll(active[i]);
  if (count > INLINE_RANKS) return BITSET;
  uint64_t few = count;
  for (uint32_t i = 0, shift = 4; i < words; i++)
    for (uint64_t bits = active[i]; bits; bits &= bits - 1, shift += 12) few |= (uint64_t)(i * 64 + __builtin_ctzll(bits)) << shift;
  return few;
}

static inline int holds(uint64_t set, uint32_t rank) {
  if (is_bitset(set)) return bits_of(set)[rank >> 6] >> (rank & 63) & 1;
  uint32_t count = set & 15;
  for (uint32_t i = 0; i < count; i++)
    if (((set >> (4 + 12 * i)) & 4095) == rank) return 1;
  return 0;
}

// Active ranks that `set` lacks leave at `depth`; answers who stays.
static uint64_t keep_common(uint64_t few, uint64_t set, uint32_t depth) {
  if (few == BITSET && is_bitset(set)) {
    const uint64_t *bits = bits_of(set);
    uint64_t gone = 0;
    for (uint32_t i = 0; i < words; i++) gone |= active[i] & ~bits[i];
    if (!gone) return few;
    for (uint32_t i = 0; i < words; i++) {
      leave(active[i] & ~bits[i], i * 64, depth);
      active[i] &= bits[i];
    }
    return few_of_active();
  }
  if (few == BITSET) {  // a small set against many: those in both stay
    uint64_t stay = 0;
    uint32_t count = set & 15, kept = 0;
    for (uint32_t i = 0; i < count; i++) {
      uint32_t rank = (set >> (4 + 12 * i)) & 4095;
      uint64_t bit = 1ull << (rank & 63);
      if (!(active[rank >> 6] & bit)) continue;
      active[rank >> 6] &= ~bit;
      stay |= (uint64_t)rank << (4 + 12 * kept++);
    }
    for (uint32_t i = 0; i < words; i++) leave(active[i], i * 64, depth);
    return stay | kept;
  }
  uint64_t stay = 0;
  uint32_t count = few & 15, kept = 0;
  for (uint32_t i = 0; i < count; i++) {
    uint32_t rank = (few >> (4 + 12 * i)) & 4095;
    if (holds(set, rank)) stay |= (uint64_t)rank << (4 + 12 * kept++);
    else depths[rank] = depth;
  }
  return stay | kept;
}

// Leading blocks that each rank holds, into `depths`; answers the depth of the walk.
static uint32_t find(const uint64_t *sequences, uint32_t count) {
  memset(depths, 0, ranks * sizeof *depths);
  uint64_t last = set_of(sequences[0]), few = last;
  if (!last) return 0;
  if (is_bitset(last)) {
    memcpy(active, bits_of(last), words * 8);
    few = BITSET;
  }
  uint32_t i = 1;
  while (i < count) {
    uint32_t end = i + AHEAD < count ? i + AHEAD : count;
    for (uint32_t j = i; j < end; j++) __builtin_prefetch(&slots[sequences[j] & mask]);
    for (; i < end; i++) {
      uint64_t set = set_of(sequences[i]);
      if (!set) goto out;
      if (set == last && !is_bitset(set)) continue;
      last = set;
      few = keep_common(few, set, i);
      if (!few) return i;
    }
  }
out:
  if (few == BITSET)
    for (uint32_t k = 0; k < words; k++) leave(active[k], k * 64, i);
  else
    for (uint32_t k = 0; k < (few & 15); k++) depths[(few >> (4 + 12 * k)) & 4095] = i;
  return i;
}

// As pairSum() and denseSum() of bench/workload/checksum.ts.
static uint32_t dense_sum(uint32_t query, const uint32_t *dense) {
  uint32_t sum = 0;
  for (uint32_t rank = 0; rank < ranks; rank++)
    if (dense[rank]) sum += mix32((rank + 1) * 0x9e3779b1u + dense[rank] * 0x85ebca77u + query * 0xc2b2ae3du);
  return sum;
}

#define TIMED(lookup, dense)                                                      \
  do {                                                                            \
    for (uint32_t q = 0; q < QUERIES; q++) {                                      \
      lookup;                                                                     \
      round.sum += dense_sum(q, dense);                                           \
    }                                                                             \
    for (uint32_t q = 0; q < QUERIES; q++) lookup;                                \
    double start = nanoseconds();                                                 \
    for (unsigned i = 0; i < passes; i++)                                         \
      for (uint32_t q = 0; q < QUERIES; q++) lookup;                              \
    round.nanoseconds = (nanoseconds() - start) / ((double)passes * QUERIES);     \
  } while (0)

static Round answer(const char *verb, unsigned argument, unsigned passes) {
  (void)argument;
  Round round = {-1, 0};
  if (!strcmp(verb, "flat")) TIMED(find(query[q], query_length[q]), depths);
#ifdef SKETCH
  if (!strcmp(verb, "sketch")) TIMED(fFindP(query[q], query_length[q], 32), score);
#endif
  return round;
}

int main(int count, char **arguments) {
  if (count != 3) return 2;
  uint32_t blocks = atoi(arguments[1]);
  ranks = atoi(arguments[2]);
  words = ((ranks + 255) >> 8) * 4;
  active = new_bits();
  depths = malloc(ranks * sizeof *depths);
  uint64_t size = 1;
  while (size < blocks / 0.75) size <<= 1;
  mask = size - 1;
  slots = zeroed(size * sizeof *slots);
#ifdef SKETCH
  W = ranks;
  WB = words * 8;
  act = aligned_alloc(64, (WB + 63) & ~63ul);
  score = malloc(ranks * sizeof *score);
  fM = mask;
  fT = zeroed(size * 16);
#endif
  static uint64_t sequences[LONGEST_CHAIN];
  uint32_t sessions = sessions_for(blocks);
  for (uint32_t session = 0; session < sessions; session++) {
    for (uint32_t k = 0; k < rank_count(session); k++) {
      uint32_t length = write_sequences(sequences, session, held_tail(session, k), 0);
      store(rank_of(session, k, ranks), sequences, length);
#ifdef SKETCH
      fStore(rank_of(session, k, ranks), sequences, length);
#endif
    }
  }
  for (uint32_t q = 0; q < QUERIES; q++) {
    uint32_t session = q * 7919u % sessions;
    query[q] = malloc(LONGEST_CHAIN * 8);
    query_length[q] = write_sequences(query[q], session, tail_blocks(session), UNKNOWN_BLOCKS);
  }
  return serve_rounds();
}
