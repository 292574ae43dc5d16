/*
 * Reaches the driver by linking, by dlsym, by cuGetProcAddress, by the same with per-thread
 * stream variants, and by a cuGetProcAddress that it got from itself. By each way it makes every
 * kind of allocation, copy and set, with failed and null calls among them.
 *
 * Expected: five times the work of `work`, with sizes that tell the ways apart; one device block
 * and one pinned block of each way are live at the end.
 */
#include <dlfcn.h>

#include "tally.h"

#define MIB ((size_t)1 << 20)

/* FUNCTION(field, base name, version, symbol, per-thread symbol's suffix, parameters) */
#define FUNCTIONS                                                                            \
  FUNCTION(alloc, cuMemAlloc, 3020, cuMemAlloc_v2, (CUdeviceptr *, size_t))                  \
  FUNCTION(release, cuMemFree, 3020, cuMemFree_v2, (CUdeviceptr))                            \
  FUNCTION(pitch, cuMemAllocPitch, 3020, cuMemAllocPitch_v2,                                 \
           (CUdeviceptr *, size_t *, size_t, size_t, unsigned))                              \
  FUNCTION(managed, cuMemAllocManaged, 6000, cuMemAllocManaged,                              \
           (CUdeviceptr *, size_t, unsigned))                                                \
  FUNCTION(pin, cuMemAllocHost, 3020, cuMemAllocHost_v2, (void **, size_t))                  \
  FUNCTION(pin_flags, cuMemHostAlloc, 2020, cuMemHostAlloc, (void **, size_t, unsigned))     \
  FUNCTION(unpin, cuMemFreeHost, 2000, cuMemFreeHost, (void *))                              \
  FUNCTION(enrol, cuMemHostRegister, 6050, cuMemHostRegister_v2, (void *, size_t, unsigned)) \
  FUNCTION(unenrol, cuMemHostUnregister, 4000, cuMemHostUnregister, (void *))                \
  FUNCTION(alloc_async, cuMemAllocAsync, 11020, cuMemAllocAsync,                             \
           (CUdeviceptr *, size_t, CUstream))                                                \
  FUNCTION(free_async, cuMemFreeAsync, 11020, cuMemFreeAsync, (CUdeviceptr, CUstream))       \
  FUNCTION(reserve, cuMemAddressReserve, 10020, cuMemAddressReserve,                         \
           (CUdeviceptr *, size_t, size_t, CUdeviceptr, unsigned long long))                 \
  FUNCTION(unreserve, cuMemAddressFree, 10020, cuMemAddressFree, (CUdeviceptr, size_t))      \
  FUNCTION(create, cuMemCreate, 10020, cuMemCreate,                                          \
           (CUmemGenericAllocationHandle *, size_t, const CUmemAllocationProp *,             \
            unsigned long long))                                                             \
  FUNCTION(drop, cuMemRelease, 10020, cuMemRelease, (CUmemGenericAllocationHandle))          \
  FUNCTION(map, cuMemMap, 10020, cuMemMap,                                                   \
           (CUdeviceptr, size_t, size_t, CUmemGenericAllocationHandle, unsigned long long))  \
  FUNCTION(unmap, cuMemUnmap, 10020, cuMemUnmap, (CUdeviceptr, size_t))                      \
  FUNCTION(access, cuMemSetAccess, 10020, cuMemSetAccess,                                    \
           (CUdeviceptr, size_t, const CUmemAccessDesc *, size_t))                           \
  FUNCTION(copy, cuMemcpy, 4000, cuMemcpy, (CUdeviceptr, CUdeviceptr, size_t))               \
  FUNCTION(copy_in, cuMemcpyHtoD, 3020, cuMemcpyHtoD_v2, (CUdeviceptr, const void *, size_t)) \
  FUNCTION(copy_out, cuMemcpyDtoH, 3020, cuMemcpyDtoH_v2, (void *, CUdeviceptr, size_t))     \
  FUNCTION(copy_within, cuMemcpyDtoD, 3020, cuMemcpyDtoD_v2,                                 \
           (CUdeviceptr, CUdeviceptr, size_t))                                               \
  FUNCTION(copy_in_async, cuMemcpyHtoDAsync, 3020, cuMemcpyHtoDAsync_v2,                     \
           (CUdeviceptr, const void *, size_t, CUstream))                                    \
  FUNCTION(copy_out_async, cuMemcpyDtoHAsync, 3020, cuMemcpyDtoHAsync_v2,                    \
           (void *, CUdeviceptr, size_t, CUstream))                                          \
  FUNCTION(copy_within_async, cuMemcpyDtoDAsync, 3020, cuMemcpyDtoDAsync_v2,                 \
           (CUdeviceptr, CUdeviceptr, size_t, CUstream))                                     \
  FUNCTION(copy_2d, cuMemcpy2D, 3020, cuMemcpy2D_v2, (const CUDA_MEMCPY2D *))                \
  FUNCTION(copy_3d, cuMemcpy3D, 3020, cuMemcpy3D_v2, (const CUDA_MEMCPY3D *))                \
  FUNCTION(set_8, cuMemsetD8, 3020, cuMemsetD8_v2, (CUdeviceptr, unsigned char, size_t))     \
  FUNCTION(set_16, cuMemsetD16, 3020, cuMemsetD16_v2, (CUdeviceptr, unsigned short, size_t)) \
  FUNCTION(set_32_async, cuMemsetD32Async, 3020, cuMemsetD32Async,                           \
           (CUdeviceptr, unsigned, size_t, CUstream))                                        \
  FUNCTION(set_2d, cuMemsetD2D8, 3020, cuMemsetD2D8_v2,                                      \
           (CUdeviceptr, size_t, unsigned char, size_t, size_t))

