/* NVML, opened as a sampler does, sees what the driver took: 306 blocks for a context and one. */
#include <dlfcn.h>

#include "check.h"

typedef struct { unsigned long long total, free, used; } memory_t;
typedef struct { unsigned pid; unsigned long long used; unsigned a, b; } process_t;

int main(void) {
  void *nvml = dlopen("libnvidia-ml.so.1", RTLD_NOW), *device;
  memory_t idle, busy;
  process_t process;
  unsigned count = 1;
  CUdeviceptr pointer;
  int (*init)(void) = (int (*)(void))dlsym(nvml, "nvmlInit_v2");
  int (*handle)(unsigned, void **) =
      (int (*)(unsigned, void **))dlsym(nvml, "nvmlDeviceGetHandleByIndex_v2");
  int (*memory)(void *, memory_t *) =
      (int (*)(void *, memory_t *))dlsym(nvml, "nvmlDeviceGetMemoryInfo");
  int (*processes)(void *, unsigned *, process_t *) = (int (*)(void *, unsigned *, process_t *))
      dlsym(nvml, "nvmlDeviceGetComputeRunningProcesses_v3");
  EQUAL(init(), 0);
  EQUAL(handle(0, &device), 0);
  CHECK(handle(1, &device));
  EQUAL(handle(0, &device), 0);
  EQUAL(memory(device, &idle), 0);
  start();
  cuMemAlloc_v2(&pointer, 2 * MIB);
  EQUAL(memory(device, &busy), 0);
  EQUAL(busy.used - idle.used, 641728512);
  EQUAL(processes(device, &count, &process), 0);
  EQUAL(count, 1);
  EQUAL(process.used, 641728512);
  return failures != 0;
}
