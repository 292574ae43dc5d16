/*
 * Virtual memory management: addresses, physical memory and mappings are three things.
 *
 * Physical memory lives while a handle reference or a mapping is left, so a release before the
 * unmap keeps it. Memory created on the host or on a NUMA node takes no device memory. Unmap and
 * address free take exactly what was mapped and reserved.
 */
#include <stdlib.h>

#include "internal.h"

struct physical {
  uint64_t handle, bytes;
  CUmemAllocationProp prop;
  int device; /* −1: the host's */
  unsigned references, mappings;
  enum ledger ledger; /* LEDGERS: owns no memory */
  struct physical *next;
};

#define HANDLES 1024
static struct physical *by_handle[HANDLES];
static uint64_t next_handle = 0x5000;

static struct physical **slot(uint64_t handle) {
  struct physical **at = &by_handle[handle / 16 % HANDLES];
  while (*at && (*at)->handle != handle) at = &(*at)->next;
  return at;
}

void vmm_restart(void) {
  for (int i = 0; i < HANDLES; i++) by_handle[i] = NULL; /* the parent's */
}

/* ---- addresses -------------------------------------------------------------------------- */

static CUresult reserve(CUdeviceptr *pointer, size_t bytes, size_t alignment, CUdeviceptr hint) {
  if (!pointer || !bytes || bytes % BLOCK || (alignment & (alignment - 1)))
    return CUDA_ERROR_INVALID_VALUE;
  CUresult result = driver_enter();
  if (result) return result;
  struct range range = {.span = bytes, .bytes = bytes, .ledger = VMM_ADDRESS};
  range.region = REGION_VMM;
  range.base = hint;
  if (!hint || hint % BLOCK || !range_add(&reserved_ranges, &range)) {
    range.base = space_take(REGION_VMM, bytes);
    if (!range.base) return driver_leave(CUDA_ERROR_OUT_OF_MEMORY);
    if (!range_add(&reserved_ranges, &range)) return driver_leave(CUDA_ERROR_OUT_OF_MEMORY);
  }
  truth_alloc(VMM_ADDRESS, bytes);
  *pointer = range.base;
  return driver_leave(CUDA_SUCCESS);
}

CUresult cuMemAddressReserve(CUdeviceptr *pointer, size_t bytes, size_t alignment,
                             CUdeviceptr hint, unsigned long long flags) {
  CUresult result = step(ID_cuMemAddressReserve);
  if (!result && flags) result = CUDA_ERROR_INVALID_VALUE;
  if (!result) result = reserve(pointer, bytes, alignment, hint);
  return truth_alloc_result(VMM_ADDRESS, result);
}

static bool any_mapped(uint64_t base, uint64_t bytes) {
  for (uint64_t at = base; at < base + bytes; at += BLOCK)
    if (range_at(&mapped_ranges, at)) return true;
  return false;
}

static CUresult unreserve(CUdeviceptr pointer, size_t bytes) {
  CUresult result = driver_enter();
  if (result) return result;
  struct range *range = range_based_at(&reserved_ranges, pointer);
  if (!range || range->bytes != bytes || any_mapped(pointer, bytes))
    return driver_leave(CUDA_ERROR_INVALID_VALUE);
  truth_free(VMM_ADDRESS, bytes);
  space_give(REGION_VMM, range->base, range->span);
  range_remove(&reserved_ranges, range);
  return driver_leave(CUDA_SUCCESS);
}

CUresult cuMemAddressFree(CUdeviceptr pointer, size_t bytes) {
  CUresult result = step(ID_cuMemAddressFree);
  return truth_free_result(VMM_ADDRESS, result ? result : unreserve(pointer, bytes));
}

/* ---- physical memory -------------------------------------------------------------------- */

static CUresult create(uint64_t *handle, uint64_t bytes, const CUmemAllocationProp *prop) {
  if (!handle || !prop || !bytes || bytes % BLOCK) return CUDA_ERROR_INVALID_VALUE;
  CUresult result = driver_enter();
  if (result) return result;
  int kind = prop->location.type, device = -1;
  if (kind < CU_MEM_LOCATION_TYPE_DEVICE || kind > CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT)
    return driver_leave(CUDA_ERROR_INVALID_VALUE);
  if (kind == CU_MEM_LOCATION_TYPE_DEVICE) {
    device = prop->location.id;
    if (device < 0 || device >= device_count) return driver_leave(CUDA_ERROR_INVALID_DEVICE);
    if (!device_take(device, bytes)) return driver_leave(CUDA_ERROR_OUT_OF_MEMORY);
  }
  struct physical *physical = calloc(1, sizeof *physical);
  if (!physical) abort();
  *physical = (struct physical){next_handle += 16, bytes, *prop, device, 1, 0, VMM_PHYSICAL, NULL};
  *slot(physical->handle) = physical;
  truth_alloc(VMM_PHYSICAL, bytes);
  *handle = physical->handle;
  return driver_leave(CUDA_SUCCESS);
}

CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t bytes,
                     const CUmemAllocationProp *prop, unsigned long long flags) {
  CUresult result = step(ID_cuMemCreate);
  if (!result && flags) result = CUDA_ERROR_INVALID_VALUE;
  uint64_t made = 0;
  if (!result) result = create(handle ? &made : NULL, bytes, prop);
  if (!result) *handle = made;
  return truth_alloc_result(VMM_PHYSICAL, result);
}

/* Frees the physical memory when nothing holds it any more. */
static void settle(struct physical *physical) {
  if (physical->references || physical->mappings) return;
  if (physical->ledger != LEDGERS) truth_free(physical->ledger, physical->bytes);
  if (physical->ledger == VMM_PHYSICAL && physical->device >= 0) device_give(physical->device, physical->bytes);
  *slot(physical->handle) = physical->next;
  free(physical);
}

/* Memory of another process, or what owns none: nothing is taken from the device. */
static CUresult hold(uint64_t *handle, uint64_t bytes, enum ledger ledger) {
  CUresult result = driver_enter();
  if (result) return result;
  struct physical *physical = calloc(1, sizeof *physical);
  if (!physical) abort();
  *physical = (struct physical){.handle = next_handle += 16, .bytes = bytes, .references = 1,
                                .ledger = ledger};
  *slot(physical->handle) = physical;
  if (ledger != LEDGERS) truth_alloc(ledger, bytes);
  *handle = physical->handle;
  return driver_leave(CUDA_SUCCESS);
}

/* What is exported is a number of blocks, not a descriptor: there is no memory behind it. */
CUresult cuMemExportToShareableHandle(void *out, CUmemGenericAllocationHandle handle, int type,
                                      unsigned long long flags) {
  (void)type;
  CUresult result = step(ID_cuMemExportToShareableHandle);
  if (!result && (!out || flags)) result = CUDA_ERROR_INVALID_VALUE;
  if (!result) result = driver_enter();
  if (result) return result;
  struct physical *physical = *slot(handle);
  if (!physical) return driver_leave(CUDA_ERROR_INVALID_VALUE);
  *(int *)out = (int)(physical->bytes / BLOCK);
  return driver_leave(CUDA_SUCCESS);
}

CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle, void *from,
                                        int type) {
  (void)type;
  uint64_t made = 0;
  CUresult result = step(ID_cuMemImportFromShareableHandle);
  if (!result && (!handle || !from)) result = CUDA_ERROR_INVALID_VALUE;
  if (!result) result = hold(&made, (uintptr_t)from * BLOCK, IMPORTED);
  if (!result) *handle = made;
  return truth_alloc_result(IMPORTED, result);
}

CUresult cuMulticastCreate(CUmemGenericAllocationHandle *handle, const CUmulticastObjectProp *prop) {
  uint64_t made = 0;
  CUresult result = step(ID_cuMulticastCreate);
  if (!result && (!handle || !prop || !prop->size)) result = CUDA_ERROR_INVALID_VALUE;
  if (!result) result = hold(&made, prop->size, LEDGERS);
  if (!result) *handle = made;
  return result;
}

static CUresult release(uint64_t handle) {
  CUresult result = driver_enter();
  if (result) return result;
  struct physical *physical = *slot(handle);
  if (!physical || !physical->references) return driver_leave(CUDA_ERROR_INVALID_VALUE);
  physical->references--;
  settle(physical);
  return driver_leave(CUDA_SUCCESS);
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
  CUresult result = step(ID_cuMemRelease);
  return truth_free_result(VMM_PHYSICAL, result ? result : release(handle));
}

CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *address) {
  CUresult result = step(ID_cuMemRetainAllocationHandle);
  if (!result && !handle) result = CUDA_ERROR_INVALID_VALUE;
  if (!result) result = driver_enter();
  if (result) return result;
  struct range *mapping = range_at(&mapped_ranges, (uint64_t)address);
  if (!mapping || !mapping->owner) return driver_leave(CUDA_ERROR_INVALID_VALUE);
  struct physical *physical = mapping->owner;
  physical->references++;
  *handle = physical->handle;
  return driver_leave(CUDA_SUCCESS);
}

/* ---- mappings --------------------------------------------------------------------------- */

