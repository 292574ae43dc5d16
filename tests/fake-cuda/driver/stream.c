/* Streams and events. Work is done when it is called, so there is never anything to wait for. */
#include <stdlib.h>

#include "internal.h"

struct CUevent_st {
  bool alive;
  CUgraph captured; /* the graph whose work it stands for */
  struct CUevent_st *next;
};

static CUstream all_streams;
static CUevent all_events;
static __thread struct CUstream_st own_stream = {.alive = true};

/* Null, CU_STREAM_LEGACY and CU_STREAM_PER_THREAD. */
static bool is_default(CUstream stream) { return (uintptr_t)stream <= 2; }

CUstream stream_of(CUstream handle) {
  if (handle == PER_THREAD_STREAM) return &own_stream;
  if (is_default(handle)) return NULL;
  for (CUstream stream = all_streams; stream; stream = stream->next)
    if (stream == handle) return stream->alive ? stream : NULL;
  return NULL;
}

bool stream_is_valid(CUstream stream) { return is_default(stream) || stream_of(stream); }

bool stream_is_capturing(CUstream handle) {
  CUstream stream = stream_of(handle);
  return stream && stream->capturing;
}

void stream_restart(void) {
  for (CUstream stream = all_streams; stream; stream = stream->next) stream->capturing = NULL;
  for (CUevent event = all_events; event; event = event->next) event->captured = NULL;
  own_stream.capturing = NULL;
}

/* Another thread's own stream cannot be reached, and joins no capture in these tests. */
void stream_end_capture(CUgraph graph) {
  for (CUstream stream = all_streams; stream; stream = stream->next)
    if (stream->capturing == graph) stream->capturing = NULL;
  for (CUevent event = all_events; event; event = event->next)
    if (event->captured == graph) event->captured = NULL;
  if (own_stream.capturing == graph) own_stream.capturing = NULL;
}

static CUresult create(CUstream *out) {
  CUcontext context;
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  CUresult result = driver_enter_context(&context);
  if (result) return result;
  CUstream stream = calloc(1, sizeof *stream);
  if (!stream) abort();
  stream->alive = true;
  stream->device = context->device;
  stream->next = all_streams;
  all_streams = stream;
  *out = stream;
  return driver_leave(CUDA_SUCCESS);
}

CUresult cuStreamCreate(CUstream *out, unsigned int flags) {
  (void)flags;
  CUresult result = step(ID_cuStreamCreate);
  return result ? result : create(out);
}

CUresult cuStreamCreateWithPriority(CUstream *out, unsigned int flags, int priority) {
  (void)flags, (void)priority;
  CUresult result = step(ID_cuStreamCreateWithPriority);
  return result ? result : create(out);
}

static CUresult destroy(CUstream handle) {
  CUresult result = driver_enter();
  if (result) return result;
  CUstream stream = stream_of(handle);
  if (!stream) return driver_leave(CUDA_ERROR_INVALID_HANDLE);
  stream->alive = false; /* kept, so that a stale handle is an error and not a crash */
  return driver_leave(CUDA_SUCCESS);
}

CUresult cuStreamDestroy(CUstream stream) {
  CUresult result = step(ID_cuStreamDestroy);
  return result ? result : destroy(stream);
}

CUresult cuStreamDestroy_v2(CUstream stream) {
  CUresult result = step(ID_cuStreamDestroy_v2);
  return result ? result : destroy(stream);
}

