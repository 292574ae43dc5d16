/*
 * The lock, the start, fork, and the devices.
 *
 * After fork the child finds a driver without allocations of its own, whose contexts are still
 * there: simpler to test with than the real driver, which refuses every call
 * (FAKE_CUDA_FORK=error does that). A page that the kernel wipes on fork tells the child apart,
 * so that raw clone is seen too.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "internal.h"

struct device devices[MAX_DEVICES];
int device_count = 1;
/* 263 blocks: what a bare context takes. */
uint64_t context_bytes = 263 * BLOCK;
CUcontext all_contexts;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static volatile int *alive; /* 0 in a child that has not called yet */
static bool initialised, used, refuse_after_fork, refused;

static uint64_t number(const char *variable, uint64_t otherwise) {
  const char *text = getenv(variable);
  return text && *text ? strtoull(text, NULL, 10) : otherwise;
}

__attribute__((constructor)) static void load(void) {
  void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) abort();
  madvise(page, 4096, MADV_WIPEONFORK);
  alive = page;
  *alive = 1;
  uint64_t count = number("FAKE_CUDA_DEVICES", 1);
  device_count = (int)(count > MAX_DEVICES ? MAX_DEVICES : count);
  uint64_t memory = number("FAKE_CUDA_MEMORY", (uint64_t)16 << 30) / BLOCK * BLOCK;
  for (int i = 0; i < device_count; i++) devices[i].total = memory;
  const char *fork_policy = getenv("FAKE_CUDA_FORK");
  refuse_after_fork = fork_policy && strcmp(fork_policy, "error") == 0;
  script_init();
  fast_init(getenv("FAKE_CUDA_FAST"));
}

__attribute__((destructor)) static void unload(void) { truth_at_exit(); }

/* The child's first call. Another thread of the parent may have held the lock. */
static void restart(void) {
  pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;
  memcpy(&mutex, &fresh, sizeof fresh);
  *alive = 1;
  used = false;
  refused = refuse_after_fork && initialised;
  truth_reset();
  space_forget();
  for (int i = 0; i < device_count; i++) devices[i].used = 0;
  context_restart();
  pool_restart();
  vmm_restart();
  stream_restart();
}

void driver_lock(void) {
  if (UNLIKELY(!*alive)) restart();
  pthread_mutex_lock(&mutex);
}

void driver_unlock(void) { pthread_mutex_unlock(&mutex); }

CUresult driver_leave(CUresult result) {
  driver_unlock();
  return result;
}

CUresult driver_enter(void) {
  driver_lock();
  if (!initialised || refused) return driver_leave(CUDA_ERROR_NOT_INITIALIZED);
  used = true;
  return CUDA_SUCCESS;
}

CUresult driver_enter_context(CUcontext *context) {
  CUresult result = driver_enter();
  if (result) return result;
  *context = context_current();
  return *context ? CUDA_SUCCESS : driver_leave(CUDA_ERROR_INVALID_CONTEXT);
}

CUresult driver_enter_device(CUdevice device) {
  CUresult result = driver_enter();
  if (result) return result;
  bool known = device >= 0 && device < device_count;
  return known ? CUDA_SUCCESS : driver_leave(CUDA_ERROR_INVALID_DEVICE);
}

bool driver_used(void) { return *alive && used; }

CUresult cuInit(unsigned int flags) {
  CUresult result = step(ID_cuInit);
  if (result) return result;
  if (flags) return CUDA_ERROR_INVALID_VALUE;
  driver_lock();
  if (device_count == 0) return driver_leave(CUDA_ERROR_NO_DEVICE);
  if (refused) return driver_leave(CUDA_ERROR_NOT_INITIALIZED);
  initialised = true;
  return driver_leave(CUDA_SUCCESS);
}

CUresult cuDriverGetVersion(int *version) {
  CUresult result = step(ID_cuDriverGetVersion);
  if (result) return result;
  if (!version) return CUDA_ERROR_INVALID_VALUE;
  *version = DRIVER_VERSION;
  return CUDA_SUCCESS;
}

/* ---- devices ---------------------------------------------------------------------------- */

CUresult cuDeviceGetCount(int *count) {
  if (!count) return CUDA_ERROR_INVALID_VALUE;
  CUresult result = driver_enter();
  if (result) return result;
  *count = device_count;
  return driver_leave(CUDA_SUCCESS);
}

