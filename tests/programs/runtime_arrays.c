/*
 * Arrays, external memory and residency by the runtime, built for CUDA 13 and, as
 * `runtime_arrays_12`, for CUDA 12, whose prefetch and advice have other arguments.
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
  residency();
  print_tally("", true);
  return 0;
}
