/*
 * short_threads [COUNT]: COUNT threads (10,000), each of one allocation and one free, some of
 * them at the same time.
 *
 * Expected: COUNT allocations and frees, nothing live.
 */
#include <pthread.h>

#include "tally.h"

#define AT_ONCE 32

static CUcontext context;

static void *one(void *number) {
  size_t bytes = 512 + (size_t)number % 1000;
  MUST(cuCtxSetCurrent(context));
  give(take(bytes), bytes);
  return NULL;
}

int main(int argc, char **argv) {
  uint64_t count = argument(argc, argv, 1, 10000);
  pthread_t threads[AT_ONCE];
  context = start_driver();
  for (uint64_t done = 0; done < count; done += AT_ONCE) {
    uint64_t now = count - done < AT_ONCE ? count - done : AT_ONCE;
    for (uint64_t i = 0; i < now; i++)
      MUST(pthread_create(&threads[i], NULL, one, (void *)(done + i)));
    for (uint64_t i = 0; i < now; i++) pthread_join(threads[i], NULL);
  }
  print_tally("", false);
  return 0;
}