CUresult cuDeviceGet(CUdevice *device, int ordinal) {
  if (!device) return CUDA_ERROR_INVALID_VALUE;
  CUresult result = driver_enter_device(ordinal);
  if (result) return result;
  *device = ordinal;
  return driver_leave(CUDA_SUCCESS);
}

CUresult cuDeviceGetName(char *name, int length, CUdevice device) {
  if (!name || length <= 0) return CUDA_ERROR_INVALID_VALUE;
  CUresult result = driver_enter_device(device);
  if (result) return result;
  snprintf(name, (size_t)length, "Simulated GPU");
  return driver_leave(CUDA_SUCCESS);
}

static CUresult uuid(CUuuid *uuid, CUdevice device) {
  if (!uuid) return CUDA_ERROR_INVALID_VALUE;
  CUresult result = driver_enter_device(device);
  if (result) return result;
  memcpy(uuid->bytes, "simulated-gpu-\0", 15);
  uuid->bytes[15] = (char)device;
  return driver_leave(CUDA_SUCCESS);
}

CUresult cuDeviceGetUuid(CUuuid *out, CUdevice device) { return uuid(out, device); }
CUresult cuDeviceGetUuid_v2(CUuuid *out, CUdevice device) { return uuid(out, device); }

CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device) {
  if (!bytes) return CUDA_ERROR_INVALID_VALUE;
  CUresult result = driver_enter_device(device);
  if (result) return result;
  *bytes = devices[device].total;
  return driver_leave(CUDA_SUCCESS);
}

static unsigned clamp(uint64_t value) { return value > UINT32_MAX ? UINT32_MAX : (unsigned)value; }

CUresult cuDeviceTotalMem(unsigned int *bytes, CUdevice device) {
  size_t total;
  CUresult result = cuDeviceTotalMem_v2(&total, device);
  if (!result && bytes) *bytes = clamp(total);
  return result;
}

CUresult cuDeviceGetPCIBusId(char *id, int length, CUdevice device) {
  if (!id || length <= 0) return CUDA_ERROR_INVALID_VALUE;
  CUresult result = driver_enter_device(device);
  if (result) return result;
  snprintf(id, (size_t)length, "0000:%02X:00.0", device + 1);
  return driver_leave(CUDA_SUCCESS);
}

CUresult cuDeviceCanAccessPeer(int *can, CUdevice device, CUdevice peer) {
  if (!can) return CUDA_ERROR_INVALID_VALUE;
  CUresult result = driver_enter_device(device);
  if (result) return result;
  *can = device != peer;
  return driver_leave(CUDA_SUCCESS);
}

/* The few attributes that programs ask before they allocate; others read as 1. */
CUresult cuDeviceGetAttribute(int *value, int attribute, CUdevice device) {
  enum { MAX_THREADS = 1, WARP = 10, PROCESSORS = 16, BUS = 33, MAJOR = 75, MINOR = 76 };
  if (!value) return CUDA_ERROR_INVALID_VALUE;
  CUresult result = driver_enter_device(device);
  if (result) return result;
  switch (attribute) {
    case MAX_THREADS: *value = 1024; break;
    case WARP: *value = 32; break;
    case PROCESSORS: *value = 132; break;
    case BUS: *value = device + 1; break;
    case MAJOR: *value = 9; break;
    case MINOR: *value = 0; break;
    default: *value = 1;
  }
  return driver_leave(CUDA_SUCCESS);
}

/* ---- memory information ----------------------------------------------------------------- */

CUresult cuMemGetInfo_v2(size_t *available, size_t *total) {
  CUcontext context;
  CUresult result = step(ID_cuMemGetInfo_v2);
  if (!result) result = driver_enter_context(&context);
  if (result) return result;
  const struct device *device = &devices[context->device];
  if (available) *available = device->total - device->used;
  if (total) *total = device->total;
  return driver_leave(CUDA_SUCCESS);
}

CUresult cuMemGetInfo(unsigned int *available, unsigned int *total) {
  size_t wide_available, wide_total;
  CUresult result = step(ID_cuMemGetInfo);
  if (!result) result = cuMemGetInfo_v2(&wide_available, &wide_total);
  if (result) return result;
  if (available) *available = clamp(wide_available);
  if (total) *total = clamp(wide_total);
  return CUDA_SUCCESS;
}

int fakeCudaState(int device, struct fake_cuda_state *state) {
  if (device < 0 || device >= device_count) return 1;
  driver_lock();
  state->total = devices[device].total;
  state->used = devices[device].used;
  state->contexts = devices[device].contexts;
  state->devices = (uint32_t)device_count;
  driver_unlock();
  return 0;
}
