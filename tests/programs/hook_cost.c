/*
 * hook_cost [CALLS] [THREADS] [PIN]: what one call costs, with whatever is preloaded. The cost of
 * a hook is the difference between a run with and a run without it; the floor (two counter reads,
 * one of them fenced, and a 16-byte store, behind a function pointer) is measured in the same run.
 * PIN 1 gives each thread a processor of its own.
 *
 * Run with: FAKE_CUDA_FAST=local
 * Expected: `NAME.median_ns` from batches of 64 calls; `NAME.p999_ns` and `NAME.max_ns` from single
 * calls, less the median of an empty measurement. NAME is floor, alloc, free, pair, copy, record (an
 * event), wait (for it), beside (a copy while another stream is being captured).
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <time.h>
#include <unistd.h>

#include "tally.h"

#define BATCH 64

enum kind { EMPTY, FLOOR, ALLOC, FREE, COPY, RECORD, WAIT, BESIDE, KINDS };
static const char *const kind_names[KINDS] = {"empty", "floor",  "alloc", "free",
                                              "copy",  "record", "wait",  "beside"};

struct samples {
  uint32_t *values;
  uint64_t count;
};

struct worker {
  pthread_t thread;
  unsigned number;
  struct samples batches[KINDS], singles[KINDS];
};

static uint64_t calls, thread_count, pinned;
static pthread_barrier_t barrier;
static CUcontext context;

#if defined(__x86_64__)
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
#else
static inline uint64_t ticks(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}
static inline uint64_t ticks_fenced(void) { return ticks(); }
#endif

/* ---- the floor -------------------------------------------------------------------------- */

struct record { uint64_t first, second; };
static __thread struct record ring[4096];
static __thread unsigned ring_at;

static __attribute__((noinline)) void floor_call(void) {
  struct record *record = &ring[ring_at++ % 4096];
  uint64_t start = ticks_fenced();
  record->first = start;
  record->second = ticks();
}

static void (*volatile floor_pointer)(void) = floor_call;

/* ---- measurements ----------------------------------------------------------------------- */

static void add(struct samples *samples, uint64_t value) {
  samples->values[samples->count++] = value > UINT32_MAX ? UINT32_MAX : (uint32_t)value;
}

struct scratch {
  CUdeviceptr blocks[BATCH], target;
  CUevent event;
  char host[64];
};

static inline void call(enum kind kind, struct scratch *scratch, unsigned i) {
  switch (kind) {
    case FLOOR: floor_pointer(); break;
    case ALLOC: MUST(cuMemAlloc_v2(&scratch->blocks[i], 4096)); break;
    case FREE: MUST(cuMemFree_v2(scratch->blocks[i])); break;
    case COPY:
      MUST(cuMemcpyHtoDAsync_v2(scratch->target, scratch->host, sizeof scratch->host, NULL));
      break;
    case RECORD: MUST(cuEventRecord(scratch->event, NULL)); break;
    case WAIT: MUST(cuStreamWaitEvent(NULL, scratch->event, 0)); break;
    case BESIDE:
      MUST(cuMemcpyHtoDAsync_v2(scratch->target, scratch->host, sizeof scratch->host, NULL));
      break;
    default: break;
  }
}

static inline __attribute__((always_inline)) void batch(struct worker *worker, enum kind kind,
                                                        struct scratch *scratch) {
  uint64_t start = ticks_fenced();
  for (unsigned i = 0; i < BATCH; i++) call(kind, scratch, i);
  add(&worker->batches[kind], ticks_fenced() - start);
}

static inline __attribute__((always_inline)) void singles(struct worker *worker, enum kind kind,
                                                          struct scratch *scratch) {
  for (unsigned i = 0; i < BATCH; i++) {
    uint64_t start = ticks_fenced();
    call(kind, scratch, i);
    add(&worker->singles[kind], ticks_fenced() - start);
  }
}

static void pin(unsigned number) {
  cpu_set_t set;
  long processors = sysconf(_SC_NPROCESSORS_ONLN);
  CPU_ZERO(&set);
  CPU_SET(number % (unsigned)processors, &set);
  pthread_setaffinity_np(pthread_self(), sizeof set, &set);
}

