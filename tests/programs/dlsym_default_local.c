/*
 * A library opened RTLD_LOCAL asks dlsym(RTLD_DEFAULT) for a symbol of its own: found. The main
 * program asks for the same: not found. Then for cudaMalloc, which only the library's dependency
 * has: found from the library, not from the program.
 *
 * Expected: `own 1`, `program 0`, `runtime 1`, `program_runtime 0`.
 */
#include <dlfcn.h>

#include "tally.h"

static void *in_program(const char *name) { return dlsym(RTLD_DEFAULT, name); }

int main(void) {
  void *library = dlopen(beside("liblocal.so"), RTLD_NOW | RTLD_LOCAL);
  if (!library) return 9;
  int (*own)(void) = (int (*)(void))dlsym(library, "find_own");
  int (*runtime)(void) = (int (*)(void))dlsym(library, "find_runtime");
  int results[] = {own(), in_program("local_only") != NULL, runtime(),
                   in_program("cudaMalloc") != NULL};
  printf("own %d\nprogram %d\nruntime %d\nprogram_runtime %d\n", results[0], results[1],
         results[2], results[3]);
  return !(results[0] && !results[1] && results[2] && !results[3]);
}
