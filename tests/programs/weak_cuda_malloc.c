/*
 * Asks "is CUDA here?" by a weak reference to cudaMalloc and by RTLD_DEFAULT, without linking a
 * runtime. Without preload both are absent. Under a preload that exports the name the weak
 * reference cannot be hidden (a documented limit): then the call must say "no driver" and touch
 * nothing. The lookup must say what it says without preload.
 *
 * Expected: `default 0`; `result 35`, `pointer_kept 1` when `weak 1`.
 */
#include <dlfcn.h>

#include "tally.h"

#pragma weak cudaMalloc

int main(void) {
  int (*volatile weak)(void **, size_t) = cudaMalloc;
  void *pointer = (void *)0x77;
  int result = weak ? weak(&pointer, 100) : cudaErrorInsufficientDriver;
  int kept = pointer == (void *)0x77, found = dlsym(RTLD_DEFAULT, "cudaMalloc") != NULL;
  printf("weak %d\ndefault %d\nresult %d\npointer_kept %d\n", weak != NULL, found, result, kept);
  return found || result != cudaErrorInsufficientDriver || !kept;
}
