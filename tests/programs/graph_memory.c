/*
 * Graphs with memory nodes made by hand: all ways to add a node, an allocation that another graph
 * frees, one that outlives its graph and executable, failed nodes and launches, figures that the
 * driver tells.
 *
 * Run with: FAKE_CUDA_FAIL=cuGraphAddMemAllocNode:2=2,cuGraphLaunch:3=2
 * Expected: as printed.
 */
#include "tally.h"

static CUdeviceptr add_alloc(CUgraph graph, size_t bytes) {
  CUDA_MEM_ALLOC_NODE_PARAMS params = {.poolProps = {.allocType = 1, .location = {1, 0}},
                                       .bytesize = bytes};
  CUgraphNode node;
  MUST(cuGraphAddMemAllocNode(&node, graph, NULL, 0, &params));
  return params.dptr;
}

static CUdeviceptr add_alloc_generic(CUgraph graph, size_t bytes) {
  CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC};
  CUgraphNode node;
  params.alloc.bytesize = bytes;
  MUST(cuGraphAddNode_v2(&node, graph, NULL, NULL, 0, &params));
  return params.alloc.dptr;
}

static void add_free_generic(CUgraph graph, CUdeviceptr pointer) {
  CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_MEM_FREE};
  CUgraphNode node;
  params.free.dptr = pointer;
  MUST(cuGraphAddNode_v2(&node, graph, NULL, NULL, 0, &params));
}

int main(void) {
  CUgraph maker, ender, failing, empty, clone;
  CUgraphExec making, ending, empty_exec;
  CUgraphNode node;
  uint64_t told;
  start_driver();
  MUST(cuGraphCreate(&maker, 0));
  MUST(cuGraphCreate(&ender, 0));
  MUST(cuGraphCreate(&failing, 0));
  CUdeviceptr passed = add_alloc(maker, 10000);
  CUdeviceptr kept = add_alloc_generic(maker, 20000);
  CUdeviceptr inside = add_alloc_generic(maker, 30000);
  MUST(cuGraphAddMemFreeNode(&node, maker, NULL, 0, inside));
  add_free_generic(ender, passed);
  CUDA_MEM_ALLOC_NODE_PARAMS params = {.bytesize = 7};
  FAILED_ALLOC(GRAPH, cuGraphAddMemAllocNode(&node, failing, NULL, 0, &params));
  CUgraphNodeParams other = {.type = 0};
  MUST(cuGraphAddNode_v2(&node, failing, NULL, NULL, 0, &other));

  MUST(cuGraphInstantiateWithFlags(&making, maker, 0));
  MUST(cuGraphInstantiateWithFlags(&ending, ender, 0));
  MUST(cuGraphLaunch(making, NULL));
  did_alloc(GRAPH, 10000), did_alloc(GRAPH, 20000), did_alloc(GRAPH, 30000);
  did_free(GRAPH, 30000);
  MUST(cuGraphLaunch(ending, NULL));
  did_free(GRAPH, 10000);
  failed(cuGraphLaunch(ending, NULL), "the third launch");
  MUST(cuDeviceGetGraphMemAttribute(0, 2, &told));

  /* Only graphs without memory nodes can be cloned and updated. */
  MUST(cuGraphCreate(&empty, 0));
  MUST(cuGraphClone(&clone, empty));
  failed(cuGraphClone(&clone, maker), "the clone of a graph with memory");
  MUST(cuGraphInstantiateWithFlags(&empty_exec, empty, 0));
  MUST(cuGraphExecUpdate_v2(empty_exec, empty, NULL));
  MUST(cuGraphExecDestroy(empty_exec));
  MUST(cuGraphDestroy(clone));
  MUST(cuGraphDestroy(empty));

  /* What a launch left outlives graph and executable. */
  MUST(cuGraphExecDestroy(making));
  MUST(cuGraphDestroy(maker));
  MUST(cuMemFreeAsync(kept, NULL));
  did_free(GRAPH, 20000);
  MUST(cuDeviceGraphMemTrim(0));
  puts("alloc_nodes 3\nfree_nodes 2\nlaunches 2\nfailed_launches 1\ntrims 1");
  say("", "told_reserved", told);
  print_tally("", true);
  return 0;
}
