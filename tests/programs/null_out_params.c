/*
 * Null where a result should go, as OptiX and others do: memory information without either
 * figure, queries, lookups without status, allocations without a place.
 *
 * Expected: no crash; the calls that fail are counted as failed, nothing is live.
 */
#include "tally.h"

int main(void) {
  void *found = NULL;
  size_t total = 0;
  FAILED_ALLOC(DEVICE, cuMemAlloc_v2(NULL, 100)); /* before cuInit as well */
  CUdeviceptr pointer = (start_driver(), take(100));
  MUST(cuMemGetInfo_v2(NULL, NULL));
  MUST(cuMemGetInfo_v2(NULL, &total));
  MUST(cuMemGetAddressRange_v2(NULL, NULL, pointer));
  MUST(cuGetProcAddress_v2("cuMemAlloc", &found, 12000, 0, NULL));
  failed(cuGetProcAddress_v2("cuMemAlloc", NULL, 12000, 0, NULL), "no place");
  failed(cuGetProcAddress_v2(NULL, &found, 12000, 0, NULL), "no name");
  failed(cuPointerGetAttribute(NULL, 1, pointer), "no value");
  failed(cuCtxGetCurrent(NULL), "no context");
  FAILED_ALLOC(DEVICE, cuMemAlloc_v2(NULL, 100));
  FAILED_ALLOC(DEVICE, cuMemAllocPitch_v2(NULL, NULL, 100, 100, 4));
  FAILED_ALLOC(MANAGED, cuMemAllocManaged(NULL, 100, 1));
  FAILED_ALLOC(PINNED, cuMemAllocHost_v2(NULL, 100));
  FAILED_ALLOC(PINNED, cuMemHostAlloc(NULL, 100, 0));
  FAILED_ALLOC(ASYNC_POOL, cuMemAllocAsync(NULL, 100, NULL));
  FAILED_ALLOC(VMM_ADDRESS, cuMemAddressReserve(NULL, 2 << 20, 0, 0, 0));
  FAILED_ALLOC(VMM_PHYSICAL, cuMemCreate(NULL, 2 << 20, NULL, 0));
  FAILED_ALLOC(REGISTERED, cuMemHostRegister_v2(NULL, 100, 0));
  failed(cuMemcpy2D_v2(NULL), "no descriptor");
  failed(cuMemcpy3D_v2(NULL), "no descriptor");
  give(pointer, 100);
  print_tally("", true);
  return 0;
}
