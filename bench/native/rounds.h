// The frame of every native program: it answers each line "<verb> <argument> <repetitions>" on stdin with
// "<nanoseconds> <checksum>", so that the bench can let the sides take turns. The first line it writes is "ready".
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static inline double nanoseconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

// A 32-bit bijection that mixes well (the finaliser of MurmurHash3).
static inline uint32_t mix32(uint32_t x) {
  x = (x ^ (x >> 16)) * 0x85ebca6bu;
  x = (x ^ (x >> 13)) * 0xc2b2ae35u;
  return x ^ (x >> 16);
}

typedef struct {
  double nanoseconds;
  uint32_t sum;
} Round;

// Answers one line; a verb it does not know has nanoseconds < 0.
static Round answer(const char *verb, unsigned argument, unsigned repetitions);

static int serve_rounds(void) {
  char line[256], verb[64];
  unsigned argument, repetitions;
  puts("ready");
  fflush(stdout);
  while (fgets(line, sizeof line, stdin)) {
    if (sscanf(line, "%63s %u %u", verb, &argument, &repetitions) != 3) return 2;
    Round round = answer(verb, argument, repetitions);
    printf("%.3f %08x\n", round.nanoseconds, round.sum);
    fflush(stdout);
  }
  return 0;
}