static void *measure(void *argument) {
  struct worker *worker = argument;
  struct scratch scratch = {.host = ""};
  if (pinned) pin(worker->number);
  MUST(cuCtxSetCurrent(context));
  MUST(cuMemAlloc_v2(&scratch.target, 4096));
  MUST(cuEventCreate(&scratch.event, 0));
  pthread_barrier_wait(&barrier);
  for (uint64_t done = 0; done < calls; done += BATCH) {
    batch(worker, FLOOR, &scratch);
    batch(worker, ALLOC, &scratch);
    batch(worker, FREE, &scratch);
    batch(worker, COPY, &scratch);
    batch(worker, RECORD, &scratch);
    batch(worker, WAIT, &scratch);
  }
  for (uint64_t done = 0; done < calls; done += BATCH) {
    singles(worker, EMPTY, &scratch);
    singles(worker, FLOOR, &scratch);
    singles(worker, ALLOC, &scratch);
    singles(worker, FREE, &scratch);
    singles(worker, COPY, &scratch);
    singles(worker, RECORD, &scratch);
    singles(worker, WAIT, &scratch);
  }
  CUstream stream;
  CUgraph graph;
  MUST(cuStreamCreate(&stream, 0));
  MUST(cuStreamBeginCapture_v2(stream, 0));
  for (uint64_t done = 0; done < calls; done += BATCH) batch(worker, BESIDE, &scratch);
  for (uint64_t done = 0; done < calls; done += BATCH) singles(worker, BESIDE, &scratch);
  MUST(cuStreamEndCapture(stream, &graph));
  return NULL;
}

/* ---- results ---------------------------------------------------------------------------- */

static int compare(const void *left, const void *right) {
  uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
  return (a > b) - (a < b);
}

static struct samples merged(const struct worker *workers, enum kind kind, bool single) {
  struct samples all = {0};
  for (uint64_t i = 0; i < thread_count; i++)
    all.count += (single ? workers[i].singles : workers[i].batches)[kind].count;
  all.values = malloc((all.count + 1) * sizeof *all.values);
  if (!all.values) exit(9);
  uint64_t at = 0;
  for (uint64_t i = 0; i < thread_count; i++) {
    const struct samples *part = &(single ? workers[i].singles : workers[i].batches)[kind];
    memcpy(all.values + at, part->values, part->count * sizeof *part->values);
    at += part->count;
  }
  qsort(all.values, all.count, sizeof *all.values, compare);
  return all;
}

static double at(const struct samples *samples, double part) {
  uint64_t index = (uint64_t)((double)(samples->count - 1) * part);
  return samples->count ? samples->values[index] : 0;
}

static void report(const struct worker *workers, double per_tick) {
  double medians[KINDS] = {0}, empty = 0;
  for (int kind = EMPTY; kind < KINDS; kind++) {
    struct samples all = merged(workers, kind, true);
    if (kind == EMPTY) {
      empty = at(&all, 0.5);
      printf("empty.median_ns %.2f\n", empty * per_tick);
      continue;
    }
    struct samples batches = merged(workers, kind, false);
    medians[kind] = at(&batches, 0.5) / BATCH * per_tick;
    printf("%s.median_ns %.2f\n", kind_names[kind], medians[kind]);
    printf("%s.p999_ns %.2f\n", kind_names[kind], (at(&all, 0.999) - empty) * per_tick);
    printf("%s.max_ns %.2f\n", kind_names[kind], (at(&all, 1) - empty) * per_tick);
  }
  printf("pair.median_ns %.2f\n", medians[ALLOC] + medians[FREE]);
}

static double monotonic(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

/* Pages are touched here, not while something is measured. */
static void make_room(struct samples *samples, uint64_t count) {
  samples->values = malloc(count * sizeof *samples->values);
  if (!samples->values) exit(9);
  memset(samples->values, 1, count * sizeof *samples->values);
}

int main(int argc, char **argv) {
  calls = (argument(argc, argv, 1, 500000) + BATCH - 1) / BATCH * BATCH;
  thread_count = argument(argc, argv, 2, 1);
  pinned = argument(argc, argv, 3, 0);
  if (thread_count < 1 || thread_count > 64) return 2;
  struct worker *workers = calloc(thread_count, sizeof *workers);
  if (!workers) return 9;
  context = start_driver();
  pthread_barrier_init(&barrier, NULL, (unsigned)thread_count);
  for (uint64_t i = 0; i < thread_count; i++)
    for (int kind = 0; kind < KINDS; kind++) {
      make_room(&workers[i].batches[kind], calls / BATCH);
      make_room(&workers[i].singles[kind], calls);
    }
  double start_ns = monotonic();
  uint64_t start_ticks = ticks_fenced();
  for (uint64_t i = 0; i < thread_count; i++) {
    workers[i].number = (unsigned)i;
    MUST(pthread_create(&workers[i].thread, NULL, measure, &workers[i]));
  }
  for (uint64_t i = 0; i < thread_count; i++) pthread_join(workers[i].thread, NULL);
  double per_tick = (monotonic() - start_ns) / (double)(ticks_fenced() - start_ticks);
  say("", "calls", calls);
  say("", "threads", thread_count);
  say("", "pinned", pinned);
  report(workers, per_tick);
  return 0;
}
