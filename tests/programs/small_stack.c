/*
 * The first CUDA call of the process is made by a thread with a stack of twice the smallest size
 * that the C library allows, static thread-local storage included. Prints `allocated BYTES`.
 */
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "fake_cuda.h"

static void *run(void *unused) {
  (void)unused;
  CUcontext context;
  CUdeviceptr pointer;
  if (cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context)) exit(1);
  if (cuMemAlloc_v2(&pointer, 4096)) exit(1);
  return NULL;
}

int main(void) {
  pthread_t thread;
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 2 * (size_t)PTHREAD_STACK_MIN);
  if (pthread_create(&thread, &attributes, run, NULL)) return 1;
  pthread_join(thread, NULL);
  puts("allocated 4096");
  return 0;
}
