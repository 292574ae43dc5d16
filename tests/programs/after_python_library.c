/*
 * libafter_python.so: takes and gives back memory for as long as the process lives, for a thread
 * that Python made and does not wait for. The process ends a little later than it would, so the
 * thread goes on after the interpreter has ended.
 *
 * `calls` tells how often it did.
 */
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

#include "fake_cuda.h"

static _Atomic uint64_t calls;

void forever(void) {
  struct timespec pause = {0, 10000};
  for (;;) {
    CUdeviceptr pointer;
    nanosleep(&pause, NULL);
    if (cuMemAlloc_v2(&pointer, 4096)) continue;
    cuMemFree_v2(pointer);
    atomic_fetch_add(&calls, 1);
  }
}

uint64_t calls_so_far(void) { return atomic_load(&calls); }

__attribute__((destructor)) static void ends(void) {
  uint64_t before = atomic_load(&calls);
  struct timespec pause = {0, 20000000};
  nanosleep(&pause, NULL);
  printf("after %d\n", atomic_load(&calls) > before);
  fflush(stdout);
}
