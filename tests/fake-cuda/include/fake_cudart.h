/*
 * The part of the CUDA runtime API that the simulated runtimes offer, with CUDA's ABI.
 *
 * CUDART_MAJOR (12 or 13, default 13) chooses between the two signatures of the functions that
 * changed: cudaMemPrefetchAsync, cudaMemAdvise and the batch copies. Functions that take a
 * stream exist a second time with the suffix _ptsz or _ptds (per-thread default stream); only
 * those that programs here use are declared.
 */
#ifndef FAKE_CUDART_H
#define FAKE_CUDART_H

#include "fake_cuda.h"

#ifndef CUDART_MAJOR
#define CUDART_MAJOR 13
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef int cudaError_t;
typedef CUstream cudaStream_t;
typedef CUevent cudaEvent_t;
typedef CUarray cudaArray_t;
typedef CUmemoryPool cudaMemPool_t;
typedef CUmemLocation cudaMemLocation;

enum {
  cudaSuccess = 0,
  cudaErrorInvalidValue = 1,
  cudaErrorMemoryAllocation = 2,
  cudaErrorInitializationError = 3,
  cudaErrorInsufficientDriver = 35,
  cudaErrorNoDevice = 100,
  cudaErrorInvalidDevice = 101,
  cudaErrorSymbolNotFound = 500
};

enum cudaMemcpyKind {
  cudaMemcpyHostToHost,
  cudaMemcpyHostToDevice,
  cudaMemcpyDeviceToHost,
  cudaMemcpyDeviceToDevice,
  cudaMemcpyDefault
};

enum { cudaMemAttachGlobal = 1 };
enum { cudaEnableDefault, cudaEnableLegacyStream, cudaEnablePerThreadDefaultStream };

struct cudaPos { size_t x, y, z; };
struct cudaExtent { size_t width, height, depth; };
struct cudaPitchedPtr { void *ptr; size_t pitch, xsize, ysize; };
struct cudaChannelFormatDesc { int x, y, z, w, f; };

struct cudaMemcpy3DParms {
  cudaArray_t srcArray;
  struct cudaPos srcPos;
  struct cudaPitchedPtr srcPtr;
  cudaArray_t dstArray;
  struct cudaPos dstPos;
  struct cudaPitchedPtr dstPtr;
  struct cudaExtent extent;
  enum cudaMemcpyKind kind;
};

struct cudaMemcpy3DPeerParms {
  cudaArray_t srcArray;
  struct cudaPos srcPos;
  struct cudaPitchedPtr srcPtr;
  int srcDevice;
  cudaArray_t dstArray;
  struct cudaPos dstPos;
  struct cudaPitchedPtr dstPtr;
  int dstDevice;
  struct cudaExtent extent;
};

cudaError_t cudaRuntimeGetVersion(int *version);
cudaError_t cudaDriverGetVersion(int *version);
cudaError_t cudaGetLastError(void);
cudaError_t cudaPeekAtLastError(void);
const char *cudaGetErrorString(cudaError_t error);
const char *cudaGetErrorName(cudaError_t error);
cudaError_t cudaGetDeviceCount(int *count);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaGetDevice(int *device);
cudaError_t cudaDeviceSynchronize(void);
cudaError_t cudaDeviceReset(void);
cudaError_t cudaMemGetInfo(size_t *available, size_t *total);
cudaError_t cudaGetDriverEntryPoint(const char *name, void **pointer, unsigned long long flags,
                                    int *status);
cudaError_t cudaGetDriverEntryPointByVersion(const char *name, void **pointer,
                                             unsigned int version, unsigned long long flags,
                                             int *status);