struct api {
#define FUNCTION(field, base, version, symbol, params) CUresult(*field) params;
  FUNCTIONS
#undef FUNCTION
};

typedef CUresult (*get_t)(const char *, void **, int, uint64_t, int *);

static void link_all(struct api *api) {
#define FUNCTION(field, base, version, symbol, params) api->field = symbol;
  FUNCTIONS
#undef FUNCTION
}

static void dlsym_all(struct api *api) {
  void *driver = dlopen("libcuda.so.1", RTLD_NOW);
#define FUNCTION(field, base, version, symbol, params) \
  *(void **)&api->field = dlsym(driver, #symbol);
  FUNCTIONS
#undef FUNCTION
}

/* The per-thread variants have a version of their own, at most 7000 for these names. */
static void get_all(struct api *api, get_t get, uint64_t flags) {
#define FUNCTION(field, base, version, symbol, params)                                       \
  MUST(get(#base, (void **)&api->field, version < 7000 && flags ? 7000 : version, flags, NULL)); \
  if (!api->field) exit(8);
  FUNCTIONS
#undef FUNCTION
}

static void *asked_of_itself(get_t get) {
  void *again = NULL;
  MUST(get("cuGetProcAddress", &again, 12000, 0, NULL));
  return again;
}

static void linear(const struct api *api, size_t size) {
  static char host[4096];
  CUdeviceptr kept, freed, pitched;
  size_t pitch;
  MUST(api->alloc(&kept, size));
  did_alloc(DEVICE, size);
  MUST(api->alloc(&freed, size * 3));
  did_alloc(DEVICE, size * 3);
  MUST(api->pitch(&pitched, &pitch, size, 7, 4));
  did_alloc(DEVICE, pitch * 7);
  MUST(api->copy_in(kept, host, size));
  did_copy(HOST_TO_DEVICE, SYNC, size);
  MUST(api->copy_out(host, kept, size / 2));
  did_copy(DEVICE_TO_HOST, SYNC, size / 2);
  MUST(api->copy_within(freed, kept, size));
  did_copy(DEVICE_TO_DEVICE, SYNC, size);
  MUST(api->copy((CUdeviceptr)host, freed, 100));
  did_copy(DEVICE_TO_HOST, SYNC, 100);
  CUDA_MEMCPY2D flat = {.srcMemoryType = CU_MEMORYTYPE_HOST, .srcHost = host, .srcPitch = 64,
                        .dstMemoryType = CU_MEMORYTYPE_DEVICE, .dstDevice = pitched,
                        .dstPitch = pitch, .WidthInBytes = 60, .Height = 5};
  MUST(api->copy_2d(&flat));
  did_copy(HOST_TO_DEVICE, SYNC, 60 * 5);
  CUDA_MEMCPY3D box = {.srcMemoryType = CU_MEMORYTYPE_DEVICE, .srcDevice = pitched,
                       .srcPitch = pitch, .srcHeight = 3, .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                       .dstDevice = freed, .dstPitch = 16, .dstHeight = 3, .WidthInBytes = 16,
                       .Height = 3, .Depth = 2};
  MUST(api->copy_3d(&box));
  did_copy(DEVICE_TO_DEVICE, SYNC, 16 * 3 * 2);
  MUST(api->set_8(kept, 1, size));
  did_set(SYNC, size);
  MUST(api->set_16(kept, 1, size / 2));
  did_set(SYNC, size / 2 * 2);
  MUST(api->set_2d(pitched, pitch, 1, size, 7));
  did_set(SYNC, size * 7);
  MUST(api->release(freed));
  did_free(DEVICE, size * 3);
  MUST(api->release(pitched));
  did_free(DEVICE, pitch * 7);
}

static void host_side(const struct api *api, size_t size) {
  static char registered[8192];
  void *pinned, *kept;
  CUdeviceptr managed;
  MUST(api->pin(&pinned, size));
  did_alloc(PINNED, size);
  MUST(api->pin_flags(&kept, size * 2, 1));
  did_alloc(PINNED, size * 2);
  MUST(api->managed(&managed, size, CU_MEM_ATTACH_GLOBAL));
  did_alloc(MANAGED, size);
  MUST(api->enrol(registered, sizeof registered, 0));
  did_alloc(REGISTERED, sizeof registered);
  MUST(api->copy((CUdeviceptr)pinned, (CUdeviceptr)registered, size));
  did_copy(HOST_TO_HOST, SYNC, size);
  MUST(api->copy_in_async(managed, pinned, size, NULL));
  did_copy(HOST_TO_DEVICE, ASYNC, size);
  MUST(api->copy_out_async(pinned, managed, size, NULL));
  did_copy(DEVICE_TO_HOST, ASYNC, size);
  MUST(api->unenrol(registered));
  did_free(REGISTERED, sizeof registered);
  MUST(api->release(managed));
  did_free(MANAGED, size);
  MUST(api->unpin(pinned));
  did_free(PINNED, size);
}

static void stream_ordered(const struct api *api, size_t size) {
  CUdeviceptr first, second;
  MUST(api->alloc_async(&first, size, NULL));
  did_alloc(ASYNC_POOL, size);
  MUST(api->alloc_async(&second, size * 5, NULL));
  did_alloc(ASYNC_POOL, size * 5);
  MUST(api->copy_within_async(first, second, size, NULL));
  did_copy(DEVICE_TO_DEVICE, ASYNC, size);
  MUST(api->set_32_async(second, 7, size / 4, NULL));
  did_set(ASYNC, size / 4 * 4);
  MUST(api->free_async(first, NULL));
  did_free(ASYNC_POOL, size);
  MUST(api->release(second)); /* by the other call: allowed */
  did_free(ASYNC_POOL, size * 5);
}

static void virtual_memory(const struct api *api, size_t way) {
  CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                              .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
  CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, 0}, 3};
  CUmemGenericAllocationHandle handle;
  CUdeviceptr base;
  size_t bytes = 2 * MIB * way;
  MUST(api->reserve(&base, bytes * 2, 0, 0, 0));
  did_alloc(VMM_ADDRESS, bytes * 2);
  MUST(api->create(&handle, bytes, &prop, 0));
  did_alloc(VMM_PHYSICAL, bytes);
  MUST(api->map(base, bytes, 0, handle, 0));
  did_alloc(VMM_MAPPED, bytes);
  MUST(api->access(base, bytes, &access, 1));
  MUST(api->drop(handle)); /* the mapping keeps the memory */
  MUST(api->unmap(base, bytes));
  did_free(VMM_MAPPED, bytes);
  did_free(VMM_PHYSICAL, bytes);
  MUST(api->unreserve(base, bytes * 2));
  did_free(VMM_ADDRESS, bytes * 2);
}

static void failures(const struct api *api) {
  CUdeviceptr pointer;
  void *host;
  CUmemGenericAllocationHandle handle;
  FAILED_ALLOC(DEVICE, api->alloc(&pointer, 0));
  FAILED_ALLOC(DEVICE, api->alloc(NULL, 100));
  FAILED_ALLOC(DEVICE, api->alloc(&pointer, (size_t)1 << 50));
  FAILED_ALLOC(DEVICE, api->pitch(&pointer, NULL, 8, 8, 4));
  FAILED_ALLOC(MANAGED, api->managed(&pointer, 0, 1));
  FAILED_ALLOC(PINNED, api->pin(&host, 0));
  FAILED_ALLOC(ASYNC_POOL, api->alloc_async(&pointer, (size_t)1 << 50, NULL));
  FAILED_ALLOC(VMM_PHYSICAL, api->create(&handle, 5, NULL, 0));
  FAILED_FREE(DEVICE, api->release(0x12345));
  FAILED_FREE(PINNED, api->unpin(&host));
  FAILED_FREE(REGISTERED, api->unenrol(&host));
  FAILED_FREE(ASYNC_POOL, api->free_async(0x12345, NULL));
  failed(api->copy_in(0x12345, &host, 8), "copy to nowhere");
  failed(api->copy_in(0x12345, NULL, 8), "copy from nowhere");
  MUST(api->release(0));
  tally.ledgers[DEVICE].null_frees++;
}

static void work(const struct api *api, size_t way) {
  size_t size = 1000 + way * 16;
  linear(api, size);
  host_side(api, size);
  stream_ordered(api, size);
  virtual_memory(api, way);
  failures(api);
}

int main(void) {
  struct api api;
  start_driver();
  link_all(&api);
  work(&api, 1);
  dlsym_all(&api);
  work(&api, 2);
  get_all(&api, cuGetProcAddress_v2, 0);
  work(&api, 3);
  get_all(&api, cuGetProcAddress_v2, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM);
  work(&api, 4);
  get_t again;
  *(void **)&again = asked_of_itself(cuGetProcAddress_v2);
  get_all(&api, again, 0);
  work(&api, 5);
  print_tally("", true);
  return 0;
}
