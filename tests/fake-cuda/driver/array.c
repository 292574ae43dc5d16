/*
 * Arrays and mipmaps (opaque: a handle instead of an address), modules and launches.
 *
 * A handle is itself the base of a range in the map of what is live, one unit long, so that the
 * end of a context finds it. Modules have globals, which no allocation call makes.
 */
#include <stdlib.h>
#include <string.h>

#include "internal.h"

/* Behind a handle; CUarray and CUmipmappedArray are pointers to one of these. */
struct array {
  CUDA_ARRAY3D_DESCRIPTOR descriptor;
  uint64_t device_bytes;
  int device;
};

unsigned array_element(int format, unsigned channels) {
  bool word = format == 0x02 || format == 0x09 || format == 0x10; /* 16 bits */
  bool wide = format == 0x03 || format == 0x0a || format == 0x20; /* 32 bits */
  return channels * (wide ? 4 : word ? 2 : 1);
}

static uint64_t size_of(const CUDA_ARRAY3D_DESCRIPTOR *descriptor) {
  uint64_t height = descriptor->Height ? descriptor->Height : 1;
  uint64_t depth = descriptor->Depth ? descriptor->Depth : 1;
  return descriptor->Width * height * depth *
         array_element(descriptor->Format, descriptor->NumChannels);
}

/* All levels; layers and faces are not halved. */
static uint64_t size_of_levels(const CUDA_ARRAY3D_DESCRIPTOR *full, unsigned levels) {
  enum { LAYERED = 1, CUBEMAP = 4 };
  uint64_t bytes = 0;
  for (unsigned level = 0; level < levels; level++) {
    CUDA_ARRAY3D_DESCRIPTOR part = *full;
    part.Width = part.Width >> level ? part.Width >> level : 1;
    part.Height >>= level;
    if (!(part.Flags & (LAYERED | CUBEMAP))) part.Depth >>= level;
    bytes += size_of(&part);
  }
  return bytes;
}

static CUresult create(void **out, const CUDA_ARRAY3D_DESCRIPTOR *descriptor, unsigned levels) {
  CUcontext context;
  if (!out || !descriptor->Width || !descriptor->NumChannels) return CUDA_ERROR_INVALID_VALUE;
  CUresult result = driver_enter_context(&context);
  if (result) return result;
  enum { SPARSE = 0x40, DEFERRED = 0x80 };
  bool owns = !(descriptor->Flags & (SPARSE | DEFERRED));
  uint64_t bytes = owns ? size_of_levels(descriptor, levels) : 0, taken = round_up(bytes, BLOCK);
  if (!device_take(context->device, taken)) return driver_leave(CUDA_ERROR_OUT_OF_MEMORY);
  struct array *array = calloc(1, sizeof *array);
  if (!array) abort();
  *array = (struct array){*descriptor, taken, context->device};
  struct range range = {.base = (uint64_t)array, .span = 1, .bytes = bytes, .ledger = ARRAY,
                        .device = context->device, .context = context};
  range_add(&live_ranges, &range);
  truth_alloc(ARRAY, bytes);
  *out = array;
  return driver_leave(CUDA_SUCCESS);
}

void array_release(struct range *range) {
  struct array *array = (struct array *)range->base;
  device_give(array->device, array->device_bytes);
  free(array);
}

bool array_is_valid(CUarray array) {
  struct range *range = range_based_at(&live_ranges, (uint64_t)array);
  return range && range->ledger == ARRAY;
}

static CUresult destroy(void *handle) {
  CUresult result = driver_enter();
  if (result) return result;
  struct range *range = range_based_at(&live_ranges, (uint64_t)handle);
  bool lent = range && range->ledger == IMPORTED && range->owner;
  if (!range || (range->ledger != ARRAY && !lent)) return driver_leave(CUDA_ERROR_INVALID_HANDLE);
  truth_free(range->ledger, range->bytes);
  memory_release(range);
  return driver_leave(CUDA_SUCCESS);
}

CUresult cuArray3DCreate_v2(CUarray *out, const CUDA_ARRAY3D_DESCRIPTOR *descriptor) {
  CUresult result = step(ID_cuArray3DCreate_v2);
  if (!result && !descriptor) result = CUDA_ERROR_INVALID_VALUE;
  return truth_alloc_result(ARRAY, result ? result : create((void **)out, descriptor, 1));
}

