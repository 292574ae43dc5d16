/*
 * Frees of pointers that no allocation returned: never given out, the inside of a block, the
 * stack, freed already, and pinned memory by the wrong call.
 *
 * Expected: each is handed to the driver and fails there; the real blocks stay live.
 */
#include "tally.h"

int main(void) {
  int local;
  void *pinned;
  start_driver();
  CUdeviceptr kept = take(1000), freed = take(2000);
  MUST(cuMemAllocHost_v2(&pinned, 500));
  did_alloc(PINNED, 500);
  give(freed, 2000);
  FAILED_FREE(DEVICE, cuMemFree_v2(freed));
  FAILED_FREE(DEVICE, cuMemFree_v2(kept + 256));
  FAILED_FREE(DEVICE, cuMemFree_v2(0xdeadbeef000));
  FAILED_FREE(DEVICE, cuMemFree_v2((CUdeviceptr)&local));
  FAILED_FREE(DEVICE, cuMemFree_v2((CUdeviceptr)pinned));
  FAILED_FREE(PINNED, cuMemFreeHost((void *)kept));
  FAILED_FREE(PINNED, cuMemFreeHost(&local));
  FAILED_FREE(ASYNC_POOL, cuMemFreeAsync(kept, NULL));
  FAILED_FREE(REGISTERED, cuMemHostUnregister(pinned));
  print_tally("", true);
  return 0;
}
