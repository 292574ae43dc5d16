/*
 * dlsym_storm [LOOKUPS] [THREADS]: 8 threads × 40,000 lookups of names that exist, that do not,
 * and of the driver's, by handle, RTLD_DEFAULT and RTLD_NEXT.
 *
 * Expected: `wrong 0`: every answer is what it was at the start.
 */
#include <dlfcn.h>
#include <pthread.h>

#include "tally.h"

static const char *const names[] = {"malloc", "open", "cuMemAlloc_v2", "no_such_name",
                                    "cuGetProcAddress_v2", "curl_easy_init", "cudnnCreate"};
#define NAMES (sizeof names / sizeof *names)

static void *handles[3], *expected[3][NAMES];
static uint64_t lookups, wrong;

static void *storm(void *unused) {
  for (uint64_t i = 0; i < lookups; i++) {
    unsigned handle = i % 3, name = i / 3 % NAMES;
    if (dlsym(handles[handle], names[name]) != expected[handle][name]) BUMP(wrong, 1);
  }
  return unused;
}

int main(int argc, char **argv) {
  lookups = argument(argc, argv, 1, 40000);
  uint64_t count = argument(argc, argv, 2, 8);
  pthread_t threads[64];
  if (count > 64) return 2;
  handles[0] = dlopen("libcuda.so.1", RTLD_NOW);
  handles[1] = RTLD_DEFAULT;
  handles[2] = RTLD_NEXT;
  for (unsigned i = 0; i < 3; i++)
    for (unsigned j = 0; j < NAMES; j++) expected[i][j] = dlsym(handles[i], names[j]);
  if (!expected[0][2] || !expected[1][0] || expected[0][3] || expected[0][6]) wrong++;
  for (uint64_t i = 0; i < count; i++) MUST(pthread_create(&threads[i], NULL, storm, NULL));
  for (uint64_t i = 0; i < count; i++) pthread_join(threads[i], NULL);
  say("", "lookups", lookups * count);
  say("", "wrong", wrong);
  return wrong != 0;
}
