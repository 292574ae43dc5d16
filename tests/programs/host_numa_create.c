/*
 * NCCL's pattern: physical memory on a host NUMA node, mapped and shared with the device; then
 * the same on the device.
 *
 * Expected: two creations, of which `on_host_bytes` took no device memory.
 */
#include "tally.h"

#define BYTES ((size_t)4 << 20)

static size_t device_in_use(void) {
  size_t available, total;
  MUST(cuMemGetInfo_v2(&available, &total));
  return total - available;
}

static size_t cycle(int type, int id, CUdeviceptr base) {
  CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {type, id}};
  CUmemAccessDesc access[] = {{{CU_MEM_LOCATION_TYPE_DEVICE, 0}, 3}, {{type, id}, 3}};
  CUmemGenericAllocationHandle handle, again;
  size_t before = device_in_use();
  MUST(cuMemCreate(&handle, BYTES, &prop, 0));
  did_alloc(VMM_PHYSICAL, BYTES);
  MUST(cuMemMap(base, BYTES, 0, handle, 0));
  did_alloc(VMM_MAPPED, BYTES);
  MUST(cuMemSetAccess(base, BYTES, access, 2));
  size_t took = device_in_use() - before;
  MUST(cuMemRetainAllocationHandle(&again, (void *)base));
  MUST(cuMemRelease(handle));
  MUST(cuMemUnmap(base, BYTES));
  did_free(VMM_MAPPED, BYTES);
  MUST(cuMemRelease(again)); /* only now is the memory gone */
  did_free(VMM_PHYSICAL, BYTES);
  return took;
}

int main(void) {
  CUdeviceptr base;
  start_driver();
  MUST(cuMemAddressReserve(&base, BYTES, 0, 0, 0));
  did_alloc(VMM_ADDRESS, BYTES);
  size_t host = cycle(CU_MEM_LOCATION_TYPE_HOST_NUMA, 0, base);
  size_t device = cycle(CU_MEM_LOCATION_TYPE_DEVICE, 0, base);
  MUST(cuMemAddressFree(base, BYTES));
  did_free(VMM_ADDRESS, BYTES);
  say("", "on_host_bytes", BYTES);
  say("", "device_bytes_for_host", host);
  say("", "device_bytes_for_device", device);
  print_tally("", true);
  return host != 0 || device != BYTES;
}
