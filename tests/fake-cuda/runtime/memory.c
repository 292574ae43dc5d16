/* Allocation, free, pools, arrays, streams, events and graphs of the runtime. */
#include "internal.h"

#define D cudart_driver

static CUdeviceptr address(const void *pointer) { return (CUdeviceptr)(uintptr_t)pointer; }

/* The runtime answers a request for nothing itself: null, success, no driver call. */
static cudaError_t nothing(void **pointer) {
  *pointer = NULL;
  return cudaSuccess;
}

cudaError_t cudaMalloc(void **pointer, size_t bytes) {
  RUN(!pointer ? cudaErrorInvalidValue
               : bytes ? D.alloc((CUdeviceptr *)pointer, bytes) : nothing(pointer));
}

cudaError_t cudaMallocManaged(void **pointer, size_t bytes, unsigned int flags) {
  RUN(D.alloc_managed((CUdeviceptr *)pointer, bytes, flags));
}

cudaError_t cudaMallocPitch(void **pointer, size_t *pitch, size_t width, size_t height) {
  RUN(D.alloc_pitch((CUdeviceptr *)pointer, pitch, width, height, 4));
}

cudaError_t cudaMalloc3D(struct cudaPitchedPtr *pitched, struct cudaExtent extent) {
  pitched->xsize = extent.width;
  pitched->ysize = extent.height;
  RUN(D.alloc_pitch((CUdeviceptr *)&pitched->ptr, &pitched->pitch, extent.width,
                    extent.height * extent.depth, 4));
}

/* No test for null: the driver is asked to free 0, which also starts the context. */
cudaError_t cudaFree(void *pointer) { RUN(D.release(address(pointer))); }

cudaError_t cudaMallocHost(void **pointer, size_t bytes) { RUN(D.host_alloc(pointer, bytes, 0)); }

cudaError_t cudaHostAlloc(void **pointer, size_t bytes, unsigned int flags) {
  RUN(D.host_alloc(pointer, bytes, flags));
}

cudaError_t cudaFreeHost(void *pointer) { RUN(pointer ? D.host_free(pointer) : cudaSuccess); }

cudaError_t cudaHostRegister(void *pointer, size_t bytes, unsigned int flags) {
  RUN(D.host_register(pointer, bytes, flags));
}

cudaError_t cudaHostUnregister(void *pointer) { RUN(D.host_unregister(pointer)); }

cudaError_t cudaHostGetDevicePointer(void **device, void *host, unsigned int flags) {
  RUN(D.host_pointer((CUdeviceptr *)device, host, flags));
}

cudaError_t cudaHostGetFlags(unsigned int *flags, void *host) { RUN(D.host_flags(flags, host)); }

struct cudaPointerAttributes {
  int type, device; /* 0 unregistered, 1 host, 2 device, 3 managed */
  void *devicePointer, *hostPointer;
  long reserved[8];
};

static cudaError_t attributes(struct cudaPointerAttributes *out, CUdeviceptr pointer) {
  unsigned type = 0, managed = 0;
  int device = 0;
  int which[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED,
                 CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL};
  void *values[] = {&type, &managed, &device};
  cudaError_t error = D.attribute(3, which, values, pointer);
  if (error) return error;
  *out = (struct cudaPointerAttributes){.type = managed ? 3 : (int)type, .device = device};
  if (type != CU_MEMORYTYPE_HOST) out->devicePointer = (void *)(uintptr_t)pointer;
  if (type != CU_MEMORYTYPE_DEVICE || managed) out->hostPointer = (void *)(uintptr_t)pointer;
  return cudaSuccess;
}

cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *out, const void *pointer) {
  RUN(attributes(out, address(pointer)));
}

/* ---- stream-ordered --------------------------------------------------------------------- */

