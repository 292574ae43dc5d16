/*
 * torch_cost [REPORTS]: what one report of PyTorch's allocator costs, with whatever is preloaded.
 * Blocks are handed out and taken back in turns, 64 alive; the reporter behind returns at once. The
 * floor is that of hook_cost.
 *
 * Expected: `floor.median_ns` and `report.median_ns` from batches of 64 calls; `report.p999_ns` and
 * `report.max_ns` from single calls.
 */
#include <dlfcn.h>
#include <time.h>

#include "tally.h"
#include "torch_allocator.h"

#define BATCH 64

static __typeof__(torch_report) *report;

static inline uint64_t ticks_fenced(void) {
  uint32_t low, high;
  __asm__ volatile("lfence\n\trdtsc" : "=a"(low), "=d"(high) : : "memory");
  return (uint64_t)high << 32 | low;
}

static inline uint64_t ticks(void) {
  uint32_t low, high;
  __asm__ volatile("rdtsc" : "=a"(low), "=d"(high) : : "memory");
  return (uint64_t)high << 32 | low;
}

struct record { uint64_t first, second; };
static struct record ring[4096];
static unsigned ring_at;

static __attribute__((noinline)) void floor_call(void) {
  struct record *record = &ring[ring_at++ % 4096];
  uint64_t start = ticks_fenced();
  record->first = start;
  record->second = ticks();
}

static void (*volatile floor_pointer)(void) = floor_call;

static double monotonic(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static int compare(const void *left, const void *right) {
  uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
  return (a > b) - (a < b);
}

static double part(uint64_t *values, uint64_t count, double at) {
  qsort(values, count, sizeof *values, compare);
  return (double)values[(uint64_t)((double)(count - 1) * at)];
}

static uint64_t allocated;

/* The n-th report of a row that hands 64 blocks out and takes them back. */
static inline void one(uint64_t n) {
  uint64_t slot = n % BATCH, size = 512 * (1 + slot * 37 % 4096);
  int64_t sign = n / BATCH % 2 ? -1 : 1;
  allocated += (uint64_t)(sign * (int64_t)size);
  report(0x7f0000000000 + slot * (4 << 20), sign * (int64_t)size, allocated, 256 << 20);
}

int main(int argc, char **argv) {
  uint64_t count = (argument(argc, argv, 1, 1000000) + 2 * BATCH - 1) / (2 * BATCH) * (2 * BATCH);
  void *library = dlopen(beside("libc10_cuda.so"), RTLD_NOW | RTLD_LOCAL);
  if (!library || !(report = (__typeof__(report))dlsym(library, "torch_report"))) return 9;
  start_driver();
  uint64_t batches = count / BATCH;
  uint64_t *floors = malloc(batches * 8), *reports = malloc(batches * 8), *singles = malloc(count * 8);
  if (!floors || !reports || !singles) return 9;
  memset(floors, 1, batches * 8), memset(reports, 1, batches * 8), memset(singles, 1, count * 8);
  double began = monotonic();
  uint64_t began_ticks = ticks_fenced();
  for (uint64_t i = 0; i < batches; i++) {
    uint64_t start = ticks_fenced();
    for (int k = 0; k < BATCH; k++) floor_pointer();
    floors[i] = ticks_fenced() - start;
    start = ticks_fenced();
    for (uint64_t k = 0; k < BATCH; k++) one(i * BATCH + k);
    reports[i] = ticks_fenced() - start;
  }
  for (uint64_t i = 0; i < count; i++) {
    uint64_t start = ticks_fenced();
    one(i);
    singles[i] = ticks_fenced() - start;
  }
  double per_tick = (monotonic() - began) / (double)(ticks_fenced() - began_ticks);
  printf("floor.median_ns %.2f\n", part(floors, batches, 0.5) / BATCH * per_tick);
  printf("report.median_ns %.2f\n", part(reports, batches, 0.5) / BATCH * per_tick);
  printf("report.p999_ns %.2f\n", part(singles, count, 0.999) * per_tick);
  printf("report.max_ns %.2f\n", part(singles, count, 1) * per_tick);
  return 0;
}
