/*
 * every_object dlsym|versions: every entry point for captures, graphs and objects once, each ABI
 * version and stream variant with its own arguments, found by `dlsym` or by `cuGetProcAddress` at
 * its version. Failed calls with null and with filled out-parameters among them.
 *
 * Expected: as printed: created, destroyed, implicit, failed, unknown and live of each class.
 */
#include <dlfcn.h>

#include "tally.h"

enum class { GREEN, MODULE, LIBRARY, STREAM, EVENT, GRAPH_OBJECT, EXEC, TEXTURE, SURFACE, EXTERNAL,
             CLASSES };
static const char *const class_names[CLASSES] = {
    "green_contexts", "modules",  "libraries", "streams",          "events", "graphs",
    "graph_execs",    "textures", "surfaces",  "external_memories"};
static uint64_t created[CLASSES], destroyed[CLASSES], failures[CLASSES], implicit[CLASSES];
static uint64_t launches, captured_sets, alloc_nodes, free_nodes, told, trims;

static void *driver;
static bool by_version;
static CUresult (*resolve)(const char *, void **, int, uint64_t, int *);

static void *find(const char *symbol, const char *base, int version, int flags) {
  void *pointer = NULL;
  if (by_version) MUST(resolve(base, &pointer, version, (uint64_t)flags, NULL));
  else pointer = dlsym(driver, symbol);
  if (pointer) return pointer;
  fprintf(stderr, "%s is missing\n", symbol);
  exit(9);
}

