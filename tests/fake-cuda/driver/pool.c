/*
 * The stream-ordered allocator and its pools.
 *
 * A pool takes device memory in segments of at least 32 MiB and hands out pieces at 512-byte
 * steps, first fit, the last freed piece first. What is free stays reserved until a point of
 * synchronisation finds more of it than the release threshold (0 by default), or until the pool
 * is trimmed; only whole segments go back. A destroyed pool lives until its last allocation is
 * freed. Streams run at once here: a free takes effect when it is called.
 */
#include <stdlib.h>
#include <string.h>

#include "internal.h"

#define SEGMENT ((uint64_t)32 << 20)

struct segment;
struct piece {
  uint64_t base, span;
  bool free;
  struct segment *segment;
  struct piece *left, *right;    /* neighbours within the segment */
  struct piece *previous, *next; /* among the free pieces of the pool */
};

struct segment {
  uint64_t base, span;
  struct segment *next;
};

struct CUmemPoolHandle_st {
  int device;
  bool is_default, destroyed, dead;
  uint64_t threshold, reserved, used, reserved_high, used_high, live;
  struct segment *segments;
  struct piece *free;
  CUmemoryPool next;
};

static CUmemoryPool all_pools;

static CUmemoryPool new_pool(int device, bool is_default) {
  CUmemoryPool pool = calloc(1, sizeof *pool);
  if (!pool) abort();
  pool->device = device;
  pool->is_default = is_default;
  pool->next = all_pools;
  all_pools = pool;
  return pool;
}

static CUmemoryPool default_pool(int device) {
  struct device *owner = &devices[device];
  if (!owner->default_pool) owner->default_pool = new_pool(device, true);
  if (!owner->current_pool) owner->current_pool = owner->default_pool;
  return owner->default_pool;
}

static CUmemoryPool current_pool(int device) {
  default_pool(device);
  return devices[device].current_pool;
}

static bool is_pool(CUmemoryPool pool) {
  for (CUmemoryPool known = all_pools; known; known = known->next)
    if (known == pool) return !known->destroyed && !known->dead;
  return false;
}

bool pool_is_valid(CUmemoryPool pool) { return is_pool(pool); }
CUmemoryPool pool_new(int device) { return new_pool(device, false); }

void pool_restart(void) {
  for (CUmemoryPool pool = all_pools; pool; pool = pool->next) {
    pool->reserved = pool->used = pool->reserved_high = pool->used_high = pool->live = 0;
    pool->segments = NULL;
    pool->free = NULL;
  }
}

/* ---- pieces ----------------------------------------------------------------------------- */

static void link_free(CUmemoryPool pool, struct piece *piece) {
  piece->free = true;
  piece->previous = NULL;
  piece->next = pool->free;
  if (piece->next) piece->next->previous = piece;
  pool->free = piece;
}

static void unlink_free(CUmemoryPool pool, struct piece *piece) {
  piece->free = false;
  if (piece->previous) piece->previous->next = piece->next;
  else pool->free = piece->next;
  if (piece->next) piece->next->previous = piece->previous;
}

static struct piece *new_piece(uint64_t base, uint64_t span, struct segment *segment) {
  struct piece *piece = calloc(1, sizeof *piece);
  if (!piece) abort();
  piece->base = base;
  piece->span = span;
  piece->segment = segment;
  return piece;
}

static bool grow(CUmemoryPool pool, uint64_t span) {
  uint64_t size = span > SEGMENT ? round_up(span, BLOCK) : SEGMENT;
  if (!device_take(pool->device, size)) {
    size = round_up(span, BLOCK);
    if (!device_take(pool->device, size)) return false;
  }
  uint64_t base = space_take(REGION_DEVICE, size);
  struct segment *segment = base ? calloc(1, sizeof *segment) : NULL;
  if (!segment) {
    device_give(pool->device, size);
    return false;
  }
  *segment = (struct segment){base, size, pool->segments};
  pool->segments = segment;
  pool->reserved += size;
  if (pool->reserved > pool->reserved_high) pool->reserved_high = pool->reserved;
  truth_reserved((int64_t)size);
  link_free(pool, new_piece(base, size, segment));
  return true;
}

static struct piece *first_fit(CUmemoryPool pool, uint64_t span) {
  for (struct piece *piece = pool->free; piece; piece = piece->next)
    if (piece->span >= span) return piece;
  return NULL;
}

