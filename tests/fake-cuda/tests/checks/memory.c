/* Device memory behaves as measured: 2 MiB blocks, addresses re-used at once, errors. */
#include <unistd.h>

#include "check.h"

/* What `count` requests of `bytes` take from the device, in a context of their own. */
static size_t cost(int count, size_t bytes) {
  static CUdeviceptr pointers[64];
  CUcontext context = start();
  size_t before = used();
  for (int i = 0; i < count; i++) EQUAL(cuMemAlloc_v2(&pointers[i], bytes), 0);
  size_t taken = used() - before;
  for (int i = 0; i < count; i++) EQUAL(cuMemFree_v2(pointers[i]), 0);
  EQUAL(used(), before);
  EQUAL(cuCtxDestroy_v2(context), 0);
  return taken;
}

static void blocks(void) {
  EQUAL(cost(64, 512), 0);
  EQUAL(cost(64, 100000), 6 * MIB);
  EQUAL(cost(64, MIB), 64 * MIB);
  EQUAL(cost(64, MIB + 512), 128 * MIB);
  EQUAL(cost(64, 3 * MIB), 256 * MIB);
}

static void addresses(void) {
  CUdeviceptr a, b, c;
  CUcontext context = start();
  cuMemAlloc_v2(&a, 100), cuMemAlloc_v2(&b, 100);
  EQUAL(b - a, 512);
  cuMemFree_v2(a);
  cuMemAlloc_v2(&c, 100);
  EQUAL(c, a);
  cuMemAlloc_v2(&a, 5 * MIB), cuMemAlloc_v2(&b, 5 * MIB);
  cuMemFree_v2(a), cuMemFree_v2(b);
  cuMemAlloc_v2(&c, 5 * MIB);
  EQUAL(c, b); /* the last one given back is the first one taken */
  cuCtxDestroy_v2(context);
}

static void errors(void) {
  CUdeviceptr pointer = 77;
  size_t pitch;
  CUcontext context = start();
  EQUAL(cuMemAlloc_v2(&pointer, 0), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuMemAlloc_v2(NULL, 1), CUDA_ERROR_INVALID_VALUE);
  EQUAL(pointer, 77);
  EQUAL(cuMemFree_v2(0), CUDA_SUCCESS);
  EQUAL(cuMemFree_v2(0x302000200), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuMemAlloc_v2(&pointer, (size_t)1 << 50), CUDA_ERROR_OUT_OF_MEMORY);
  EQUAL(cuMemAllocPitch_v2(&pointer, &pitch, 1000, 10, 5), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuMemAllocPitch_v2(&pointer, &pitch, 1000, 10, 4), 0);
  EQUAL(pitch, 1024);
  EQUAL(cuMemFree_v2(pointer), 0);
  EQUAL(cuMemFree_v2(pointer), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuCtxDestroy_v2(context), 0);
  EQUAL(cuMemAlloc_v2(&pointer, 1), CUDA_ERROR_INVALID_CONTEXT);
}

static void capacity(void) {
  CUdeviceptr pointer, rest;
  CUcontext context = start();
  size_t available, total;
  cuMemGetInfo_v2(&available, &total);
  EQUAL(total - available, 263 * 2 * MIB);
  EQUAL(cuMemAlloc_v2(&pointer, available + 1), CUDA_ERROR_OUT_OF_MEMORY);
  EQUAL(cuMemAlloc_v2(&pointer, available), 0);
  EQUAL(cuMemAlloc_v2(&rest, 512), 0); /* in the context's own block */
  EQUAL(cuMemAlloc_v2(&rest, 2 * MIB), CUDA_ERROR_OUT_OF_MEMORY);
  cuCtxDestroy_v2(context);
}

static void host(void) {
  CUcontext context = start();
  static char pageable[8192];
  char *pinned, *managed;
  EQUAL(cuMemHostAlloc((void **)&pinned, 5000, 0), 0);
  EQUAL(cuMemAllocManaged((CUdeviceptr *)&managed, 5000, CU_MEM_ATTACH_GLOBAL), 0);
  strcpy(pinned, "moved");
  EQUAL(cuMemcpyHtoD_v2((CUdeviceptr)managed, pinned, 6), 0);
  CHECK(strcmp(managed, "moved") == 0);
  EQUAL(cuMemcpy((CUdeviceptr)pageable, (CUdeviceptr)managed, 6), 0);
  CHECK(strcmp(pageable, "moved") == 0);
  EQUAL(cuMemsetD8_v2((CUdeviceptr)managed, 'x', 3), 0);
  CHECK(strcmp(managed, "xxxed") == 0);
  EQUAL(cuMemHostRegister_v2(pageable, sizeof pageable, 0), 0);
  EQUAL(cuMemHostRegister_v2(pageable + 4096, 1, 0), CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
  EQUAL(cuMemHostUnregister(pageable + 1), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
  EQUAL(cuMemHostUnregister(pageable), 0);
  EQUAL(cuMemFree_v2((CUdeviceptr)pinned), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuMemFreeHost(pinned), 0);
  EQUAL(cuMemFree_v2((CUdeviceptr)managed), 0);
  cuCtxDestroy_v2(context);
}

/* The context's end frees what it owns; the truth says so apart from the frees that were asked. */
static void truth(void) {
  char path[] = "/tmp/fake-cuda-truth-XXXXXX", line[256];
  int found = 0;
  close(mkstemp(path));
  EQUAL(fakeCudaDumpTruth(path), 0);
  FILE *file = fopen(path, "r");
  while (file && fgets(line, sizeof line, file)) {
    found += strcmp(line, "device.live_count 0\n") == 0;
    found += strcmp(line, "pinned.allocs 1\n") == 0;
    found += strcmp(line, "copies.host_to_device.sync.bytes 6\n") == 0;
    found += strcmp(line, "device.implicit_frees 5\n") == 0;
  }
  if (file) fclose(file);
  unlink(path);
  EQUAL(found, 4);
}

int main(void) {
  blocks();
  addresses();
  errors();
  capacity();
  host();
  truth();
  return failures != 0;
}