#define STREAM_ORDERED(suffix, variant)                                                       \
  cudaError_t cudaMallocAsync##suffix(void **pointer, size_t bytes, cudaStream_t stream) {    \
    RUN(D.alloc_async[variant]((CUdeviceptr *)pointer, bytes, stream));                       \
  }                                                                                           \
  cudaError_t cudaMallocFromPoolAsync##suffix(void **pointer, size_t bytes, cudaMemPool_t pool, \
                                              cudaStream_t stream) {                          \
    RUN(D.alloc_from_pool[variant]((CUdeviceptr *)pointer, bytes, pool, stream));             \
  }                                                                                           \
  cudaError_t cudaFreeAsync##suffix(void *pointer, cudaStream_t stream) {                     \
    RUN(D.free_async[variant](address(pointer), stream));                                     \
  }                                                                                           \
  cudaError_t cudaStreamSynchronize##suffix(cudaStream_t stream) {                            \
    RUN(D.stream_synchronize[variant](stream));                                               \
  }                                                                                           \
  cudaError_t cudaStreamBeginCapture##suffix(cudaStream_t stream, int mode) {                 \
    RUN(D.begin_capture[variant](stream, mode));                                              \
  }                                                                                           \
  cudaError_t cudaStreamEndCapture##suffix(cudaStream_t stream, CUgraph *graph) {             \
    RUN(D.end_capture[variant](stream, graph));                                               \
  }                                                                                           \
  cudaError_t cudaGraphLaunch##suffix(CUgraphExec exec, cudaStream_t stream) {                \
    RUN(D.graph_launch[variant](exec, stream));                                               \
  }                                                                                           \
  cudaError_t cudaEventRecord##suffix(cudaEvent_t event, cudaStream_t stream) {               \
    RUN(D.event_record[variant](event, stream));                                              \
  }
STREAM_ORDERED(, LEGACY)
STREAM_ORDERED(_ptsz, PER_THREAD)

cudaError_t cudaMemPoolCreate(cudaMemPool_t *pool, const CUmemPoolProps *props) {
  RUN(D.pool_create(pool, props));
}

cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool) { RUN(D.pool_destroy(pool)); }

cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t keep) { RUN(D.pool_trim(pool, keep)); }

cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, int attribute, void *value) {
  RUN(D.pool_set(pool, attribute, value));
}

cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, int attribute, void *value) {
  RUN(D.pool_get(pool, attribute, value));
}

cudaError_t cudaMemPoolSetAccess(cudaMemPool_t pool, const CUmemAccessDesc *map, size_t count) {
  RUN(D.pool_access(pool, map, count));
}

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *pool, int device) {
  RUN(D.default_pool(pool, device));
}

cudaError_t cudaDeviceGetMemPool(cudaMemPool_t *pool, int device) {
  RUN(D.get_pool(pool, device));
}

cudaError_t cudaDeviceSetMemPool(int device, cudaMemPool_t pool) {
  RUN(D.set_pool(device, pool));
}

/* ---- arrays ----------------------------------------------------------------------------- */

static CUDA_ARRAY3D_DESCRIPTOR described(const struct cudaChannelFormatDesc *channels,
                                         struct cudaExtent extent, unsigned flags) {
  enum { UINT8 = 1, UINT16, UINT32 };
  int format = channels->x == 8 ? UINT8 : channels->x == 16 ? UINT16 : UINT32;
  unsigned count = 1u + (channels->y > 0) + (channels->z > 0) + (channels->w > 0);
  return (CUDA_ARRAY3D_DESCRIPTOR){extent.width, extent.height, extent.depth,
                                   format,       count,         flags};
}

static cudaError_t new_array(cudaArray_t *array, const struct cudaChannelFormatDesc *channels,
                             struct cudaExtent extent, unsigned flags) {
  if (!array || !channels) return cudaErrorInvalidValue;
  CUDA_ARRAY3D_DESCRIPTOR descriptor = described(channels, extent, flags);
  return D.array_create(array, &descriptor);
}

static cudaError_t new_mipmap(CUmipmappedArray *array,
                              const struct cudaChannelFormatDesc *channels,
                              struct cudaExtent extent, unsigned levels, unsigned flags) {
  if (!array || !channels) return cudaErrorInvalidValue;
  CUDA_ARRAY3D_DESCRIPTOR descriptor = described(channels, extent, flags);
  return D.mipmap_create(array, &descriptor, levels);
}

