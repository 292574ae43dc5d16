/*
 * sixteen_threads [ROUNDS] [THREADS]: threads that allocate, copy and free without pause.
 *
 * Expected: nothing lost; one block of each thread is live at the end.
 */
#include <pthread.h>

#include "tally.h"

static CUcontext context;
static uint64_t rounds;

static void *churn(void *number) {
  char host[256] = "";
  MUST(cuCtxSetCurrent(context));
  take(4096 + (size_t)number);
  for (uint64_t i = 0; i < rounds; i++) {
    size_t bytes = 256 + (i * 37 + (size_t)number) % 5000;
    CUdeviceptr pointer = take(bytes);
    MUST(cuMemcpyHtoDAsync_v2(pointer, host, 256, NULL));
    did_copy(HOST_TO_DEVICE, ASYNC, 256);
    give(pointer, bytes);
  }
  return NULL;
}

int main(int argc, char **argv) {
  rounds = argument(argc, argv, 1, 2000);
  uint64_t count = argument(argc, argv, 2, 16);
  pthread_t threads[256];
  if (count > 256) return 2;
  context = start_driver();
  for (uint64_t i = 0; i < count; i++)
    MUST(pthread_create(&threads[i], NULL, churn, (void *)i));
  for (uint64_t i = 0; i < count; i++) pthread_join(threads[i], NULL);
  print_tally("", false);
  return 0;
}
