/*
 * The runtime API, built twice: `static_runtime` carries the runtime and exports none of its
 * names, `shared_runtime` is linked with libcudart.so.13.
 *
 * Expected: three blocks live at the end (device, managed, pinned); two failed allocations, one
 * failed free, and one free of null that the runtime hands to the driver.
 */
#include "tally.h"

static void *entry(const char *name) {
  void *pointer;
  MUST(cudaGetDriverEntryPointByVersion(name, &pointer, 12000, cudaEnableDefault, NULL));
  return pointer;
}

static void allocations(void) {
  void *kept, *freed, *managed, *pinned;
  struct cudaPitchedPtr box;
  size_t pitch;
  MUST(cudaFree(NULL));
  tally.ledgers[DEVICE].null_frees++;
  MUST(cudaMalloc(&kept, 0)); /* the runtime answers itself */
  MUST(cudaMalloc(&kept, 5000));
  did_alloc(DEVICE, 5000);
  MUST(cudaMalloc(&freed, 6000));
  did_alloc(DEVICE, 6000);
  MUST(cudaMallocManaged(&managed, 7000, cudaMemAttachGlobal));
  did_alloc(MANAGED, 7000);
  MUST(cudaMallocHost(&pinned, 8000));
  did_alloc(PINNED, 8000);
  MUST(cudaMemcpy(kept, pinned, 4000, cudaMemcpyHostToDevice));
  did_copy(HOST_TO_DEVICE, SYNC, 4000);
  MUST(cudaMemcpyAsync(pinned, kept, 3000, cudaMemcpyDeviceToHost, NULL));
  did_copy(DEVICE_TO_HOST, ASYNC, 3000);
  MUST(cudaMemcpy(freed, kept, 2000, cudaMemcpyDefault));
  did_copy(DEVICE_TO_DEVICE, SYNC, 2000);
  MUST(cudaMemcpy2D(freed, 512, pinned, 100, 90, 4, cudaMemcpyHostToDevice));
  did_copy(HOST_TO_DEVICE, SYNC, 90 * 4);
  MUST(cudaMemset(kept, 0, 5000));
  did_set(SYNC, 5000);
  MUST(cudaFree(freed));
  did_free(DEVICE, 6000);
  MUST(cudaMallocPitch(&freed, &pitch, 700, 3));
  did_alloc(DEVICE, pitch * 3);
  MUST(cudaFree(freed));
  did_free(DEVICE, pitch * 3);
  MUST(cudaMalloc3D(&box, (struct cudaExtent){100, 4, 5}));
  did_alloc(DEVICE, box.pitch * 20);
  MUST(cudaFree(box.ptr));
  did_free(DEVICE, box.pitch * 20);
  FAILED_ALLOC(DEVICE, cudaMalloc(&freed, (size_t)1 << 50));
  FAILED_ALLOC(MANAGED, cudaMallocManaged(&freed, 0, cudaMemAttachGlobal));
  FAILED_FREE(DEVICE, cudaFree((void *)0x12345));
}

static void streams(void) {
  void *pointer;
  cudaStream_t stream;
  MUST(cudaStreamCreate(&stream));
  MUST(cudaMallocAsync(&pointer, 9000, stream));
  did_alloc(ASYNC_POOL, 9000);
  MUST(cudaMemsetAsync(pointer, 0, 9000, stream));
  did_set(ASYNC, 9000);
  MUST(cudaFreeAsync(pointer, stream));
  did_free(ASYNC_POOL, 9000);
  MUST(cudaMallocAsync_ptsz(&pointer, 9100, stream));
  did_alloc(ASYNC_POOL, 9100);
  MUST(cudaMemcpyAsync_ptsz(pointer, pointer, 50, cudaMemcpyDeviceToDevice, stream));
  did_copy(DEVICE_TO_DEVICE, ASYNC, 50);
  MUST(cudaFreeAsync_ptsz(pointer, stream));
  did_free(ASYNC_POOL, 9100);
  MUST(cudaStreamDestroy(stream));
}

/* As PyTorch reaches the calls that the runtime does not have. */
static void entry_points(void) {
  CUresult (*alloc)(CUdeviceptr *, size_t), (*release)(CUdeviceptr);
  CUdeviceptr pointer;
  *(void **)&alloc = entry("cuMemAlloc");
  *(void **)&release = entry("cuMemFree");
  MUST(alloc(&pointer, 1234));
  did_alloc(DEVICE, 1234);
  MUST(release(pointer));
  did_free(DEVICE, 1234);
}

int main(void) {
  allocations();
  streams();
  entry_points();
  print_tally("", true);
  return 0;
}
