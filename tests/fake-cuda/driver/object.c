/*
 * Objects that are handles and, some of them, device memory that no call tells: libraries and
 * green contexts take a block each, texture and surface objects none. The first kernel that is
 * looked up in a library takes three more, which stand for what its first launch loads.
 */
#include <stdlib.h>

#include "internal.h"

enum class { LIBRARY, GREEN, TEXTURE, SURFACE };

struct object {
  enum class class;
  int device;
  bool alive, loaded;
  struct object *next;
};

#define CODE (3 * BLOCK)

static struct object *all_objects;

static bool has_block(enum class class) { return class == LIBRARY || class == GREEN; }

static CUresult make(void **out, enum class class, CUresult result) {
  CUcontext context;
  if (!result && !out) result = CUDA_ERROR_INVALID_VALUE;
  if (!result) result = driver_enter_context(&context);
  if (result) return result;
  if (has_block(class) && !device_take(context->device, BLOCK))
    return driver_leave(CUDA_ERROR_OUT_OF_MEMORY);
  struct object *object = calloc(1, sizeof *object);
  if (!object) abort();
  *object = (struct object){class, context->device, true, false, all_objects};
  all_objects = object;
  *out = object;
  return driver_leave(CUDA_SUCCESS);
}

static CUresult destroy(void *handle, enum class class, CUresult result) {
  if (!result) result = driver_enter();
  if (result) return result;
  for (struct object *object = all_objects; object; object = object->next) {
    if (object != handle || !object->alive || object->class != class) continue;
    object->alive = false;
    if (has_block(class)) device_give(object->device, BLOCK);
    if (object->loaded) device_give(object->device, CODE);
    return driver_leave(CUDA_SUCCESS);
  }
  return driver_leave(CUDA_ERROR_INVALID_HANDLE);
}

#define JIT                                                                                   \
  void *jit_options, void *jit_values, unsigned int jit_number, void *options, void *values, \
      unsigned int number
#define JIT_UNUSED                                                              \
  ((void)jit_options, (void)jit_values, (void)jit_number, (void)options, (void)values, \
   (void)number)

CUresult cuLibraryLoadData(CUlibrary *library, const void *code, JIT) {
  (void)code, JIT_UNUSED;
  return make((void **)library, LIBRARY, step(ID_cuLibraryLoadData));
}

CUresult cuLibraryLoadFromFile(CUlibrary *library, const char *file, JIT) {
  (void)file, JIT_UNUSED;
  return make((void **)library, LIBRARY, step(ID_cuLibraryLoadFromFile));
}

CUresult cuLibraryUnload(CUlibrary library) {
  return destroy(library, LIBRARY, step(ID_cuLibraryUnload));
}

CUresult cuLibraryGetKernel(CUkernel *kernel, CUlibrary library, const char *name) {
  CUresult result = step(ID_cuLibraryGetKernel);
  if (!result && (!kernel || !name)) result = CUDA_ERROR_INVALID_VALUE;
  if (!result) result = driver_enter();
  if (result) return result;
  for (struct object *object = all_objects; object; object = object->next) {
    if ((void *)object != (void *)library || !object->alive || object->class != LIBRARY) continue;
    if (!object->loaded && !device_take(object->device, CODE))
      return driver_leave(CUDA_ERROR_OUT_OF_MEMORY);
    object->loaded = true;
    *kernel = (CUkernel)&object->loaded;
    return driver_leave(CUDA_SUCCESS);
  }
  return driver_leave(CUDA_ERROR_INVALID_HANDLE);
}

CUresult cuGreenCtxCreate(CUgreenCtx *context, void *resources, CUdevice device,
                          unsigned int flags) {
  (void)resources, (void)device, (void)flags;
  return make((void **)context, GREEN, step(ID_cuGreenCtxCreate));
}

CUresult cuGreenCtxDestroy(CUgreenCtx context) {
  return destroy(context, GREEN, step(ID_cuGreenCtxDestroy));
}

CUresult cuGreenCtxStreamCreate(CUstream *stream, CUgreenCtx context, unsigned int flags,
                                int priority) {
  (void)context, (void)priority;
  CUresult result = step(ID_cuGreenCtxStreamCreate);
  return result ? result : cuStreamCreate(stream, flags);
}

CUresult cuTexObjectCreate(CUtexObject *texture, const void *resource, const void *description,
                           const void *view) {
  (void)resource, (void)description, (void)view;
  return make((void **)texture, TEXTURE, step(ID_cuTexObjectCreate));
}

CUresult cuTexObjectDestroy(CUtexObject texture) {
  return destroy((void *)texture, TEXTURE, step(ID_cuTexObjectDestroy));
}

CUresult cuSurfObjectCreate(CUsurfObject *surface, const void *resource) {
  (void)resource;
  return make((void **)surface, SURFACE, step(ID_cuSurfObjectCreate));
}

CUresult cuSurfObjectDestroy(CUsurfObject surface) {
  return destroy((void *)surface, SURFACE, step(ID_cuSurfObjectDestroy));
}