/* The function behind a symbol; LEGACY and THREAD say which stream 0 is. */
enum { LEGACY = 0, THREAD = 2 };
#define F(symbol, base, version, flags, types) \
  ((CUresult(*) types)find(#symbol, #base, version, flags))
#define MADE(class, call) (MUST(call), (void)created[class]++)
#define GONE(class, call) (MUST(call), (void)destroyed[class]++)
#define FAILS(class, call) (failed(call, #call), (void)failures[class]++)

typedef CUstream S;
typedef CUevent E;
typedef CUgraph G;
typedef CUgraphExec X;
typedef const void *P;

static void streams_and_events(S *stream, E *event) {
  S extra;
  E more;
  CUgreenCtx green;
  MADE(STREAM, F(cuStreamCreate, cuStreamCreate, 2000, LEGACY, (S *, unsigned))(stream, 0));
  MADE(STREAM, F(cuStreamCreateWithPriority, cuStreamCreateWithPriority, 5050, LEGACY,
                 (S *, unsigned, int))(&extra, 0, 0));
  GONE(STREAM, F(cuStreamDestroy, cuStreamDestroy, 2000, LEGACY, (S))(extra));
  MADE(GREEN, F(cuGreenCtxCreate, cuGreenCtxCreate, 12040, LEGACY,
                (CUgreenCtx *, void *, int, unsigned))(&green, NULL, 0, 0));
  MADE(STREAM, F(cuGreenCtxStreamCreate, cuGreenCtxStreamCreate, 12050, LEGACY,
                 (S *, CUgreenCtx, unsigned, int))(&extra, green, 0, 0));
  GONE(STREAM, F(cuStreamDestroy_v2, cuStreamDestroy, 4000, LEGACY, (S))(extra));
  FAILS(STREAM, F(cuStreamDestroy_v2, cuStreamDestroy, 4000, LEGACY, (S))(extra));
  FAILS(STREAM, F(cuStreamCreate, cuStreamCreate, 2000, LEGACY, (S *, unsigned))(NULL, 0));
  GONE(GREEN, F(cuGreenCtxDestroy, cuGreenCtxDestroy, 12040, LEGACY, (CUgreenCtx))(green));
  MADE(EVENT, F(cuEventCreate, cuEventCreate, 2000, LEGACY, (E *, unsigned))(event, 0));
  MADE(EVENT, F(cuEventCreate, cuEventCreate, 2000, LEGACY, (E *, unsigned))(&more, 0));
  GONE(EVENT, F(cuEventDestroy, cuEventDestroy, 2000, LEGACY, (E))(more));
  MADE(EVENT, F(cuEventCreate, cuEventCreate, 2000, LEGACY, (E *, unsigned))(&more, 0));
  GONE(EVENT, F(cuEventDestroy_v2, cuEventDestroy, 4000, LEGACY, (E))(more));
}

static void code(void) {
  CUmodule module;
  CUlibrary library;
  CUfunction function;
  CUkernel kernel;
  int (*unload)(CUmodule) = F(cuModuleUnload, cuModuleUnload, 2000, LEGACY, (CUmodule));
  MADE(MODULE, F(cuModuleLoad, cuModuleLoad, 2000, LEGACY, (CUmodule *, const char *))(&module, ""));
  GONE(MODULE, unload(module));
  MADE(MODULE, F(cuModuleLoadData, cuModuleLoadData, 2000, LEGACY, (CUmodule *, P))(&module, ""));
  GONE(MODULE, unload(module));
  MADE(MODULE, F(cuModuleLoadDataEx, cuModuleLoadDataEx, 2010, LEGACY,
                 (CUmodule *, P, unsigned, void *, void *))(&module, "", 0, NULL, NULL));
  GONE(MODULE, unload(module));
  MADE(MODULE,
       F(cuModuleLoadFatBinary, cuModuleLoadFatBinary, 2000, LEGACY, (CUmodule *, P))(&module, ""));
#define JIT (CUlibrary *, P, void *, void *, unsigned, void *, void *, unsigned)
  MADE(LIBRARY, F(cuLibraryLoadData, cuLibraryLoadData, 12000, LEGACY, JIT)(
                    &library, "", NULL, NULL, 0, NULL, NULL, 0));
  MUST(F(cuLibraryGetKernel, cuLibraryGetKernel, 12000, LEGACY, (CUkernel *, CUlibrary, P))(
      &kernel, library, "name"));
  MUST(F(cuModuleGetFunction, cuModuleGetFunction, 2000, LEGACY, (CUfunction *, CUmodule, P))(
      &function, module, "name"));
  GONE(LIBRARY, F(cuLibraryUnload, cuLibraryUnload, 12000, LEGACY, (CUlibrary))(library));
  MADE(LIBRARY, F(cuLibraryLoadFromFile, cuLibraryLoadFromFile, 12000, LEGACY, JIT)(
                    &library, "", NULL, NULL, 0, NULL, NULL, 0));
  FAILS(LIBRARY, F(cuLibraryLoadFromFile, cuLibraryLoadFromFile, 12000, LEGACY, JIT)(
                     NULL, "", NULL, NULL, 0, NULL, NULL, 0));
}

static void views(void) {
  unsigned long long texture, surface;
  CUexternalMemory memory;
  CUDA_EXTERNAL_MEMORY_HANDLE_DESC description = {.type = 1, .size = 4096};
  MADE(TEXTURE, F(cuTexObjectCreate, cuTexObjectCreate, 5000, LEGACY,
                  (unsigned long long *, P, P, P))(&texture, NULL, NULL, NULL));
  GONE(TEXTURE, F(cuTexObjectDestroy, cuTexObjectDestroy, 5000, LEGACY,
                  (unsigned long long))(texture));
  MADE(SURFACE, F(cuSurfObjectCreate, cuSurfObjectCreate, 5000, LEGACY,
                  (unsigned long long *, P))(&surface, NULL));
  GONE(SURFACE, F(cuSurfObjectDestroy, cuSurfObjectDestroy, 5000, LEGACY,
                  (unsigned long long))(surface));
  MADE(EXTERNAL, F(cuImportExternalMemory, cuImportExternalMemory, 10000, LEGACY,
                   (CUexternalMemory *, P))(&memory, &description));
  GONE(EXTERNAL, F(cuDestroyExternalMemory, cuDestroyExternalMemory, 10000, LEGACY,
                   (CUexternalMemory))(memory));
  MUST(F(cuCtxSetLimit, cuCtxSetLimit, 3010, LEGACY, (int, size_t))(2, 8 << 20));
  MUST(F(cuCtxSetLimit, cuCtxSetLimit, 3010, LEGACY, (int, size_t))(2, 9 << 20));
}

static CUdeviceptr block;

static void set(S stream) {
  MUST(F(cuMemsetD8Async, cuMemsetD8Async, 3020, LEGACY,
         (CUdeviceptr, unsigned char, size_t, S))(block, 0, 16, stream));
  captured_sets++;
}

static void end(G graph_to_keep, int flags, S stream) {
  G graph;
  if (flags == THREAD)
    MUST(F(cuStreamEndCapture_ptsz, cuStreamEndCapture, 10000, THREAD, (S, G *))(stream, &graph));
  else MUST(F(cuStreamEndCapture, cuStreamEndCapture, 10000, LEGACY, (S, G *))(stream, &graph));
  if (graph == graph_to_keep) return;
  created[GRAPH_OBJECT]++;
  GONE(GRAPH_OBJECT, F(cuGraphDestroy, cuGraphDestroy, 10000, LEGACY, (G))(graph));
}

/* Each begin, each end, each way that an event carries a capture to another stream. */
static void captures(S stream, E event) {
  S other, own = (S)2;
  G graph, none;
  MADE(STREAM, F(cuStreamCreate, cuStreamCreate, 2000, LEGACY, (S *, unsigned))(&other, 0));
  MUST(F(cuStreamBeginCapture, cuStreamBeginCapture, 10000, LEGACY, (S))(stream));
  set(stream);
  MUST(F(cuEventRecord, cuEventRecord, 2000, LEGACY, (E, S))(event, stream));
  MUST(F(cuStreamWaitEvent, cuStreamWaitEvent, 3020, LEGACY, (S, E, unsigned))(other, event, 0));
  set(other);
  end(NULL, LEGACY, stream);
  MUST(F(cuStreamBeginCapture_v2, cuStreamBeginCapture, 10010, LEGACY, (S, int))(stream, 0));
  MUST(F(cuEventRecordWithFlags, cuEventRecordWithFlags, 11010, LEGACY,
         (E, S, unsigned))(event, stream, 0));
  MUST(F(cuStreamWaitEvent_ptsz, cuStreamWaitEvent, 7000, THREAD, (S, E, unsigned))(NULL, event,
                                                                                  0));
  set(own);
  end(NULL, LEGACY, stream);
  MUST(F(cuStreamBeginCapture_ptsz, cuStreamBeginCapture, 10000, THREAD, (S))(NULL));
  set(own);
  MUST(F(cuEventRecord_ptsz, cuEventRecord, 7000, THREAD, (E, S))(event, NULL));
  MUST(F(cuStreamWaitEvent, cuStreamWaitEvent, 3020, LEGACY, (S, E, unsigned))(other, event, 0));
  set(other);
  end(NULL, THREAD, NULL);
  MUST(F(cuStreamBeginCapture_v2_ptsz, cuStreamBeginCapture, 10010, THREAD, (S, int))(NULL, 0));
  MUST(F(cuEventRecordWithFlags_ptsz, cuEventRecordWithFlags, 11010, THREAD,
         (E, S, unsigned))(event, NULL, 0));
  MUST(F(cuStreamWaitEvent, cuStreamWaitEvent, 3020, LEGACY, (S, E, unsigned))(other, event, 0));
  set(other);
  end(NULL, THREAD, own);
  MADE(GRAPH_OBJECT, F(cuGraphCreate, cuGraphCreate, 10000, LEGACY, (G *, unsigned))(&graph, 0));
#define TO (S, G, P, P, size_t, int)
  MUST(F(cuStreamBeginCaptureToGraph, cuStreamBeginCaptureToGraph, 12030, LEGACY,
         TO)(stream, graph, NULL, NULL, 0, 0));
  set(stream);
  end(graph, LEGACY, stream);
  MUST(F(cuStreamBeginCaptureToGraph_ptsz, cuStreamBeginCaptureToGraph, 12030, THREAD,
         TO)(NULL, graph, NULL, NULL, 0, 0));
  set(own);
  end(graph, THREAD, NULL);
  FAILS(GRAPH_OBJECT,
        F(cuStreamEndCapture, cuStreamEndCapture, 10000, LEGACY, (S, G *))(stream, &none));
  FAILS(GRAPH_OBJECT, F(cuGraphCreate, cuGraphCreate, 10000, LEGACY, (G *, unsigned))(NULL, 0));
  GONE(GRAPH_OBJECT, F(cuGraphDestroy, cuGraphDestroy, 10000, LEGACY, (G))(graph));
}

static X executables(G graph) {
  X exec;
  int (*destroy)(X) = F(cuGraphExecDestroy, cuGraphExecDestroy, 10000, LEGACY, (X));
#define OLD (X *, G, CUgraphNode *, char *, size_t)
  MADE(EXEC, F(cuGraphInstantiate, cuGraphInstantiate, 10000, LEGACY, OLD)(&exec, graph, NULL,
                                                                         NULL, 0));
  GONE(EXEC, destroy(exec));
  MADE(EXEC, F(cuGraphInstantiate_v2, cuGraphInstantiate, 11000, LEGACY, OLD)(&exec, graph, NULL,
                                                                            NULL, 0));
  GONE(EXEC, destroy(exec));
  MADE(EXEC, F(cuGraphInstantiateWithFlags, cuGraphInstantiateWithFlags, 11040, LEGACY,
               (X *, G, unsigned long long))(&exec, graph, 0));
  GONE(EXEC, destroy(exec));
  MADE(EXEC, F(cuGraphInstantiateWithParams, cuGraphInstantiateWithParams, 12000, LEGACY,
               (X *, G, void *))(&exec, graph, NULL));
  GONE(EXEC, destroy(exec));
  MADE(EXEC, F(cuGraphInstantiateWithParams_ptsz, cuGraphInstantiateWithParams, 12000, THREAD,
               (X *, G, void *))(&exec, graph, NULL));
  FAILS(EXEC, destroy(NULL));
  return exec;
}

static void graphs(S stream) {
  G graph, clone;
  X exec;
  CUgraphNode node;
  CUDA_MEM_ALLOC_NODE_PARAMS alloc = {.bytesize = 1000};
  CUgraphNodeParams first = {.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC};
  CUgraphNodeParams second = {.type = CU_GRAPH_NODE_TYPE_MEM_FREE};
  uint64_t reserved;
  MADE(GRAPH_OBJECT, F(cuGraphCreate, cuGraphCreate, 10000, LEGACY, (G *, unsigned))(&graph, 0));
  MADE(GRAPH_OBJECT, F(cuGraphClone, cuGraphClone, 10000, LEGACY, (G *, G))(&clone, graph));
  exec = executables(clone);
  MUST(F(cuGraphExecUpdate, cuGraphExecUpdate, 10020, LEGACY,
         (X, G, CUgraphNode *, int *))(exec, clone, NULL, NULL));
  MUST(F(cuGraphExecUpdate_v2, cuGraphExecUpdate, 12000, LEGACY, (X, G, void *))(exec, clone,
                                                                               NULL));
  GONE(EXEC, F(cuGraphExecDestroy, cuGraphExecDestroy, 10000, LEGACY, (X))(exec));
  MUST(F(cuGraphAddMemAllocNode, cuGraphAddMemAllocNode, 11040, LEGACY,
         (CUgraphNode *, G, P, size_t, void *))(&node, graph, NULL, 0, &alloc));
  MUST(F(cuGraphAddMemFreeNode, cuGraphAddMemFreeNode, 11040, LEGACY,
         (CUgraphNode *, G, P, size_t, CUdeviceptr))(&node, graph, NULL, 0, alloc.dptr));
  first.alloc.bytesize = 2000;
  MUST(F(cuGraphAddNode, cuGraphAddNode, 12020, LEGACY,
         (CUgraphNode *, G, P, size_t, void *))(&node, graph, NULL, 0, &first));
  second.free.dptr = first.alloc.dptr;
  MUST(F(cuGraphAddNode_v2, cuGraphAddNode, 12030, LEGACY,
         (CUgraphNode *, G, P, P, size_t, void *))(&node, graph, NULL, NULL, 0, &second));
  alloc_nodes += 2, free_nodes += 2;
  exec = executables(graph);
  MUST(F(cuGraphLaunch, cuGraphLaunch, 10000, LEGACY, (X, S))(exec, stream));
  MUST(F(cuGraphLaunch_ptsz, cuGraphLaunch, 10000, THREAD, (X, S))(exec, NULL));
  for (int i = 0; i < 2; i++, launches++) {
    did_alloc(GRAPH, 1000), did_alloc(GRAPH, 2000);
    did_free(GRAPH, 1000), did_free(GRAPH, 2000);
  }
  MUST(F(cuDeviceGetGraphMemAttribute, cuDeviceGetGraphMemAttribute, 11040, LEGACY,
         (int, int, void *))(0, 3, &reserved));
  told = reserved;
  MUST(F(cuDeviceGraphMemTrim, cuDeviceGraphMemTrim, 11040, LEGACY, (int))(0));
  trims++;
}

int main(int count, char **arguments) {
  S stream;
  E event;
  by_version = count > 1 && strcmp(arguments[1], "versions") == 0;
  driver = dlopen("libcuda.so.1", RTLD_NOW);
  if (!driver) return 9;
  *(void **)&resolve = dlsym(driver, "cuGetProcAddress_v2");
  CUcontext context = start_driver();
  block = take(4096);
  streams_and_events(&stream, &event);
  code();
  views();
  captures(stream, event);
  graphs(stream);
  /* Two streams, an event and a module go with it; a library and a graph do not. */
  MUST(cuCtxDestroy_v2(context));
  implicit[STREAM] = 2, implicit[EVENT] = 1, implicit[MODULE] = 1;
  for (int i = 0; i < CLASSES; i++) {
    char key[64];
    const struct { const char *name; uint64_t value; } rows[] = {
        {"created", created[i]}, {"destroyed", destroyed[i]}, {"implicit", implicit[i]},
        {"failed", failures[i]}, {"live", created[i] - destroyed[i] - implicit[i]}};
    for (size_t row = 0; row < sizeof rows / sizeof *rows; row++) {
      snprintf(key, sizeof key, "%s/%s", class_names[i], rows[row].name);
      say("handles/", key, rows[row].value);
    }
  }
  say("graphs/", "launches", launches);
  say("graphs/", "captured/sets/count", captured_sets);
  say("graphs/", "alloc_nodes", alloc_nodes);
  say("graphs/", "free_nodes", free_nodes);
  say("graphs/", "told/0/reserved_high_bytes", told);
  say("graphs/", "trims", trims);
  say("", "graph.allocs", tally.ledgers[GRAPH].allocs);
  say("", "graph.frees", tally.ledgers[GRAPH].frees);
  say("", "graph.peak_bytes", tally.ledgers[GRAPH].peak_bytes);
  return 0;
}
