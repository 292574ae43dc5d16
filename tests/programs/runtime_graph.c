/*
 * A graph captured and launched by the runtime, and streams, events and an executable that it
 * leaves.
 *
 * Expected: as printed; the objects that are left are named by the runtime's calls.
 */
#include "tally.h"

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, int mode);
cudaError_t cudaStreamEndCapture(cudaStream_t stream, CUgraph *graph);
cudaError_t cudaGraphInstantiate(CUgraphExec *exec, CUgraph graph, unsigned long long flags);
cudaError_t cudaGraphLaunch(CUgraphExec exec, cudaStream_t stream);
cudaError_t cudaGraphDestroy(CUgraph graph);
cudaError_t cudaEventCreate(cudaEvent_t *event);

int main(void) {
  cudaStream_t stream, second;
  cudaEvent_t event;
  CUgraph graph;
  CUgraphExec exec;
  void *pointer;
  MUST(cudaStreamCreate(&stream));
  MUST(cudaStreamCreate(&second));
  MUST(cudaStreamDestroy(second));
  MUST(cudaEventCreate(&event));
  MUST(cudaStreamBeginCapture(stream, 0));
  MUST(cudaMallocAsync(&pointer, 3000, stream));
  MUST(cudaMemsetAsync(pointer, 0, 3000, stream));
  MUST(cudaFreeAsync(pointer, stream));
  MUST(cudaStreamEndCapture(stream, &graph));
  MUST(cudaGraphInstantiate(&exec, graph, 0));
  MUST(cudaGraphDestroy(graph));
  for (int i = 0; i < 4; i++) {
    MUST(cudaGraphLaunch(exec, stream));
    did_alloc(GRAPH, 3000);
    did_free(GRAPH, 3000);
  }
  print_tally("", true);
  return 0;
}
