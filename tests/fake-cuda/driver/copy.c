/*
 * Copies. Device memory has no bytes, so a copy is checked and counted; where both ends are
 * memory of the host (pageable, pinned, registered or managed) the bytes really move.
 *
 * The direction that is counted is the one in the call's name, or for unified calls what the
 * pointers are; managed memory counts as device memory. A captured copy is part of a graph and
 * is not counted.
 */
#include <string.h>

#include "internal.h"

enum side { ON_HOST, ON_DEVICE, ON_ARRAY, ANYWHERE };

struct end {
  enum side side;
  uint64_t address;
  char *bytes; /* null: nothing stands behind it */
  bool pinned;
  int device;
};

static bool on_host(const struct range *range) {
  return range->ledger == PINNED || range->ledger == REGISTERED;
}

/* Finds out what an address is; false when the call's name says something else. */
static bool locate(struct end *end, enum side side, uint64_t address, uint64_t bytes) {
  *end = (struct end){.side = side, .address = address};
  if (side == ON_ARRAY) return array_is_valid((CUarray)address);
  struct range *range = range_at(&live_ranges, address);
  if (range && range->ledger == ARRAY) range = NULL;
  if (range && bytes > range->base + range->span - address && !on_host(range)) return false;
  if (!range) range = range_at(&mapped_ranges, address);
  end->pinned = range && on_host(range);
  end->device = range ? range->device : -1;
  if (side == ANYWHERE) end->side = !range || end->pinned ? ON_HOST : ON_DEVICE;
  bool memory = end->side == ON_HOST || end->pinned || (range && range->ledger == MANAGED);
  end->bytes = memory ? (char *)address : NULL;
  return end->side == ON_HOST ? address != 0 : range != NULL;
}

static enum direction direction_of(const struct end *to, const struct end *from) {
  static const enum direction directions[3][3] = {
      [ON_HOST] = {[ON_HOST] = HOST_TO_HOST,
                   [ON_DEVICE] = HOST_TO_DEVICE,
                   [ON_ARRAY] = HOST_TO_ARRAY},
      [ON_DEVICE] = {[ON_HOST] = DEVICE_TO_HOST,
                     [ON_DEVICE] = DEVICE_TO_DEVICE,
                     [ON_ARRAY] = DEVICE_TO_ARRAY},
      [ON_ARRAY] = {[ON_HOST] = ARRAY_TO_HOST,
                    [ON_DEVICE] = ARRAY_TO_DEVICE,
                    [ON_ARRAY] = ARRAY_TO_ARRAY},
  };
  return directions[from->side][to->side];
}

static void count(const struct end *to, const struct end *from, uint64_t bytes, bool async,
                  bool peer) {
  bool pinned = (to->side == ON_HOST && to->pinned) || (from->side == ON_HOST && from->pinned);
  bool across = peer && to->device != from->device;
  truth_copy(across ? PEER : direction_of(to, from), async, pinned, bytes);
}

struct how {
  bool async, peer;
  CUstream stream;
};

/* Takes the lock, unless the call is captured: its addresses may have no memory yet. */
static CUresult enter(const struct how *how, bool *captured) {
  CUcontext context;
  CUresult result = driver_enter_context(&context);
  if (result) return result;
  if (!stream_is_valid(how->stream)) return driver_leave(CUDA_ERROR_INVALID_HANDLE);
  *captured = stream_is_capturing(how->stream);
  if (*captured) driver_unlock();
  return CUDA_SUCCESS;
}

static CUresult copy(enum side to_side, uint64_t to, enum side from_side, uint64_t from,
                     uint64_t bytes, struct how how) {
  bool captured = false;
  struct end target, source;
  CUresult result = enter(&how, &captured);
  if (result || captured) return result;
  bool good = locate(&target, to_side, to, bytes) && locate(&source, from_side, from, bytes);
  if (!good && bytes) return driver_leave(CUDA_ERROR_INVALID_VALUE);
  if (!good) return driver_leave(CUDA_SUCCESS);
  count(&target, &source, bytes, how.async, how.peer);
  driver_unlock();
  if (target.bytes && source.bytes) memmove(target.bytes, source.bytes, bytes);
  return CUDA_SUCCESS;
}