cudaError_t cudaMallocArray(cudaArray_t *array, const struct cudaChannelFormatDesc *channels,
                            size_t width, size_t height, unsigned int flags) {
  struct cudaExtent extent = {width, height, 0};
  RUN(new_array(array, channels, extent, flags));
}

cudaError_t cudaMalloc3DArray(cudaArray_t *array, const struct cudaChannelFormatDesc *channels,
                              struct cudaExtent extent, unsigned int flags) {
  RUN(new_array(array, channels, extent, flags));
}

cudaError_t cudaFreeArray(cudaArray_t array) { RUN(array ? D.array_destroy(array) : cudaSuccess); }

cudaError_t cudaMallocMipmappedArray(CUmipmappedArray *array,
                                     const struct cudaChannelFormatDesc *channels,
                                     struct cudaExtent extent, unsigned int levels,
                                     unsigned int flags) {
  RUN(new_mipmap(array, channels, extent, levels, flags));
}

cudaError_t cudaFreeMipmappedArray(CUmipmappedArray array) {
  RUN(array ? D.mipmap_destroy(array) : cudaSuccess);
}

/* ---- memory made elsewhere -------------------------------------------------------------- */

cudaError_t cudaIpcGetMemHandle(CUipcMemHandle *handle, void *pointer) {
  RUN(D.ipc_get(handle, address(pointer)));
}

cudaError_t cudaIpcOpenMemHandle(void **pointer, CUipcMemHandle handle, unsigned int flags) {
  RUN(D.ipc_open((CUdeviceptr *)pointer, handle, flags));
}

cudaError_t cudaIpcCloseMemHandle(void *pointer) { RUN(D.ipc_close(address(pointer))); }

cudaError_t cudaImportExternalMemory(CUexternalMemory *memory,
                                     const CUDA_EXTERNAL_MEMORY_HANDLE_DESC *description) {
  RUN(D.external_import(memory, description));
}

cudaError_t cudaExternalMemoryGetMappedBuffer(void **pointer, CUexternalMemory memory,
                                              const CUDA_EXTERNAL_MEMORY_BUFFER_DESC *description) {
  RUN(D.external_buffer((CUdeviceptr *)pointer, memory, description));
}

cudaError_t cudaDestroyExternalMemory(CUexternalMemory memory) { RUN(D.external_destroy(memory)); }

/* ---- streams, events, graphs, launches -------------------------------------------------- */

cudaError_t cudaStreamCreate(cudaStream_t *stream) { RUN(D.stream_create(stream, 0)); }

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned int flags) {
  RUN(D.stream_create(stream, flags));
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) { RUN(D.stream_destroy(stream)); }
cudaError_t cudaEventCreate(cudaEvent_t *event) { RUN(D.event_create(event, 0)); }
cudaError_t cudaEventDestroy(cudaEvent_t event) { RUN(D.event_destroy(event)); }
cudaError_t cudaEventSynchronize(cudaEvent_t event) { RUN(D.event_synchronize(event)); }

cudaError_t cudaGraphInstantiate(CUgraphExec *exec, CUgraph graph, unsigned long long flags) {
  RUN(D.graph_instantiate(exec, graph, flags));
}

cudaError_t cudaGraphExecDestroy(CUgraphExec exec) { RUN(D.graph_exec_destroy(exec)); }
cudaError_t cudaGraphDestroy(CUgraph graph) { RUN(D.graph_destroy(graph)); }

struct dim3 { unsigned x, y, z; };

#define LAUNCH(suffix, variant)                                                             \
  cudaError_t cudaLaunchKernel##suffix(const void *function, struct dim3 grid,              \
                                       struct dim3 block, void **arguments, size_t shared,  \
                                       cudaStream_t stream) {                               \
    RUN(D.launch[variant]((CUfunction)function, grid.x, grid.y, grid.z, block.x, block.y,   \
                          block.z, (unsigned)shared, stream, arguments, NULL));             \
  }
LAUNCH(, LEGACY)
LAUNCH(_ptsz, PER_THREAD)
