/*
 * How a runtime reaches the driver, as measured on the real ones: `dlopen("libcuda.so.1")`, one
 * `dlsym` of cuGetProcAddress_v2 on that handle, the empty name at version 0, then cuInit, then
 * cuGetProcAddress itself at 11030 and 12000, then everything else by base name and a fixed old
 * version. Nothing happens before the first call.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>

#include "internal.h"

#define MAX_DEVICES 64

struct driver cudart_driver;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static cudaError_t load_error;
static CUcontext primaries[MAX_DEVICES];
static unsigned long generation = 1, served;

static __thread int selected;
static __thread unsigned long bound; /* the generation in which this thread got a context */
static __thread cudaError_t last_error;

unsigned long fakeCudartServed(void) { return __atomic_load_n(&served, __ATOMIC_RELAXED); }

static void find(void *field, const char *name, int version, uint64_t flags) {
  if (cudart_driver.get(name, field, version, flags, NULL)) *(void **)field = NULL;
}

static void find_all(void) {
#define ONE(field, name, version, params) find(&cudart_driver.field, name, version, 0);
#define TWO(field, name, version, thread_version, params)       \
  find(&cudart_driver.field[LEGACY], name, version, 0);         \
  find(&cudart_driver.field[PER_THREAD], name, thread_version, 2);
#include "lookups.inc"
#undef ONE
#undef TWO
}

static cudaError_t load_driver(void) {
  void *handle = dlopen("libcuda.so.1", RTLD_NOW);
  if (!handle) return cudaErrorInsufficientDriver;
  void *ignored, *get = dlsym(handle, "cuGetProcAddress_v2");
  if (!get) return cudaErrorInsufficientDriver;
  *(void **)&cudart_driver.get = get;
  find(&ignored, "", 0, 0);
  CUresult (*init)(unsigned) = NULL;
  find(&init, "cuInit", 2000, 0);
  find(&ignored, "cuGetProcAddress", 11030, 0);
  find(&ignored, "cuGetProcAddress", 12000, 0);
  find_all();
  int version;
  if (!init || !cudart_driver.driver_version || cudart_driver.driver_version(&version))
    return cudaErrorInsufficientDriver;
  if (version < CUDART_MAJOR * 1000) return cudaErrorInsufficientDriver;
  return init(0);
}

static void load(void) { load_error = load_driver(); }

static cudaError_t ready(void) {
  pthread_once(&once, load);
  return load_error;
}

cudaError_t cudart_primary(int device, CUcontext *context) {
  if (device < 0 || device >= MAX_DEVICES) return cudaErrorInvalidDevice;
  cudaError_t error = cudaSuccess;
  pthread_mutex_lock(&mutex);
  if (!primaries[device]) error = cudart_driver.primary_retain(&primaries[device], device);
  *context = primaries[device];
  pthread_mutex_unlock(&mutex);
  return error;
}

static cudaError_t bind(void) {
  unsigned long now = __atomic_load_n(&generation, __ATOMIC_ACQUIRE);
  if (bound == now) return cudaSuccess;
  /* A context that the program made current itself is used as it is. */
  CUcontext current = NULL;
  if (!bound && !cudart_driver.get_current(&current) && current) {
    bound = now;
    return cudaSuccess;
  }
  cudaError_t error = cudart_primary(selected, &current);
  if (!error) error = cudart_driver.set_current(current);
  if (!error) bound = now;
  return error;
}

cudaError_t cudart_start(void) {
  __atomic_fetch_add(&served, 1, __ATOMIC_RELAXED);
  cudaError_t error = ready();
  return error ? error : bind();
}

cudaError_t cudart_end(cudaError_t error) {
  if (error) last_error = error;
  return error;
}

/* ---- errors and versions ---------------------------------------------------------------- */

cudaError_t cudaGetLastError(void) {
  cudaError_t error = last_error;
  last_error = cudaSuccess;
  return error;
}

cudaError_t cudaPeekAtLastError(void) { return last_error; }

static const char *word(cudaError_t error, int name) {
  const char *text = NULL;
  if (error == cudaErrorInsufficientDriver)
    return name ? "cudaErrorInsufficientDriver"
                : "CUDA driver version is insufficient for CUDA runtime version";
  if (ready()) return "unrecognized error code";
  if (name) cudart_driver.error_name(error, &text);
  else cudart_driver.error_string(error, &text);
  return text ? text : "unrecognized error code";
}

