/*
 * cudnn_stub [local|deepbind]: opens a stub library that forwards by dlsym of its own name.
 *
 * Expected: `result 0`, one allocation of 4,096 bytes. Opened with RTLD_DEEPBIND, libraries
 * prefer their own dependencies to a preload, so there only the result counts.
 */
#include <dlfcn.h>

#include "tally.h"

int main(int argc, char **argv) {
  bool deep = argc > 1 && strcmp(argv[1], "deepbind") == 0;
  int flags = RTLD_NOW | RTLD_LOCAL | (deep ? RTLD_DEEPBIND : 0);
  void *stub = dlopen(beside("libcudnn_stub.so"), flags), *workspace = NULL;
  if (!stub) return 9;
  int (*create)(void **, size_t) = (int (*)(void **, size_t))dlsym(stub, "cudnnCreate");
  int result = create(&workspace, 4096);
  if (result == 0) did_alloc(DEVICE, 4096);
  say("", "result", (uint64_t)result);
  print_tally("", true);
  return result;
}
