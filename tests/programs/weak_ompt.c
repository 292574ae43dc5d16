/*
 * Weak ompt_start_tool in two runtimes, one linked and one opened RTLD_LOCAL, that forward by
 * RTLD_NEXT.
 *
 * Expected: `linked 1`: the function is entered once. `local 1` likewise, without a preload that
 * defines the name.
 */
#include <dlfcn.h>

#include "tally.h"

int omp_start(void);

int main(void) {
  void *second = dlopen(beside("libompt_local.so"), RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
  if (!second) return 9;
  int (*start)(void) = (int (*)(void))dlsym(second, "omp_start");
  int linked = omp_start(), local = start();
  printf("linked %d\nlocal %d\n", linked, local);
  return linked != 1 || local != 1;
}
