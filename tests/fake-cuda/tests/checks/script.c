/* FAKE_CUDA_FAIL="cuMemAlloc_v2:3=2,cuMemFree_v2:2=999,cuMemcpyDtoD_v2:*=700" and a delay. */
#include <time.h>

#include "check.h"

int main(void) {
  CUdeviceptr pointers[4];
  struct timespec before, after;
  start();
  for (int i = 0; i < 4; i++)
    EQUAL(cuMemAlloc_v2(&pointers[i], 100), i == 2 ? CUDA_ERROR_OUT_OF_MEMORY : 0);
  EQUAL(cuMemFree_v2(pointers[0]), 0);
  EQUAL(cuMemFree_v2(pointers[1]), 999);
  EQUAL(cuMemFree_v2(pointers[1]), 0);
  for (int i = 0; i < 3; i++) EQUAL(cuMemcpyDtoD_v2(pointers[3], pointers[3], 8), 700);
  clock_gettime(CLOCK_MONOTONIC, &before);
  EQUAL(cuMemsetD8_v2(pointers[3], 0, 8), 0);
  clock_gettime(CLOCK_MONOTONIC, &after);
  CHECK((after.tv_sec - before.tv_sec) * 1000000000 + after.tv_nsec - before.tv_nsec >= 2000000);
  return failures != 0;
}