static void split(CUmemoryPool pool, struct piece *piece, uint64_t span) {
  if (piece->span == span) return;
  struct piece *rest = new_piece(piece->base + span, piece->span - span, piece->segment);
  piece->span = span;
  rest->left = piece;
  rest->right = piece->right;
  if (rest->right) rest->right->left = rest;
  piece->right = rest;
  link_free(pool, rest);
}

static struct piece *take(CUmemoryPool pool, uint64_t span) {
  struct piece *piece = first_fit(pool, span);
  if (!piece) {
    if (!grow(pool, span)) return NULL;
    piece = pool->free;
  }
  unlink_free(pool, piece);
  split(pool, piece, span);
  return piece;
}

/* Swallows the right neighbour, which is free. */
static void join(CUmemoryPool pool, struct piece *piece) {
  struct piece *right = piece->right;
  unlink_free(pool, right);
  piece->span += right->span;
  piece->right = right->right;
  if (piece->right) piece->right->left = piece;
  free(right);
}

static void give(CUmemoryPool pool, struct piece *piece) {
  if (piece->right && piece->right->free) join(pool, piece);
  if (piece->left && piece->left->free) {
    struct piece *left = piece->left;
    unlink_free(pool, left);
    link_free(pool, piece); /* so that join can unlink it */
    join(pool, left);
    piece = left;
  }
  link_free(pool, piece);
}

static void drop_segment(CUmemoryPool pool, struct piece *piece) {
  struct segment **at = &pool->segments;
  while (*at != piece->segment) at = &(*at)->next;
  *at = piece->segment->next;
  pool->reserved -= piece->span;
  truth_reserved(-(int64_t)piece->span);
  device_give(pool->device, piece->span);
  space_give(REGION_DEVICE, piece->base, piece->span);
  unlink_free(pool, piece);
  free(piece->segment);
  free(piece);
}

/* Gives back free segments while more than `keep` bytes are reserved. */
static void trim(CUmemoryPool pool, uint64_t keep) {
  for (struct piece *piece = pool->free, *next; piece; piece = next) {
    next = piece->next;
    bool whole = piece->span == piece->segment->span;
    if (whole && pool->reserved - piece->span >= keep) drop_segment(pool, piece);
  }
}

void pool_synchronise(int device) {
  for (CUmemoryPool pool = all_pools; pool; pool = pool->next)
    if (pool->device == device) trim(pool, pool->threshold);
}

static void end_pool(CUmemoryPool pool) {
  trim(pool, 0);
  pool->dead = true;
}

/* ---- allocation and free ---------------------------------------------------------------- */

static CUresult pool_alloc(CUmemoryPool pool, CUdeviceptr *pointer, uint64_t bytes) {
  struct range range = {.bytes = bytes, .ledger = ASYNC_POOL, .device = pool->device};
  if (bytes > devices[pool->device].total) return CUDA_ERROR_OUT_OF_MEMORY;
  range.span = round_up(bytes, UNIT);
  struct piece *piece = take(pool, range.span);
  if (!piece) return CUDA_ERROR_OUT_OF_MEMORY;
  range.base = piece->base;
  range.pool = pool;
  range.owner = piece;
  range_add(&live_ranges, &range);
  pool->live++;
  pool->used += range.span;
  if (pool->used > pool->used_high) pool->used_high = pool->used;
  truth_alloc(ASYNC_POOL, bytes);
  *pointer = range.base;
  return CUDA_SUCCESS;
}

CUresult pool_free_range(struct range *range) {
  CUmemoryPool pool = range->pool;
  pool->used -= range->span;
  pool->live--;
  give(pool, range->owner);
  range_remove(&live_ranges, range);
  if (pool->destroyed && !pool->live) end_pool(pool);
  return CUDA_SUCCESS;
}

static CUresult alloc(CUdeviceptr *pointer, uint64_t bytes, CUmemoryPool pool, bool named,
                      CUstream stream) {
  CUcontext context;
  if (!pointer) return CUDA_ERROR_INVALID_VALUE;
  CUresult result = driver_enter_context(&context);
  if (result) return result;
  if (!stream_is_valid(stream)) return driver_leave(CUDA_ERROR_INVALID_HANDLE);
  if (named && !is_pool(pool)) return driver_leave(CUDA_ERROR_INVALID_VALUE);
  if (bytes == 0) {
    *pointer = 0; /* the stream-ordered calls allow it */
    return driver_leave(CUDA_SUCCESS);
  }
  if (stream_is_capturing(stream)) return driver_leave(capture_alloc(stream, pointer, bytes));
  if (!named) pool = current_pool(context->device);
  return driver_leave(pool_alloc(pool, pointer, bytes));
}

