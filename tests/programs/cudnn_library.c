/*
 * The stub of cudnn_stub: exports cudnnCreate and forwards to a name just like its own, found by
 * handle in the library that does the work. A lookup that answers with the stub would recurse.
 */
#include <dlfcn.h>

#include "tally.h"

int cudnnCreate(void **handle, size_t bytes);

int cudnnCreate(void **handle, size_t bytes) {
  static int depth;
  if (++depth > 1) return 1000;
  void *graph = dlopen("libcudnn_graph_stub.so", RTLD_NOW | RTLD_LOCAL);
  int (*forward)(void **, size_t);
  if (!graph) return 1001;
  *(void **)&forward = dlsym(graph, "cudnnCreate");
  int result = forward && (void *)forward != (void *)cudnnCreate ? forward(handle, bytes) : 1002;
  depth--;
  return result;
}
