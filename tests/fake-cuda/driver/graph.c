/*
 * Capture, graphs with memory nodes, and sharing between processes.
 *
 * Under capture an allocation fixes an address and takes no memory. A launch takes memory for
 * all of the graph's allocations at once and keeps it, outside the pools, until the executable
 * graph is gone and the device is trimmed. What the graph does not free itself is live after
 * the launch and can be freed like other stream-ordered memory.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "internal.h"

struct node {
  uint64_t base, span, bytes;
  bool freed_inside;
  struct node *next;
};

struct CUgraph_st {
  int device;
  unsigned users; /* the graph itself and its executables */
  struct node *nodes;
};

struct CUgraphExec_st {
  CUgraph graph;
  uint64_t reserved;
};

static uint64_t idle[MAX_DEVICES]; /* kept after the executables are gone */
static uint64_t reserved_now[MAX_DEVICES];

static void drop(CUgraph graph) {
  if (--graph->users) return;
  for (struct node *node = graph->nodes, *next; node; node = next) {
    next = node->next;
    if (!range_based_at(&live_ranges, node->base))
      space_give(REGION_VMM, node->base, node->span);
    free(node);
  }
  free(graph);
}

/* ---- capture ---------------------------------------------------------------------------- */

static CUresult begin(CUstream handle) {
  CUresult result = driver_enter();
  if (result) return result;
  CUstream stream = stream_of(handle);
  if (!stream || stream->capturing)
    return driver_leave(stream ? CUDA_ERROR_INVALID_VALUE
                               : CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  CUgraph graph = calloc(1, sizeof *graph);
  if (!graph) abort();
  graph->device = stream->device;
  graph->users = 1;
  stream->capturing = graph;
  return driver_leave(CUDA_SUCCESS);
}

CUresult cuStreamBeginCapture(CUstream stream) { return begin(stream); }
CUresult cuStreamBeginCapture_ptsz(CUstream stream) { return begin(stream); }

CUresult cuStreamBeginCapture_v2(CUstream stream, int mode) {
  (void)mode;
  return begin(stream);
}

CUresult cuStreamBeginCapture_v2_ptsz(CUstream stream, int mode) {
  (void)mode;
  return begin(stream);
}

CUresult cuStreamEndCapture(CUstream handle, CUgraph *graph) {
  if (!graph) return CUDA_ERROR_INVALID_VALUE;
  CUresult result = driver_enter();
  if (result) return result;
  CUstream stream = stream_of(handle);
  if (!stream || !stream->capturing) return driver_leave(CUDA_ERROR_INVALID_VALUE);
  *graph = stream->capturing;
  stream->capturing = NULL;
  return driver_leave(CUDA_SUCCESS);
}

CUresult cuStreamEndCapture_ptsz(CUstream stream, CUgraph *graph) {
  return cuStreamEndCapture(stream, graph);
}

CUresult cuStreamIsCapturing(CUstream stream, int *status) {
  if (!status) return CUDA_ERROR_INVALID_VALUE;
  CUresult result = driver_enter();
  if (result) return result;
  *status = stream_is_capturing(stream);
  return driver_leave(CUDA_SUCCESS);
}

CUresult cuStreamIsCapturing_ptsz(CUstream stream, int *status) {
  return cuStreamIsCapturing(stream, status);
}

CUresult capture_alloc(CUstream handle, CUdeviceptr *pointer, uint64_t bytes) {
  CUgraph graph = stream_of(handle)->capturing;
  struct node *node = calloc(1, sizeof *node);
  if (!node) abort();
  node->bytes = bytes;
  node->span = round_up(bytes, BLOCK);
  node->base = space_take(REGION_VMM, node->span);
  node->next = graph->nodes;
  graph->nodes = node;
  *pointer = node->base;
  return CUDA_SUCCESS;
}

CUresult capture_free(CUstream handle, CUdeviceptr pointer) {
  for (struct node *node = stream_of(handle)->capturing->nodes; node; node = node->next) {
    if (node->base != pointer || node->freed_inside) continue;
    node->freed_inside = true;
    return CUDA_SUCCESS;
  }
  return CUDA_ERROR_INVALID_VALUE;
}

/* ---- executable graphs ------------------------------------------------------------------ */

CUresult cuGraphInstantiateWithFlags(CUgraphExec *out, CUgraph graph, unsigned long long flags) {
  (void)flags;
  if (!out || !graph) return CUDA_ERROR_INVALID_VALUE;
  CUresult result = driver_enter();
  if (result) return result;
  CUgraphExec exec = calloc(1, sizeof *exec);
  if (!exec) abort();
  exec->graph = graph;
  graph->users++;
  *out = exec;
  return driver_leave(CUDA_SUCCESS);
}

static CUresult back(CUgraphExec exec) {
  uint64_t bytes = 0;
  if (exec->reserved) return CUDA_SUCCESS;
  for (struct node *node = exec->graph->nodes; node; node = node->next) bytes += node->span;
  int device = exec->graph->device;
  if (!device_take(device, bytes)) return CUDA_ERROR_OUT_OF_MEMORY;
  exec->reserved = bytes;
  reserved_now[device] += bytes;
  return CUDA_SUCCESS;
}

static CUresult launch(CUgraphExec exec, CUstream stream) {
  CUresult result = driver_enter();
  if (result) return result;
  if (!exec || !stream_is_valid(stream)) return driver_leave(CUDA_ERROR_INVALID_HANDLE);
  for (struct node *node = exec->graph->nodes; node; node = node->next)
    if (range_based_at(&live_ranges, node->base)) return driver_leave(CUDA_ERROR_INVALID_VALUE);
  result = back(exec);
  for (struct node *node = exec->graph->nodes; !result && node; node = node->next) {
    truth_alloc(GRAPH, node->bytes);
    if (node->freed_inside) {
      truth_free(GRAPH, node->bytes);
      continue;
    }
    struct range range = {.base = node->base, .span = node->span, .bytes = node->bytes,
                          .ledger = GRAPH, .region = REGION_VMM, .owner = node};
    range_add(&live_ranges, &range);
  }
  return driver_leave(result);
}

CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream) { return launch(exec, stream); }
CUresult cuGraphLaunch_ptsz(CUgraphExec exec, CUstream stream) { return launch(exec, stream); }