const char *cudaGetErrorString(cudaError_t error) { return word(error, 0); }
const char *cudaGetErrorName(cudaError_t error) { return word(error, 1); }

cudaError_t cudaRuntimeGetVersion(int *version) {
  if (!version) return cudart_end(cudaErrorInvalidValue);
  *version = CUDART_MAJOR * 1000 + (CUDART_MAJOR == 12 ? 90 : 0);
  return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int *version) {
  if (!version) return cudart_end(cudaErrorInvalidValue);
  *version = 0; /* without a driver: 0, and no error */
  return ready() ? cudaSuccess : cudart_driver.driver_version(version);
}

/* ---- devices ---------------------------------------------------------------------------- */

cudaError_t cudaGetDeviceCount(int *count) {
  cudaError_t error = ready();
  if (!error) error = cudart_driver.device_count(count);
  if (error && count) *count = 0;
  return cudart_end(error);
}

cudaError_t cudaSetDevice(int device) {
  int count;
  cudaError_t error = ready();
  if (!error) error = cudart_driver.device_count(&count);
  if (!error && (device < 0 || device >= count)) error = cudaErrorInvalidDevice;
  if (error) return cudart_end(error);
  CUcontext context;
  selected = device;
  error = cudart_primary(device, &context); /* since 12.0 this creates the context */
  if (!error) error = cudart_driver.set_current(context);
  if (!error) bound = __atomic_load_n(&generation, __ATOMIC_ACQUIRE);
  return cudart_end(error);
}

cudaError_t cudaInitDevice(int device, unsigned int flags, unsigned int device_flags) {
  (void)flags, (void)device_flags;
  CUcontext context;
  cudaError_t error = ready();
  return cudart_end(error ? error : cudart_primary(device, &context));
}

cudaError_t cudaGetDevice(int *device) {
  cudaError_t error = ready();
  if (!error) *device = selected;
  return cudart_end(error);
}

cudaError_t cudaDeviceSynchronize(void) { RUN(cudart_driver.synchronize()); }

cudaError_t cudaDeviceReset(void) {
  cudaError_t error = ready();
  if (error) return cudart_end(error);
  pthread_mutex_lock(&mutex);
  if (primaries[selected]) error = cudart_driver.primary_reset(selected);
  primaries[selected] = NULL;
  __atomic_fetch_add(&generation, 1, __ATOMIC_RELEASE);
  pthread_mutex_unlock(&mutex);
  return cudart_end(error);
}

cudaError_t cudaMemGetInfo(size_t *available, size_t *total) {
  RUN(cudart_driver.mem_info(available, total));
}

/* ---- the driver's functions, handed on -------------------------------------------------- */

static cudaError_t entry_point(const char *name, void **pointer, int version, uint64_t flags,
                               int *status) {
  int found = 1;
  cudaError_t error = ready();
  if (!error) error = cudart_driver.get(name, pointer, version, flags, &found);
  if (status) *status = found;
  else if (!error && found) error = cudaErrorSymbolNotFound;
  return cudart_end(error);
}

#define OWN_VERSION (CUDART_MAJOR * 1000 + (CUDART_MAJOR == 12 ? 90 : 0))

cudaError_t cudaGetDriverEntryPoint(const char *name, void **pointer, unsigned long long flags,
                                    int *status) {
  return entry_point(name, pointer, OWN_VERSION, flags, status);
}

cudaError_t cudaGetDriverEntryPoint_ptsz(const char *name, void **pointer,
                                         unsigned long long flags, int *status) {
  return entry_point(name, pointer, OWN_VERSION, flags ? flags : 2, status);
}

cudaError_t cudaGetDriverEntryPointByVersion(const char *name, void **pointer,
                                             unsigned int version, unsigned long long flags,
                                             int *status) {
  return entry_point(name, pointer, (int)version, flags, status);
}

cudaError_t cudaGetDriverEntryPointByVersion_ptsz(const char *name, void **pointer,
                                                  unsigned int version,
                                                  unsigned long long flags, int *status) {
  return entry_point(name, pointer, (int)version, flags ? flags : 2, status);
}