static CUresult free_async(CUdeviceptr pointer, CUstream stream) {
  CUcontext context;
  CUresult result = driver_enter_context(&context);
  if (result) return result;
  if (!stream_is_valid(stream)) return driver_leave(CUDA_ERROR_INVALID_HANDLE);
  if (stream_is_capturing(stream)) return driver_leave(capture_free(stream, pointer));
  struct range *range = range_based_at(&live_ranges, pointer);
  bool lent = range && range->ledger == IMPORTED && !range->owner;
  bool known = lent || (range && (range->ledger == ASYNC_POOL || range->ledger == GRAPH));
  if (!known) return driver_leave(CUDA_ERROR_INVALID_VALUE);
  truth_free(range->ledger, range->bytes);
  if (range->ledger == ASYNC_POOL) return driver_leave(pool_free_range(range));
  memory_release(range);
  return driver_leave(CUDA_SUCCESS);
}

#define ALLOC_ASYNC(symbol)                                                         \
  CUresult symbol(CUdeviceptr *pointer, size_t bytes, CUstream stream) {            \
    CUresult result = step(ID_##symbol);                                            \
    if (LIKELY(fast_mode)) return result ? result : fast_alloc(pointer, bytes);     \
    if (!result) result = alloc(pointer, bytes, NULL, false, STREAM_IN(symbol, stream));               \
    return truth_alloc_result(ASYNC_POOL, result);                                  \
  }
ALLOC_ASYNC(cuMemAllocAsync)
ALLOC_ASYNC(cuMemAllocAsync_ptsz)

#define ALLOC_FROM_POOL(symbol)                                                             \
  CUresult symbol(CUdeviceptr *pointer, size_t bytes, CUmemoryPool pool, CUstream stream) { \
    CUresult result = step(ID_##symbol);                                                    \
    if (LIKELY(fast_mode)) return result ? result : fast_alloc(pointer, bytes);             \
    if (!result) result = alloc(pointer, bytes, pool, true, STREAM_IN(symbol, stream));                        \
    return truth_alloc_result(ASYNC_POOL, result);                                          \
  }
ALLOC_FROM_POOL(cuMemAllocFromPoolAsync)
ALLOC_FROM_POOL(cuMemAllocFromPoolAsync_ptsz)

#define FREE_ASYNC(symbol)                                           \
  CUresult symbol(CUdeviceptr pointer, CUstream stream) {            \
    CUresult result = step(ID_##symbol);                             \
    if (LIKELY(fast_mode) && !result && fast_free(pointer)) return CUDA_SUCCESS; \
    if (!result) result = free_async(pointer, STREAM_IN(symbol, stream));               \
    return truth_free_result(ASYNC_POOL, result);                    \
  }
FREE_ASYNC(cuMemFreeAsync)
FREE_ASYNC(cuMemFreeAsync_ptsz)

/* ---- pools ------------------------------------------------------------------------------ */

CUresult cuMemPoolCreate(CUmemoryPool *out, const CUmemPoolProps *props) {
  CUresult result = step(ID_cuMemPoolCreate);
  if (result) return result;
  if (!out || !props || props->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
    return CUDA_ERROR_INVALID_VALUE;
  result = driver_enter_device(props->location.id);
  if (result) return result;
  *out = new_pool(props->location.id, false);
  return driver_leave(CUDA_SUCCESS);
}

CUresult cuMemPoolDestroy(CUmemoryPool pool) {
  CUresult result = step(ID_cuMemPoolDestroy);
  if (!result) result = driver_enter();
  if (result) return result;
  if (!is_pool(pool) || pool->is_default) return driver_leave(CUDA_ERROR_INVALID_VALUE);
  struct device *device = &devices[pool->device];
  if (device->current_pool == pool) device->current_pool = device->default_pool;
  pool->destroyed = true;
  if (!pool->live) end_pool(pool);
  return driver_leave(CUDA_SUCCESS);
}

CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t keep) {
  CUresult result = step(ID_cuMemPoolTrimTo);
  if (!result) result = driver_enter();
  if (result) return result;
  if (!is_pool(pool)) return driver_leave(CUDA_ERROR_INVALID_VALUE);
  trim(pool, keep);
  return driver_leave(CUDA_SUCCESS);
}

CUresult cuMemPoolSetAttribute(CUmemoryPool pool, int attribute, void *value) {
  CUresult result = step(ID_cuMemPoolSetAttribute);
  if (!result) result = driver_enter();
  if (result) return result;
  if (!is_pool(pool) || !value) return driver_leave(CUDA_ERROR_INVALID_VALUE);
  switch (attribute) {
    case 1: case 2: case 3: break; /* re-use policies */
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD: pool->threshold = *(uint64_t *)value; break;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH: pool->reserved_high = pool->reserved; break;
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH: pool->used_high = pool->used; break;
    default: result = CUDA_ERROR_INVALID_VALUE;
  }
  return driver_leave(result);
}

CUresult cuMemPoolGetAttribute(CUmemoryPool pool, int attribute, void *value) {
  CUresult result = step(ID_cuMemPoolGetAttribute);
  if (!result) result = driver_enter();
  if (result) return result;
  if (!is_pool(pool) || !value) return driver_leave(CUDA_ERROR_INVALID_VALUE);
  switch (attribute) {
    case 1: case 2: case 3: *(int *)value = 1; break;
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD: *(uint64_t *)value = pool->threshold; break;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT: *(uint64_t *)value = pool->reserved; break;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH: *(uint64_t *)value = pool->reserved_high; break;
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT: *(uint64_t *)value = pool->used; break;
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH: *(uint64_t *)value = pool->used_high; break;
    default: result = CUDA_ERROR_INVALID_VALUE;
  }
  return driver_leave(result);
}

CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc *map, size_t count) {
  CUresult result = driver_enter();
  if (result) return result;
  bool good = is_pool(pool) && (map || !count);
  return driver_leave(good ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}

CUresult cuMemPoolGetAccess(int *flags, CUmemoryPool pool, CUmemLocation *location) {
  CUresult result = driver_enter();
  if (result) return result;
  if (!flags || !location || !is_pool(pool)) return driver_leave(CUDA_ERROR_INVALID_VALUE);
  *flags = location->id == pool->device ? 3 : 0;
  return driver_leave(CUDA_SUCCESS);
}

static CUresult get_pool(CUmemoryPool *out, CUdevice device, CUmemoryPool (*which)(int)) {
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  CUresult result = driver_enter_device(device);
  if (result) return result;
  *out = which(device);
  return driver_leave(CUDA_SUCCESS);
}

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *out, CUdevice device) {
  return get_pool(out, device, default_pool);
}

CUresult cuDeviceGetMemPool(CUmemoryPool *out, CUdevice device) {
  return get_pool(out, device, current_pool);
}

CUresult cuDeviceSetMemPool(CUdevice device, CUmemoryPool pool) {
  CUresult result = driver_enter_device(device);
  if (result) return result;
  if (!is_pool(pool) || pool->device != device) return driver_leave(CUDA_ERROR_INVALID_VALUE);
  default_pool(device);
  devices[device].current_pool = pool;
  return driver_leave(CUDA_SUCCESS);
}

/* ---- pools by place (CUDA 13) ------------------------------------------------------------- */

static CUresult pool_of_place(CUmemoryPool *out, const CUmemLocation *place, int type,
                              CUmemoryPool (*which)(int)) {
  bool known = place && place->type == CU_MEM_LOCATION_TYPE_DEVICE && type == 1;
  return known ? get_pool(out, place->id, which) : CUDA_ERROR_NOT_SUPPORTED;
}

CUresult cuMemGetDefaultMemPool(CUmemoryPool *out, CUmemLocation *place, int type) {
  CUresult result = step(ID_cuMemGetDefaultMemPool);
  return result ? result : pool_of_place(out, place, type, default_pool);
}

CUresult cuMemGetMemPool(CUmemoryPool *out, CUmemLocation *place, int type) {
  CUresult result = step(ID_cuMemGetMemPool);
  return result ? result : pool_of_place(out, place, type, current_pool);
}

CUresult cuMemSetMemPool(CUmemLocation *place, int type, CUmemoryPool pool) {
  CUresult result = step(ID_cuMemSetMemPool);
  bool known = place && place->type == CU_MEM_LOCATION_TYPE_DEVICE && type == 1;
  if (!result && !known) result = CUDA_ERROR_NOT_SUPPORTED;
  return result ? result : cuDeviceSetMemPool(place->id, pool);
}
