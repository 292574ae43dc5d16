/*
 * Contexts: creation, the stack of each thread, the primary context, and what their end frees.
 *
 * The end of a context frees its linear, pitched, managed and pinned memory and its arrays.
 * Memory of cuMemCreate and of the stream-ordered pools outlives it, as documented. A context is
 * never given back to the heap, so that a stale handle is an error and not a crash.
 */
#include <stdlib.h>

#include "internal.h"

#define DEPTH 32
static __thread CUcontext stack[DEPTH];
static __thread int depth;
static uint64_t next_id;

static bool is_context(CUcontext context) {
  for (CUcontext known = all_contexts; known; known = known->next)
    if (known == context) return known->alive;
  return false;
}

CUcontext context_current(void) {
  CUcontext top = depth ? stack[depth - 1] : NULL;
  return top && top->alive ? top : NULL;
}

static bool start(CUcontext context) {
  if (!blocks_open_context(context)) return false;
  context->alive = true;
  context->references = 1;
  context->id = ++next_id;
  devices[context->device].contexts++;
  truth_context(1);
  return true;
}

static CUcontext new_context(int device, unsigned flags, bool primary) {
  CUcontext context = calloc(1, sizeof *context);
  if (!context) return NULL;
  context->device = device;
  context->flags = flags;
  context->primary = primary;
  if (!start(context)) {
    free(context);
    return NULL;
  }
  context->next = all_contexts;
  all_contexts = context;
  return context;
}

void context_end(CUcontext context) {
  while (context->ranges) {
    truth_implicit_free(context->ranges->ledger, context->ranges->bytes);
    memory_release(context->ranges);
  }
  blocks_close_context(context);
  devices[context->device].contexts--;
  context->alive = false;
  context->references = 0;
  truth_context(-1);
}

void context_restart(void) {
  for (CUcontext context = all_contexts; context; context = context->next) {
    context->ranges = NULL;
    if (context->alive && !blocks_open_context(context)) context->alive = false;
  }
}

static CUresult push(CUcontext context) {
  if (depth == DEPTH) return CUDA_ERROR_INVALID_VALUE;
  stack[depth++] = context;
  return CUDA_SUCCESS;
}

/* ---- ordinary contexts ------------------------------------------------------------------ */

static CUresult create(CUcontext *out, unsigned flags, CUdevice device) {
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  CUresult result = driver_enter_device(device);
  if (result) return result;
  CUcontext context = new_context(device, flags, false);
  if (!context) return driver_leave(CUDA_ERROR_OUT_OF_MEMORY);
  *out = context;
  return driver_leave(push(context));
}

CUresult cuCtxCreate(CUcontext *out, unsigned int flags, CUdevice device) {
  CUresult result = step(ID_cuCtxCreate);
  return result ? result : create(out, flags, device);
}

CUresult cuCtxCreate_v2(CUcontext *out, unsigned int flags, CUdevice device) {
  CUresult result = step(ID_cuCtxCreate_v2);
  return result ? result : create(out, flags, device);
}

CUresult cuCtxCreate_v3(CUcontext *out, void *affinity, int count, unsigned int flags,
                        CUdevice device) {
  CUresult result = step(ID_cuCtxCreate_v3);
  if (!result && count && !affinity) result = CUDA_ERROR_INVALID_VALUE;
  return result ? result : create(out, flags, device);
}

CUresult cuCtxCreate_v4(CUcontext *out, void *params, unsigned int flags, CUdevice device) {
  (void)params;
  CUresult result = step(ID_cuCtxCreate_v4);
  return result ? result : create(out, flags, device);
}

static CUresult destroy(CUcontext context) {
  CUresult result = driver_enter();
  if (result) return result;
  if (!is_context(context) || context->primary)
    return driver_leave(CUDA_ERROR_INVALID_CONTEXT);
  if (depth && stack[depth - 1] == context) depth--;
  context_end(context);
  return driver_leave(CUDA_SUCCESS);
}

