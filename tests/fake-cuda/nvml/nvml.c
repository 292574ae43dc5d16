/*
 * The part of NVML that a memory sampler asks for.
 *
 * It reads the state of the simulated driver when that is loaded in the same process, and else
 * shows an idle card. As measured: NVML's total is 645 MB above CUDA's (the driver's own
 * reserve), and a process counts 42 blocks more than what CUDA took for it.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fake_cuda.h"

#define RESERVE ((uint64_t)615 << 20)
#define PER_PROCESS ((uint64_t)42 * (2 << 20))
#define MAX_DEVICES 16

typedef int nvmlReturn_t;
enum { NVML_SUCCESS = 0, NVML_UNINITIALIZED = 1, NVML_INVALID = 2, NVML_SMALL = 7 };

typedef struct nvmlDevice_st *nvmlDevice_t;
typedef struct { unsigned long long total, free, used; } nvmlMemory_t;
typedef struct {
  unsigned int version;
  unsigned long long total, reserved, free, used;
} nvmlMemory_v2_t;
typedef struct {
  unsigned int pid;
  unsigned long long usedGpuMemory;
  unsigned int gpuInstanceId, computeInstanceId;
} nvmlProcessInfo_t;

static int initialised;
static char handles[MAX_DEVICES]; /* only their addresses are used */

static void idle(int device, struct fake_cuda_state *state) {
  const char *memory = getenv("FAKE_CUDA_MEMORY"), *count = getenv("FAKE_CUDA_DEVICES");
  memset(state, 0, sizeof *state);
  state->total = memory && *memory ? strtoull(memory, NULL, 10) : (uint64_t)16 << 30;
  state->devices = count && *count ? (uint32_t)strtoul(count, NULL, 10) : 1;
  (void)device;
}

static void look(int device, struct fake_cuda_state *state) {
  int (*read)(int, struct fake_cuda_state *) = NULL;
  idle(device, state);
  void *driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  if (!driver) return;
  *(void **)&read = dlsym(driver, "fakeCudaState");
  if (read) read(device, state);
  dlclose(driver);
}

static uint64_t own_use(const struct fake_cuda_state *state) {
  return state->contexts ? state->used + PER_PROCESS : 0;
}

/* −1 for what is not one of our handles. */
static int ordinal(nvmlDevice_t device) {
  intptr_t index = (char *)device - handles;
  return index >= 0 && index < MAX_DEVICES ? (int)index : -1;
}

static nvmlReturn_t check(nvmlDevice_t device, const void *out) {
  if (!initialised) return NVML_UNINITIALIZED;
  return out && ordinal(device) >= 0 ? NVML_SUCCESS : NVML_INVALID;
}

nvmlReturn_t nvmlInit_v2(void) {
  initialised++;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlShutdown(void) {
  if (!initialised) return NVML_UNINITIALIZED;
  initialised--;
  return NVML_SUCCESS;
}

const char *nvmlErrorString(nvmlReturn_t result) {
  return result ? "simulated error" : "success";
}

static nvmlReturn_t text(char *out, unsigned int length, const char *value) {
  if (!initialised) return NVML_UNINITIALIZED;
  if (strlen(value) >= length) return NVML_SMALL;
  strcpy(out, value);
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlSystemGetDriverVersion(char *out, unsigned int length) {
  return text(out, length, "580.00.00");
}

nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int *version) {
  *version = 13000;
  return initialised ? NVML_SUCCESS : NVML_UNINITIALIZED;
}

nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int *count) {
  struct fake_cuda_state state;
  if (!initialised) return NVML_UNINITIALIZED;
  look(0, &state);
  *count = state.devices;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *device) {
  unsigned int count;
  nvmlReturn_t result = nvmlDeviceGetCount_v2(&count);
  if (result) return result;
  if (index >= count || index >= MAX_DEVICES) return NVML_INVALID;
  *device = (nvmlDevice_t)&handles[index];
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory) {
  struct fake_cuda_state state;
  nvmlReturn_t result = check(device, memory);
  if (result) return result;
  look(ordinal(device), &state);
  memory->total = state.total + RESERVE;
  memory->used = RESERVE + own_use(&state);
  if (memory->used > memory->total) memory->used = memory->total;
  memory->free = memory->total - memory->used;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *memory) {
  nvmlMemory_t first;
  nvmlReturn_t result = check(device, memory);
  if (!result) result = nvmlDeviceGetMemoryInfo(device, &first);
  if (result) return result;
  memory->total = first.total;
  memory->reserved = RESERVE;
  memory->used = first.used - RESERVE; /* this version counts the reserve apart */
  memory->free = first.free;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device, unsigned int *count,
                                                     nvmlProcessInfo_t *list) {
  struct fake_cuda_state state;
  nvmlReturn_t result = check(device, count);
  if (result) return result;
  look(ordinal(device), &state);
  unsigned int room = *count, here = state.contexts ? 1 : 0;
  *count = here;
  if (room < here || (here && !list)) return NVML_SMALL;
  if (here)
    list[0] = (nvmlProcessInfo_t){(unsigned)getpid(), own_use(&state), ~0u, ~0u};
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *out, unsigned int length) {
  char uuid[] = "GPU-73696d75-6c61-7465-642d-6770752d0000";
  nvmlReturn_t result = check(device, out);
  if (result) return result;
  uuid[sizeof uuid - 2] = "0123456789abcdef"[ordinal(device)];
  return text(out, length, uuid);
}

nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char *out, unsigned int length) {
  nvmlReturn_t result = check(device, out);
  return result ? result : text(out, length, "Simulated GPU");
}
