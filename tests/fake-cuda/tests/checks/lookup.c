/*
 * What cuGetProcAddress answers is the exported symbol of the right ABI and stream variant, for
 * every row of the table, before cuInit. Compiled with the driver's table on the include path.
 */
#include <dlfcn.h>

#include "check.h"

static const struct { const char *base; int version; int thread; const char *symbol; } rows[] = {
#define PLAIN 0
#define THREAD 1
#define ROW(base, version, stream, symbol) {#base, version, stream, #symbol},
#include "table.inc"
#undef ROW
};

static void *driver;

static void *ask(const char *name, int version, uint64_t flags, int *status) {
  void *pointer = (void *)-1;
  EQUAL(cuGetProcAddress_v2(name, &pointer, version, flags, status), 0);
  return pointer;
}

static void is(const char *name, int version, uint64_t flags, const char *symbol) {
  void *expected = symbol ? dlsym(driver, symbol) : NULL, *found = ask(name, version, flags, NULL);
  if (found != expected) {
    fprintf(stderr, "%s at %d, flags %d is not %s\n", name, version, (int)flags, symbol);
    failures++;
  }
}

int main(void) {
  int status;
  void *pointer;
  driver = dlopen("libcuda.so.1", RTLD_NOW);
  is("cuMemAlloc", 3020, 0, "cuMemAlloc_v2");
  is("cuMemAlloc", 2000, 0, "cuMemAlloc");
  is("cuMemAllocAsync", 11020, 2, "cuMemAllocAsync_ptsz");
  is("cuMemAllocAsync", 11020, 1, "cuMemAllocAsync");
  is("cuMemPrefetchAsync", 8000, 0, "cuMemPrefetchAsync");
  is("cuMemPrefetchAsync", 12020, 0, "cuMemPrefetchAsync_v2");
  is("cuMemcpyAsync", 4000, 2, "cuMemcpyAsync");
  is("cuMemcpyHtoDAsync", 13000, 2, "cuMemcpyHtoDAsync_v2_ptsz");
  is("cuGetProcAddress", 11030, 0, "cuGetProcAddress");
  is("cuGetProcAddress", 12000, 0, "cuGetProcAddress_v2");
  is("cuMemAlloc_v2", 13000, 0, NULL);
  is("", 0, 0, NULL);
  CHECK(!ask("cuNothing", 13000, 0, &status) && status == 1);
  CHECK(!ask("cuMemAllocAsync", 11010, 0, &status) && status == 2);
  CHECK(ask("cuMemFree", 13000, 2, &status) && status == 0);
  EQUAL(cuGetProcAddress("cuMemAlloc", &pointer, 13010, 0), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuGetProcAddress("cuMemAlloc", &pointer, 11030, 0), 0);
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    is(rows[i].base, rows[i].version, rows[i].thread ? 2 : 0, rows[i].symbol);
    CHECK(dlsym(driver, rows[i].symbol));
  }
  const void *table;
  EQUAL(cuGetExportTable(&table, &(CUuuid){{0}}), CUDA_ERROR_NOT_FOUND);
  return failures != 0;
}
