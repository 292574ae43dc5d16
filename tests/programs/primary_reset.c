/*
 * Memory that nobody frees because its context ends: cuCtxDestroy, cudaDeviceReset (which resets
 * the primary context) and the last release of the primary context.
 *
 * Expected: `implicit_frees` blocks are gone without a free of their own; pool memory and memory
 * of cuMemCreate survive. What is left live is printed.
 */
#include "tally.h"

static uint64_t implicit_frees, implicit_bytes;

/* Three kinds of memory that a context owns. */
static void fill(size_t bytes) {
  CUdeviceptr managed;
  void *pinned;
  take(bytes);
  MUST(cuMemAllocManaged(&managed, bytes, 1));
  did_alloc(MANAGED, bytes);
  MUST(cuMemAllocHost_v2(&pinned, bytes));
  did_alloc(PINNED, bytes);
  implicit_frees += 3;
  implicit_bytes += 3 * bytes;
}

int main(void) {
  CUcontext context = start_driver(), primary;
  CUdeviceptr pool;
  void *pointer;
  fill(1000);
  MUST(cuMemAllocAsync(&pool, 5000, NULL));
  did_alloc(ASYNC_POOL, 5000);
  MUST(cuCtxDestroy_v2(context));
  MUST(cudaSetDevice(0));
  fill(2000);
  MUST(cudaMalloc(&pointer, 300));
  did_alloc(DEVICE, 300);
  implicit_frees++, implicit_bytes += 300;
  MUST(cudaDeviceReset());
  FAILED_FREE(DEVICE, cuMemFree_v2((CUdeviceptr)pointer));
  MUST(cuDevicePrimaryCtxRetain(&primary, 0));
  MUST(cuCtxSetCurrent(primary));
  fill(4000);
  MUST(cuDevicePrimaryCtxRelease_v2(0)); /* the last reference */
  MUST(cuDevicePrimaryCtxRetain(&primary, 0));
  MUST(cuCtxSetCurrent(primary));
  take(700);
  say("", "implicit_frees", implicit_frees);
  say("", "implicit_bytes", implicit_bytes);
  puts("left.device.live_bytes 700\nleft.async_pool.live_bytes 5000");
  /* Only what was asked for: live figures depend on the implicit frees. */
  say("", "device.allocs", tally.ledgers[DEVICE].allocs);
  say("", "device.frees", tally.ledgers[DEVICE].frees);
  say("", "device.failed_frees", tally.ledgers[DEVICE].failed_frees);
  say("", "device.alloc_bytes", tally.ledgers[DEVICE].alloc_bytes);
  say("", "managed.allocs", tally.ledgers[MANAGED].allocs);
  say("", "pinned.allocs", tally.ledgers[PINNED].allocs);
  return 0;
}
