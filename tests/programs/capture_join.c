/*
 * What belongs to a capture and what does not: streams that join by events and leave at the end,
 * streams beside it, the per-thread default stream, events recorded outside, waits that make a node
 * of their own, a capture that ends without a graph, one refused end, a destroyed stream, two
 * captures at once, and one on another thread.
 *
 * Run with: FAKE_CUDA_FAIL=cuStreamEndCapture:4=901
 * Expected: sets of other sizes are captured than are done, so that their bytes tell them apart.
 */
#include <pthread.h>

#include "tally.h"

static CUdeviceptr block;
static uint64_t captured_count, captured_bytes;
static uint64_t size = 1;
static CUcontext context;

static void outside(CUstream stream) {
  MUST(cuMemsetD8Async(block, 0, size, stream));
  did_set(ASYNC, size);
  size *= 2;
}

static void inside(CUstream stream) {
  MUST(cuMemsetD8Async(block, 0, size, stream));
  captured_count++;
  captured_bytes += size;
  size *= 2;
}

static void *on_another_thread(void *argument) {
  CUgraph graph;
  (void)argument;
  MUST(cuCtxSetCurrent(context));
  /* Its own default stream is none of the capture that the main thread has on its own. */
  MUST(cuMemsetD8Async_ptsz(block, 0, size, NULL));
  did_set(ASYNC, size);
  size *= 2;
  MUST(cuStreamBeginCapture_v2_ptsz(NULL, 0));
  MUST(cuMemsetD8Async_ptsz(block, 0, size, NULL));
  captured_count++, captured_bytes += size, size *= 2;
  MUST(cuStreamEndCapture_ptsz(NULL, &graph));
  MUST(cuGraphDestroy(graph));
  return NULL;
}

int main(void) {
  CUstream first, second, third, lost;
  CUevent event, late, plain;
  CUgraph graph, other;
  pthread_t thread;
  context = start_driver();
  block = take((size_t)1 << 32);
  MUST(cuStreamCreate(&first, 0));
  MUST(cuStreamCreate(&second, 0));
  MUST(cuStreamCreate(&third, 0));
  MUST(cuStreamCreate(&lost, 0));
  MUST(cuEventCreate(&event, 0));
  MUST(cuEventCreate(&late, 0));
  MUST(cuEventCreate(&plain, 0));

  /* Before, beside, joined, joined by a joined one, external, and behind. */
  MUST(cuEventRecord(plain, third));
  outside(first);
  MUST(cuStreamBeginCapture_v2(first, 0));
  inside(first);
  outside(second);
  MUST(cuStreamWaitEvent(second, plain, 0));
  outside(second);
  MUST(cuEventRecord(event, first));
  MUST(cuEventRecordWithFlags(late, first, 1));
  MUST(cuStreamWaitEvent(third, late, 0));
  outside(third);
  MUST(cuStreamWaitEvent(second, event, 0));
  inside(second);
  MUST(cuEventRecord(late, second));
  MUST(cuStreamWaitEvent(third, late, 0));
  inside(third);
  outside(NULL);
  failed(cuStreamEndCapture(second, &graph), "the end on a stream that only joined");
  inside(third);
  MUST(cuStreamEndCapture(first, &graph));
  outside(first);
  outside(second);
  outside(third);
  MUST(cuStreamWaitEvent(third, event, 0)); /* nothing is captured any more */
  outside(third);

  /* Two at a time, of which the second goes into a graph that is there. */
  MUST(cuStreamBeginCapture_v2(first, 0));
  MUST(cuStreamBeginCaptureToGraph(second, graph, NULL, NULL, 0, 0));
  inside(first);
  inside(second);
  MUST(cuStreamEndCapture(second, &other)); /* the third that succeeds or is refused */
  outside(second);
  inside(first);
  /* The fourth: invalidated. */
  failed(cuStreamEndCapture(first, &other), "an invalidated capture");
  outside(first);

  /* An event recorded anew outside stands for nothing captured. */
  MUST(cuStreamBeginCapture_v2(first, 0));
  MUST(cuEventRecord(event, first));
  MUST(cuEventRecord(event, second));
  MUST(cuStreamWaitEvent(third, event, 0));
  outside(third);
  MUST(cuStreamEndCapture(first, &other));
  MUST(cuGraphDestroy(other));

  /* The thread's own default stream, and another thread's. */
  MUST(cuStreamBeginCapture_v2_ptsz(NULL, 0));
  inside((CUstream)2);
  if (pthread_create(&thread, NULL, on_another_thread, NULL)) return 9;
  pthread_join(thread, NULL);
  outside(NULL);
  inside((CUstream)2);
  MUST(cuStreamEndCapture_ptsz((CUstream)2, &other));
  outside((CUstream)2);
  MUST(cuGraphDestroy(other));

  MUST(cuGraphDestroy(graph));
  MUST(cuStreamDestroy_v2(lost));
  say("", "captured_sets", captured_count);
  say("", "captured_set_bytes", captured_bytes);
  print_tally("", true);
  return 0;
}
