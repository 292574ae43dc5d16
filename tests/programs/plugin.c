/* The library of two_runtimes: the same source, linked with the runtime of 12 and of 13. */
#include "tally.h"

#define FAIL(call) if (call) return 0

/* Ten runtime calls, one of them with the signature that changed; how many were served. */
unsigned long plugin_run(size_t bytes) {
  char host[64] = "";
  void *device, *managed;
  unsigned long before = fakeCudartServed();
  FAIL(cudaMalloc(&device, bytes));
  FAIL(cudaMallocManaged(&managed, bytes * 2, cudaMemAttachGlobal));
  FAIL(cudaMemcpy(device, host, sizeof host, cudaMemcpyHostToDevice));
  FAIL(cudaMemcpyAsync(device, host, sizeof host, cudaMemcpyHostToDevice, NULL));
  FAIL(cudaMemset(device, 0, bytes));
#if CUDART_MAJOR >= 13
  FAIL(cudaMemPrefetchAsync(managed, bytes, (cudaMemLocation){1, 0}, 0, NULL));
  FAIL(cudaMemAdvise(managed, bytes, 1, (cudaMemLocation){1, 0}));
#else
  FAIL(cudaMemPrefetchAsync(managed, bytes, 0, NULL));
  FAIL(cudaMemAdvise(managed, bytes, 1, 0));
#endif
  FAIL(cudaFree(managed));
  FAIL(cudaFree(NULL));
  if (cudaMalloc(&managed, (size_t)1 << 50) != cudaErrorMemoryAllocation) return 0;
  return fakeCudartServed() - before;
}

int plugin_version(void) {
  int version = 0;
  cudaRuntimeGetVersion(&version);
  return version;
}