CUresult cuArrayCreate_v2(CUarray *out, const CUDA_ARRAY_DESCRIPTOR *flat) {
  CUresult result = step(ID_cuArrayCreate_v2);
  if (!result && !flat) result = CUDA_ERROR_INVALID_VALUE;
  if (result) return truth_alloc_result(ARRAY, result);
  CUDA_ARRAY3D_DESCRIPTOR descriptor = {flat->Width, flat->Height, 0, flat->Format,
                                        flat->NumChannels, 0};
  return truth_alloc_result(ARRAY, create((void **)out, &descriptor, 1));
}

/* CUDA 2.0's descriptors: 32-bit extents. */
struct flat_v1 { unsigned width, height; int format; unsigned channels; };
struct deep_v1 { unsigned width, height, depth; int format; unsigned channels, flags; };

CUresult cuArrayCreate(CUarray *out, const struct flat_v1 *flat) {
  CUresult result = step(ID_cuArrayCreate);
  if (!result && !flat) result = CUDA_ERROR_INVALID_VALUE;
  if (result) return truth_alloc_result(ARRAY, result);
  CUDA_ARRAY3D_DESCRIPTOR descriptor = {flat->width, flat->height, 0, flat->format,
                                        flat->channels, 0};
  return truth_alloc_result(ARRAY, create((void **)out, &descriptor, 1));
}

CUresult cuArray3DCreate(CUarray *out, const struct deep_v1 *deep) {
  CUresult result = step(ID_cuArray3DCreate);
  if (!result && !deep) result = CUDA_ERROR_INVALID_VALUE;
  if (result) return truth_alloc_result(ARRAY, result);
  CUDA_ARRAY3D_DESCRIPTOR descriptor = {deep->width,  deep->height,   deep->depth,
                                        deep->format, deep->channels, deep->flags};
  return truth_alloc_result(ARRAY, create((void **)out, &descriptor, 1));
}

CUresult cuArrayDestroy(CUarray array) {
  CUresult result = step(ID_cuArrayDestroy);
  return truth_free_result(ARRAY, result ? result : destroy(array));
}

CUresult cuMipmappedArrayCreate(CUmipmappedArray *out, const CUDA_ARRAY3D_DESCRIPTOR *descriptor,
                                unsigned int levels) {
  CUresult result = step(ID_cuMipmappedArrayCreate);
  if (!result && (!descriptor || !levels)) result = CUDA_ERROR_INVALID_VALUE;
  return truth_alloc_result(ARRAY, result ? result : create((void **)out, descriptor, levels));
}

CUresult cuMipmappedArrayDestroy(CUmipmappedArray array) {
  CUresult result = step(ID_cuMipmappedArrayDestroy);
  return truth_free_result(ARRAY, result ? result : destroy(array));
}

/* An array in memory that somebody else owns; the range's owner tells it from an address. */
CUresult array_lend(CUcontext context, CUmipmappedArray *out,
                    const CUDA_ARRAY3D_DESCRIPTOR *descriptor, unsigned levels) {
  struct array *array = calloc(1, sizeof *array);
  if (!array) abort();
  *array = (struct array){*descriptor, 0, context->device};
  struct range range = {.base = (uint64_t)array, .span = 1, .ledger = IMPORTED, .owner = array,
                        .bytes = size_of_levels(descriptor, levels), .device = context->device,
                        .context = context};
  range_add(&live_ranges, &range);
  truth_alloc(IMPORTED, range.bytes);
  *out = (CUmipmappedArray)array;
  return CUDA_SUCCESS;
}

static CUresult describe(CUDA_ARRAY3D_DESCRIPTOR *out, CUarray array) {
  CUresult result = driver_enter();
  if (result) return result;
  if (!array_is_valid(array)) return driver_leave(CUDA_ERROR_INVALID_HANDLE);
  *out = ((struct array *)array)->descriptor;
  return driver_leave(CUDA_SUCCESS);
}

CUresult cuArrayGetDescriptor_v2(CUDA_ARRAY_DESCRIPTOR *out, CUarray array) {
  CUDA_ARRAY3D_DESCRIPTOR deep = {0};
  CUresult result = out ? describe(&deep, array) : CUDA_ERROR_INVALID_VALUE;
  if (!result)
    *out = (CUDA_ARRAY_DESCRIPTOR){deep.Width, deep.Height, deep.Format, deep.NumChannels};
  return result;
}