static CUresult synchronise(CUstream stream) {
  CUcontext context;
  CUresult result = driver_enter_context(&context);
  if (result) return result;
  if (!stream_is_valid(stream)) return driver_leave(CUDA_ERROR_INVALID_HANDLE);
  if (stream_is_capturing(stream)) return driver_leave(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  pool_synchronise(context->device);
  return driver_leave(CUDA_SUCCESS);
}

CUresult cuStreamSynchronize(CUstream stream) {
  CUresult result = step(ID_cuStreamSynchronize);
  return result ? result : synchronise(stream);
}

CUresult cuStreamSynchronize_ptsz(CUstream stream) {
  CUresult result = step(ID_cuStreamSynchronize_ptsz);
  return result ? result : synchronise(stream);
}

static CUresult valid(CUstream stream) {
  CUresult result = driver_enter();
  if (result) return result;
  return driver_leave(stream_is_valid(stream) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE);
}

CUresult cuStreamQuery(CUstream stream) { return valid(stream); }
CUresult cuStreamQuery_ptsz(CUstream stream) { return valid(stream); }

#define EXTERNAL 1u

/* A wait for captured work makes the stream part of the capture. */
static CUresult wait_for(CUstream handle, CUevent event, unsigned int flags) {
  CUresult result = driver_enter();
  if (result) return result;
  if (!event || !event->alive || !stream_is_valid(handle))
    return driver_leave(CUDA_ERROR_INVALID_HANDLE);
  CUstream stream = stream_of(handle);
  if (stream && event->captured && !(flags & EXTERNAL) && !stream->capturing) {
    stream->capturing = event->captured;
    stream->joined = true;
  }
  return driver_leave(CUDA_SUCCESS);
}

CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned int flags) {
  CUresult result = step(ID_cuStreamWaitEvent);
  if (LIKELY(fast_mode)) return result;
  return result ? result : wait_for(stream, event, flags);
}

CUresult cuStreamWaitEvent_ptsz(CUstream stream, CUevent event, unsigned int flags) {
  CUresult result = step(ID_cuStreamWaitEvent_ptsz);
  return result ? result : wait_for(THREAD_STREAM(stream), event, flags);
}

/* ---- events ----------------------------------------------------------------------------- */

CUresult cuEventCreate(CUevent *out, unsigned int flags) {
  (void)flags;
  CUcontext context;
  CUresult result = step(ID_cuEventCreate);
  if (!result && !out) result = CUDA_ERROR_INVALID_VALUE;
  if (!result) result = driver_enter_context(&context);
  if (result) return result;
  CUevent event = calloc(1, sizeof *event);
  if (!event) abort();
  event->alive = true;
  event->next = all_events;
  all_events = event;
  *out = event;
  return driver_leave(CUDA_SUCCESS);
}

static CUresult usable(CUevent event) {
  CUresult result = driver_enter();
  if (result) return result;
  return driver_leave(event && event->alive ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE);
}

static CUresult event_destroy(CUevent event, CUresult result) {
  if (!result) result = usable(event);
  if (!result) event->alive = false;
  return result;
}

CUresult cuEventDestroy(CUevent event) { return event_destroy(event, step(ID_cuEventDestroy)); }

CUresult cuEventDestroy_v2(CUevent event) {
  return event_destroy(event, step(ID_cuEventDestroy_v2));
}

static CUresult record(CUevent event, CUstream handle, unsigned int flags) {
  CUresult result = driver_enter();
  if (result) return result;
  if (!event || !event->alive || !stream_is_valid(handle))
    return driver_leave(CUDA_ERROR_INVALID_HANDLE);
  CUstream stream = stream_of(handle);
  if (!(flags & EXTERNAL)) event->captured = stream ? stream->capturing : NULL;
  return driver_leave(CUDA_SUCCESS);
}

CUresult cuEventRecord(CUevent event, CUstream stream) {
  CUresult result = step(ID_cuEventRecord);
  if (LIKELY(fast_mode)) return result;
  return result ? result : record(event, stream, 0);
}

CUresult cuEventRecord_ptsz(CUevent event, CUstream stream) {
  CUresult result = step(ID_cuEventRecord_ptsz);
  return result ? result : record(event, THREAD_STREAM(stream), 0);
}

CUresult cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned int flags) {
  CUresult result = step(ID_cuEventRecordWithFlags);
  return result ? result : record(event, stream, flags);
}

CUresult cuEventRecordWithFlags_ptsz(CUevent event, CUstream stream, unsigned int flags) {
  CUresult result = step(ID_cuEventRecordWithFlags_ptsz);
  return result ? result : record(event, THREAD_STREAM(stream), flags);
}

CUresult cuEventQuery(CUevent event) { return usable(event); }

CUresult cuEventSynchronize(CUevent event) {
  CUcontext context;
  CUresult result = usable(event);
  if (!result) result = driver_enter_context(&context);
  if (result) return result;
  pool_synchronise(context->device);
  return driver_leave(CUDA_SUCCESS);
}

CUresult cuEventElapsedTime(float *milliseconds, CUevent start, CUevent end) {
  if (!milliseconds) return CUDA_ERROR_INVALID_VALUE;
  *milliseconds = 0;
  CUresult result = usable(start);
  return result ? result : usable(end);
}
