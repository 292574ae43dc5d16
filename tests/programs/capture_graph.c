/*
 * Allocations under stream capture become part of a graph: no memory until the launch, again at
 * each launch. One is freed in the graph, one after each launch.
 *
 * Expected: two allocation nodes, one free node, three launches, a captured set and copy. The `graph` ledger
 * has two allocations for each launch; the pool has only the one made outside the capture.
 */
#include "tally.h"

#define LAUNCHES 3

int main(void) {
  CUstream stream;
  CUgraph graph;
  CUgraphExec exec;
  CUdeviceptr kept, inside, outside;
  static char host[300];
  start_driver();
  MUST(cuStreamCreate(&stream, 0));
  MUST(cuMemAllocAsync(&outside, 777, stream));
  did_alloc(ASYNC_POOL, 777);
  MUST(cuStreamBeginCapture_v2(stream, 0));
  MUST(cuMemAllocAsync(&kept, 4000, stream));
  MUST(cuMemAllocAsync(&inside, 5000, stream));
  MUST(cuMemsetD8Async(kept, 0, 4000, stream));
  MUST(cuMemcpyHtoDAsync_v2(kept, host, sizeof host, stream));
  MUST(cuMemFreeAsync(inside, stream));
  MUST(cuStreamEndCapture(stream, &graph));
  MUST(cuGraphInstantiateWithFlags(&exec, graph, 0));
  for (int i = 0; i < LAUNCHES; i++) {
    MUST(cuGraphLaunch(exec, stream));
    did_alloc(GRAPH, 4000);
    did_alloc(GRAPH, 5000);
    did_free(GRAPH, 5000);
    if (i == LAUNCHES - 1) break;
    if (i % 2) MUST(cuMemFree_v2(kept));
    else MUST(cuMemFreeAsync(kept, stream));
    did_free(GRAPH, 4000);
  }
  MUST(cuStreamSynchronize(stream));
  MUST(cuGraphExecDestroy(exec));
  MUST(cuGraphDestroy(graph));
  MUST(cuDeviceGraphMemTrim(0));
  puts("alloc_nodes 2\nfree_nodes 1\nlaunches 3\ncaptured_sets 1\ncaptured_copies 1");
  print_tally("", false);
  return 0;
}
