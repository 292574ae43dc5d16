/* The runtime, by linking: lazy start, its own answers, per-thread variants, errors. */
#include "check.h"

int main(void) {
  void *pointer = (void *)1, *other;
  char text[8] = "copied", back[8] = "";
  size_t available, total, pitch;
  int version = 0;
  cudaStream_t stream;
  EQUAL(cudaFree(NULL), 0); /* starts the context */
  EQUAL(cudaMemGetInfo(&available, &total), 0);
  EQUAL(total - available, 263 * 2 * MIB);
  EQUAL(cudaMalloc(&pointer, 0), 0);
  CHECK(pointer == NULL);
  EQUAL(cudaMalloc(&pointer, 1000), 0);
  EQUAL(cudaMalloc(&other, (size_t)1 << 50), cudaErrorMemoryAllocation);
  EQUAL(cudaPeekAtLastError(), cudaErrorMemoryAllocation);
  EQUAL(cudaGetLastError(), cudaErrorMemoryAllocation);
  EQUAL(cudaGetLastError(), 0);
  CHECK(strcmp(cudaGetErrorString(cudaErrorMemoryAllocation), "out of memory") == 0);
  EQUAL(cudaMallocManaged(&other, 1000, cudaMemAttachGlobal), 0);
  EQUAL(cudaMemcpy(other, text, 7, cudaMemcpyHostToDevice), 0);
  EQUAL(cudaMemcpy2D(back, 4, other, 4, 4, 2, cudaMemcpyDeviceToHost), 0);
  CHECK(strcmp(back, "copied") == 0);
  EQUAL(cudaMemcpy(pointer, other, 7, cudaMemcpyDefault), 0);
  EQUAL(cudaMemcpy(pointer, other, 7, (enum cudaMemcpyKind)9), cudaErrorInvalidValue);
  EQUAL(cudaMemset(pointer, 1, 1000), 0);
  EQUAL(cudaFree(other), 0);
  EQUAL(cudaFree(other), cudaErrorInvalidValue);
  EQUAL(cudaMallocPitch(&other, &pitch, 100, 3), 0);
  EQUAL(pitch, 512);
  EQUAL(cudaStreamCreate(&stream), 0);
  EQUAL(cudaMallocAsync_ptsz(&other, 100, stream), 0);
  EQUAL(cudaMemcpyAsync_ptsz(other, text, 7, cudaMemcpyHostToDevice, stream), 0);
  EQUAL(cudaFreeAsync_ptsz(other, stream), 0);
  EQUAL(cudaGetDriverEntryPoint("cuMemAlloc", &other, cudaEnableDefault, NULL), 0);
#ifdef LINKED_DRIVER
  CHECK(other == (void *)cuMemAlloc_v2);
#endif
  EQUAL(cudaRuntimeGetVersion(&version), 0);
  EQUAL(version / 1000, CUDART_MAJOR);
  EQUAL(cudaDeviceReset(), 0);
  EQUAL(cudaFree(pointer), cudaErrorInvalidValue);
  EQUAL(cudaMalloc(&pointer, 1000), 0);
#ifndef STATIC_RUNTIME
  CHECK(fakeCudartServed() >= 10);
#endif
  return failures != 0;
}
