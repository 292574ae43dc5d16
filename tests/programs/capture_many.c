/*
 * More streams captured at a time than are followed: the calls of those beyond are in doubt, and
 * when all captures have ended nothing is.
 *
 * Expected: 64 streams are followed, `beyond` calls are counted as doubtful.
 */
#include "tally.h"

#define STREAMS 70
#define FOLLOWED 64

int main(void) {
  CUstream streams[STREAMS];
  CUgraph graph;
  start_driver();
  CUdeviceptr block = take(4096);
  for (int i = 0; i < STREAMS; i++) {
    MUST(cuStreamCreate(&streams[i], 0));
    MUST(cuStreamBeginCapture_v2(streams[i], 0));
  }
  for (int i = 0; i < STREAMS; i++) MUST(cuMemsetD8Async(block, 0, 16, streams[i]));
  for (int i = 0; i < STREAMS; i++) {
    MUST(cuStreamEndCapture(streams[i], &graph));
    MUST(cuGraphDestroy(graph));
  }
  MUST(cuStreamBeginCapture_v2(streams[STREAMS - 1], 0));
  MUST(cuMemsetD8Async(block, 0, 16, streams[STREAMS - 1]));
  MUST(cuStreamEndCapture(streams[STREAMS - 1], &graph));
  MUST(cuGraphDestroy(graph));
  MUST(cuMemsetD8Async(block, 0, 16, streams[0]));
  say("", "followed", FOLLOWED + 1);
  say("", "beyond", STREAMS - FOLLOWED);
  return 0;
}