CUresult cuCtxDestroy(CUcontext context) {
  CUresult result = step(ID_cuCtxDestroy);
  return result ? result : destroy(context);
}

CUresult cuCtxDestroy_v2(CUcontext context) {
  CUresult result = step(ID_cuCtxDestroy_v2);
  return result ? result : destroy(context);
}

CUresult cuCtxAttach(CUcontext *out, unsigned int flags) {
  CUcontext context;
  if (!out || flags) return CUDA_ERROR_INVALID_VALUE;
  CUresult result = driver_enter_context(&context);
  if (result) return result;
  context->references++;
  *out = context;
  return driver_leave(CUDA_SUCCESS);
}

CUresult cuCtxDetach(CUcontext context) {
  CUresult result = driver_enter();
  if (result) return result;
  if (!is_context(context) || context->primary)
    return driver_leave(CUDA_ERROR_INVALID_CONTEXT);
  if (--context->references) return driver_leave(CUDA_SUCCESS);
  if (depth && stack[depth - 1] == context) depth--;
  context_end(context);
  return driver_leave(CUDA_SUCCESS);
}

/* ---- the calling thread's stack --------------------------------------------------------- */

CUresult cuCtxPushCurrent_v2(CUcontext context) {
  CUresult result = driver_enter();
  if (result) return result;
  return driver_leave(is_context(context) ? push(context) : CUDA_ERROR_INVALID_CONTEXT);
}

CUresult cuCtxPushCurrent(CUcontext context) { return cuCtxPushCurrent_v2(context); }

CUresult cuCtxPopCurrent_v2(CUcontext *out) {
  CUresult result = driver_enter();
  if (result) return result;
  if (!depth) return driver_leave(CUDA_ERROR_INVALID_CONTEXT);
  depth--;
  if (out) *out = stack[depth];
  return driver_leave(CUDA_SUCCESS);
}

CUresult cuCtxPopCurrent(CUcontext *out) { return cuCtxPopCurrent_v2(out); }

CUresult cuCtxSetCurrent(CUcontext context) {
  CUresult result = driver_enter();
  if (result) return result;
  if (context && !is_context(context)) return driver_leave(CUDA_ERROR_INVALID_CONTEXT);
  if (depth) depth--;
  if (context) result = push(context);
  return driver_leave(result);
}

CUresult cuCtxGetCurrent(CUcontext *out) {
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  CUresult result = driver_enter();
  if (result) return result;
  *out = depth ? stack[depth - 1] : NULL;
  return driver_leave(CUDA_SUCCESS);
}

CUresult cuCtxGetDevice(CUdevice *device) {
  CUcontext context;
  if (!device) return CUDA_ERROR_INVALID_VALUE;
  CUresult result = driver_enter_context(&context);
  if (result) return result;
  *device = context->device;
  return driver_leave(CUDA_SUCCESS);
}

CUresult cuCtxGetDevice_v2(CUdevice *device, CUcontext context) {
  if (!device) return CUDA_ERROR_INVALID_VALUE;
  if (!context) return cuCtxGetDevice(device);
  CUresult result = driver_enter();
  if (result) return result;
  if (!is_context(context)) return driver_leave(CUDA_ERROR_INVALID_CONTEXT);
  *device = context->device;
  return driver_leave(CUDA_SUCCESS);
}

CUresult cuCtxGetId(CUcontext context, unsigned long long *id) {
  if (!id) return CUDA_ERROR_INVALID_VALUE;
  CUresult result = driver_enter();
  if (result) return result;
  if (!context) context = context_current();
  if (!context || !is_context(context)) return driver_leave(CUDA_ERROR_INVALID_CONTEXT);
  *id = context->id;
  return driver_leave(CUDA_SUCCESS);
}

CUresult cuCtxSynchronize(void) {
  CUcontext context;
  CUresult result = step(ID_cuCtxSynchronize);
  if (!result) result = driver_enter_context(&context);
  if (result) return result;
  pool_synchronise(context->device);
  return driver_leave(CUDA_SUCCESS);
}

