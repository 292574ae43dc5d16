/*
 * Linear, pitched, managed and pinned memory: allocation, free, registration and queries.
 *
 * cuMemFree takes whatever has a device address: linear, managed and pool memory, mapped graph
 * allocations and imports. A pointer that this driver did not give out is an error.
 */
#include <sys/mman.h>

#include "internal.h"

#define PAGE ((uint64_t)4096)
#define PITCH ((uint64_t)512)

/* ---- host memory at an address of our choice -------------------------------------------- */

static uint64_t map_host(enum region region, uint64_t span) {
  for (;;) {
    uint64_t base = space_take(region, span);
    if (!base) return 0;
    void *memory = mmap((void *)base, span, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    if (memory == (void *)base) return base;
    if (memory != MAP_FAILED) munmap(memory, span); /* a kernel without NOREPLACE */
  }
}

static CUresult host_alloc(CUcontext context, enum ledger ledger, uint64_t bytes, unsigned flags,
                           uint64_t *base) {
  struct range range = {.bytes = bytes, .ledger = ledger, .context = context, .flags = flags};
  if (bytes > (uint64_t)1 << 40) return CUDA_ERROR_OUT_OF_MEMORY;
  range.region = ledger == PINNED ? REGION_PINNED : REGION_MANAGED;
  range.span = round_up(bytes, PAGE);
  range.device = context->device;
  range.base = map_host(range.region, range.span);
  if (!range.base) return CUDA_ERROR_OUT_OF_MEMORY;
  range_add(&live_ranges, &range);
  truth_alloc(ledger, bytes);
  *base = range.base;
  return CUDA_SUCCESS;
}

/* Gives back what stands behind a range and forgets it, whatever its ledger. */
void memory_release(struct range *range) {
  switch (range->ledger) {
    case DEVICE: blocks_free(range); break;
    case MANAGED:
    case PINNED:
      munmap((void *)range->base, range->span);
      space_give(range->region, range->base, range->span);
      break;
    case ARRAY: array_release(range); break;
    case GRAPH: graph_release(range); break;
    case IMPORTED:
      if (range->owner) array_release(range);
      else space_give(range->region, range->base, range->span);
      break;
    default: break;
  }
  range_remove(&live_ranges, range);
}

/* ---- device memory ---------------------------------------------------------------------- */

static CUresult linear(uint64_t *base, uint64_t bytes, bool low) {
  CUcontext context;
  CUresult result = driver_enter_context(&context);
  if (result) return result;
  struct range range = {.ledger = DEVICE};
  result = blocks_alloc(context, bytes, low, &range);
  if (result) return driver_leave(result);
  range_add(&live_ranges, &range);
  truth_alloc(DEVICE, bytes);
  *base = range.base;
  return driver_leave(CUDA_SUCCESS);
}

static CUresult alloc_low(CUdeviceptr_v1 *pointer, uint64_t bytes) {
  uint64_t base;
  if (!pointer || !bytes) return CUDA_ERROR_INVALID_VALUE;
  CUresult result = linear(&base, bytes, true);
  if (!result) *pointer = (CUdeviceptr_v1)base;
  return result;
}

CUresult cuMemAlloc_v2(CUdeviceptr *pointer, size_t bytes) {
  CUresult result = step(ID_cuMemAlloc_v2);
  if (LIKELY(fast_mode)) return result ? result : fast_alloc(pointer, bytes);
  if (!result && (!pointer || !bytes)) result = CUDA_ERROR_INVALID_VALUE;
  uint64_t base;
  if (!result) result = linear(&base, bytes, false);
  if (!result) *pointer = base;
  return truth_alloc_result(DEVICE, result);
}

CUresult cuMemAlloc(CUdeviceptr_v1 *pointer, unsigned int bytes) {
  CUresult result = step(ID_cuMemAlloc);
  return truth_alloc_result(DEVICE, result ? result : alloc_low(pointer, bytes));
}

static CUresult pitched(uint64_t *base, uint64_t *pitch, uint64_t width, uint64_t height,
                        unsigned element, bool low) {
  bool known = element == 4 || element == 8 || element == 16;
  if (!width || !height || !known) return CUDA_ERROR_INVALID_VALUE;
  *pitch = round_up(width, PITCH);
  if (*pitch > ((uint64_t)1 << 48) / height) return CUDA_ERROR_OUT_OF_MEMORY;
  return linear(base, *pitch * height, low);
}

CUresult cuMemAllocPitch_v2(CUdeviceptr *pointer, size_t *pitch, size_t width, size_t height,
                            unsigned int element) {
  CUresult result = step(ID_cuMemAllocPitch_v2);
  if (!result && (!pointer || !pitch)) result = CUDA_ERROR_INVALID_VALUE;
  uint64_t base, row;
  if (!result) result = pitched(&base, &row, width, height, element, false);
  if (result) return truth_alloc_result(DEVICE, result);
  *pointer = base;
  *pitch = row;
  return CUDA_SUCCESS;
}

CUresult cuMemAllocPitch(CUdeviceptr_v1 *pointer, unsigned int *pitch, unsigned int width,
                         unsigned int height, unsigned int element) {
  CUresult result = step(ID_cuMemAllocPitch);
  if (!result && (!pointer || !pitch)) result = CUDA_ERROR_INVALID_VALUE;
  uint64_t base, row;
  if (!result) result = pitched(&base, &row, width, height, element, true);
  if (result) return truth_alloc_result(DEVICE, result);
  *pointer = (CUdeviceptr_v1)base;
  *pitch = (unsigned)row;
  return CUDA_SUCCESS;
}

CUresult cuMemAllocManaged(CUdeviceptr *pointer, size_t bytes, unsigned int flags) {
  CUcontext context;
  CUresult result = step(ID_cuMemAllocManaged);
  if (!result && (!pointer || !bytes || !flags)) result = CUDA_ERROR_INVALID_VALUE;
  if (!result) result = driver_enter_context(&context);
  if (result) return truth_alloc_result(MANAGED, result);
  uint64_t base;
  result = driver_leave(host_alloc(context, MANAGED, bytes, flags, &base));
  if (!result) *pointer = base;
  return truth_alloc_result(MANAGED, result);
}

static bool freed_by_mem_free(const struct range *range) {
  switch (range->ledger) {
    case DEVICE:
    case MANAGED:
    case ASYNC_POOL:
    case GRAPH: return true;
    case IMPORTED: return !range->owner; /* not an array */
    default: return false;
  }
}

static CUresult free_pointer(uint64_t pointer) {
  CUresult result = driver_enter();
  if (result) return result;
  if (!pointer) {
    truth_null_free(DEVICE);
    return driver_leave(CUDA_SUCCESS);
  }
  struct range *range = range_based_at(&live_ranges, pointer);
  if (!range || !freed_by_mem_free(range)) return driver_leave(CUDA_ERROR_INVALID_VALUE);
  truth_free(range->ledger, range->bytes);
  if (range->ledger == ASYNC_POOL) return driver_leave(pool_free_range(range));
  memory_release(range);
  return driver_leave(CUDA_SUCCESS);
}

CUresult cuMemFree_v2(CUdeviceptr pointer) {
  CUresult result = step(ID_cuMemFree_v2);
  if (LIKELY(fast_mode) && !result && fast_free(pointer)) return CUDA_SUCCESS;
  return truth_free_result(DEVICE, result ? result : free_pointer(pointer));
}

CUresult cuMemFree(CUdeviceptr_v1 pointer) {
  CUresult result = step(ID_cuMemFree);
  return truth_free_result(DEVICE, result ? result : free_pointer(pointer));
}

/* ---- pinned memory ---------------------------------------------------------------------- */

static CUresult pin(void **pointer, uint64_t bytes, unsigned flags) {
  CUcontext context;
  if (!pointer || !bytes) return CUDA_ERROR_INVALID_VALUE;
  CUresult result = driver_enter_context(&context);
  if (result) return result;
  uint64_t base;
  result = driver_leave(host_alloc(context, PINNED, bytes, flags, &base));
  if (!result) *pointer = (void *)base;
  return result;
}

CUresult cuMemAllocHost_v2(void **pointer, size_t bytes) {
  CUresult result = step(ID_cuMemAllocHost_v2);
  return truth_alloc_result(PINNED, result ? result : pin(pointer, bytes, 0));
}

CUresult cuMemAllocHost(void **pointer, unsigned int bytes) {
  CUresult result = step(ID_cuMemAllocHost);
  return truth_alloc_result(PINNED, result ? result : pin(pointer, bytes, 0));
}

CUresult cuMemHostAlloc(void **pointer, size_t bytes, unsigned int flags) {
  CUresult result = step(ID_cuMemHostAlloc);
  return truth_alloc_result(PINNED, result ? result : pin(pointer, bytes, flags));
}

static CUresult unpin(void *pointer) {
  CUresult result = driver_enter();
  if (result) return result;
  struct range *range = range_based_at(&live_ranges, (uint64_t)pointer);
  if (!range || range->ledger != PINNED) return driver_leave(CUDA_ERROR_INVALID_VALUE);
  truth_free(PINNED, range->bytes);
  memory_release(range);
  return driver_leave(CUDA_SUCCESS);
}

CUresult cuMemFreeHost(void *pointer) {
  CUresult result = step(ID_cuMemFreeHost);
  return truth_free_result(PINNED, result ? result : unpin(pointer));
}

static CUresult host_register(void *pointer, uint64_t bytes, unsigned flags) {
  CUcontext context;
  if (!pointer || !bytes) return CUDA_ERROR_INVALID_VALUE;
  CUresult result = driver_enter_context(&context);
  if (result) return result;
  struct range range = {.base = (uint64_t)pointer, .span = bytes, .bytes = bytes,
                        .ledger = REGISTERED, .context = context, .flags = flags};
  if (!range_add(&live_ranges, &range))
    return driver_leave(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
  truth_alloc(REGISTERED, bytes);
  return driver_leave(CUDA_SUCCESS);
}

CUresult cuMemHostRegister_v2(void *pointer, size_t bytes, unsigned int flags) {
  CUresult result = step(ID_cuMemHostRegister_v2);
  return truth_alloc_result(REGISTERED, result ? result : host_register(pointer, bytes, flags));
}

CUresult cuMemHostRegister(void *pointer, size_t bytes, unsigned int flags) {
  CUresult result = step(ID_cuMemHostRegister);
  return truth_alloc_result(REGISTERED, result ? result : host_register(pointer, bytes, flags));
}

static CUresult host_unregister(void *pointer) {
  CUresult result = driver_enter();
  if (result) return result;
  struct range *range = range_based_at(&live_ranges, (uint64_t)pointer);
  if (!range || range->ledger != REGISTERED)
    return driver_leave(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
  truth_free(REGISTERED, range->bytes);
  range_remove(&live_ranges, range);
  return driver_leave(CUDA_SUCCESS);
}

CUresult cuMemHostUnregister(void *pointer) {
  CUresult result = step(ID_cuMemHostUnregister);
  return truth_free_result(REGISTERED, result ? result : host_unregister(pointer));
}

/* ---- queries ---------------------------------------------------------------------------- */

static struct range *any_range_at(uint64_t address) {
  struct range *range = range_at(&live_ranges, address);
  return range ? range : range_at(&mapped_ranges, address);
}

static bool is_host(const struct range *range) {
  return range->ledger == PINNED || range->ledger == REGISTERED;
}

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *device, void *host, unsigned int flags) {
  if (!device || flags) return CUDA_ERROR_INVALID_VALUE;
  CUresult result = driver_enter();
  if (result) return result;
  struct range *range = range_at(&live_ranges, (uint64_t)host);
  if (!range || !is_host(range)) return driver_leave(CUDA_ERROR_INVALID_VALUE);
  *device = (CUdeviceptr)host;
  return driver_leave(CUDA_SUCCESS);
}

CUresult cuMemHostGetDevicePointer(CUdeviceptr_v1 *device, void *host, unsigned int flags) {
  (void)device, (void)host, (void)flags;
  return CUDA_ERROR_NOT_SUPPORTED; /* pinned memory has no 32-bit address */
}

CUresult cuMemHostGetFlags(unsigned int *flags, void *pointer) {
  if (!flags) return CUDA_ERROR_INVALID_VALUE;
  CUresult result = driver_enter();
  if (result) return result;
  struct range *range = range_based_at(&live_ranges, (uint64_t)pointer);
  if (!range || !is_host(range)) return driver_leave(CUDA_ERROR_INVALID_VALUE);
  *flags = range->flags;
  return driver_leave(CUDA_SUCCESS);
}

CUresult cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *bytes, CUdeviceptr pointer) {
  CUresult result = driver_enter();
  if (result) return result;
  struct range *range = any_range_at(pointer);
  if (!range) return driver_leave(CUDA_ERROR_NOT_FOUND);
  if (base) *base = range->base;
  if (bytes) *bytes = range->bytes;
  return driver_leave(CUDA_SUCCESS);
}

CUresult cuMemGetAddressRange(CUdeviceptr_v1 *base, unsigned int *bytes, CUdeviceptr_v1 pointer) {
  CUdeviceptr wide_base;
  size_t wide_bytes;
  CUresult result = cuMemGetAddressRange_v2(&wide_base, &wide_bytes, pointer);
  if (!result && base) *base = (CUdeviceptr_v1)wide_base;
  if (!result && bytes) *bytes = (unsigned)wide_bytes;
  return result;
}

static CUresult attribute(void *value, int which, uint64_t pointer) {
  struct range *range = any_range_at(pointer);
  if (!range) return CUDA_ERROR_INVALID_VALUE;
  bool host = is_host(range), both = host || range->ledger == MANAGED;
  switch (which) {
    case CU_POINTER_ATTRIBUTE_CONTEXT: *(CUcontext *)value = range->context; break;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      *(unsigned *)value = host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
      break;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER: *(CUdeviceptr *)value = pointer; break;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
      if (!both) return CUDA_ERROR_INVALID_VALUE;
      *(void **)value = (void *)pointer;
      break;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED: *(unsigned *)value = range->ledger == MANAGED; break;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: *(int *)value = range->device; break;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR: *(CUdeviceptr *)value = range->base; break;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE: *(size_t *)value = range->bytes; break;
    default: return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

CUresult cuPointerGetAttribute(void *value, int which, CUdeviceptr pointer) {
  if (!value) return CUDA_ERROR_INVALID_VALUE;
  CUresult result = driver_enter();
  return result ? result : driver_leave(attribute(value, which, pointer));
}

/* Unlike the single query, this one succeeds for pointers nobody knows. */
CUresult cuPointerGetAttributes(unsigned int count, int *which, void **values,
                                CUdeviceptr pointer) {
  if (!which || !values) return CUDA_ERROR_INVALID_VALUE;
  CUresult result = driver_enter();
  if (result) return result;
  for (unsigned i = 0; i < count; i++)
    if (values[i] && attribute(values[i], which[i], pointer)) *(unsigned *)values[i] = 0;
  return driver_leave(CUDA_SUCCESS);
}

CUresult cuPointerSetAttribute(const void *value, int which, CUdeviceptr pointer) {
  (void)value, (void)which, (void)pointer;
  CUresult result = driver_enter();
  return result ? result : driver_leave(CUDA_SUCCESS);
}
