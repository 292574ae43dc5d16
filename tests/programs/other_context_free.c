/*
 * Allocates on one device and frees with another device's context current, and from another
 * thread that has no context of its own.
 *
 * Run with: FAKE_CUDA_DEVICES=2
 * Expected: `device_0.*` and `device_1.*` say where the blocks were; nothing of device 0 is live.
 */
#include <pthread.h>

#include "tally.h"

static void *release(void *pointer) {
  give((CUdeviceptr)pointer, 3000);
  return NULL;
}

int main(void) {
  CUcontext first, second;
  pthread_t thread;
  MUST(cuInit(0));
  MUST(cuCtxCreate_v2(&first, 0, 0));
  CUdeviceptr a = take(1000), b = take(3000);
  MUST(cuCtxCreate_v2(&second, 0, 1));
  CUdeviceptr c = take(2000);
  give(a, 1000); /* with device 1 current */
  MUST(pthread_create(&thread, NULL, release, (void *)b));
  pthread_join(thread, NULL);
  MUST(cuMemcpyPeer(c, second, c, second, 100));
  did_copy(DEVICE_TO_DEVICE, SYNC, 100);
  puts("device_0.allocs 2\ndevice_0.alloc_bytes 4000\ndevice_0.live_bytes 0");
  puts("device_1.allocs 1\ndevice_1.alloc_bytes 2000\ndevice_1.live_bytes 2000");
  print_tally("", true);
  return 0;
}