cudaError_t cudaMalloc(void **pointer, size_t bytes);
cudaError_t cudaMallocManaged(void **pointer, size_t bytes, unsigned int flags);
cudaError_t cudaMallocPitch(void **pointer, size_t *pitch, size_t width, size_t height);
cudaError_t cudaMalloc3D(struct cudaPitchedPtr *pitched, struct cudaExtent extent);
cudaError_t cudaFree(void *pointer);
cudaError_t cudaMallocHost(void **pointer, size_t bytes);
cudaError_t cudaHostAlloc(void **pointer, size_t bytes, unsigned int flags);
cudaError_t cudaFreeHost(void *pointer);
cudaError_t cudaHostRegister(void *pointer, size_t bytes, unsigned int flags);
cudaError_t cudaHostUnregister(void *pointer);
cudaError_t cudaMallocArray(cudaArray_t *array, const struct cudaChannelFormatDesc *channels,
                            size_t width, size_t height, unsigned int flags);
cudaError_t cudaMalloc3DArray(cudaArray_t *array, const struct cudaChannelFormatDesc *channels,
                              struct cudaExtent extent, unsigned int flags);
cudaError_t cudaMallocMipmappedArray(CUmipmappedArray *array,
                                     const struct cudaChannelFormatDesc *channels,
                                     struct cudaExtent extent, unsigned int levels,
                                     unsigned int flags);
cudaError_t cudaFreeArray(cudaArray_t array);
cudaError_t cudaFreeMipmappedArray(CUmipmappedArray array);
cudaError_t cudaIpcGetMemHandle(CUipcMemHandle *handle, void *pointer);
cudaError_t cudaIpcOpenMemHandle(void **pointer, CUipcMemHandle handle, unsigned int flags);
cudaError_t cudaIpcCloseMemHandle(void *pointer);
cudaError_t cudaImportExternalMemory(CUexternalMemory *memory,
                                     const CUDA_EXTERNAL_MEMORY_HANDLE_DESC *description);
cudaError_t cudaExternalMemoryGetMappedBuffer(void **pointer, CUexternalMemory memory,
                                              const CUDA_EXTERNAL_MEMORY_BUFFER_DESC *description);
cudaError_t cudaDestroyExternalMemory(CUexternalMemory memory);
cudaError_t cudaMallocAsync(void **pointer, size_t bytes, cudaStream_t stream);
cudaError_t cudaMallocAsync_ptsz(void **pointer, size_t bytes, cudaStream_t stream);
cudaError_t cudaMallocFromPoolAsync(void **pointer, size_t bytes, cudaMemPool_t pool,
                                    cudaStream_t stream);
cudaError_t cudaFreeAsync(void *pointer, cudaStream_t stream);
cudaError_t cudaFreeAsync_ptsz(void *pointer, cudaStream_t stream);

cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind);
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
                            cudaStream_t stream);
cudaError_t cudaMemcpyAsync_ptsz(void *to, const void *from, size_t bytes,
                                 enum cudaMemcpyKind kind, cudaStream_t stream);
cudaError_t cudaMemcpy2D(void *to, size_t to_pitch, const void *from, size_t from_pitch,
                         size_t width, size_t height, enum cudaMemcpyKind kind);
cudaError_t cudaMemcpy3D(const struct cudaMemcpy3DParms *params);
cudaError_t cudaMemset(void *to, int value, size_t bytes);
cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t stream);
cudaError_t cudaMemset2D(void *to, size_t pitch, int value, size_t width, size_t height);

#if CUDART_MAJOR >= 13
cudaError_t cudaMemPrefetchAsync(const void *pointer, size_t bytes, cudaMemLocation location,
                                 unsigned int flags, cudaStream_t stream);
cudaError_t cudaMemAdvise(const void *pointer, size_t bytes, int advice,
                          cudaMemLocation location);
#else
cudaError_t cudaMemPrefetchAsync(const void *pointer, size_t bytes, int device,
                                 cudaStream_t stream);
cudaError_t cudaMemAdvise(const void *pointer, size_t bytes, int advice, int device);
#endif

cudaError_t cudaStreamCreate(cudaStream_t *stream);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);

/* How many runtime calls this copy of the runtime has served. Only the simulation has it. */
unsigned long fakeCudartServed(void);

#ifdef __cplusplus
}
#endif
#endif
