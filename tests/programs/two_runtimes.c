/*
 * Two plug-ins, opened RTLD_LOCAL, one linked with the runtime of CUDA 12 and one with 13: each
 * must reach its own, also where the signature differs.
 *
 * Expected: ten calls served by each; two device blocks live, of 1,000 and 2,000 bytes.
 * Exit status 1 when a runtime served another number of calls or has the wrong version.
 */
#include <dlfcn.h>

#include "tally.h"

static int use(const char *file, int major, size_t bytes) {
  char key[64];
  void *plugin = dlopen(beside(file), RTLD_NOW | RTLD_LOCAL);
  if (!plugin) {
    fprintf(stderr, "%s\n", dlerror());
    exit(9);
  }
  unsigned long (*run)(size_t) = (unsigned long (*)(size_t))dlsym(plugin, "plugin_run");
  int (*version)(void) = (int (*)(void))dlsym(plugin, "plugin_version");
  unsigned long served = run(bytes);
  did_alloc(DEVICE, bytes);
  did_alloc(MANAGED, bytes * 2);
  did_copy(HOST_TO_DEVICE, SYNC, 64);
  did_copy(HOST_TO_DEVICE, ASYNC, 64);
  did_set(SYNC, bytes);
  did_free(MANAGED, bytes * 2);
  tally.ledgers[DEVICE].null_frees++;
  tally.ledgers[DEVICE].failed_allocs++;
  snprintf(key, sizeof key, "runtime_%d.served", major);
  say("", key, served);
  return served != 10 || version() / 1000 != major;
}

int main(void) {
  int wrong = use("libplugin12.so", 12, 1000);
  wrong += use("libplugin13.so", 13, 2000);
  print_tally("", true);
  return wrong != 0;
}