/* ---- one-dimensional copies ------------------------------------------------------------- */

#define NOW ((struct how){false, false, NULL})
#define LATER ((struct how){true, false, stream})
/* How, with the stream that the symbol means. */
static inline struct how of_symbol(const char *symbol, struct how how) {
  size_t length = strlen(symbol);
  bool per_thread = length > 5 && strcmp(symbol + length - 5, "_ptsz") == 0;
  if (how.async && per_thread) how.stream = THREAD_STREAM(how.stream);
  return how;
}

#define COPY(symbol, params, to_side, to, from_side, from, how)                             \
  CUresult symbol params {                                                                  \
    CUresult result = step(ID_##symbol);                                                    \
    if (LIKELY(fast_mode)) return result;                                                   \
    if (!result) result = copy(to_side, (uint64_t)(to), from_side, (uint64_t)(from), bytes,       \
                               of_symbol(#symbol, how));                                    \
    return truth_other_result(false, result);                                               \
  }

#define HTOD(symbol, P, N) \
  COPY(symbol, (P to, const void *from, N bytes), ON_DEVICE, to, ON_HOST, from, NOW)
HTOD(cuMemcpyHtoD, CUdeviceptr_v1, unsigned)
HTOD(cuMemcpyHtoD_v2, CUdeviceptr, size_t)
HTOD(cuMemcpyHtoD_v2_ptds, CUdeviceptr, size_t)

#define HTOD_ASYNC(symbol, P, N)                                                         \
  COPY(symbol, (P to, const void *from, N bytes, CUstream stream), ON_DEVICE, to, ON_HOST, \
       from, LATER)
HTOD_ASYNC(cuMemcpyHtoDAsync, CUdeviceptr_v1, unsigned)
HTOD_ASYNC(cuMemcpyHtoDAsync_v2, CUdeviceptr, size_t)
HTOD_ASYNC(cuMemcpyHtoDAsync_v2_ptsz, CUdeviceptr, size_t)

#define DTOH(symbol, P, N) \
  COPY(symbol, (void *to, P from, N bytes), ON_HOST, to, ON_DEVICE, from, NOW)
DTOH(cuMemcpyDtoH, CUdeviceptr_v1, unsigned)
DTOH(cuMemcpyDtoH_v2, CUdeviceptr, size_t)
DTOH(cuMemcpyDtoH_v2_ptds, CUdeviceptr, size_t)

#define DTOH_ASYNC(symbol, P, N)                                                          \
  COPY(symbol, (void *to, P from, N bytes, CUstream stream), ON_HOST, to, ON_DEVICE, from, \
       LATER)
DTOH_ASYNC(cuMemcpyDtoHAsync, CUdeviceptr_v1, unsigned)
DTOH_ASYNC(cuMemcpyDtoHAsync_v2, CUdeviceptr, size_t)
DTOH_ASYNC(cuMemcpyDtoHAsync_v2_ptsz, CUdeviceptr, size_t)

#define DTOD(symbol, P, N) \
  COPY(symbol, (P to, P from, N bytes), ON_DEVICE, to, ON_DEVICE, from, NOW)
DTOD(cuMemcpyDtoD, CUdeviceptr_v1, unsigned)
DTOD(cuMemcpyDtoD_v2, CUdeviceptr, size_t)
DTOD(cuMemcpyDtoD_v2_ptds, CUdeviceptr, size_t)

#define DTOD_ASYNC(symbol, P, N) \
  COPY(symbol, (P to, P from, N bytes, CUstream stream), ON_DEVICE, to, ON_DEVICE, from, LATER)
DTOD_ASYNC(cuMemcpyDtoDAsync, CUdeviceptr_v1, unsigned)
DTOD_ASYNC(cuMemcpyDtoDAsync_v2, CUdeviceptr, size_t)
DTOD_ASYNC(cuMemcpyDtoDAsync_v2_ptsz, CUdeviceptr, size_t)

#define UNIFIED(symbol)                                                                      \
  COPY(symbol, (CUdeviceptr to, CUdeviceptr from, size_t bytes), ANYWHERE, to, ANYWHERE, from, \
       NOW)
UNIFIED(cuMemcpy)
UNIFIED(cuMemcpy_ptds)

#define UNIFIED_ASYNC(symbol)                                                                \
  COPY(symbol, (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream), ANYWHERE, to, \
       ANYWHERE, from, LATER)
UNIFIED_ASYNC(cuMemcpyAsync)
UNIFIED_ASYNC(cuMemcpyAsync_ptsz)

/* The contexts only matter on devices without unified addresses. */
#define PEERS CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context
#define COPY_PEER(symbol)                                                        \
  COPY(symbol, (PEERS, size_t bytes), ((void)to_context, ON_DEVICE), to,         \
       ((void)from_context, ON_DEVICE), from, ((struct how){false, true, NULL}))
COPY_PEER(cuMemcpyPeer)
COPY_PEER(cuMemcpyPeer_ptds)

#define COPY_PEER_ASYNC(symbol)                                                      \
  COPY(symbol, (PEERS, size_t bytes, CUstream stream), ((void)to_context, ON_DEVICE), to, \
       ((void)from_context, ON_DEVICE), from, ((struct how){true, true, stream}))
COPY_PEER_ASYNC(cuMemcpyPeerAsync)
COPY_PEER_ASYNC(cuMemcpyPeerAsync_ptsz)

/* ---- copies to and from arrays ---------------------------------------------------------- */

#define DTOA(symbol, P, N)                                                               \
  COPY(symbol, (CUarray to, N offset, P from, N bytes), ((void)offset, ON_ARRAY), to,    \
       ON_DEVICE, from, NOW)
DTOA(cuMemcpyDtoA, CUdeviceptr_v1, unsigned)
DTOA(cuMemcpyDtoA_v2, CUdeviceptr, size_t)
DTOA(cuMemcpyDtoA_v2_ptds, CUdeviceptr, size_t)

#define ATOD(symbol, P, N)                                                                    \
  COPY(symbol, (P to, CUarray from, N offset, N bytes), ((void)offset, ON_DEVICE), to, ON_ARRAY, \
       from, NOW)
ATOD(cuMemcpyAtoD, CUdeviceptr_v1, unsigned)
ATOD(cuMemcpyAtoD_v2, CUdeviceptr, size_t)
ATOD(cuMemcpyAtoD_v2_ptds, CUdeviceptr, size_t)

#define HTOA(symbol, N)                                                                      \
  COPY(symbol, (CUarray to, N offset, const void *from, N bytes), ((void)offset, ON_ARRAY), to, \
       ON_HOST, from, NOW)
HTOA(cuMemcpyHtoA, unsigned)
HTOA(cuMemcpyHtoA_v2, size_t)
HTOA(cuMemcpyHtoA_v2_ptds, size_t)

#define HTOA_ASYNC(symbol, N)                                                      \
  COPY(symbol, (CUarray to, N offset, const void *from, N bytes, CUstream stream), \
       ((void)offset, ON_ARRAY), to, ON_HOST, from, LATER)
HTOA_ASYNC(cuMemcpyHtoAAsync, unsigned)
HTOA_ASYNC(cuMemcpyHtoAAsync_v2, size_t)
HTOA_ASYNC(cuMemcpyHtoAAsync_v2_ptsz, size_t)

#define ATOH(symbol, N)                                                                       \
  COPY(symbol, (void *to, CUarray from, N offset, N bytes), ((void)offset, ON_HOST), to, ON_ARRAY, \
       from, NOW)
ATOH(cuMemcpyAtoH, unsigned)
ATOH(cuMemcpyAtoH_v2, size_t)
ATOH(cuMemcpyAtoH_v2_ptds, size_t)

#define ATOH_ASYNC(symbol, N)                                                \
  COPY(symbol, (void *to, CUarray from, N offset, N bytes, CUstream stream), \
       ((void)offset, ON_HOST), to, ON_ARRAY, from, LATER)
ATOH_ASYNC(cuMemcpyAtoHAsync, unsigned)
ATOH_ASYNC(cuMemcpyAtoHAsync_v2, size_t)
ATOH_ASYNC(cuMemcpyAtoHAsync_v2_ptsz, size_t)

#define ATOA(symbol, N)                                                                   \
  COPY(symbol, (CUarray to, N to_offset, CUarray from, N from_offset, N bytes),           \
       ((void)to_offset, ON_ARRAY), to, ((void)from_offset, ON_ARRAY), from, NOW)
ATOA(cuMemcpyAtoA, unsigned)
ATOA(cuMemcpyAtoA_v2, size_t)
ATOA(cuMemcpyAtoA_v2_ptds, size_t)

/* ---- boxes: two and three dimensions ---------------------------------------------------- */

static bool locate_box(struct end *end, int type, const void *host, CUdeviceptr device,
                       CUarray array) {
  switch (type) {
    case CU_MEMORYTYPE_HOST: return locate(end, ON_HOST, (uint64_t)host, 0);
    case CU_MEMORYTYPE_DEVICE: return locate(end, ON_DEVICE, device, 0);
    case CU_MEMORYTYPE_ARRAY: return locate(end, ON_ARRAY, (uint64_t)array, 0);
    case CU_MEMORYTYPE_UNIFIED: return locate(end, ANYWHERE, device, 0);
    default: return false;
  }
}

static void move_box(const CUDA_MEMCPY3D *box, char *to, const char *from) {
  for (size_t z = 0; z < box->Depth; z++) {
    for (size_t y = 0; y < box->Height; y++) {
      size_t to_row = (z + box->dstZ) * box->dstHeight + y + box->dstY;
      size_t from_row = (z + box->srcZ) * box->srcHeight + y + box->srcY;
      memmove(to + to_row * box->dstPitch + box->dstXInBytes,
              from + from_row * box->srcPitch + box->srcXInBytes, box->WidthInBytes);
    }
  }
}

static CUresult copy_box(const CUDA_MEMCPY3D *box, struct how how) {
  bool captured = false;
  struct end to, from;
  CUresult result = enter(&how, &captured);
  if (result || captured) return result;
  bool good = locate_box(&to, box->dstMemoryType, box->dstHost, box->dstDevice, box->dstArray) &&
              locate_box(&from, box->srcMemoryType, box->srcHost, box->srcDevice, box->srcArray);
  uint64_t bytes = box->WidthInBytes * box->Height * box->Depth;
  if (!good) return driver_leave(CUDA_ERROR_INVALID_VALUE);
  count(&to, &from, bytes, how.async, how.peer);
  driver_unlock();
  if (to.bytes && from.bytes) move_box(box, to.bytes, from.bytes);
  return CUDA_SUCCESS;
}

/* CUDA 2.0's descriptors: 32-bit extents and device pointers. */
struct flat_v1 {
  unsigned from_x, from_y;
  int from_type;
  const void *from_host;
  CUdeviceptr_v1 from_device;
  CUarray from_array;
  unsigned from_pitch, to_x, to_y;
  int to_type;
  void *to_host;
  CUdeviceptr_v1 to_device;
  CUarray to_array;
  unsigned to_pitch, width, height;
};

struct deep_v1 {
  unsigned from_x, from_y, from_z, from_lod;
  int from_type;
  const void *from_host;
  CUdeviceptr_v1 from_device;
  CUarray from_array;
  void *from_reserved;
  unsigned from_pitch, from_height, to_x, to_y, to_z, to_lod;
  int to_type;
  void *to_host;
  CUdeviceptr_v1 to_device;
  CUarray to_array;
  void *to_reserved;
  unsigned to_pitch, to_height, width, height, depth;
};

static CUDA_MEMCPY3D from_flat_v1(const struct flat_v1 *flat) {
  return (CUDA_MEMCPY3D){
      flat->from_x, flat->from_y, 0, 0, flat->from_type, flat->from_host, flat->from_device,
      flat->from_array, NULL, flat->from_pitch, 0,
      flat->to_x, flat->to_y, 0, 0, flat->to_type, flat->to_host, flat->to_device,
      flat->to_array, NULL, flat->to_pitch, 0, flat->width, flat->height, 1};
}

static CUDA_MEMCPY3D from_deep_v1(const struct deep_v1 *deep) {
  return (CUDA_MEMCPY3D){
      deep->from_x, deep->from_y, deep->from_z, deep->from_lod, deep->from_type,
      deep->from_host, deep->from_device, deep->from_array, NULL, deep->from_pitch,
      deep->from_height, deep->to_x, deep->to_y, deep->to_z, deep->to_lod, deep->to_type,
      deep->to_host, deep->to_device, deep->to_array, NULL, deep->to_pitch, deep->to_height,
      deep->width, deep->height, deep->depth};
}

static CUDA_MEMCPY3D from_flat(const CUDA_MEMCPY2D *flat) {
  return (CUDA_MEMCPY3D){
      flat->srcXInBytes, flat->srcY, 0, 0, flat->srcMemoryType, flat->srcHost, flat->srcDevice,
      flat->srcArray, NULL, flat->srcPitch, 0,
      flat->dstXInBytes, flat->dstY, 0, 0, flat->dstMemoryType, flat->dstHost, flat->dstDevice,
      flat->dstArray, NULL, flat->dstPitch, 0, flat->WidthInBytes, flat->Height, 1};
}

static CUDA_MEMCPY3D from_deep(const CUDA_MEMCPY3D *deep) { return *deep; }

#define BOX(symbol, params, convert, how)                     \
  CUresult symbol params {                                    \
    CUresult result = step(ID_##symbol);                      \
    if (!result && !box) result = CUDA_ERROR_INVALID_VALUE;   \
    if (fast_mode) return result;                             \
    if (!result) {                                            \
      CUDA_MEMCPY3D wide = convert(box);                      \
      result = copy_box(&wide, of_symbol(#symbol, how));      \
    }                                                         \
    return truth_other_result(false, result);                 \
  }

#define BOX_NOW(symbol, type, convert) BOX(symbol, (const type *box), convert, NOW)
#define BOX_LATER(symbol, type, convert) \
  BOX(symbol, (const type *box, CUstream stream), convert, LATER)

BOX_NOW(cuMemcpy2D, struct flat_v1, from_flat_v1)
BOX_NOW(cuMemcpy2D_v2, CUDA_MEMCPY2D, from_flat)
BOX_NOW(cuMemcpy2D_v2_ptds, CUDA_MEMCPY2D, from_flat)
BOX_NOW(cuMemcpy2DUnaligned, struct flat_v1, from_flat_v1)
BOX_NOW(cuMemcpy2DUnaligned_v2, CUDA_MEMCPY2D, from_flat)
BOX_NOW(cuMemcpy2DUnaligned_v2_ptds, CUDA_MEMCPY2D, from_flat)
BOX_LATER(cuMemcpy2DAsync, struct flat_v1, from_flat_v1)
BOX_LATER(cuMemcpy2DAsync_v2, CUDA_MEMCPY2D, from_flat)
BOX_LATER(cuMemcpy2DAsync_v2_ptsz, CUDA_MEMCPY2D, from_flat)
BOX_NOW(cuMemcpy3D, struct deep_v1, from_deep_v1)
BOX_NOW(cuMemcpy3D_v2, CUDA_MEMCPY3D, from_deep)
BOX_NOW(cuMemcpy3D_v2_ptds, CUDA_MEMCPY3D, from_deep)
BOX_LATER(cuMemcpy3DAsync, struct deep_v1, from_deep_v1)
BOX_LATER(cuMemcpy3DAsync_v2, CUDA_MEMCPY3D, from_deep)
BOX_LATER(cuMemcpy3DAsync_v2_ptsz, CUDA_MEMCPY3D, from_deep)

#define BOX_PEER(symbol) \
  BOX(symbol, (const CUDA_MEMCPY3D *box), from_deep, ((struct how){false, true, NULL}))
BOX_PEER(cuMemcpy3DPeer)
BOX_PEER(cuMemcpy3DPeer_ptds)

#define BOX_PEER_ASYNC(symbol)                                        \
  BOX(symbol, (const CUDA_MEMCPY3D *box, CUstream stream), from_deep, \
      ((struct how){true, true, stream}))
BOX_PEER_ASYNC(cuMemcpy3DPeerAsync)
BOX_PEER_ASYNC(cuMemcpy3DPeerAsync_ptsz)

/* ---- batches: each member is a copy of its own ------------------------------------------ */

static CUresult batch(CUdeviceptr *to, CUdeviceptr *from, size_t *sizes, size_t number,
                      size_t *failed, CUstream stream) {
  if (!number || !to || !from || !sizes) return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < number; i++) {
    CUresult result = copy(ANYWHERE, to[i], ANYWHERE, from[i], sizes[i], LATER);
    if (!result) continue;
    if (failed) *failed = i;
    return result;
  }
  return CUDA_SUCCESS;
}

#define BATCH_PARAMS                                                                      \
  CUdeviceptr *to, CUdeviceptr *from, size_t *sizes, size_t number,                       \
      CUmemcpyAttributes *attributes, size_t *indices, size_t attribute_count
#define BATCH(symbol, params, failed)                                                  \
  CUresult symbol params {                                                             \
    (void)attributes, (void)indices, (void)attribute_count;                            \
    CUresult result = step(ID_##symbol);                                               \
    if (fast_mode) return result;                                                      \
    if (!result) result = batch(to, from, sizes, number, failed, stream);              \
    return truth_other_result(false, result);                                          \
  }
BATCH(cuMemcpyBatchAsync, (BATCH_PARAMS, size_t *failed, CUstream stream), failed)
BATCH(cuMemcpyBatchAsync_ptsz, (BATCH_PARAMS, size_t *failed, CUstream stream), failed)
BATCH(cuMemcpyBatchAsync_v2, (BATCH_PARAMS, CUstream stream), NULL)
BATCH(cuMemcpyBatchAsync_v2_ptsz, (BATCH_PARAMS, CUstream stream), NULL)

static void operand(const CUmemcpy3DOperand *operand, int *type, CUdeviceptr *pointer,
                    CUarray *array, size_t *pitch, size_t *height) {
  if (operand->type == 2) {
    *type = CU_MEMORYTYPE_ARRAY;
    *array = operand->op.array.array;
    return;
  }
  *type = CU_MEMORYTYPE_UNIFIED;
  *pointer = operand->op.ptr.ptr;
  *pitch = operand->op.ptr.rowLength;
  *height = operand->op.ptr.layerHeight;
}

static CUresult batch_of_boxes(size_t number, const CUDA_MEMCPY3D_BATCH_OP *list, size_t *failed,
                               CUstream stream) {
  if (!number || !list) return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < number; i++) {
    CUDA_MEMCPY3D box = {.WidthInBytes = list[i].extent.width, .Height = list[i].extent.height,
                         .Depth = list[i].extent.depth};
    operand(&list[i].src, &box.srcMemoryType, &box.srcDevice, &box.srcArray, &box.srcPitch,
            &box.srcHeight);
    operand(&list[i].dst, &box.dstMemoryType, &box.dstDevice, &box.dstArray, &box.dstPitch,
            &box.dstHeight);
    CUresult result = copy_box(&box, LATER);
    if (!result) continue;
    if (failed) *failed = i;
    return result;
  }
  return CUDA_SUCCESS;
}

#define BOXES(symbol, params, failed)                                                     \
  CUresult symbol params {                                                                \
    (void)flags;                                                                          \
    CUresult result = step(ID_##symbol);                                                  \
    if (fast_mode) return result;                                                         \
    if (!result) result = batch_of_boxes(number, list, failed, stream);                   \
    return truth_other_result(false, result);                                             \
  }
#define BOXES_V1(symbol)                                                                     \
  BOXES(symbol, (size_t number, CUDA_MEMCPY3D_BATCH_OP *list, size_t *failed,                \
                 unsigned long long flags, CUstream stream), failed)
#define BOXES_V2(symbol)                                                                  \
  BOXES(symbol, (size_t number, CUDA_MEMCPY3D_BATCH_OP *list, unsigned long long flags,   \
                 CUstream stream), NULL)
BOXES_V1(cuMemcpy3DBatchAsync)
BOXES_V1(cuMemcpy3DBatchAsync_ptsz)
BOXES_V2(cuMemcpy3DBatchAsync_v2)
BOXES_V2(cuMemcpy3DBatchAsync_v2_ptsz)
