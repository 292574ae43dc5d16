/*
 * Allocates by dlsym and by a runtime that uses dlsym; to be run with libsecond_interposer.so
 * preloaded before or after another library that interposes dlsym.
 *
 * Expected: two blocks live whatever the order; `seen` is what the second interposer counted
 * (0 without it).
 */
#include <dlfcn.h>

#include "tally.h"

extern unsigned long second_interposer_count __attribute__((weak));

int main(void) {
  void *pointer, *driver = dlopen("libcuda.so.1", RTLD_NOW);
  CUdeviceptr device;
  MUST(cudaMalloc(&pointer, 1000));
  did_alloc(DEVICE, 1000);
  CUresult (*alloc)(CUdeviceptr *, size_t);
  *(void **)&alloc = dlsym(driver, "cuMemAlloc_v2");
  MUST(alloc(&device, 2000));
  did_alloc(DEVICE, 2000);
  MUST(cudaMemcpy((void *)device, pointer, 500, cudaMemcpyDeviceToDevice));
  did_copy(DEVICE_TO_DEVICE, SYNC, 500);
  say("", "seen", &second_interposer_count ? second_interposer_count : 0);
  print_tally("", true);
  return 0;
}
