/*
 * Pools: a named pool that is destroyed while an allocation lives, trim, release threshold, pool
 * memory freed by cuMemFree, and memory that outlives the context.
 *
 * Expected: as printed; `reserved.N` lines are the default pool's reserved bytes at each step.
 */
#include "tally.h"

static CUmemoryPool pool;
static int steps;

static void reserved(void) {
  uint64_t bytes;
  MUST(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &bytes));
  printf("reserved.%d %" PRIu64 "\n", ++steps, bytes);
}

static CUdeviceptr grab(size_t bytes) {
  CUdeviceptr pointer;
  MUST(cuMemAllocAsync(&pointer, bytes, NULL));
  did_alloc(ASYNC_POOL, bytes);
  return pointer;
}

static void named_pool(void) {
  CUmemPoolProps props = {.allocType = 1, .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
  CUmemoryPool own;
  CUdeviceptr pointer;
  MUST(cuMemPoolCreate(&own, &props));
  MUST(cuMemAllocFromPoolAsync(&pointer, 5000, own, NULL));
  did_alloc(ASYNC_POOL, 5000);
  MUST(cuMemPoolDestroy(own)); /* the memory goes with its last allocation */
  MUST(cuMemFreeAsync(pointer, NULL));
  did_free(ASYNC_POOL, 5000);
  FAILED_ALLOC(ASYNC_POOL, cuMemAllocFromPoolAsync(&pointer, 5000, own, NULL));
}

int main(void) {
  uint64_t all = UINT64_MAX;
  CUcontext context = start_driver();
  MUST(cuDeviceGetDefaultMemPool(&pool, 0));
  CUdeviceptr first = grab(1000), second = grab(50 << 20);
  reserved();
  MUST(cuMemFreeAsync(second, NULL));
  did_free(ASYNC_POOL, 50 << 20);
  reserved();
  MUST(cuStreamSynchronize(NULL));
  reserved();
  MUST(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &all));
  second = grab(70 << 20);
  MUST(cuMemFree_v2(second));
  did_free(ASYNC_POOL, 70 << 20);
  MUST(cuCtxSynchronize());
  reserved();
  MUST(cuMemPoolTrimTo(pool, 0));
  reserved();
  named_pool();
  MUST(cuCtxDestroy_v2(context));
  start_driver();
  MUST(cuMemFree_v2(first)); /* still there */
  did_free(ASYNC_POOL, 1000);
  FAILED_FREE(DEVICE, cuMemFree_v2(first));
  grab(3000);
  print_tally("", true);
  return 0;
}