static CUresult upload(CUgraphExec exec) {
  CUresult result = driver_enter();
  return result ? result : driver_leave(exec ? back(exec) : CUDA_ERROR_INVALID_HANDLE);
}

CUresult cuGraphUpload(CUgraphExec exec, CUstream stream) {
  (void)stream;
  return upload(exec);
}

CUresult cuGraphUpload_ptsz(CUgraphExec exec, CUstream stream) {
  (void)stream;
  return upload(exec);
}

/* The address belongs to the graph: nothing to give back. */
void graph_release(struct range *range) { (void)range; }

CUresult cuGraphExecDestroy(CUgraphExec exec) {
  CUresult result = driver_enter();
  if (result) return result;
  if (!exec) return driver_leave(CUDA_ERROR_INVALID_HANDLE);
  idle[exec->graph->device] += exec->reserved;
  drop(exec->graph);
  free(exec);
  return driver_leave(CUDA_SUCCESS);
}

CUresult cuGraphDestroy(CUgraph graph) {
  CUresult result = driver_enter();
  if (result) return result;
  if (!graph) return driver_leave(CUDA_ERROR_INVALID_HANDLE);
  drop(graph);
  return driver_leave(CUDA_SUCCESS);
}

CUresult cuDeviceGraphMemTrim(CUdevice device) {
  CUresult result = driver_enter_device(device);
  if (result) return result;
  device_give(device, idle[device]);
  reserved_now[device] -= idle[device];
  idle[device] = 0;
  return driver_leave(CUDA_SUCCESS);
}

CUresult cuDeviceGetGraphMemAttribute(CUdevice device, int attribute, void *value) {
  if (!value) return CUDA_ERROR_INVALID_VALUE;
  CUresult result = driver_enter_device(device);
  if (result) return result;
  bool reserved = attribute >= 2; /* 0, 1: used; 2, 3: reserved */
  *(uint64_t *)value = reserved ? reserved_now[device] : reserved_now[device] - idle[device];
  return driver_leave(CUDA_SUCCESS);
}

