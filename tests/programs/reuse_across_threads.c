/*
 * reuse_across_threads [EVENTS] [THREADS]: threads swap blocks through shared slots, so that
 * most blocks are freed by another thread than the one that allocated them, and the driver gives
 * the address out again at once.
 *
 * Run with: FAKE_CUDA_FAST=1
 * Expected: EVENTS allocations and frees in all, nothing live, no address twice.
 */
#include <pthread.h>

#include "tally.h"

#define SLOTS 64

static CUdeviceptr slots[SLOTS];
static uint64_t pairs;
static CUcontext context;

static size_t size_of(unsigned slot) { return (size_t)512 << slot % 4; }

static void *swap(void *number) {
  uint64_t state = (uint64_t)number * 77 + 1, allocated = 0, freed = 0, counts[2] = {0, 0};
  MUST(cuCtxSetCurrent(context));
  for (uint64_t i = 0; i < pairs; i++) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    unsigned slot = (unsigned)(state >> 33) % SLOTS;
    CUdeviceptr block;
    MUST(cuMemAlloc_v2(&block, size_of(slot)));
    allocated += size_of(slot), counts[0]++;
    block = __atomic_exchange_n(&slots[slot], block, __ATOMIC_ACQ_REL);
    if (!block) continue;
    MUST(cuMemFree_v2(block));
    freed += size_of(slot), counts[1]++;
  }
  BUMP(tally.ledgers[DEVICE].allocs, counts[0]);
  BUMP(tally.ledgers[DEVICE].alloc_bytes, allocated);
  BUMP(tally.ledgers[DEVICE].frees, counts[1]);
  BUMP(tally.ledgers[DEVICE].free_bytes, freed);
  return NULL;
}

int main(int argc, char **argv) {
  uint64_t events = argument(argc, argv, 1, 1000000), count = argument(argc, argv, 2, 4);
  pthread_t threads[64];
  if (count < 1 || count > 64) return 2;
  pairs = events / 2 / count;
  context = start_driver();
  for (uint64_t i = 0; i < count; i++) MUST(pthread_create(&threads[i], NULL, swap, (void *)i));
  for (uint64_t i = 0; i < count; i++) pthread_join(threads[i], NULL);
  for (unsigned i = 0; i < SLOTS; i++)
    if (slots[i]) give(slots[i], size_of(i));
  print_tally("", false);
  return 0;
}
