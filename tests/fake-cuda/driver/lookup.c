/* Names to addresses, codes to words, and the export tables that this driver does not have. */
#include <string.h>

#include "internal.h"

enum stream_variant { PLAIN, THREAD };

struct row {
  const char *base;
  int version;
  enum stream_variant stream;
  void *address;
};

/* Only the addresses are wanted here; linking with -Bsymbolic makes them this library's own. */
#define ROW(base, version, stream, symbol) extern char address_of_##symbol[] __asm__(#symbol);
#include "table.inc"
#undef ROW

static const struct row table[] = {
#define ROW(base, version, stream, symbol) {#base, version, stream, address_of_##symbol},
#include "table.inc"
#undef ROW
};

enum { FOUND = 0, NOT_FOUND = 1, VERSION_NOT_SUFFICIENT = 2 };

/* The newest ABI of the name that is not newer than the version asked for. */
static const struct row *find(const char *name, int version, enum stream_variant stream) {
  const struct row *best = NULL;
  for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
    const struct row *row = &table[i];
    if (row->stream != stream || row->version > version || strcmp(row->base, name)) continue;
    if (!best || row->version > best->version) best = row;
  }
  return best;
}

static CUresult get(const char *name, void **pfn, int version, uint64_t flags, int *status) {
  if (!name || !pfn || version > DRIVER_VERSION || flags > 2) return CUDA_ERROR_INVALID_VALUE;
  const struct row *row = NULL;
  if (flags == CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) row = find(name, version, THREAD);
  if (!row) row = find(name, version, PLAIN);
  *pfn = row ? row->address : NULL;
  if (!status) return CUDA_SUCCESS;
  bool known = find(name, DRIVER_VERSION, PLAIN) || find(name, DRIVER_VERSION, THREAD);
  *status = row ? FOUND : known ? VERSION_NOT_SUFFICIENT : NOT_FOUND;
  return CUDA_SUCCESS;
}

CUresult cuGetProcAddress(const char *name, void **pfn, int version, uint64_t flags) {
  CUresult result = step(ID_cuGetProcAddress);
  return result ? result : get(name, pfn, version, flags, NULL);
}

CUresult cuGetProcAddress_v2(const char *name, void **pfn, int version, uint64_t flags,
                             int *status) {
  CUresult result = step(ID_cuGetProcAddress_v2);
  return result ? result : get(name, pfn, version, flags, status);
}

CUresult cuGetExportTable(const void **out, const CUuuid *id) {
  if (!out || !id) return CUDA_ERROR_INVALID_VALUE;
  *out = NULL;
  return CUDA_ERROR_NOT_FOUND;
}

static const struct {
  CUresult code;
  const char *name, *text;
} errors[] = {
    {CUDA_SUCCESS, "CUDA_SUCCESS", "no error"},
    {CUDA_ERROR_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {CUDA_ERROR_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {CUDA_ERROR_NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {CUDA_ERROR_DEINITIALIZED, "CUDA_ERROR_DEINITIALIZED", "driver shutting down"},
    {CUDA_ERROR_NO_DEVICE, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {CUDA_ERROR_INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {CUDA_ERROR_INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {CUDA_ERROR_INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {CUDA_ERROR_NOT_FOUND, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {CUDA_ERROR_ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS",
     "an illegal memory access was encountered"},
    {CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED",
     "part or all of the requested memory range is already mapped"},
    {CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED",
     "pointer does not correspond to a registered memory region"},
    {CUDA_ERROR_NOT_PERMITTED, "CUDA_ERROR_NOT_PERMITTED", "operation not permitted"},
    {CUDA_ERROR_NOT_SUPPORTED, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
    {CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
     "operation not permitted when stream is capturing"},
    {CUDA_ERROR_UNKNOWN, "CUDA_ERROR_UNKNOWN", "unknown error"},
};

static CUresult word(CUresult error, const char **text, bool name) {
  if (!text) return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
    if (errors[i].code != error) continue;
    *text = name ? errors[i].name : errors[i].text;
    return CUDA_SUCCESS;
  }
  *text = NULL;
  return CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGetErrorString(CUresult error, const char **text) { return word(error, text, false); }
CUresult cuGetErrorName(CUresult error, const char **text) { return word(error, text, true); }
