/*
 * many_events [EVENTS] [THREADS] [LIVE]: allocations, frees and one copy for every eight pairs, as
 * fast as the driver goes, with LIVE blocks (1,000) of each thread alive at any time. For the size
 * of logs and the speed of readers.
 *
 * Run with: FAKE_CUDA_FAST=1
 * Expected: as printed; EVENTS counts allocations, frees and copies.
 */
#include <pthread.h>

#include "tally.h"

static uint64_t share, live;
static CUcontext context;

static size_t size_of(uint64_t i) { return (size_t)512 << (i * 2654435761u >> 16) % 8; }

struct sums { uint64_t allocs, frees, copies, alloc_bytes, free_bytes; };

static void add(const struct sums *sums) {
  BUMP(tally.ledgers[DEVICE].allocs, sums->allocs);
  BUMP(tally.ledgers[DEVICE].frees, sums->frees);
  BUMP(tally.ledgers[DEVICE].alloc_bytes, sums->alloc_bytes);
  BUMP(tally.ledgers[DEVICE].free_bytes, sums->free_bytes);
  BUMP(tally.copy_count[HOST_TO_DEVICE][ASYNC], sums->copies);
  BUMP(tally.copy_bytes[HOST_TO_DEVICE][ASYNC], sums->copies * 64);
}

static void *run(void *unused) {
  static char host[64];
  struct sums sums = {0};
  CUdeviceptr *blocks = calloc(live, sizeof *blocks);
  size_t *sizes = calloc(live, sizeof *sizes);
  if (!blocks || !sizes) exit(9);
  MUST(cuCtxSetCurrent(context));
  for (uint64_t i = 0; sums.allocs + sums.frees + sums.copies < share; i++) {
    uint64_t slot = i * 7919 % live;
    if (blocks[slot]) {
      MUST(cuMemFree_v2(blocks[slot]));
      sums.frees++, sums.free_bytes += sizes[slot];
    }
    sizes[slot] = size_of(i);
    MUST(cuMemAlloc_v2(&blocks[slot], sizes[slot]));
    sums.allocs++, sums.alloc_bytes += sizes[slot];
    if (i % 8) continue;
    MUST(cuMemcpyHtoDAsync_v2(blocks[slot], host, sizeof host, NULL));
    sums.copies++;
  }
  add(&sums);
  return unused;
}

int main(int argc, char **argv) {
  uint64_t events = argument(argc, argv, 1, 1000000), count = argument(argc, argv, 2, 1);
  pthread_t threads[256];
  if (count < 1 || count > 256) return 2;
  live = argument(argc, argv, 3, 1000);
  share = events / count;
  context = start_driver();
  for (uint64_t i = 0; i < count; i++) MUST(pthread_create(&threads[i], NULL, run, NULL));
  for (uint64_t i = 0; i < count; i++) pthread_join(threads[i], NULL);
  print_tally("", false);
  return 0;
}
