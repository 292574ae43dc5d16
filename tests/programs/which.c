/*
 * Which function a lookup leads to, for each line `base version flags symbol` of a file: printed
 * is the symbol and, by dlsym of the symbol and by cuGetProcAddress of the base name, whether the
 * answer lies in the library that was preloaded.
 *
 * Expected: both ways lead to the same function, and to a hook where the table has a row.
 */
#include "tally.h"

#include <dlfcn.h>

static int hooked(void *pointer) {
  Dl_info info;
  if (!pointer || !dladdr(pointer, &info)) exit(8);
  return strstr(info.dli_fname, "libgmmtrace") != NULL;
}

int main(int count, char **values) {
  char base[128], symbol[128];
  int version, flags;
  void *driver = dlopen("libcuda.so.1", RTLD_NOW);
  FILE *rows = count > 1 ? fopen(values[1], "r") : NULL;
  if (!rows) return 0;
  while (fscanf(rows, "%127s %d %d %127s", base, &version, &flags, symbol) == 4) {
    void *by_symbol = dlsym(driver, symbol), *by_name = NULL;
    MUST(cuGetProcAddress_v2(base, &by_name, version, flags, NULL));
    if (by_symbol != by_name) {
      fprintf(stderr, "%s: two answers\n", symbol);
      return 1;
    }
    printf("%s %d\n", symbol, hooked(by_name));
  }
  return 0;
}