CUresult cuCtxSynchronize_v2(CUcontext context) {
  if (!context) return cuCtxSynchronize();
  CUresult result = driver_enter();
  if (result) return result;
  if (!is_context(context)) return driver_leave(CUDA_ERROR_INVALID_CONTEXT);
  pool_synchronise(context->device);
  return driver_leave(CUDA_SUCCESS);
}

static CUresult in_context(void) {
  CUcontext context;
  CUresult result = driver_enter_context(&context);
  return result ? result : driver_leave(CUDA_SUCCESS);
}

CUresult cuCtxSetLimit(int limit, size_t value) {
  (void)limit, (void)value;
  return in_context();
}

CUresult cuCtxGetLimit(size_t *value, int limit) {
  (void)limit;
  if (!value) return CUDA_ERROR_INVALID_VALUE;
  *value = 0;
  return in_context();
}

CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned int flags) {
  (void)peer, (void)flags;
  return in_context();
}

CUresult cuCtxDisablePeerAccess(CUcontext peer) {
  (void)peer;
  return in_context();
}

/* ---- the primary context ---------------------------------------------------------------- */

CUresult cuDevicePrimaryCtxRetain(CUcontext *out, CUdevice device) {
  CUresult result = step(ID_cuDevicePrimaryCtxRetain);
  if (result) return result;
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  result = driver_enter_device(device);
  if (result) return result;
  CUcontext primary = devices[device].primary;
  if (!primary) primary = devices[device].primary = new_context(device, 0, true);
  else if (primary->alive) primary->references++;
  else if (!start(primary)) primary = NULL;
  if (!primary) return driver_leave(CUDA_ERROR_OUT_OF_MEMORY);
  *out = primary;
  return driver_leave(CUDA_SUCCESS);
}

static CUresult release(CUdevice device) {
  CUresult result = driver_enter_device(device);
  if (result) return result;
  CUcontext primary = devices[device].primary;
  if (!primary || !primary->alive) return driver_leave(CUDA_ERROR_INVALID_CONTEXT);
  if (--primary->references == 0) context_end(primary);
  return driver_leave(CUDA_SUCCESS);
}

CUresult cuDevicePrimaryCtxRelease(CUdevice device) {
  CUresult result = step(ID_cuDevicePrimaryCtxRelease);
  return result ? result : release(device);
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  CUresult result = step(ID_cuDevicePrimaryCtxRelease_v2);
  return result ? result : release(device);
}

static CUresult reset(CUdevice device) {
  CUresult result = driver_enter_device(device);
  if (result) return result;
  CUcontext primary = devices[device].primary;
  if (primary && primary->alive) context_end(primary);
  return driver_leave(CUDA_SUCCESS);
}

CUresult cuDevicePrimaryCtxReset(CUdevice device) {
  CUresult result = step(ID_cuDevicePrimaryCtxReset);
  return result ? result : reset(device);
}

CUresult cuDevicePrimaryCtxReset_v2(CUdevice device) {
  CUresult result = step(ID_cuDevicePrimaryCtxReset_v2);
  return result ? result : reset(device);
}

static CUresult set_flags(CUdevice device) {
  CUresult result = driver_enter_device(device);
  return result ? result : driver_leave(CUDA_SUCCESS);
}

CUresult cuDevicePrimaryCtxSetFlags(CUdevice device, unsigned int flags) {
  (void)flags;
  return set_flags(device);
}

CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice device, unsigned int flags) {
  (void)flags;
  return set_flags(device);
}

CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned int *flags, int *active) {
  if (!flags || !active) return CUDA_ERROR_INVALID_VALUE;
  CUresult result = driver_enter_device(device);
  if (result) return result;
  CUcontext primary = devices[device].primary;
  *flags = 0;
  *active = primary && primary->alive;
  return driver_leave(CUDA_SUCCESS);
}
