/*
 * A free that the driver refuses (by script) keeps the block live; the second try frees it.
 *
 * Run with: FAKE_CUDA_FAIL=cuMemFree_v2:2=999,cuMemAlloc_v2:3=2
 * Expected: one failed free, one failed allocation, one block live of 3,000 bytes.
 */
#include "tally.h"

int main(void) {
  CUdeviceptr third;
  start_driver();
  CUdeviceptr first = take(1000), second = take(2000);
  FAILED_ALLOC(DEVICE, cuMemAlloc_v2(&third, 3000));
  take(3000);
  give(first, 1000);
  FAILED_FREE(DEVICE, cuMemFree_v2(second));
  give(second, 2000);
  print_tally("", true);
  return 0;
}
