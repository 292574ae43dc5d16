/* Copies, sets and hints of the runtime. The kind of a copy chooses the driver's function. */
#include "internal.h"

#define D cudart_driver

static CUdeviceptr address(const void *pointer) { return (CUdeviceptr)(uintptr_t)pointer; }

/* ---- one dimension ---------------------------------------------------------------------- */

static cudaError_t copy(int variant, void *to, const void *from, size_t bytes,
                        enum cudaMemcpyKind kind) {
  switch (kind) {
    case cudaMemcpyHostToDevice: return D.copy_in[variant](address(to), from, bytes);
    case cudaMemcpyDeviceToHost: return D.copy_out[variant](to, address(from), bytes);
    case cudaMemcpyDeviceToDevice:
      return D.copy_within[variant](address(to), address(from), bytes);
    case cudaMemcpyHostToHost:
    case cudaMemcpyDefault: return D.copy_any[variant](address(to), address(from), bytes);
  }
  return cudaErrorInvalidValue;
}

static cudaError_t copy_async(int variant, void *to, const void *from, size_t bytes,
                              enum cudaMemcpyKind kind, cudaStream_t stream) {
  switch (kind) {
    case cudaMemcpyHostToDevice:
      return D.copy_in_async[variant](address(to), from, bytes, stream);
    case cudaMemcpyDeviceToHost:
      return D.copy_out_async[variant](to, address(from), bytes, stream);
    case cudaMemcpyDeviceToDevice:
      return D.copy_within_async[variant](address(to), address(from), bytes, stream);
    case cudaMemcpyHostToHost:
    case cudaMemcpyDefault:
      return D.copy_any_async[variant](address(to), address(from), bytes, stream);
  }
  return cudaErrorInvalidValue;
}

/* A symbol is a __device__ variable; one fake module stands for all of them. */
static cudaError_t symbol_address(const void *symbol, size_t offset, char **out) {
  static CUmodule module;
  CUdeviceptr pointer = 0;
  size_t bytes = 0;
  cudaError_t error = symbol ? cudaSuccess : cudaErrorInvalidValue;
  if (!error && !module) error = D.module_load(&module, "");
  if (!error) error = D.module_global(&pointer, &bytes, module, "symbol");
  if (!error && offset > bytes) error = cudaErrorInvalidValue;
  *out = (char *)(uintptr_t)pointer + offset;
  return error;
}

static cudaError_t symbol_copy(int variant, const void *symbol, char *host, size_t bytes,
                               size_t offset, enum cudaMemcpyKind kind, int in,
                               const cudaStream_t *stream) {
  char *device;
  cudaError_t error = symbol_address(symbol, offset, &device);
  if (error) return error;
  char *to = in ? device : host, *from = in ? host : device;
  return stream ? copy_async(variant, to, from, bytes, kind, *stream)
                : copy(variant, to, from, bytes, kind);
}

#define COPIES(sync, async, variant)                                                            \
  cudaError_t cudaMemcpy##sync(void *to, const void *from, size_t bytes,                        \
                               enum cudaMemcpyKind kind) {                                      \
    RUN(copy(variant, to, from, bytes, kind));                                                  \
  }                                                                                             \
  cudaError_t cudaMemcpyAsync##async(void *to, const void *from, size_t bytes,                  \
                                     enum cudaMemcpyKind kind, cudaStream_t stream) {           \
    RUN(copy_async(variant, to, from, bytes, kind, stream));                                    \
  }                                                                                             \
  cudaError_t cudaMemcpyToSymbol##sync(const void *symbol, const void *from, size_t bytes,      \
                                       size_t offset, enum cudaMemcpyKind kind) {               \
    RUN(symbol_copy(variant, symbol, (char *)(uintptr_t)from, bytes, offset, kind, 1, NULL));   \
  }                                                                                             \
  cudaError_t cudaMemcpyFromSymbol##sync(void *to, const void *symbol, size_t bytes,            \
                                         size_t offset, enum cudaMemcpyKind kind) {             \
    RUN(symbol_copy(variant, symbol, to, bytes, offset, kind, 0, NULL));                        \
  }                                                                                             \
  cudaError_t cudaMemcpyToSymbolAsync##async(const void *symbol, const void *from, size_t bytes, \
                                             size_t offset, enum cudaMemcpyKind kind,           \
                                             cudaStream_t stream) {                             \
    RUN(symbol_copy(variant, symbol, (char *)(uintptr_t)from, bytes, offset, kind, 1, &stream)); \
  }                                                                                             \
  cudaError_t cudaMemcpyFromSymbolAsync##async(void *to, const void *symbol, size_t bytes,      \
                                               size_t offset, enum cudaMemcpyKind kind,         \
                                               cudaStream_t stream) {                           \
    RUN(symbol_copy(variant, symbol, to, bytes, offset, kind, 0, &stream));                     \
  }
