/*
 * Arrays, memory made elsewhere, batches and residency by the runtime, built for CUDA 13 and, as
 * `runtime_arrays_12`, for CUDA 12, where batches, prefetch and advice have other arguments.
 *
 * Expected: as printed; each driver event is under the runtime call that made it.
 */
#include "tally.h"

static void arrays(void) {
  struct cudaChannelFormatDesc wide = {32, 32, 0, 0, 2}, byte = {8, 0, 0, 0, 1};
  struct cudaExtent box = {16, 8, 4};
  cudaArray_t flat, deep;
  CUmipmappedArray mips;
  MUST(cudaMallocArray(&flat, &wide, 64, 32, 0));
  did_alloc(ARRAY, 64 * 32 * 8);
  MUST(cudaMalloc3DArray(&deep, &byte, box, 0));
  did_alloc(ARRAY, 16 * 8 * 4);
  MUST(cudaMallocMipmappedArray(&mips, &byte, box, 2, 0));
  did_alloc(ARRAY, 16 * 8 * 4 + 8 * 4 * 2);
  MUST(cudaFreeArray(flat));
  did_free(ARRAY, 64 * 32 * 8);
  MUST(cudaFreeMipmappedArray(mips));
  did_free(ARRAY, 16 * 8 * 4 + 8 * 4 * 2);
  FAILED_ALLOC(ARRAY, cudaMallocArray(&flat, &wide, 0, 0, 0));
}

static void external(void) {
  CUexternalMemory memory;
  void *buffer;
  CUDA_EXTERNAL_MEMORY_HANDLE_DESC description = {.type = 1, .size = 1 << 20};
  CUDA_EXTERNAL_MEMORY_BUFFER_DESC part = {.size = 5000};
  MUST(cudaImportExternalMemory(&memory, &description));
  MUST(cudaExternalMemoryGetMappedBuffer(&buffer, memory, &part));
  did_alloc(IMPORTED, 5000);
  MUST(cudaDestroyExternalMemory(memory));
  MUST(cudaFree(buffer));
  did_free(IMPORTED, 5000);
}

static void shared(void) {
  CUipcMemHandle handle;
  void *own, *opened;
  MUST(cudaMalloc(&own, 4000));
  did_alloc(DEVICE, 4000);
  MUST(cudaIpcGetMemHandle(&handle, own));
  ((int32_t *)&handle)[4] ^= 1; /* as if another process had made it */
  MUST(cudaIpcOpenMemHandle(&opened, handle, 1));
  did_alloc(IMPORTED, 4000);
  MUST(cudaIpcCloseMemHandle(opened));
  did_free(IMPORTED, 4000);
  FAILED_ALLOC(IMPORTED, cudaIpcOpenMemHandle(&opened, handle, 99));
}

/* Not in the header, because its arguments differ: the ninth is the stream in CUDA 12 only. */
#if CUDART_MAJOR >= 13
cudaError_t cudaMemcpyBatchAsync(void **, const void **, size_t *, size_t, CUmemcpyAttributes *,
                                 size_t *, size_t, cudaStream_t);
#else
cudaError_t cudaMemcpyBatchAsync(void **, const void **, size_t *, size_t, CUmemcpyAttributes *,
                                 size_t *, size_t, size_t *, cudaStream_t);
#endif

static void batch(void) {
  void *device, *other;
  static char host[1000];
  MUST(cudaMalloc(&device, 1000));
  did_alloc(DEVICE, 1000);
  MUST(cudaMalloc(&other, 1000));
  did_alloc(DEVICE, 1000);
  void *to[] = {device, other, host};
  const void *from[] = {host, device, other};
  size_t sizes[] = {100, 200, 300}, first = 0;
  CUmemcpyAttributes attributes = {.srcAccessOrder = 1};
#if CUDART_MAJOR >= 13
  MUST(cudaMemcpyBatchAsync(to, from, sizes, 3, &attributes, &first, 1, NULL));
  failed(cudaMemcpyBatchAsync(to, from, NULL, 3, &attributes, &first, 1, NULL), "no sizes");
#else
  size_t index = 77;
  MUST(cudaMemcpyBatchAsync(to, from, sizes, 3, &attributes, &first, 1, &index, NULL));
  failed(cudaMemcpyBatchAsync(to, from, NULL, 3, &attributes, &first, 1, &index, NULL), "none");
  if (index != 77) exit(8);
#endif
  did_copy(HOST_TO_DEVICE, ASYNC, 100);
  did_copy(DEVICE_TO_DEVICE, ASYNC, 200);
  did_copy(DEVICE_TO_HOST, ASYNC, 300);
}

static void residency(void) {
  void *managed;
  MUST(cudaMallocManaged(&managed, 10000, 1));
  did_alloc(MANAGED, 10000);
#if CUDART_MAJOR >= 13
  cudaMemLocation gpu = {1, 0};
  MUST(cudaMemPrefetchAsync(managed, 700, gpu, 0, NULL));
  MUST(cudaMemAdvise(managed, 800, 5, gpu));
#else
  MUST(cudaMemPrefetchAsync(managed, 700, 0, NULL));
  MUST(cudaMemAdvise(managed, 800, 5, 0));
#endif
}

int main(void) {
  arrays();
  external();
  shared();
  batch();
  residency();
  print_tally("", true);
  return 0;
}
