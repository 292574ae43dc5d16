/*
 * A cuMemUnmap over three mappings fails, as on real hardware when one of them is in use, and the
 * program releases the handles and goes on: the memory is stuck, kept by mappings alone. A fourth
 * mapping is released in order.
 *
 * Run with: FAKE_CUDA_FAIL=cuMemUnmap:1=1
 * Expected: 6 MiB in three mappings whose unmap failed, 6 MiB of physical memory without handle.
 */
#include "tally.h"

#define MIB ((size_t)1 << 20)

static CUmemGenericAllocationHandle map(CUdeviceptr at) {
  CUmemAllocationProp prop = {.type = 1, .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
  CUmemGenericAllocationHandle handle;
  MUST(cuMemCreate(&handle, 2 * MIB, &prop, 0));
  did_alloc(VMM_PHYSICAL, 2 * MIB);
  MUST(cuMemMap(at, 2 * MIB, 0, handle, 0));
  did_alloc(VMM_MAPPED, 2 * MIB);
  return handle;
}

int main(void) {
  CUdeviceptr base;
  CUmemGenericAllocationHandle handles[4];
  start_driver();
  MUST(cuMemAddressReserve(&base, 8 * MIB, 0, 0, 0));
  did_alloc(VMM_ADDRESS, 8 * MIB);
  for (int i = 0; i < 4; i++) handles[i] = map(base + i * 2 * MIB);
  FAILED_FREE(VMM_MAPPED, cuMemUnmap(base, 6 * MIB));
  MUST(cuMemUnmap(base + 6 * MIB, 2 * MIB));
  did_free(VMM_MAPPED, 2 * MIB);
  for (int i = 0; i < 4; i++) MUST(cuMemRelease(handles[i]));
  did_free(VMM_PHYSICAL, 2 * MIB);
  print_tally("", true);
  return 0;
}
