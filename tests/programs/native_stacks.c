/*
 * Allocations from many depths and kinds of frames. Before each, the C library tells the chain of
 * return addresses (it unwinds with the tables of the compiler's own runtime), and the program
 * prints it: `stack BYTES ADDRESS…`, the innermost first. The first address is one in the function
 * that allocates; the others are to be equal.
 *
 * `-fomit-frame-pointer` and optimisation are on, so most frames are found by the stack pointer.
 */
#include <alloca.h>
#include <execinfo.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake_cuda.h"

#define DEEPEST 240

static _Atomic uint64_t size = 4096;
static pthread_mutex_t output = PTHREAD_MUTEX_INITIALIZER;
static CUcontext context;

/* Keeps a call from being the last instruction, and so from being a jump. */
#define AFTER() __asm__ volatile("" ::: "memory")

__attribute__((noinline)) static void allocate(void) {
  void *frames[DEEPEST + 8];
  uint64_t bytes = size++;
  int count = backtrace(frames, DEEPEST + 8);
  pthread_mutex_lock(&output);
  printf("stack %" PRIu64, bytes);
  for (int i = 0; i < count; i++) printf(" %" PRIuPTR, (uintptr_t)frames[i]);
  printf("\n");
  pthread_mutex_unlock(&output);
  CUdeviceptr pointer;
  if (cuMemAlloc_v2(&pointer, bytes)) exit(1);
  AFTER();
}

/* A stack that is aligned by more than the ABI promises. */
__attribute__((noinline)) static void aligned(int depth);
__attribute__((noinline)) static void variable(int depth);
__attribute__((noinline)) static void plain(int depth);
__attribute__((noinline)) static void large(int depth);

static void next(int depth) {
  if (depth == 0) allocate();
  else if (depth % 4 == 0) aligned(depth - 1);
  else if (depth % 4 == 1) variable(depth - 1);
  else if (depth % 4 == 2) plain(depth - 1);
  else large(depth - 1);
  AFTER();
}

static void aligned(int depth) {
  _Alignas(128) char room[128];
  memset(room, depth, sizeof room);
  __asm__ volatile("" ::"r"(room) : "memory");
  next(depth);
}

static void variable(int depth) {
  char *room = alloca(16 + (size_t)depth * 8);
  memset(room, depth, 16);
  __asm__ volatile("" ::"r"(room) : "memory");
  next(depth);
}

static void plain(int depth) { next(depth); }

static void large(int depth) {
  char room[3000];
  memset(room, depth, sizeof room);
  __asm__ volatile("" ::"r"(room) : "memory");
  next(depth);
}

static int compare(const void *a, const void *b) {
  (void)a, (void)b;
  next(5);
  return 0;
}

static void *run(void *unused) {
  (void)unused;
  if (cuCtxSetCurrent(context)) exit(1);
  for (int depth = 0; depth < 100; depth += 7) next(depth);
  /* Called from the C library. */
  int pair[2] = {2, 1};
  qsort(pair, 2, sizeof *pair, compare);
  /* The same depth by another way, and again the same way. */
  for (int i = 0; i < 3; i++) next(20);
  return NULL;
}

int main(void) {
  if (cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0)) return 1;
  run(NULL);
  pthread_t threads[2];
  for (int i = 0; i < 2; i++) pthread_create(&threads[i], NULL, run, NULL);
  for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
  return 0;
}