COPIES(, , LEGACY)
COPIES(_ptds, _ptsz, PER_THREAD)

/* ---- between devices -------------------------------------------------------------------- */

static cudaError_t copy_peer(void *to, int to_device, const void *from, int from_device,
                             size_t bytes, const cudaStream_t *stream) {
  CUcontext to_context, from_context;
  cudaError_t error = cudart_primary(to_device, &to_context);
  if (!error) error = cudart_primary(from_device, &from_context);
  if (error) return error;
  if (!stream) return D.copy_peer(address(to), to_context, address(from), from_context, bytes);
  return D.copy_peer_async[LEGACY](address(to), to_context, address(from), from_context, bytes,
                                    *stream);
}

cudaError_t cudaMemcpyPeer(void *to, int to_device, const void *from, int from_device,
                           size_t bytes) {
  RUN(copy_peer(to, to_device, from, from_device, bytes, NULL));
}

cudaError_t cudaMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device,
                                size_t bytes, cudaStream_t stream) {
  RUN(copy_peer(to, to_device, from, from_device, bytes, &stream));
}

/* ---- two and three dimensions ----------------------------------------------------------- */

static int from_type(enum cudaMemcpyKind kind) {
  if (kind == cudaMemcpyDefault) return CU_MEMORYTYPE_UNIFIED;
  return kind == cudaMemcpyHostToHost || kind == cudaMemcpyHostToDevice
             ? CU_MEMORYTYPE_HOST
             : CU_MEMORYTYPE_DEVICE;
}

static int to_type(enum cudaMemcpyKind kind) {
  if (kind == cudaMemcpyDefault) return CU_MEMORYTYPE_UNIFIED;
  return kind == cudaMemcpyHostToHost || kind == cudaMemcpyDeviceToHost ? CU_MEMORYTYPE_HOST
                                                             : CU_MEMORYTYPE_DEVICE;
}

static void box_from(CUDA_MEMCPY3D *box, int type, const void *pointer, size_t pitch,
                     size_t height) {
  box->srcMemoryType = type;
  if (type == CU_MEMORYTYPE_HOST) box->srcHost = pointer;
  else box->srcDevice = address(pointer);
  box->srcPitch = pitch;
  box->srcHeight = height;
}

static void box_to(CUDA_MEMCPY3D *box, int type, void *pointer, size_t pitch, size_t height) {
  box->dstMemoryType = type;
  if (type == CU_MEMORYTYPE_HOST) box->dstHost = pointer;
  else box->dstDevice = address(pointer);
  box->dstPitch = pitch;
  box->dstHeight = height;
}

static void box_from_array(CUDA_MEMCPY3D *box, cudaArray_t array, size_t x, size_t y, size_t z) {
  box->srcMemoryType = CU_MEMORYTYPE_ARRAY;
  box->srcArray = array;
  box->srcXInBytes = x;
  box->srcY = y;
  box->srcZ = z;
}

static void box_to_array(CUDA_MEMCPY3D *box, cudaArray_t array, size_t x, size_t y, size_t z) {
  box->dstMemoryType = CU_MEMORYTYPE_ARRAY;
  box->dstArray = array;
  box->dstXInBytes = x;
  box->dstY = y;
  box->dstZ = z;
}

static cudaError_t run_box(const CUDA_MEMCPY3D *box, int variant, const cudaStream_t *stream) {
  return stream ? D.copy_3d_async[variant](box, *stream) : D.copy_3d[variant](box);
}

static cudaError_t copy_2d(void *to, size_t to_pitch, const void *from, size_t from_pitch,
                           size_t width, size_t height, enum cudaMemcpyKind kind, int variant,
                           const cudaStream_t *stream) {
  CUDA_MEMCPY2D flat = {.srcMemoryType = from_type(kind), .dstMemoryType = to_type(kind),
                        .srcHost = from, .srcDevice = address(from), .srcPitch = from_pitch,
                        .dstHost = to, .dstDevice = address(to), .dstPitch = to_pitch,
                        .WidthInBytes = width, .Height = height};
  if (kind > cudaMemcpyDefault) return cudaErrorInvalidValue;
  return stream ? D.copy_2d_async[variant](&flat, *stream) : D.copy_2d[variant](&flat);
}

