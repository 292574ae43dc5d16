/*
 * What PyTorch's allocator calls of the CUDA runtime and the simulated one does not have. Its events
 * and streams are none; a driver function that does not exist says "not supported".
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

#define NOTHING(name) \
  int name(void) { return 0; }
NOTHING(cudaDeviceEnablePeerAccess)
NOTHING(cudaDeviceGetGraphMemAttribute)
NOTHING(cudaDeviceSetGraphMemAttribute)
NOTHING(cudaEventElapsedTime)
NOTHING(cudaEventQuery)
NOTHING(cudaGraphNodeGetDependencies)
NOTHING(cudaIpcCloseMemHandle)
NOTHING(cudaIpcGetMemHandle)
NOTHING(cudaIpcOpenMemHandle)
NOTHING(cudaStreamQuery)
NOTHING(cudaStreamWaitEvent)
NOTHING(cudaThreadExchangeStreamCaptureMode)

int cudaEventCreateWithFlags(void **event) { return *event = (void *)1, 0; }
int cudaDeviceCanAccessPeer(int *can) { return *can = 0, 0; }
int cudaDeviceGetStreamPriorityRange(int *least, int *most) { return *least = 0, *most = -1, 0; }
int cudaStreamCreateWithPriority(void **stream) { return *stream = (void *)2, 0; }
int cudaStreamIsCapturing(void *stream, int *status) { return (void)stream, *status = 0, 0; }
int cudaStreamGetCaptureInfo(void *stream, int *status) { return (void)stream, *status = 0, 0; }

/* Name, and total memory behind the name, UUID and LUID. */
int cudaGetDeviceProperties(char *properties) {
  size_t total = (size_t)16 << 30;
  memset(properties, 0, 512);
  strcpy(properties, "Simulated");
  memcpy(properties + 288, &total, sizeof total);
  return 0;
}

static int not_supported(void) { return 801; }

int cudaGetDriverEntryPointByVersion(const char *symbol, void **function, unsigned version,
                                     unsigned long long flags, int *result) {
  typedef int lookup(const char *, void **, unsigned, unsigned long long, int *);
  lookup *next = (lookup *)dlsym(RTLD_NEXT, __func__);
  int status = next ? next(symbol, function, version, flags, result) : 1;
  if (status == 0 && *function) return 0;
  *function = (void *)not_supported;
  if (result) *result = 0;
  return 0;
}