static bool inside_reservation(uint64_t base, uint64_t bytes) {
  struct range *range = range_at(&reserved_ranges, base);
  return range && base + bytes <= range->base + range->span;
}

static CUresult map(uint64_t base, uint64_t bytes, uint64_t handle) {
  CUresult result = driver_enter();
  if (result) return result;
  struct physical *physical = *slot(handle);
  bool good = physical && physical->references && bytes && bytes <= physical->bytes &&
              bytes % BLOCK == 0 && base % BLOCK == 0 && inside_reservation(base, bytes);
  if (!good) return driver_leave(CUDA_ERROR_INVALID_VALUE);
  struct range range = {.base = base, .span = bytes, .bytes = bytes, .ledger = VMM_MAPPED,
                        .region = REGION_VMM, .device = physical->device, .owner = physical};
  if (!range_add(&mapped_ranges, &range)) return driver_leave(CUDA_ERROR_INVALID_VALUE);
  physical->mappings++;
  truth_alloc(VMM_MAPPED, bytes);
  return driver_leave(CUDA_SUCCESS);
}

CUresult cuMemMap(CUdeviceptr pointer, size_t bytes, size_t offset,
                  CUmemGenericAllocationHandle handle, unsigned long long flags) {
  CUresult result = step(ID_cuMemMap);
  if (!result && (flags || offset)) result = CUDA_ERROR_INVALID_VALUE;
  return truth_alloc_result(VMM_MAPPED, result ? result : map(pointer, bytes, handle));
}

/* Whole mappings that fill the range exactly, or none of it is touched. */
static bool covers_mappings(uint64_t base, uint64_t bytes) {
  uint64_t at = base;
  while (at < base + bytes) {
    struct range *range = range_based_at(&mapped_ranges, at);
    if (!range || !range->owner) return false; /* a module's globals have no owner */
    at += range->span;
  }
  return bytes && at == base + bytes;
}

static CUresult unmap(uint64_t base, uint64_t bytes) {
  CUresult result = driver_enter();
  if (result) return result;
  if (!covers_mappings(base, bytes)) return driver_leave(CUDA_ERROR_INVALID_VALUE);
  for (uint64_t at = base; at < base + bytes;) {
    struct range *range = range_based_at(&mapped_ranges, at);
    struct physical *physical = range->owner;
    at += range->span;
    truth_free(VMM_MAPPED, range->bytes);
    range_remove(&mapped_ranges, range);
    physical->mappings--;
    settle(physical);
  }
  return driver_leave(CUDA_SUCCESS);
}

CUresult cuMemUnmap(CUdeviceptr pointer, size_t bytes) {
  CUresult result = step(ID_cuMemUnmap);
  return truth_free_result(VMM_MAPPED, result ? result : unmap(pointer, bytes));
}

static bool all_mapped(uint64_t base, uint64_t bytes) {
  for (uint64_t at = base; at < base + bytes; at += BLOCK)
    if (!range_at(&mapped_ranges, at)) return false;
  return bytes != 0;
}

CUresult cuMemSetAccess(CUdeviceptr pointer, size_t bytes, const CUmemAccessDesc *desc,
                        size_t count) {
  CUresult result = step(ID_cuMemSetAccess);
  if (!result && (!desc || !count)) result = CUDA_ERROR_INVALID_VALUE;
  if (!result) result = driver_enter();
  if (result) return result;
  return driver_leave(all_mapped(pointer, bytes) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}

CUresult cuMemGetAccess(unsigned long long *flags, const CUmemLocation *location,
                        CUdeviceptr pointer) {
  if (!flags || !location) return CUDA_ERROR_INVALID_VALUE;
  CUresult result = driver_enter();
  if (result) return result;
  *flags = range_at(&mapped_ranges, pointer) ? 3 : 0;
  return driver_leave(CUDA_SUCCESS);
}

CUresult cuMemGetAllocationGranularity(size_t *bytes, const CUmemAllocationProp *prop,
                                       int option) {
  (void)option;
  if (!bytes || !prop) return CUDA_ERROR_INVALID_VALUE;
  *bytes = BLOCK;
  return CUDA_SUCCESS;
}

CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp *prop,
                                                CUmemGenericAllocationHandle handle) {
  if (!prop) return CUDA_ERROR_INVALID_VALUE;
  CUresult result = driver_enter();
  if (result) return result;
  struct physical *physical = *slot(handle);
  if (!physical) return driver_leave(CUDA_ERROR_INVALID_VALUE);
  *prop = physical->prop;
  return driver_leave(CUDA_SUCCESS);
}
