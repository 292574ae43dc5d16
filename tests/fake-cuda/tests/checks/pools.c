/* Pools, virtual memory management, capture, and contexts. */
#include "check.h"

static uint64_t attribute(CUmemoryPool pool, int which) {
  uint64_t value = 0;
  EQUAL(cuMemPoolGetAttribute(pool, which, &value), 0);
  return value;
}

#define RESERVED(pool) attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT)
#define USED(pool) attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT)

static void pools(void) {
  CUcontext context = start();
  CUmemoryPool pool, own;
  CUdeviceptr a, b;
  uint64_t threshold = UINT64_MAX;
  cuDeviceGetDefaultMemPool(&pool, 0);
  EQUAL(cuMemAllocAsync(&a, 1000, NULL), 0);
  EQUAL(RESERVED(pool), 32 * MIB);
  EQUAL(USED(pool), 1024);
  EQUAL(cuMemFreeAsync(a, NULL), 0);
  EQUAL(cuMemAllocAsync_ptsz(&b, 1000, NULL), 0);
  EQUAL(a, b);
  EQUAL(cuMemFree_v2(b), 0); /* pool memory may be freed by the other call */
  EQUAL(USED(pool), 0);
  EQUAL(RESERVED(pool), 32 * MIB);
  cuCtxSynchronize();
  EQUAL(RESERVED(pool), 0);
  cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold);
  cuMemAllocAsync(&a, 100 * MIB, NULL), cuMemFreeAsync(a, NULL), cuCtxSynchronize();
  EQUAL(RESERVED(pool), 100 * MIB);
  EQUAL(cuMemPoolTrimTo(pool, 0), 0);
  EQUAL(RESERVED(pool), 0);
  EQUAL(cuMemPoolDestroy(pool), CUDA_ERROR_INVALID_VALUE);
  CUmemPoolProps props = {.allocType = 1, .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
  size_t before = used();
  EQUAL(cuMemPoolCreate(&own, &props), 0);
  EQUAL(cuMemAllocFromPoolAsync(&a, 4 * MIB, own, NULL), 0);
  EQUAL(cuMemPoolDestroy(own), 0);
  EQUAL(used(), before + 32 * MIB); /* until the last allocation is gone */
  EQUAL(cuMemFreeAsync(a, NULL), 0);
  EQUAL(used(), before);
  EQUAL(cuMemFreeAsync(a, NULL), CUDA_ERROR_INVALID_VALUE);
  cuCtxDestroy_v2(context);
}

static void vmm(void) {
  CUcontext context = start();
  CUmemAllocationProp prop = {.type = 1, .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
  CUmemGenericAllocationHandle handle, again;
  CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, 0}, 3};
  CUdeviceptr base;
  size_t before = used();
  EQUAL(cuMemAddressReserve(&base, 8 * MIB, 0, 0, 0), 0);
  EQUAL(used(), before);
  EQUAL(cuMemCreate(&handle, 3 * MIB, &prop, 0), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuMemCreate(&handle, 4 * MIB, &prop, 0), 0);
  EQUAL(used(), before + 4 * MIB);
  EQUAL(cuMemMap(base, 4 * MIB, 0, handle, 0), 0);
  EQUAL(cuMemMap(base + 2 * MIB, 4 * MIB, 0, handle, 0), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuMemSetAccess(base, 4 * MIB, &access, 1), 0);
  EQUAL(cuMemSetAccess(base, 8 * MIB, &access, 1), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuMemRetainAllocationHandle(&again, (void *)base), 0);
  EQUAL(again, handle);
  EQUAL(cuMemRelease(handle), 0);
  EQUAL(cuMemRelease(handle), 0);
  EQUAL(cuMemRelease(handle), CUDA_ERROR_INVALID_VALUE);
  EQUAL(used(), before + 4 * MIB);
  EQUAL(cuMemsetD8_v2(base, 0, 4 * MIB), 0);
  EQUAL(cuMemAddressFree(base, 8 * MIB), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuMemUnmap(base, 2 * MIB), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuMemUnmap(base, 4 * MIB), 0);
  EQUAL(used(), before);
  EQUAL(cuMemAddressFree(base, 8 * MIB), 0);
  prop.location.type = CU_MEM_LOCATION_TYPE_HOST_NUMA;
  EQUAL(cuMemCreate(&handle, 4 * MIB, &prop, 0), 0);
  EQUAL(used(), before);
  EQUAL(cuMemRelease(handle), 0);
  cuCtxDestroy_v2(context);
}

static void capture(void) {
  CUcontext context = start();
  CUstream stream;
  CUgraph graph;
  CUgraphExec exec;
  CUdeviceptr kept, inside;
  cuStreamCreate(&stream, 0);
  size_t before = used();
  EQUAL(cuStreamBeginCapture_v2(stream, 0), 0);
  EQUAL(cuMemAllocAsync(&kept, 4 * MIB, stream), 0);
  EQUAL(cuMemAllocAsync(&inside, 2 * MIB, stream), 0);
  EQUAL(cuMemFreeAsync(inside, stream), 0);
  EQUAL(cuStreamEndCapture(stream, &graph), 0);
  EQUAL(cuGraphInstantiateWithFlags(&exec, graph, 0), 0);
  EQUAL(used(), before);
  EQUAL(cuGraphLaunch(exec, stream), 0);
  EQUAL(used(), before + 6 * MIB);
  EQUAL(cuGraphLaunch(exec, stream), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuMemFreeAsync(kept, stream), 0);
  EQUAL(cuGraphLaunch(exec, stream), 0);
  EQUAL(cuMemFree_v2(kept), 0);
  cuGraphExecDestroy(exec), cuGraphDestroy(graph);
  EQUAL(used(), before + 6 * MIB);
  cuDeviceGraphMemTrim(0);
  EQUAL(used(), before);
  cuCtxDestroy_v2(context);
}

static void primary(void) {
  CUcontext context, again;
  CUdeviceptr pointer;
  EQUAL(cuDevicePrimaryCtxRetain(&context, 0), 0);
  EQUAL(cuDevicePrimaryCtxRetain(&again, 0), 0);
  CHECK(context == again);
  cuCtxSetCurrent(context);
  EQUAL(cuMemAlloc_v2(&pointer, 5), 0);
  EQUAL(cuDevicePrimaryCtxRelease_v2(0), 0);
  EQUAL(cuMemFree_v2(pointer), 0);
  EQUAL(cuMemAlloc_v2(&pointer, 5), 0);
  EQUAL(cuDevicePrimaryCtxRelease_v2(0), 0);
  EQUAL(cuMemFree_v2(pointer), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuDevicePrimaryCtxRelease_v2(0), CUDA_ERROR_INVALID_CONTEXT);
  cuDevicePrimaryCtxRetain(&context, 0);
  cuMemAllocAsync(&pointer, 5, NULL);
  EQUAL(cuDevicePrimaryCtxReset_v2(0), 0);
  EQUAL(cuMemFree_v2(pointer), 0); /* pool memory outlives the context */
}

int main(void) {
  EQUAL(cuMemAlloc_v2(&(CUdeviceptr){0}, 1), CUDA_ERROR_NOT_INITIALIZED);
  pools();
  vmm();
  capture();
  primary();
  return failures != 0;
}
