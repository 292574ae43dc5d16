/*
 * kill_counter FILE [THREADS]: allocates and frees for ever, and bumps a counter in a shared
 * mapping of FILE after each call that has returned. To be killed at any moment.
 *
 * FILE holds 64-bit words: calls returned, of these allocations, of these frees. What a log
 * holds afterwards is at least that, and at most one call of each thread more.
 */
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tally.h"

static uint64_t *counters; /* calls, allocations, frees */

static void returned(int which) {
  __atomic_fetch_add(&counters[which], 1, __ATOMIC_RELEASE);
  __atomic_fetch_add(&counters[0], 1, __ATOMIC_RELEASE);
}

static void *churn(void *context) {
  CUdeviceptr kept[8] = {0};
  MUST(cuCtxSetCurrent(context));
  for (uint64_t i = 0;; i++) {
    CUdeviceptr *slot = &kept[i * 5 % 8];
    if (*slot) {
      MUST(cuMemFree_v2(*slot));
      returned(2);
    }
    MUST(cuMemAlloc_v2(slot, 512 + i % 4096));
    returned(1);
  }
  return NULL;
}

int main(int argc, char **argv) {
  if (argc < 2) return 2;
  alarm(60); /* should nobody be left to kill it */
  int file = open(argv[1], O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0 || ftruncate(file, 4096)) return 2;
  counters = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (counters == MAP_FAILED) return 2;
  CUcontext context = start_driver();
  for (uint64_t i = 1; i < argument(argc, argv, 2, 1); i++) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, churn, context)) return 2;
  }
  churn(context);
  return 0;
}
