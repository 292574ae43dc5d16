/* Sets, and the hints about where managed memory should be (which change nothing here). */
#include <string.h>

#include "internal.h"

struct area {
  uint64_t to, pitch, width, height; /* width in elements */
  unsigned element;
  uint32_t value;
};

static void fill(const struct area *area) {
  for (uint64_t y = 0; y < area->height; y++)
    for (uint64_t x = 0; x < area->width; x++)
      memcpy((char *)area->to + y * area->pitch + x * area->element, &area->value, area->element);
}

static CUresult set(struct area area, bool async, CUstream stream) {
  CUcontext context;
  CUresult result = driver_enter_context(&context);
  if (result) return result;
  if (!stream_is_valid(stream)) return driver_leave(CUDA_ERROR_INVALID_HANDLE);
  if (stream_is_capturing(stream)) return driver_leave(CUDA_SUCCESS);
  struct range *range = range_at(&live_ranges, area.to);
  bool memory = range && (range->ledger == MANAGED || range->ledger == PINNED);
  uint64_t bytes = area.width * area.height * area.element;
  bool outside = range && bytes > range->base + range->span - area.to;
  if (!range) range = range_at(&mapped_ranges, area.to);
  if (bytes && (!range || outside)) return driver_leave(CUDA_ERROR_INVALID_VALUE);
  truth_set(async, bytes);
  driver_unlock();
  if (memory) fill(&area);
  return CUDA_SUCCESS;
}

