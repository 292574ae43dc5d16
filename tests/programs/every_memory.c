/*
 * Every entry point that takes, gives, lends or moves memory and has no place in three_ways:
 * arrays, memory made elsewhere, pools, residency, and the 32-bit ABI of CUDA 2.0. Each call is
 * found by its exported symbol, or with the argument `get` by base name, version and flags.
 *
 * Expected: as printed; sizes of arrays follow from their descriptors, and `pool.`, `prefetch.`
 * and `advice.` lines are what the report says about pools and managed memory.
 */
#include <dlfcn.h>

#include "tally.h"

#define MIB ((size_t)1 << 20)

static void *driver;
static bool by_name;
static uint64_t symbols;

static void *find(const char *base, int version, uint64_t flags, const char *symbol) {
  void *pointer = NULL;
  if (by_name) MUST(cuGetProcAddress_v2(base, &pointer, version, flags, NULL));
  else pointer = dlsym(driver, symbol);
  if (!pointer) {
    fprintf(stderr, "%s is missing\n", symbol);
    exit(9);
  }
  symbols++;
  return pointer;
}

/* A function with its parameters, found anew for each call. */
#define F(base, version, flags, symbol, types) \
  ((CUresult(*) types)find(#base, version, flags, #symbol))
#define CALL(base, version, symbol, types, arguments) \
  MUST(F(base, version, 0, symbol, types) arguments)
#define CALL_PER_THREAD(base, version, symbol, types, arguments) \
  MUST(F(base, version, 2, symbol, types) arguments)

#define V void *
#define U unsigned
#define N size_t
#define P CUdeviceptr
#define P32 CUdeviceptr_v1
#define S CUstream

struct flat_v1 { unsigned width, height; int format; unsigned channels; };
struct deep_v1 { unsigned width, height, depth; int format; unsigned channels, flags; };
enum { LAYERED = 1, CUBEMAP = 4, SPARSE = 0x40, DEFERRED = 0x80 };
enum { UINT8 = 1, UINT32 = 3, HALF = 0x10, FLOAT = 0x20 };

static void arrays(void) {
  CUarray array[6];
  CUmipmappedArray mips[3];
  CUDA_ARRAY_DESCRIPTOR flat = {100, 30, HALF, 2};
  CUDA_ARRAY3D_DESCRIPTOR deep = {16, 8, 4, UINT32, 4, 0};
  CUDA_ARRAY3D_DESCRIPTOR layers = {64, 0, 5, UINT8, 1, LAYERED};
  CUDA_ARRAY3D_DESCRIPTOR sparse = {1024, 1024, 0, FLOAT, 1, SPARSE};
  CUDA_ARRAY3D_DESCRIPTOR deferred = {64, 64, 0, FLOAT, 1, DEFERRED};
  CUDA_ARRAY3D_DESCRIPTOR cube = {8, 8, 6, FLOAT, 1, CUBEMAP};
  struct flat_v1 old_flat = {50, 10, UINT8, 4};
  struct deep_v1 old_deep = {10, 10, 10, FLOAT, 1, 0};
#define MAKE(base, version, symbol, place, shape, bytes)              \
  (CALL(base, version, symbol, (CUarray *, const void *), (place, shape)), \
   did_alloc(ARRAY, bytes))
  MAKE(cuArrayCreate, 3020, cuArrayCreate_v2, &array[0], &flat, 100 * 30 * 2 * 2);
  MAKE(cuArray3DCreate, 3020, cuArray3DCreate_v2, &array[1], &deep, 16 * 8 * 4 * 4 * 4);
  MAKE(cuArray3DCreate, 3020, cuArray3DCreate_v2, &array[2], &layers, 64 * 5);
  MAKE(cuArray3DCreate, 3020, cuArray3DCreate_v2, &array[3], &sparse, 0);
  MAKE(cuArrayCreate, 2000, cuArrayCreate, &array[4], &old_flat, 50 * 10 * 4);
  MAKE(cuArray3DCreate, 2000, cuArray3DCreate, &array[5], &old_deep, 1000 * 4);
#define MIPS(place, shape, levels, bytes)                                                     \
  (CALL(cuMipmappedArrayCreate, 5000, cuMipmappedArrayCreate,                                 \
        (CUmipmappedArray *, const CUDA_ARRAY3D_DESCRIPTOR *, U), (place, shape, levels)),    \
   did_alloc(ARRAY, bytes))
  MIPS(&mips[0], &deep, 3, (16 * 8 * 4 + 8 * 4 * 2 + 4 * 2 * 1) * 16);
  MIPS(&mips[1], &cube, 4, (64 + 16 + 4 + 1) * 6 * 4);
  MIPS(&mips[2], &deferred, 2, 0);
  for (int i = 0; i < 4; i++) CALL(cuArrayDestroy, 2000, cuArrayDestroy, (CUarray), (array[i]));
  did_free(ARRAY, 100 * 30 * 2 * 2);
  did_free(ARRAY, 16 * 8 * 4 * 4 * 4);
  did_free(ARRAY, 64 * 5);
  did_free(ARRAY, 0);
  CALL(cuMipmappedArrayDestroy, 5000, cuMipmappedArrayDestroy, (CUmipmappedArray), (mips[0]));
  did_free(ARRAY, (16 * 8 * 4 + 8 * 4 * 2 + 4 * 2 * 1) * 16);
  FAILED_ALLOC(ARRAY, F(cuArrayCreate, 3020, 0, cuArrayCreate_v2, (V, V))(&array[0], NULL));
  FAILED_ALLOC(ARRAY, F(cuArray3DCreate, 3020, 0, cuArray3DCreate_v2, (V, V))(NULL, &deep));
  FAILED_ALLOC(ARRAY, F(cuMipmappedArrayCreate, 5000, 0, cuMipmappedArrayCreate, (V, V, U))(
                          &mips[0], &deep, 0));
  FAILED_FREE(ARRAY, F(cuArrayDestroy, 2000, 0, cuArrayDestroy, (V))(&array));
}

static void elsewhere(void) {
  CUexternalMemory memory;
  CUdeviceptr buffer, lent, freed;
  CUmipmappedArray mips;
  CUmemoryPool pool;
  CUmemGenericAllocationHandle handle, cast, own;
  CUdeviceptr base;
  CUDA_EXTERNAL_MEMORY_HANDLE_DESC description = {.type = 1, .size = 1 << 20};
  CUDA_EXTERNAL_MEMORY_BUFFER_DESC part = {.offset = 4096, .size = 70000};
  CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC shape = {
      .offset = 0, .arrayDesc = {32, 32, 0, FLOAT, 1, 0}, .numLevels = 2};
  CUmemPoolPtrExportData shared;
  CUmulticastObjectProp prop = {.numDevices = 1, .size = 4 * MIB};
  CUmemAllocationProp device = {.type = 1, .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
  CALL(cuImportExternalMemory, 10000, cuImportExternalMemory, (V, V), (&memory, &description));
#define BUFFER(place)                                                                       \
  (CALL(cuExternalMemoryGetMappedBuffer, 10000, cuExternalMemoryGetMappedBuffer,            \
        (P *, CUexternalMemory, V), (place, memory, &part)), did_alloc(IMPORTED, 70000))
  BUFFER(&buffer);
  BUFFER(&freed);
  CALL(cuExternalMemoryGetMappedMipmappedArray, 10000, cuExternalMemoryGetMappedMipmappedArray,
       (V, CUexternalMemory, V), (&mips, memory, &shape));
  did_alloc(IMPORTED, (32 * 32 + 16 * 16) * 4);
  CALL(cuDestroyExternalMemory, 10000, cuDestroyExternalMemory, (CUexternalMemory), (memory));
  MUST(cuMemFree_v2(freed));
  did_free(IMPORTED, 70000);
  MUST(cuMipmappedArrayDestroy(mips));
  did_free(IMPORTED, (32 * 32 + 16 * 16) * 4);
  FAILED_ALLOC(IMPORTED, F(cuExternalMemoryGetMappedBuffer, 10000, 0,
                           cuExternalMemoryGetMappedBuffer, (V, V, V))(&buffer, NULL, &part));

  CALL(cuMemPoolImportFromShareableHandle, 11020, cuMemPoolImportFromShareableHandle,
       (V, V, int, unsigned long long), (&pool, (V)1, 1, 0));
  MUST(cuMemAllocAsync(&buffer, 3000, NULL));
  did_alloc(ASYNC_POOL, 3000);
  MUST(cuMemPoolExportPointer(&shared, buffer));
  for (int i = 0; i < 2; i++) {
    CALL(cuMemPoolImportPointer, 11020, cuMemPoolImportPointer, (P *, CUmemoryPool, V),
         (&lent, pool, &shared));
    did_alloc(IMPORTED, 3000);
    if (i) MUST(cuMemFree_v2(lent));
    else MUST(cuMemFreeAsync(lent, NULL));
    did_free(IMPORTED, 3000);
  }
  MUST(cuMemFreeAsync(buffer, NULL));
  did_free(ASYNC_POOL, 3000);
  MUST(cuMemPoolDestroy(pool));

  /* Physical memory of another process: its size is known when it is mapped. */
  CALL(cuMemImportFromShareableHandle, 10020, cuMemImportFromShareableHandle, (V, V, int),
       (&handle, (V)3, 1));
  did_alloc(IMPORTED, 6 * MIB);
  MUST(cuMemAddressReserve(&base, 16 * MIB, 0, 0, 0));
  did_alloc(VMM_ADDRESS, 16 * MIB);
  MUST(cuMemMap(base, 6 * MIB, 0, handle, 0));
  did_alloc(VMM_MAPPED, 6 * MIB);
  MUST(cuMemRelease(handle));
  MUST(cuMemUnmap(base, 6 * MIB));
  did_free(VMM_MAPPED, 6 * MIB);
  did_free(IMPORTED, 6 * MIB);
  CALL(cuMemImportFromShareableHandle, 10020, cuMemImportFromShareableHandle, (V, V, int),
       (&handle, (V)1, 1));
  did_alloc(IMPORTED, 2 * MIB);
  FAILED_ALLOC(IMPORTED, F(cuMemImportFromShareableHandle, 10020, 0,
                           cuMemImportFromShareableHandle, (V, V, int))(NULL, (V)1, 1));

  /* A multicast object owns nothing, but its handle is released like one that does. */
  CALL(cuMulticastCreate, 12010, cuMulticastCreate, (V, V), (&cast, &prop));
  MUST(cuMemCreate(&own, 4 * MIB, &device, 0));
  did_alloc(VMM_PHYSICAL, 4 * MIB);
  MUST(cuMemMap(base, 4 * MIB, 0, cast, 0));
  did_alloc(VMM_MAPPED, 4 * MIB);
  MUST(cuMemUnmap(base, 4 * MIB));
  did_free(VMM_MAPPED, 4 * MIB);
  MUST(cuMemRelease(cast));
  MUST(cuMemRelease(own));
  did_free(VMM_PHYSICAL, 4 * MIB);
}

static void pools(void) {
  CUmemPoolProps props = {.allocType = 1, .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
  CUmemLocation place = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  CUmemoryPool pool, other, again;
  CUdeviceptr pointer, kept;
  uint64_t value = 1 << 20;
  int policy = 1;
  CALL(cuMemPoolCreate, 11020, cuMemPoolCreate, (V, V), (&pool, &props));
  CALL(cuDeviceGetDefaultMemPool, 11020, cuDeviceGetDefaultMemPool, (V, int), (&other, 0));
  CALL(cuDeviceGetMemPool, 11020, cuDeviceGetMemPool, (V, int), (&again, 0));
  CALL(cuMemGetDefaultMemPool, 13000, cuMemGetDefaultMemPool, (V, V, int), (&other, &place, 1));
  CALL(cuMemGetMemPool, 13000, cuMemGetMemPool, (V, V, int), (&again, &place, 1));
  if (other != again) exit(8);
#define SET(which, from) \
  CALL(cuMemPoolSetAttribute, 11020, cuMemPoolSetAttribute, (CUmemoryPool, int, V), \
       (pool, which, from))
#define GET(which, to) \
  CALL(cuMemPoolGetAttribute, 11020, cuMemPoolGetAttribute, (CUmemoryPool, int, V), \
       (pool, which, to))
  SET(4, &value);
  SET(1, &policy);
  CALL(cuDeviceSetMemPool, 11020, cuDeviceSetMemPool, (int, CUmemoryPool), (0, pool));
  MUST(cuMemAllocAsync(&pointer, 10000, NULL));
  did_alloc(ASYNC_POOL, 10000);
  CALL(cuMemSetMemPool, 13000, cuMemSetMemPool, (V, int, CUmemoryPool), (&place, 1, other));
  MUST(cuMemAllocFromPoolAsync(&kept, 5000, pool, NULL));
  did_alloc(ASYNC_POOL, 5000);
  GET(5, &value);
  say("pool.", "reserved_bytes", value);
  GET(1, &policy);
  failed(F(cuMemPoolGetAttribute, 11020, 0, cuMemPoolGetAttribute, (V, int, V))(pool, 5, NULL),
         "no value");
  MUST(cuMemFreeAsync(pointer, NULL));
  did_free(ASYNC_POOL, 10000);
  CALL(cuMemPoolTrimTo, 11020, cuMemPoolTrimTo, (CUmemoryPool, N), (pool, 0));
  CALL(cuMemPoolDestroy, 11020, cuMemPoolDestroy, (CUmemoryPool), (pool));
}

static void residency(void) {
  CUdeviceptr managed, second;
  CUmemLocation gpu = {CU_MEM_LOCATION_TYPE_DEVICE, 0}, host = {CU_MEM_LOCATION_TYPE_HOST, 0};
  MUST(cuMemAllocManaged(&managed, 1 << 16, 1));
  did_alloc(MANAGED, 1 << 16);
  MUST(cuMemAllocManaged(&second, 1 << 16, 1));
  did_alloc(MANAGED, 1 << 16);
#define OLD (P, N, int, S)
#define NEW (P, N, CUmemLocation, U, S)
  CALL(cuMemPrefetchAsync, 8000, cuMemPrefetchAsync, OLD, (managed, 100, 0, NULL));
  CALL_PER_THREAD(cuMemPrefetchAsync, 8000, cuMemPrefetchAsync_ptsz, OLD, (managed, 200, -1, NULL));
  CALL(cuMemPrefetchAsync, 12020, cuMemPrefetchAsync_v2, NEW, (managed, 300, gpu, 0, NULL));
  CALL_PER_THREAD(cuMemPrefetchAsync, 12020, cuMemPrefetchAsync_v2_ptsz, NEW,
                  (managed, 400, host, 0, NULL));
  CALL(cuMemAdvise, 8000, cuMemAdvise, (P, N, int, int), (managed, 500, 1, 0));
  CALL(cuMemAdvise, 12020, cuMemAdvise_v2, (P, N, int, CUmemLocation), (managed, 600, 3, host));
  failed(F(cuMemAdvise, 12020, 0, cuMemAdvise_v2, (P, N, int, CUmemLocation))(5, 1, 3, host),
         "advice on nothing");
  failed(F(cuMemPrefetchAsync, 8000, 0, cuMemPrefetchAsync, OLD)(5, 1, 0, NULL), "nothing");
  CUdeviceptr members[] = {managed, second, managed};
  size_t sizes[] = {1000, 2000, 3000}, firsts[] = {0, 2};
  CUmemLocation places[] = {gpu, host};
#define BATCH (P *, N *, N, CUmemLocation *, N *, N, unsigned long long, S)
#define MEMBERS (members, sizes, 3, places, firsts, 2, 0, NULL)
  CALL(cuMemPrefetchBatchAsync, 13000, cuMemPrefetchBatchAsync, BATCH, MEMBERS);
  CALL_PER_THREAD(cuMemPrefetchBatchAsync, 13000, cuMemPrefetchBatchAsync_ptsz, BATCH, MEMBERS);
  CALL(cuMemDiscardAndPrefetchBatchAsync, 13000, cuMemDiscardAndPrefetchBatchAsync, BATCH,
       MEMBERS);
  CALL_PER_THREAD(cuMemDiscardAndPrefetchBatchAsync, 13000,
                  cuMemDiscardAndPrefetchBatchAsync_ptsz, BATCH, MEMBERS);
  failed(F(cuMemPrefetchBatchAsync, 13000, 0, cuMemPrefetchBatchAsync, BATCH)(
             members, sizes, 3, places, NULL, 2, 0, NULL), "no groups");
  say("prefetch.", "gpu 0.count", 2 + 4 * 2);
  say("prefetch.", "gpu 0.bytes", 400 + 4 * 3000);
  say("prefetch.", "host.count", 2 + 4);
  say("prefetch.", "host.bytes", 600 + 4 * 3000);
  say("advice.", "set_read_mostly.gpu 0.bytes", 500);
  say("advice.", "set_preferred_location.host.bytes", 600);
}

static void old(void) {
  P32 low, pitched;
  unsigned pitch, available, total;
  static char registered[4096];
  void *pinned;
  CUcontext context, popped;
  CALL(cuMemAlloc, 2000, cuMemAlloc, (P32 *, U), (&low, 3000));
  did_alloc(DEVICE, 3000);
  CALL(cuMemAllocPitch, 2000, cuMemAllocPitch, (P32 *, U *, U, U, U),
       (&pitched, &pitch, 100, 7, 4));
  did_alloc(DEVICE, (uint64_t)pitch * 7);
  CALL(cuMemAllocHost, 2000, cuMemAllocHost, (V *, U), (&pinned, 4000));
  did_alloc(PINNED, 4000);
  CALL(cuMemHostRegister, 4000, cuMemHostRegister, (V, N, U), (registered, sizeof registered, 0));
  did_alloc(REGISTERED, sizeof registered);
  CALL(cuMemGetInfo, 2000, cuMemGetInfo, (U *, U *), (&available, &total));
  CALL(cuMemFree, 2000, cuMemFree, (P32), (pitched));
  did_free(DEVICE, (uint64_t)pitch * 7);
  FAILED_ALLOC(DEVICE, F(cuMemAlloc, 2000, 0, cuMemAlloc, (V, U))(NULL, 10));
  FAILED_FREE(DEVICE, F(cuMemFree, 2000, 0, cuMemFree, (P32))(77));
  MUST(cuMemHostUnregister(registered));
  did_free(REGISTERED, sizeof registered);
  CALL(cuCtxCreate, 2000, cuCtxCreate, (CUcontext *, U, int), (&context, 0, 0));
  CALL(cuCtxPopCurrent, 2000, cuCtxPopCurrent, (CUcontext *), (&popped));
  if (popped != context) exit(8);
  CALL(cuCtxPushCurrent, 2000, cuCtxPushCurrent, (CUcontext), (context));
  CALL(cuCtxDestroy, 2000, cuCtxDestroy, (CUcontext), (context));
  MUST(cuDevicePrimaryCtxRetain(&context, 0));
  MUST(cuDevicePrimaryCtxRetain(&context, 0));
  CALL(cuDevicePrimaryCtxRelease, 7000, cuDevicePrimaryCtxRelease, (int), (0));
  CALL(cuDevicePrimaryCtxReset, 7000, cuDevicePrimaryCtxReset, (int), (0));
}

int main(int count, char **values) {
  by_name = count > 1 && strcmp(values[1], "get") == 0;
  CUcontext context = start_driver();
  driver = dlopen("libcuda.so.1", RTLD_NOW);
  arrays();
  elsewhere();
  pools();
  residency();
  old();
  MUST(cuCtxSetCurrent(context));
  say("", "symbols", symbols);
  print_tally("", true);
  return 0;
}
