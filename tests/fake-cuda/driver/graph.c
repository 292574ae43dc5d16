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

/* An allocation of the graph's own, or with no bytes the free of memory from elsewhere. */
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
    if (node->bytes && !range_based_at(&live_ranges, node->base))
      space_give(REGION_VMM, node->base, node->span);
    free(node);
  }
  free(graph);
}

/* ---- capture ---------------------------------------------------------------------------- */

static CUgraph new_graph(int device) {
  CUgraph graph = calloc(1, sizeof *graph);
  if (!graph) abort();
  graph->device = device;
  graph->users = 1;
  return graph;
}

/* Into a graph of its own when there is none. */
static CUresult begin(CUstream handle, CUgraph graph) {
  CUresult result = driver_enter();
  if (result) return result;
  CUstream stream = stream_of(handle);
  if (!stream || stream->capturing)
    return driver_leave(stream ? CUDA_ERROR_INVALID_VALUE
                               : CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  stream->capturing = graph ? graph : new_graph(stream->device);
  stream->joined = false;
  return driver_leave(CUDA_SUCCESS);
}

#define BEGIN(symbol, params, stream, graph) \
  CUresult symbol params {                   \
    CUresult result = step(ID_##symbol);     \
    return result ? result : begin(stream, graph); \
  }
#define TO_GRAPH                                                                            \
  (CUstream stream, CUgraph graph, const void *dependencies, const void *edges, size_t number, \
   int mode)
BEGIN(cuStreamBeginCapture, (CUstream stream), stream, NULL)
BEGIN(cuStreamBeginCapture_ptsz, (CUstream stream), THREAD_STREAM(stream), NULL)
BEGIN(cuStreamBeginCapture_v2, (CUstream stream, int mode), ((void)mode, stream), NULL)
BEGIN(cuStreamBeginCapture_v2_ptsz, (CUstream stream, int mode),
      ((void)mode, THREAD_STREAM(stream)), NULL)
BEGIN(cuStreamBeginCaptureToGraph, TO_GRAPH,
      ((void)dependencies, (void)edges, (void)number, (void)mode, stream), graph)
BEGIN(cuStreamBeginCaptureToGraph_ptsz, TO_GRAPH,
      ((void)dependencies, (void)edges, (void)number, (void)mode, THREAD_STREAM(stream)), graph)

static CUresult end(CUstream handle, CUgraph *graph, CUresult scripted) {
  if (!graph) return CUDA_ERROR_INVALID_VALUE;
  CUresult result = driver_enter();
  if (result) return result;
  CUstream stream = stream_of(handle);
  if (!stream || !stream->capturing) return driver_leave(CUDA_ERROR_INVALID_VALUE);
  if (stream->joined) return driver_leave(CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
  *graph = scripted ? NULL : stream->capturing;
  stream_end_capture(stream->capturing);
  return driver_leave(scripted);
}

/* Errors that the script names are those that end a capture without a graph. */
CUresult cuStreamEndCapture(CUstream stream, CUgraph *graph) {
  return end(stream, graph, step(ID_cuStreamEndCapture));
}

CUresult cuStreamEndCapture_ptsz(CUstream stream, CUgraph *graph) {
  return end(THREAD_STREAM(stream), graph, step(ID_cuStreamEndCapture_ptsz));
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

static CUresult add_alloc(CUgraph graph, CUdeviceptr *pointer, uint64_t bytes) {
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

static CUresult add_free(CUgraph graph, CUdeviceptr pointer) {
  for (struct node *node = graph->nodes; node; node = node->next) {
    if (node->base != pointer || node->freed_inside) continue;
    node->freed_inside = true;
    return CUDA_SUCCESS;
  }
  struct node *node = calloc(1, sizeof *node);
  if (!node) abort();
  node->base = pointer;
  node->next = graph->nodes;
  graph->nodes = node;
  return CUDA_SUCCESS;
}

CUresult capture_alloc(CUstream handle, CUdeviceptr *pointer, uint64_t bytes) {
  return add_alloc(stream_of(handle)->capturing, pointer, bytes);
}

CUresult capture_free(CUstream handle, CUdeviceptr pointer) {
  return add_free(stream_of(handle)->capturing, pointer);
}

/* ---- graphs made by hand ---------------------------------------------------------------- */

static CUresult graph_leave(CUgraph *out) {
  *out = new_graph(0);
  return driver_leave(CUDA_SUCCESS);
}

CUresult cuGraphCreate(CUgraph *out, unsigned int flags) {
  CUresult result = step(ID_cuGraphCreate);
  if (!result && (!out || flags)) result = CUDA_ERROR_INVALID_VALUE;
  if (!result) result = driver_enter();
  return result ? result : graph_leave(out);
}

CUresult cuGraphClone(CUgraph *out, CUgraph original) {
  CUresult result = step(ID_cuGraphClone);
  if (!result && (!out || !original)) result = CUDA_ERROR_INVALID_VALUE;
  if (!result && original->nodes) result = CUDA_ERROR_NOT_SUPPORTED;
  if (!result) result = driver_enter();
  return result ? result : graph_leave(out);
}

/* Nodes are told apart by nothing here. */
static CUresult added(CUgraphNode *node, CUgraph graph, CUdeviceptr *taken, uint64_t bytes,
                      CUdeviceptr given) {
  if (!node || !graph || (taken && !bytes)) return CUDA_ERROR_INVALID_VALUE;
  CUresult result = driver_enter();
  if (result) return result;
  *node = (CUgraphNode)graph;
  return driver_leave(taken ? add_alloc(graph, taken, bytes) : add_free(graph, given));
}

CUresult cuGraphAddMemAllocNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
                                size_t number, CUDA_MEM_ALLOC_NODE_PARAMS *params) {
  (void)dependencies, (void)number;
  CUresult result = step(ID_cuGraphAddMemAllocNode);
  if (!result && !params) result = CUDA_ERROR_INVALID_VALUE;
  return result ? result : added(node, graph, &params->dptr, params->bytesize, 0);
}

CUresult cuGraphAddMemFreeNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
                               size_t number, CUdeviceptr pointer) {
  (void)dependencies, (void)number;
  CUresult result = step(ID_cuGraphAddMemFreeNode);
  return result ? result : added(node, graph, NULL, 0, pointer);
}

static CUresult add_node(CUgraphNode *node, CUgraph graph, CUgraphNodeParams *params) {
  if (!node || !graph || !params) return CUDA_ERROR_INVALID_VALUE;
  if (params->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC)
    return added(node, graph, &params->alloc.dptr, params->alloc.bytesize, 0);
  if (params->type == CU_GRAPH_NODE_TYPE_MEM_FREE)
    return added(node, graph, NULL, 0, params->free.dptr);
  *node = (CUgraphNode)graph;
  return CUDA_SUCCESS;
}

CUresult cuGraphAddNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
                        size_t number, CUgraphNodeParams *params) {
  (void)dependencies, (void)number;
  CUresult result = step(ID_cuGraphAddNode);
  return result ? result : add_node(node, graph, params);
}

CUresult cuGraphAddNode_v2(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
                           const void *edges, size_t number, CUgraphNodeParams *params) {
  (void)dependencies, (void)edges, (void)number;
  CUresult result = step(ID_cuGraphAddNode_v2);
  return result ? result : add_node(node, graph, params);
}

/* ---- executable graphs ------------------------------------------------------------------ */

static CUresult instantiate(CUgraphExec *out, CUgraph graph) {
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

#define INSTANTIATE(symbol, params, unused)              \
  CUresult symbol params {                               \
    CUresult result = (unused, step(ID_##symbol));       \
    return result ? result : instantiate(exec, graph);   \
  }
#define OLD_PARAMS (CUgraphExec *exec, CUgraph graph, CUgraphNode *node, char *log, size_t room)
#define OLD_UNUSED ((void)node, (void)log, (void)room)
INSTANTIATE(cuGraphInstantiate, OLD_PARAMS, OLD_UNUSED)
INSTANTIATE(cuGraphInstantiate_v2, OLD_PARAMS, OLD_UNUSED)
INSTANTIATE(cuGraphInstantiateWithFlags,
            (CUgraphExec *exec, CUgraph graph, unsigned long long flags), (void)flags)
INSTANTIATE(cuGraphInstantiateWithParams, (CUgraphExec *exec, CUgraph graph, void *params),
            (void)params)
INSTANTIATE(cuGraphInstantiateWithParams_ptsz, (CUgraphExec *exec, CUgraph graph, void *params),
            (void)params)

/* Refused where memory would change. */
static CUresult update(CUgraphExec exec, CUgraph graph) {
  CUresult result = driver_enter();
  if (result) return result;
  if (!exec || !graph) return driver_leave(CUDA_ERROR_INVALID_VALUE);
  bool memory = exec->graph->nodes || graph->nodes;
  return driver_leave(memory ? CUDA_ERROR_NOT_SUPPORTED : CUDA_SUCCESS);
}

CUresult cuGraphExecUpdate(CUgraphExec exec, CUgraph graph, CUgraphNode *node, int *answer) {
  (void)node, (void)answer;
  CUresult result = step(ID_cuGraphExecUpdate);
  return result ? result : update(exec, graph);
}

CUresult cuGraphExecUpdate_v2(CUgraphExec exec, CUgraph graph, void *answer) {
  (void)answer;
  CUresult result = step(ID_cuGraphExecUpdate_v2);
  return result ? result : update(exec, graph);
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

static CUresult launch(CUgraphExec exec, CUstream stream, CUresult result) {
  if (!result) result = driver_enter();
  if (result) return result;
  if (!exec || !stream_is_valid(stream)) return driver_leave(CUDA_ERROR_INVALID_HANDLE);
  for (struct node *node = exec->graph->nodes; node; node = node->next)
    if (node->bytes && range_based_at(&live_ranges, node->base))
      return driver_leave(CUDA_ERROR_INVALID_VALUE);
  result = back(exec);
  for (struct node *node = exec->graph->nodes; !result && node; node = node->next) {
    if (!node->bytes) {
      struct range *range = range_based_at(&live_ranges, node->base);
      if (!range || range->ledger != GRAPH) return driver_leave(CUDA_ERROR_INVALID_VALUE);
      truth_free(GRAPH, range->bytes);
      memory_release(range);
      continue;
    }
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

CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream) {
  return launch(exec, stream, step(ID_cuGraphLaunch));
}

CUresult cuGraphLaunch_ptsz(CUgraphExec exec, CUstream stream) {
  return launch(exec, THREAD_STREAM(stream), step(ID_cuGraphLaunch_ptsz));
}

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
  CUresult result = step(ID_cuGraphExecDestroy);
  if (!result) result = driver_enter();
  if (result) return result;
  if (!exec) return driver_leave(CUDA_ERROR_INVALID_HANDLE);
  idle[exec->graph->device] += exec->reserved;
  drop(exec->graph);
  free(exec);
  return driver_leave(CUDA_SUCCESS);
}

CUresult cuGraphDestroy(CUgraph graph) {
  CUresult result = step(ID_cuGraphDestroy);
  if (!result) result = driver_enter();
  if (result) return result;
  if (!graph) return driver_leave(CUDA_ERROR_INVALID_HANDLE);
  drop(graph);
  return driver_leave(CUDA_SUCCESS);
}

CUresult cuDeviceGraphMemTrim(CUdevice device) {
  CUresult result = step(ID_cuDeviceGraphMemTrim);
  if (!result) result = driver_enter_device(device);
  if (result) return result;
  device_give(device, idle[device]);
  reserved_now[device] -= idle[device];
  idle[device] = 0;
  return driver_leave(CUDA_SUCCESS);
}

CUresult cuDeviceGetGraphMemAttribute(CUdevice device, int attribute, void *value) {
  CUresult result = step(ID_cuDeviceGetGraphMemAttribute);
  if (!result && !value) result = CUDA_ERROR_INVALID_VALUE;
  if (!result) result = driver_enter_device(device);
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
