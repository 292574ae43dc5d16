/*
 * A library that allocates for its caller, from a frame of ROOM bytes. Two of them, with different
 * frames, have the same code at the same offsets. Prints the chain as the C library tells it.
 */
#include <execinfo.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "fake_cuda.h"

__attribute__((noinline)) static void allocate(uint64_t bytes) {
  void *frames[64];
  int count = backtrace(frames, 64);
  printf("stack %" PRIu64, bytes);
  for (int i = 0; i < count; i++) printf(" %" PRIuPTR, (uintptr_t)frames[i]);
  printf("\n");
  CUdeviceptr pointer;
  if (cuMemAlloc_v2(&pointer, bytes)) exit(1);
  __asm__ volatile("" ::: "memory");
}

void call_through(uint64_t bytes) {
  char room[ROOM];
  __asm__ volatile("" ::"r"(room) : "memory");
  allocate(bytes);
  __asm__ volatile("" ::"r"(room) : "memory");
}