CUresult cuArrayGetDescriptor(struct flat_v1 *out, CUarray array) {
  CUDA_ARRAY3D_DESCRIPTOR deep = {0};
  CUresult result = out ? describe(&deep, array) : CUDA_ERROR_INVALID_VALUE;
  if (!result)
    *out = (struct flat_v1){(unsigned)deep.Width, (unsigned)deep.Height, deep.Format,
                            deep.NumChannels};
  return result;
}

/* ---- modules and launches --------------------------------------------------------------- */

struct CUmod_st {
  uint64_t globals; /* one block stands for them */
  int device;
};

static CUresult load(CUmodule *out, CUresult result) {
  CUcontext context;
  if (!result && !out) result = CUDA_ERROR_INVALID_VALUE;
  if (!result) result = driver_enter_context(&context);
  if (result) return result;
  if (!device_take(context->device, BLOCK)) return driver_leave(CUDA_ERROR_OUT_OF_MEMORY);
  CUmodule module = calloc(1, sizeof *module);
  if (!module) abort();
  *module = (struct CUmod_st){space_take(REGION_DEVICE, BLOCK), context->device};
  struct range globals = {.base = module->globals, .span = BLOCK, .bytes = BLOCK,
                          .ledger = VMM_MAPPED, .device = context->device};
  range_add(&mapped_ranges, &globals); /* in no ledger: only so that copies know them */
  *out = module;
  return driver_leave(CUDA_SUCCESS);
}

CUresult cuModuleLoad(CUmodule *out, const char *file) {
  (void)file;
  return load(out, step(ID_cuModuleLoad));
}

CUresult cuModuleLoadData(CUmodule *out, const void *image) {
  (void)image;
  return load(out, step(ID_cuModuleLoadData));
}

CUresult cuModuleLoadDataEx(CUmodule *out, const void *image, unsigned int number, void *options,
                            void *values) {
  (void)image, (void)number, (void)options, (void)values;
  return load(out, step(ID_cuModuleLoadDataEx));
}

CUresult cuModuleLoadFatBinary(CUmodule *out, const void *image) {
  (void)image;
  return load(out, step(ID_cuModuleLoadFatBinary));
}

CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name) {
  CUresult result = step(ID_cuModuleGetFunction);
  if (!result && (!function || !name)) result = CUDA_ERROR_INVALID_VALUE;
  if (!result) result = driver_enter();
  if (result) return result;
  if (!module) return driver_leave(CUDA_ERROR_INVALID_HANDLE);
  *function = (CUfunction)&module->device;
  return driver_leave(CUDA_SUCCESS);
}

CUresult cuModuleUnload(CUmodule module) {
  CUresult result = step(ID_cuModuleUnload);
  if (!result) result = driver_enter();
  if (result) return result;
  if (!module) return driver_leave(CUDA_ERROR_INVALID_HANDLE);
  range_remove(&mapped_ranges, range_based_at(&mapped_ranges, module->globals));
  device_give(module->device, BLOCK);
  space_give(REGION_DEVICE, module->globals, BLOCK);
  free(module);
  return driver_leave(CUDA_SUCCESS);
}

CUresult cuModuleGetGlobal_v2(CUdeviceptr *pointer, size_t *bytes, CUmodule module,
                              const char *name) {
  if (!module || !name) return CUDA_ERROR_INVALID_VALUE;
  if (pointer) *pointer = module->globals;
  if (bytes) *bytes = 64 << 10;
  return CUDA_SUCCESS;
}

CUresult cuModuleGetGlobal(CUdeviceptr_v1 *pointer, unsigned int *bytes, CUmodule module,
                           const char *name) {
  (void)pointer, (void)bytes, (void)module, (void)name;
  return CUDA_ERROR_NOT_SUPPORTED; /* globals have no 32-bit address */
}

static CUresult launched(CUstream stream) {
  CUresult result = driver_enter();
  if (result) return result;
  return driver_leave(stream_is_valid(stream) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE);
}

#define LAUNCH(symbol)                                                                       \
  CUresult symbol(CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,   \
                  unsigned by, unsigned bz, unsigned shared, CUstream stream, void **params, \
                  void **extra) {                                                            \
    (void)function, (void)gx, (void)gy, (void)gz, (void)bx, (void)by, (void)bz;              \
    (void)shared, (void)params, (void)extra;                                                 \
    CUresult result = step(ID_##symbol);                                                     \
    return result ? result : launched(stream);                                               \
  }
LAUNCH(cuLaunchKernel)
LAUNCH(cuLaunchKernel_ptsz)