#define SET(symbol, params, what, async, stream)                  \
  CUresult symbol params {                                        \
    CUresult result = step(ID_##symbol);                          \
    if (LIKELY(fast_mode)) return result;                         \
    if (!result) result = set((struct area)what, async, STREAM_IN(symbol, stream)); \
    return truth_other_result(true, result);                      \
  }
#define UNPACK(...) {__VA_ARGS__}

#define LINE(symbol, P, V, N)                                                            \
  SET(symbol, (P to, V value, N number), UNPACK(to, 0, number, 1, sizeof(V), value), false, \
      NULL)
#define LINE_ASYNC(symbol, V)                                       \
  SET(symbol, (CUdeviceptr to, V value, size_t number, CUstream stream), \
      UNPACK(to, 0, number, 1, sizeof(V), value), true, stream)
#define RECTANGLE(symbol, P, V, N)                                  \
  SET(symbol, (P to, N pitch, V value, N width, N height),          \
      UNPACK(to, pitch, width, height, sizeof(V), value), false, NULL)
#define RECTANGLE_ASYNC(symbol, V)                                                            \
  SET(symbol,                                                                                 \
      (CUdeviceptr to, size_t pitch, V value, size_t width, size_t height, CUstream stream),  \
      UNPACK(to, pitch, width, height, sizeof(V), value), true, stream)

#define WIDTH(bits, V)                                              \
  LINE(cuMemsetD##bits, CUdeviceptr_v1, V, unsigned)                \
  LINE(cuMemsetD##bits##_v2, CUdeviceptr, V, size_t)                \
  LINE(cuMemsetD##bits##_v2_ptds, CUdeviceptr, V, size_t)           \
  LINE_ASYNC(cuMemsetD##bits##Async, V)                             \
  LINE_ASYNC(cuMemsetD##bits##Async_ptsz, V)                        \
  RECTANGLE(cuMemsetD2D##bits, CUdeviceptr_v1, V, unsigned)         \
  RECTANGLE(cuMemsetD2D##bits##_v2, CUdeviceptr, V, size_t)         \
  RECTANGLE(cuMemsetD2D##bits##_v2_ptds, CUdeviceptr, V, size_t)    \
  RECTANGLE_ASYNC(cuMemsetD2D##bits##Async, V)                      \
  RECTANGLE_ASYNC(cuMemsetD2D##bits##Async_ptsz, V)

WIDTH(8, unsigned char)
WIDTH(16, unsigned short)
WIDTH(32, unsigned int)

/* ---- residency -------------------------------------------------------------------------- */

static CUresult hint(CUdeviceptr pointer, size_t bytes) {
  CUresult result = driver_enter();
  if (result) return result;
  struct range *range = range_at(&live_ranges, pointer);
  bool good = range && range->ledger == MANAGED && bytes;
  return driver_leave(good ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}

#define PREFETCH(symbol)                                                                    \
  CUresult symbol(CUdeviceptr pointer, size_t bytes, CUdevice device, CUstream stream) {    \
    (void)device, (void)stream;                                                             \
    CUresult result = step(ID_##symbol);                                                    \
    return result ? result : hint(pointer, bytes);                                          \
  }
PREFETCH(cuMemPrefetchAsync)
PREFETCH(cuMemPrefetchAsync_ptsz)

#define PREFETCH_V2(symbol)                                                                   \
  CUresult symbol(CUdeviceptr pointer, size_t bytes, CUmemLocation location, unsigned flags,  \
                  CUstream stream) {                                                          \
    (void)location, (void)stream;                                                             \
    CUresult result = step(ID_##symbol);                                                      \
    if (!result && flags) result = CUDA_ERROR_INVALID_VALUE;                                  \
    return result ? result : hint(pointer, bytes);                                            \
  }
PREFETCH_V2(cuMemPrefetchAsync_v2)
PREFETCH_V2(cuMemPrefetchAsync_v2_ptsz)

CUresult cuMemAdvise(CUdeviceptr pointer, size_t bytes, int advice, CUdevice device) {
  (void)advice, (void)device;
  CUresult result = step(ID_cuMemAdvise);
  return result ? result : hint(pointer, bytes);
}

CUresult cuMemAdvise_v2(CUdeviceptr pointer, size_t bytes, int advice, CUmemLocation location) {
  (void)advice, (void)location;
  CUresult result = step(ID_cuMemAdvise_v2);
  return result ? result : hint(pointer, bytes);
}

/* The location of member i is that of the last group that begins at or before it. */
#define BATCH_OF_HINTS(symbol)                                                                 \
  CUresult symbol(CUdeviceptr *pointers, size_t *sizes, size_t count, CUmemLocation *places,   \
                  size_t *firsts, size_t groups, unsigned long long flags, CUstream stream) {  \
    (void)stream;                                                                              \
    CUresult result = step(ID_##symbol);                                                       \
    bool good = pointers && sizes && count && places && firsts && groups && !flags;            \
    if (!result && (!good || firsts[0])) result = CUDA_ERROR_INVALID_VALUE;                    \
    for (size_t i = 0; !result && i < count; i++) result = hint(pointers[i], sizes[i]);        \
    return result;                                                                             \
  }
BATCH_OF_HINTS(cuMemPrefetchBatchAsync)
BATCH_OF_HINTS(cuMemPrefetchBatchAsync_ptsz)
BATCH_OF_HINTS(cuMemDiscardAndPrefetchBatchAsync)
BATCH_OF_HINTS(cuMemDiscardAndPrefetchBatchAsync_ptsz)

CUresult cuMemRangeGetAttribute(void *data, size_t size, int attribute, CUdeviceptr pointer,
                                size_t bytes) {
  (void)attribute;
  if (!data) return CUDA_ERROR_INVALID_VALUE;
  CUresult result = hint(pointer, bytes);
  if (!result) memset(data, 0, size);
  return result;
}

CUresult cuStreamAttachMemAsync(CUstream stream, CUdeviceptr pointer, size_t bytes,
                                unsigned int flags) {
  (void)stream, (void)flags;
  return hint(pointer, bytes ? bytes : 1);
}

CUresult cuStreamAttachMemAsync_ptsz(CUstream stream, CUdeviceptr pointer, size_t bytes,
                                     unsigned int flags) {
  return cuStreamAttachMemAsync(stream, pointer, bytes, flags);
}
