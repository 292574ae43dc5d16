/*
 * Results, errno and the runtime's sticky error are the same with and without a preload: compare
 * two outputs of this program.
 *
 * Expected: `errno_changed 0`; `result.N` and `sticky.N` lines equal in both runs. (A call that
 * fails in the driver may set errno there too; only successful calls are counted.)
 */
#include <errno.h>

#include "tally.h"

static int number;
static uint64_t changed;

#define SEE(call)                                                \
  do {                                                           \
    errno = EXDEV;                                               \
    int result_ = (call);                                        \
    changed += result_ == 0 && errno != EXDEV;                   \
    printf("result.%d %d\n", ++number, result_);                 \
  } while (0)
#define STICKY() printf("sticky.%d %d\n", number, cudaPeekAtLastError())

static void driver_calls(void) {
  static char host[4096];
  CUdeviceptr a = 1, b = 2;
  void *pinned = &a;
  size_t pitch, available, total;
  SEE(cuMemAlloc_v2(&a, 1000));
  SEE(cuMemAlloc_v2(&b, 0));
  SEE(cuMemcpyHtoD_v2(a, host, 1000));
  SEE(cuMemcpyHtoDAsync_v2(a, host, 1000, NULL));
  SEE(cuMemcpyDtoH_v2(host, a, 2000000));
  SEE(cuMemsetD8_v2(a, 0, 1000));
  SEE(cuMemFree_v2(a));
  SEE(cuMemFree_v2(a));
  SEE(cuMemFree_v2(0));
  SEE(cuMemAllocPitch_v2(&a, &pitch, 100, 100, 4));
  SEE(cuMemAllocManaged(&b, 5000, 1));
  SEE(cuMemHostAlloc(&pinned, 5000, 0));
  SEE(cuMemFreeHost(pinned));
  SEE(cuMemFreeHost(host));
  SEE(cuMemHostRegister_v2(host, sizeof host, 0));
  SEE(cuMemHostUnregister(host));
  SEE(cuMemAllocAsync(&a, 5000, NULL));
  SEE(cuMemFreeAsync(a, NULL));
  SEE(cuMemGetInfo_v2(&available, &total));
}

static void runtime_calls(void) {
  void *pointer = NULL;
  SEE(cudaMalloc(&pointer, 1000));
  STICKY();
  SEE(cudaFree((void *)0x1234));
  STICKY();
  SEE(cudaMemset(pointer, 0, 1000));
  STICKY(); /* still the failed free */
  SEE(cudaGetLastError());
  STICKY();
  SEE(cudaMalloc(&pointer, (size_t)1 << 50));
  SEE(cudaFree(pointer));
  STICKY();
}

int main(void) {
  start_driver();
  driver_calls();
  runtime_calls();
  say("", "errno_changed", changed);
  return changed != 0;
}