static cudaError_t copy_3d(const struct cudaMemcpy3DParms *p, int variant,
                           const cudaStream_t *stream) {
  if (!p) return cudaErrorInvalidValue;
  CUDA_MEMCPY3D box = {.WidthInBytes = p->extent.width, .Height = p->extent.height,
                       .Depth = p->extent.depth};
  box_from(&box, from_type(p->kind), p->srcPtr.ptr, p->srcPtr.pitch, p->srcPtr.ysize);
  box_to(&box, to_type(p->kind), p->dstPtr.ptr, p->dstPtr.pitch, p->dstPtr.ysize);
  box.srcXInBytes = p->srcPos.x, box.srcY = p->srcPos.y, box.srcZ = p->srcPos.z;
  box.dstXInBytes = p->dstPos.x, box.dstY = p->dstPos.y, box.dstZ = p->dstPos.z;
  if (p->srcArray) box_from_array(&box, p->srcArray, p->srcPos.x, p->srcPos.y, p->srcPos.z);
  if (p->dstArray) box_to_array(&box, p->dstArray, p->dstPos.x, p->dstPos.y, p->dstPos.z);
  return run_box(&box, variant, stream);
}

static cudaError_t copy_3d_peer(const struct cudaMemcpy3DPeerParms *p, int variant,
                                const cudaStream_t *stream) {
  if (!p) return cudaErrorInvalidValue;
  CUDA_MEMCPY3D box = {.WidthInBytes = p->extent.width, .Height = p->extent.height,
                       .Depth = p->extent.depth};
  box_from(&box, CU_MEMORYTYPE_DEVICE, p->srcPtr.ptr, p->srcPtr.pitch, p->srcPtr.ysize);
  box_to(&box, CU_MEMORYTYPE_DEVICE, p->dstPtr.ptr, p->dstPtr.pitch, p->dstPtr.ysize);
  CUcontext from, to;
  cudaError_t error = cudart_primary(p->srcDevice, &from);
  if (!error) error = cudart_primary(p->dstDevice, &to);
  if (error) return error;
  box.srcContext = from;
  box.dstContext = to;
  return stream ? D.copy_3d_peer_async[variant](&box, *stream) : D.copy_3d_peer[variant](&box);
}

static cudaError_t to_array(cudaArray_t array, size_t x, size_t y, const void *from,
                            size_t pitch, size_t width, size_t height, enum cudaMemcpyKind kind,
                            int variant, const cudaStream_t *stream) {
  CUDA_MEMCPY3D box = {.WidthInBytes = width, .Height = height, .Depth = 1};
  box_from(&box, from_type(kind), from, pitch, height);
  box_to_array(&box, array, x, y, 0);
  return run_box(&box, variant, stream);
}

static cudaError_t from_array(void *to, size_t pitch, cudaArray_t array, size_t x, size_t y,
                              size_t width, size_t height, enum cudaMemcpyKind kind, int variant,
                              const cudaStream_t *stream) {
  CUDA_MEMCPY3D box = {.WidthInBytes = width, .Height = height, .Depth = 1};
  box_from_array(&box, array, x, y, 0);
  box_to(&box, to_type(kind), to, pitch, height);
  return run_box(&box, variant, stream);
}

static cudaError_t array_to_array(cudaArray_t to, size_t to_x, size_t to_y, cudaArray_t from,
                                  size_t from_x, size_t from_y, size_t width, size_t height,
                                  int variant) {
  CUDA_MEMCPY3D box = {.WidthInBytes = width, .Height = height, .Depth = 1};
  box_from_array(&box, from, from_x, from_y, 0);
  box_to_array(&box, to, to_x, to_y, 0);
  return run_box(&box, variant, NULL);
}

