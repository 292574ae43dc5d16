/*
 * Memory that somebody else made: external memory, and pools and their pointers from another
 * process. What is exported is a ticket with sizes; there is no memory behind an address here.
 */
#include <stdlib.h>
#include <string.h>

#include "internal.h"

struct CUextMemory_st {
  uint64_t bytes;
};

static CUresult lend(CUdeviceptr *pointer, uint64_t bytes) {
  CUcontext context;
  CUresult result = driver_enter_context(&context);
  if (result) return result;
  struct range range = {.bytes = bytes, .ledger = IMPORTED, .region = REGION_VMM,
                        .device = context->device, .context = context};
  range.span = round_up(bytes, BLOCK);
  range.base = space_take(REGION_VMM, range.span);
  range_add(&live_ranges, &range);
  truth_alloc(IMPORTED, bytes);
  *pointer = range.base;
  return driver_leave(CUDA_SUCCESS);
}

CUresult cuImportExternalMemory(CUexternalMemory *out,
                                const CUDA_EXTERNAL_MEMORY_HANDLE_DESC *description) {
  CUresult result = step(ID_cuImportExternalMemory);
  if (!result && (!out || !description || !description->size)) result = CUDA_ERROR_INVALID_VALUE;
  if (!result) result = driver_enter();
  if (result) return result;
  CUexternalMemory memory = calloc(1, sizeof *memory);
  if (!memory) abort();
  memory->bytes = description->size;
  *out = memory;
  return driver_leave(CUDA_SUCCESS);
}

CUresult cuExternalMemoryGetMappedBuffer(CUdeviceptr *out, CUexternalMemory memory,
                                         const CUDA_EXTERNAL_MEMORY_BUFFER_DESC *description) {
  CUresult result = step(ID_cuExternalMemoryGetMappedBuffer);
  if (!result && (!out || !memory || !description)) result = CUDA_ERROR_INVALID_VALUE;
  if (!result && description->offset + description->size > memory->bytes)
    result = CUDA_ERROR_INVALID_VALUE;
  if (!result) result = lend(out, description->size);
  return truth_alloc_result(IMPORTED, result);
}

CUresult cuExternalMemoryGetMappedMipmappedArray(
    CUmipmappedArray *out, CUexternalMemory memory,
    const CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC *description) {
  CUcontext context;
  CUresult result = step(ID_cuExternalMemoryGetMappedMipmappedArray);
  if (!result && (!out || !memory || !description)) result = CUDA_ERROR_INVALID_VALUE;
  if (!result) result = driver_enter_context(&context);
  if (result) return truth_alloc_result(IMPORTED, result);
  return driver_leave(array_lend(context, out, &description->arrayDesc, description->numLevels));
}

/* What is mapped stays: it is given back by itself. */
CUresult cuDestroyExternalMemory(CUexternalMemory memory) {
  CUresult result = step(ID_cuDestroyExternalMemory);
  if (!result && !memory) result = CUDA_ERROR_INVALID_HANDLE;
  if (!result) result = driver_enter();
  if (result) return result;
  free(memory);
  return driver_leave(CUDA_SUCCESS);
}

/* ---- pools -------------------------------------------------------------------------------- */

CUresult cuMemPoolExportToShareableHandle(void *out, CUmemoryPool pool, int type,
                                          unsigned long long flags) {
  (void)type;
  CUresult result = step(ID_cuMemPoolExportToShareableHandle);
  if (!result && (!out || flags)) result = CUDA_ERROR_INVALID_VALUE;
  if (!result) result = driver_enter();
  if (result) return result;
  if (!pool_is_valid(pool)) return driver_leave(CUDA_ERROR_INVALID_VALUE);
  *(int *)out = 1;
  return driver_leave(CUDA_SUCCESS);
}

CUresult cuMemPoolImportFromShareableHandle(CUmemoryPool *out, void *from, int type,
                                            unsigned long long flags) {
  (void)type;
  CUcontext context;
  CUresult result = step(ID_cuMemPoolImportFromShareableHandle);
  if (!result && (!out || !from || flags)) result = CUDA_ERROR_INVALID_VALUE;
  if (!result) result = driver_enter_context(&context);
  if (result) return result;
  *out = pool_new(context->device);
  return driver_leave(CUDA_SUCCESS);
}

CUresult cuMemPoolExportPointer(CUmemPoolPtrExportData *out, CUdeviceptr pointer) {
  CUresult result = step(ID_cuMemPoolExportPointer);
  if (!result && !out) result = CUDA_ERROR_INVALID_VALUE;
  if (!result) result = driver_enter();
  if (result) return result;
  struct range *range = range_based_at(&live_ranges, pointer);
  if (!range || range->ledger != ASYNC_POOL) return driver_leave(CUDA_ERROR_INVALID_VALUE);
  memset(out, 0, sizeof *out);
  memcpy(out, &range->bytes, sizeof range->bytes);
  return driver_leave(CUDA_SUCCESS);
}

CUresult cuMemPoolImportPointer(CUdeviceptr *out, CUmemoryPool pool,
                                CUmemPoolPtrExportData *shared) {
  uint64_t bytes = 0;
  CUresult result = step(ID_cuMemPoolImportPointer);
  if (!result && (!out || !pool || !shared)) result = CUDA_ERROR_INVALID_VALUE;
  if (!result) memcpy(&bytes, shared, sizeof bytes);
  if (!result && !bytes) result = CUDA_ERROR_INVALID_VALUE;
  if (!result) result = lend(out, bytes);
  return truth_alloc_result(IMPORTED, result);
}
