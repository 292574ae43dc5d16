/*
 * Calls a shared runtime on a machine without a driver: run without LD_LIBRARY_PATH, so that it
 * finds the runtime beside itself and no libcuda.so.1.
 *
 * Run with: LD_LIBRARY_PATH=
 * Expected: error 35 from each call, out-parameters untouched, no memory in any report.
 */
#include "tally.h"

int main(void) {
  void *pointer = (void *)0x77;
  int results[] = {cudaMalloc(&pointer, 100), cudaFree(NULL), cudaMallocHost(&pointer, 100),
                   cudaMemset(pointer, 0, 1), cudaMallocAsync(&pointer, 100, NULL)};
  int good = pointer == (void *)0x77;
  for (size_t i = 0; i < sizeof results / sizeof *results; i++) {
    printf("result.%zu %d\n", i + 1, results[i]);
    good &= results[i] == cudaErrorInsufficientDriver;
  }
  printf("pointer_kept %d\n", pointer == (void *)0x77);
  return !good;
}