#define KIND enum cudaMemcpyKind kind
#define BOXES_NOW(suffix, variant)                                                             \
  cudaError_t cudaMemcpy2D##suffix(void *to, size_t to_pitch, const void *from,                \
                                   size_t from_pitch, size_t width, size_t height, KIND) {     \
    RUN(copy_2d(to, to_pitch, from, from_pitch, width, height, kind, variant, NULL));          \
  }                                                                                            \
  cudaError_t cudaMemcpy3D##suffix(const struct cudaMemcpy3DParms *params) {                   \
    RUN(copy_3d(params, variant, NULL));                                                       \
  }                                                                                            \
  cudaError_t cudaMemcpy3DPeer##suffix(const struct cudaMemcpy3DPeerParms *params) {           \
    RUN(copy_3d_peer(params, variant, NULL));                                                  \
  }                                                                                            \
  cudaError_t cudaMemcpyToArray##suffix(cudaArray_t to, size_t x, size_t y, const void *from,  \
                                        size_t bytes, KIND) {                                  \
    RUN(to_array(to, x, y, from, bytes, bytes, 1, kind, variant, NULL));                       \
  }                                                                                            \
  cudaError_t cudaMemcpyFromArray##suffix(void *to, cudaArray_t from, size_t x, size_t y,      \
                                          size_t bytes, KIND) {                                \
    RUN(from_array(to, bytes, from, x, y, bytes, 1, kind, variant, NULL));                     \
  }                                                                                            \
  cudaError_t cudaMemcpy2DToArray##suffix(cudaArray_t to, size_t x, size_t y, const void *from, \
                                          size_t pitch, size_t width, size_t height, KIND) {   \
    RUN(to_array(to, x, y, from, pitch, width, height, kind, variant, NULL));                  \
  }                                                                                            \
  cudaError_t cudaMemcpy2DFromArray##suffix(void *to, size_t pitch, cudaArray_t from, size_t x, \
                                            size_t y, size_t width, size_t height, KIND) {     \
    RUN(from_array(to, pitch, from, x, y, width, height, kind, variant, NULL));                \
  }                                                                                            \
  cudaError_t cudaMemcpyArrayToArray##suffix(cudaArray_t to, size_t to_x, size_t to_y,         \
                                             cudaArray_t from, size_t from_x, size_t from_y,   \
                                             size_t bytes, KIND) {                             \
    (void)kind;                                                                                \
    RUN(array_to_array(to, to_x, to_y, from, from_x, from_y, bytes, 1, variant));              \
  }                                                                                            \
  cudaError_t cudaMemcpy2DArrayToArray##suffix(cudaArray_t to, size_t to_x, size_t to_y,       \
                                               cudaArray_t from, size_t from_x, size_t from_y, \
                                               size_t width, size_t height, KIND) {            \
    (void)kind;                                                                                \
    RUN(array_to_array(to, to_x, to_y, from, from_x, from_y, width, height, variant));         \
  }
BOXES_NOW(, LEGACY)
BOXES_NOW(_ptds, PER_THREAD)

#define BOXES_LATER(suffix, variant)                                                           \
  cudaError_t cudaMemcpy2DAsync##suffix(void *to, size_t to_pitch, const void *from,           \
                                        size_t from_pitch, size_t width, size_t height, KIND,  \
                                        cudaStream_t stream) {                                 \
    RUN(copy_2d(to, to_pitch, from, from_pitch, width, height, kind, variant, &stream));       \
  }                                                                                            \
  cudaError_t cudaMemcpy3DAsync##suffix(const struct cudaMemcpy3DParms *params,                \
                                        cudaStream_t stream) {                                 \
    RUN(copy_3d(params, variant, &stream));                                                    \
  }                                                                                            \
  cudaError_t cudaMemcpy3DPeerAsync##suffix(const struct cudaMemcpy3DPeerParms *params,        \
                                            cudaStream_t stream) {                             \
    RUN(copy_3d_peer(params, variant, &stream));                                               \
  }                                                                                            \
  cudaError_t cudaMemcpyToArrayAsync##suffix(cudaArray_t to, size_t x, size_t y,               \
                                             const void *from, size_t bytes, KIND,             \
                                             cudaStream_t stream) {                            \
    RUN(to_array(to, x, y, from, bytes, bytes, 1, kind, variant, &stream));                    \
  }                                                                                            \
  cudaError_t cudaMemcpyFromArrayAsync##suffix(void *to, cudaArray_t from, size_t x, size_t y, \
                                               size_t bytes, KIND, cudaStream_t stream) {      \
    RUN(from_array(to, bytes, from, x, y, bytes, 1, kind, variant, &stream));                  \
  }                                                                                            \
  cudaError_t cudaMemcpy2DToArrayAsync##suffix(cudaArray_t to, size_t x, size_t y,             \
                                               const void *from, size_t pitch, size_t width,   \
                                               size_t height, KIND, cudaStream_t stream) {     \
    RUN(to_array(to, x, y, from, pitch, width, height, kind, variant, &stream));               \
  }                                                                                            \
  cudaError_t cudaMemcpy2DFromArrayAsync##suffix(void *to, size_t pitch, cudaArray_t from,     \
                                                 size_t x, size_t y, size_t width,             \
                                                 size_t height, KIND, cudaStream_t stream) {   \
    RUN(from_array(to, pitch, from, x, y, width, height, kind, variant, &stream));             \
  }