/* ---- sharing ---------------------------------------------------------------------------- */

struct ticket {
  uint64_t base, bytes;
  int32_t process;
};

_Static_assert(sizeof(struct ticket) <= sizeof(CUipcMemHandle), "a ticket fits into a handle");

CUresult cuIpcGetMemHandle(CUipcMemHandle *handle, CUdeviceptr pointer) {
  if (!handle) return CUDA_ERROR_INVALID_VALUE;
  CUresult result = driver_enter();
  if (result) return result;
  struct range *range = range_at(&live_ranges, pointer);
  if (!range || range->ledger != DEVICE) return driver_leave(CUDA_ERROR_INVALID_VALUE);
  struct ticket ticket = {range->base, range->bytes, (int32_t)getpid()};
  memset(handle, 0, sizeof *handle);
  memcpy(handle, &ticket, sizeof ticket);
  return driver_leave(CUDA_SUCCESS);
}

/* Opening a handle again gives the same address once more. */
static CUresult open_handle(CUdeviceptr *pointer, const CUipcMemHandle *handle) {
  static struct opened { struct ticket ticket; uint64_t base; } opened[256];
  static unsigned count;
  CUcontext context;
  if (!pointer) return CUDA_ERROR_INVALID_VALUE;
  CUresult result = driver_enter_context(&context);
  if (result) return result;
  struct ticket ticket;
  memcpy(&ticket, handle, sizeof ticket);
  if (!ticket.bytes || ticket.process == (int32_t)getpid())
    return driver_leave(CUDA_ERROR_INVALID_CONTEXT);
  for (unsigned i = 0; i < count && i < 256; i++) {
    struct range *range = range_based_at(&live_ranges, opened[i].base);
    if (!range || memcmp(&opened[i].ticket, &ticket, sizeof ticket)) continue;
    range->flags++;
    *pointer = range->base;
    return driver_leave(CUDA_SUCCESS);
  }
  struct range range = {.bytes = ticket.bytes, .ledger = IMPORTED, .region = REGION_VMM,
                        .device = context->device, .context = context, .flags = 1};
  range.span = round_up(ticket.bytes, BLOCK);
  range.base = space_take(REGION_VMM, range.span);
  range_add(&live_ranges, &range);
  truth_alloc(IMPORTED, range.bytes);
  opened[count++ % 256] = (struct opened){ticket, range.base};
  *pointer = range.base;
  return driver_leave(CUDA_SUCCESS);
}

CUresult cuIpcOpenMemHandle(CUdeviceptr *pointer, CUipcMemHandle handle, unsigned int flags) {
  CUresult result = step(ID_cuIpcOpenMemHandle);
  if (!result && flags > 1) result = CUDA_ERROR_INVALID_VALUE;
  return truth_alloc_result(IMPORTED, result ? result : open_handle(pointer, &handle));
}

CUresult cuIpcOpenMemHandle_v2(CUdeviceptr *pointer, CUipcMemHandle handle, unsigned int flags) {
  CUresult result = step(ID_cuIpcOpenMemHandle_v2);
  if (!result && flags > 1) result = CUDA_ERROR_INVALID_VALUE;
  return truth_alloc_result(IMPORTED, result ? result : open_handle(pointer, &handle));
}

static CUresult close_handle(CUdeviceptr pointer) {
  CUresult result = driver_enter();
  if (result) return result;
  struct range *range = range_based_at(&live_ranges, pointer);
  bool opened = range && range->ledger == IMPORTED && range->flags;
  if (!opened) return driver_leave(CUDA_ERROR_INVALID_VALUE);
  if (--range->flags) return driver_leave(CUDA_SUCCESS);
  truth_free(IMPORTED, range->bytes);
  memory_release(range);
  return driver_leave(CUDA_SUCCESS);
}

CUresult cuIpcCloseMemHandle(CUdeviceptr pointer) {
  CUresult result = step(ID_cuIpcCloseMemHandle);
  return truth_free_result(IMPORTED, result ? result : close_handle(pointer));
}