BOXES_LATER(, LEGACY)
BOXES_LATER(_ptsz, PER_THREAD)

/* ---- batches ---------------------------------------------------------------------------- */

#define BATCH_PARAMS                                                               \
  void **to, void **from, size_t *sizes, size_t number, CUmemcpyAttributes *attributes, \
      size_t *indices, size_t attribute_count
#define BATCH_ARGUMENTS \
  (CUdeviceptr *)to, (CUdeviceptr *)from, sizes, number, attributes, indices, attribute_count
#if CUDART_MAJOR >= 13
#define BATCH(suffix, variant)                                                      \
  cudaError_t cudaMemcpyBatchAsync##suffix(BATCH_PARAMS, cudaStream_t stream) {     \
    RUN(D.copy_batch[variant](BATCH_ARGUMENTS, stream));                            \
  }
#else
#define BATCH(suffix, variant)                                                      \
  cudaError_t cudaMemcpyBatchAsync##suffix(BATCH_PARAMS, size_t *failed,            \
                                           cudaStream_t stream) {                   \
    RUN(D.copy_batch[variant](BATCH_ARGUMENTS, failed, stream));                    \
  }
#endif
BATCH(, LEGACY)
BATCH(_ptsz, PER_THREAD)

/* ---- sets ------------------------------------------------------------------------------- */

#define SETS(sync, async, variant)                                                             \
  cudaError_t cudaMemset##sync(void *to, int value, size_t bytes) {                            \
    RUN(D.set_8[variant](address(to), (unsigned char)value, bytes));                           \
  }                                                                                            \
  cudaError_t cudaMemsetAsync##async(void *to, int value, size_t bytes, cudaStream_t stream) { \
    RUN(D.set_8_async[variant](address(to), (unsigned char)value, bytes, stream));             \
  }                                                                                            \
  cudaError_t cudaMemset2D##sync(void *to, size_t pitch, int value, size_t width,              \
                                 size_t height) {                                              \
    RUN(D.set_2d_8[variant](address(to), pitch, (unsigned char)value, width, height));         \
  }                                                                                            \
  cudaError_t cudaMemset2DAsync##async(void *to, size_t pitch, int value, size_t width,        \
                                       size_t height, cudaStream_t stream) {                   \
    RUN(D.set_2d_8_async[variant](address(to), pitch, (unsigned char)value, width, height,     \
                                  stream));                                                    \
  }                                                                                            \
  cudaError_t cudaMemset3D##sync(struct cudaPitchedPtr to, int value,                          \
                                 struct cudaExtent extent) {                                   \
    RUN(D.set_2d_8[variant](address(to.ptr), to.pitch, (unsigned char)value, extent.width,     \
                            extent.height *extent.depth));                                     \
  }                                                                                            \
  cudaError_t cudaMemset3DAsync##async(struct cudaPitchedPtr to, int value,                    \
                                       struct cudaExtent extent, cudaStream_t stream) {        \
    RUN(D.set_2d_8_async[variant](address(to.ptr), to.pitch, (unsigned char)value,             \
                                  extent.width, extent.height *extent.depth, stream));         \
  }
SETS(, , LEGACY)
SETS(_ptds, _ptsz, PER_THREAD)

/* ---- where managed memory should be ----------------------------------------------------- */

#if CUDART_MAJOR >= 13
#define PREFETCH(suffix, variant)                                                           \
  cudaError_t cudaMemPrefetchAsync##suffix(const void *pointer, size_t bytes,               \
                                           cudaMemLocation location, unsigned int flags,    \
                                           cudaStream_t stream) {                           \
    RUN(D.prefetch[variant](address(pointer), bytes, location, flags, stream));             \
  }
cudaError_t cudaMemAdvise(const void *pointer, size_t bytes, int advice,
                          cudaMemLocation location) {
  RUN(D.advise(address(pointer), bytes, advice, location));
}
#else
#define PREFETCH(suffix, variant)                                                          \
  cudaError_t cudaMemPrefetchAsync##suffix(const void *pointer, size_t bytes, int device,  \
                                           cudaStream_t stream) {                          \
    RUN(D.prefetch[variant](address(pointer), bytes, device, stream));                     \
  }
cudaError_t cudaMemAdvise(const void *pointer, size_t bytes, int advice, int device) {
  RUN(D.advise(address(pointer), bytes, advice, device));
}
#endif
PREFETCH(, LEGACY)
PREFETCH(_ptsz, PER_THREAD)
