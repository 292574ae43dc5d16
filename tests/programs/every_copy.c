/*
 * every_copy [SYMBOL...]: every exported copy and set of the driver once, but for those named: each ABI version (those of CUDA 2.0 with 32-bit
 * sizes and pointers too), each stream variant, each direction, arrays, boxes, peers and batches.
 *
 * Expected: as printed, one count for each symbol (two for a batch, which has two members);
 * bytes tell the symbols apart.
 */
#include <dlfcn.h>

#include "tally.h"

/* Directions that only this program uses: arrays. */
enum { HOST_TO_ARRAY, ARRAY_TO_HOST, ARRAY_TO_ARRAY, ARRAY_TO_DEVICE, DEVICE_TO_ARRAY, ARRAYS };
static const char *const array_names[ARRAYS] = {"copies.host_to_array", "copies.array_to_host",
                                                "copies.array_to_array", "copies.array_to_device",
                                                "copies.device_to_array"};
static uint64_t array_count[ARRAYS][2], array_bytes[ARRAYS][2];

static void *driver;
static CUdeviceptr wide, other;
static unsigned low, low_other;
static CUarray array, second_array;
static CUcontext context;
static char host[1 << 16];
static size_t n = 256; /* grows with each symbol */
static uint64_t symbols;

static int left_out_count;
static char **left_out_names;

static bool left_out(const char *symbol) {
  for (int i = 0; i < left_out_count; i++)
    if (strcmp(left_out_names[i], symbol) == 0) return true;
  return false;
}

static void *find(const char *symbol) {
  void *pointer = dlsym(driver, symbol);
  if (!pointer) {
    fprintf(stderr, "%s is missing\n", symbol);
    exit(9);
  }
  symbols++;
  n += 4;
  return pointer;
}

static void did_array(int direction, enum manner manner, uint64_t bytes) {
  array_count[direction][manner]++;
  array_bytes[direction][manner] += bytes;
}

/* CALL(symbol, parameter types, arguments, what was done) */
#define CALL(symbol, types, arguments, deed)                     \
  do {                                                           \
    if (left_out(#symbol)) break;                                \
    CUresult(*function_) types;                                  \
    *(void **)&function_ = find(#symbol);                        \
    must(function_ arguments, #symbol);                          \
    deed;                                                        \
  } while (0)

#define TO void *
#define FROM const void *
#define N32 unsigned
#define N64 size_t
#define P32 CUdeviceptr_v1
#define P64 CUdeviceptr
#define S CUstream

static void lines(void) {
#define IN(manner) did_copy(HOST_TO_DEVICE, manner, n)
  CALL(cuMemcpyHtoD, (P32, FROM, N32), (low, host, n), IN(SYNC));
  CALL(cuMemcpyHtoD_v2, (P64, FROM, N64), (wide, host, n), IN(SYNC));
  CALL(cuMemcpyHtoD_v2_ptds, (P64, FROM, N64), (wide, host, n), IN(SYNC));
  CALL(cuMemcpyHtoDAsync, (P32, FROM, N32, S), (low, host, n, 0), IN(ASYNC));
  CALL(cuMemcpyHtoDAsync_v2, (P64, FROM, N64, S), (wide, host, n, 0), IN(ASYNC));
  CALL(cuMemcpyHtoDAsync_v2_ptsz, (P64, FROM, N64, S), (wide, host, n, 0), IN(ASYNC));
#define OUT(manner) did_copy(DEVICE_TO_HOST, manner, n)
  CALL(cuMemcpyDtoH, (TO, P32, N32), (host, low, n), OUT(SYNC));
  CALL(cuMemcpyDtoH_v2, (TO, P64, N64), (host, wide, n), OUT(SYNC));
  CALL(cuMemcpyDtoH_v2_ptds, (TO, P64, N64), (host, wide, n), OUT(SYNC));
  CALL(cuMemcpyDtoHAsync, (TO, P32, N32, S), (host, low, n, 0), OUT(ASYNC));
  CALL(cuMemcpyDtoHAsync_v2, (TO, P64, N64, S), (host, wide, n, 0), OUT(ASYNC));
  CALL(cuMemcpyDtoHAsync_v2_ptsz, (TO, P64, N64, S), (host, wide, n, 0), OUT(ASYNC));
#define WITHIN(manner) did_copy(DEVICE_TO_DEVICE, manner, n)
  CALL(cuMemcpyDtoD, (P32, P32, N32), (low, low_other, n), WITHIN(SYNC));
  CALL(cuMemcpyDtoD_v2, (P64, P64, N64), (wide, other, n), WITHIN(SYNC));
  CALL(cuMemcpyDtoD_v2_ptds, (P64, P64, N64), (wide, other, n), WITHIN(SYNC));
  CALL(cuMemcpyDtoDAsync, (P32, P32, N32, S), (low, low_other, n, 0), WITHIN(ASYNC));
  CALL(cuMemcpyDtoDAsync_v2, (P64, P64, N64, S), (wide, other, n, 0), WITHIN(ASYNC));
  CALL(cuMemcpyDtoDAsync_v2_ptsz, (P64, P64, N64, S), (wide, other, n, 0), WITHIN(ASYNC));
  CALL(cuMemcpy, (P64, P64, N64), (wide, (P64)host, n), IN(SYNC));
  CALL(cuMemcpy_ptds, (P64, P64, N64), ((P64)host, wide, n), OUT(SYNC));
  CALL(cuMemcpyAsync, (P64, P64, N64, S), (wide, other, n, 0), WITHIN(ASYNC));
  CALL(cuMemcpyAsync_ptsz, (P64, P64, N64, S), (wide, (P64)host, n, 0), IN(ASYNC));
#define C CUcontext
  CALL(cuMemcpyPeer, (P64, C, P64, C, N64), (wide, context, other, context, n), WITHIN(SYNC));
  CALL(cuMemcpyPeer_ptds, (P64, C, P64, C, N64), (wide, context, other, context, n),
       WITHIN(SYNC));
  CALL(cuMemcpyPeerAsync, (P64, C, P64, C, N64, S), (wide, context, other, context, n, 0),
       WITHIN(ASYNC));
  CALL(cuMemcpyPeerAsync_ptsz, (P64, C, P64, C, N64, S), (wide, context, other, context, n, 0),
       WITHIN(ASYNC));
}

static void arrays(void) {
#define A CUarray
#define INTO(manner) did_array(HOST_TO_ARRAY, manner, n)
  CALL(cuMemcpyHtoA, (A, N32, FROM, N32), (array, 0, host, n), INTO(SYNC));
  CALL(cuMemcpyHtoA_v2, (A, N64, FROM, N64), (array, 0, host, n), INTO(SYNC));
  CALL(cuMemcpyHtoA_v2_ptds, (A, N64, FROM, N64), (array, 0, host, n), INTO(SYNC));
  CALL(cuMemcpyHtoAAsync, (A, N32, FROM, N32, S), (array, 0, host, n, 0), INTO(ASYNC));
  CALL(cuMemcpyHtoAAsync_v2, (A, N64, FROM, N64, S), (array, 0, host, n, 0), INTO(ASYNC));
  CALL(cuMemcpyHtoAAsync_v2_ptsz, (A, N64, FROM, N64, S), (array, 0, host, n, 0), INTO(ASYNC));
#define OUT_OF(manner) did_array(ARRAY_TO_HOST, manner, n)
  CALL(cuMemcpyAtoH, (TO, A, N32, N32), (host, array, 0, n), OUT_OF(SYNC));
  CALL(cuMemcpyAtoH_v2, (TO, A, N64, N64), (host, array, 0, n), OUT_OF(SYNC));
  CALL(cuMemcpyAtoH_v2_ptds, (TO, A, N64, N64), (host, array, 0, n), OUT_OF(SYNC));
  CALL(cuMemcpyAtoHAsync, (TO, A, N32, N32, S), (host, array, 0, n, 0), OUT_OF(ASYNC));
  CALL(cuMemcpyAtoHAsync_v2, (TO, A, N64, N64, S), (host, array, 0, n, 0), OUT_OF(ASYNC));
  CALL(cuMemcpyAtoHAsync_v2_ptsz, (TO, A, N64, N64, S), (host, array, 0, n, 0), OUT_OF(ASYNC));
#define ATOA did_array(ARRAY_TO_ARRAY, SYNC, n)
  CALL(cuMemcpyAtoA, (A, N32, A, N32, N32), (array, 0, second_array, 0, n), ATOA);
  CALL(cuMemcpyAtoA_v2, (A, N64, A, N64, N64), (array, 0, second_array, 0, n), ATOA);
  CALL(cuMemcpyAtoA_v2_ptds, (A, N64, A, N64, N64), (array, 0, second_array, 0, n), ATOA);
#define ATOD did_array(ARRAY_TO_DEVICE, SYNC, n)
  CALL(cuMemcpyAtoD, (P32, A, N32, N32), (low, array, 0, n), ATOD);
  CALL(cuMemcpyAtoD_v2, (P64, A, N64, N64), (wide, array, 0, n), ATOD);
  CALL(cuMemcpyAtoD_v2_ptds, (P64, A, N64, N64), (wide, array, 0, n), ATOD);
#define DTOA did_array(DEVICE_TO_ARRAY, SYNC, n)
  CALL(cuMemcpyDtoA, (A, N32, P32, N32), (array, 0, low, n), DTOA);
  CALL(cuMemcpyDtoA_v2, (A, N64, P64, N64), (array, 0, wide, n), DTOA);
  CALL(cuMemcpyDtoA_v2_ptds, (A, N64, P64, N64), (array, 0, wide, n), DTOA);
}

/* CUDA 2.0's two-dimensional descriptor. */
struct flat_v1 {
  unsigned from_x, from_y;
  int from_type;
  const void *from_host;
  unsigned from_device;
  CUarray from_array;
  unsigned from_pitch, to_x, to_y;
  int to_type;
  void *to_host;
  unsigned to_device;
  CUarray to_array;
  unsigned to_pitch, width, height;
};

struct deep_v1 {
  unsigned from_x, from_y, from_z, from_lod;
  int from_type;
  const void *from_host;
  unsigned from_device;
  CUarray from_array;
  void *from_reserved;
  unsigned from_pitch, from_height, to_x, to_y, to_z, to_lod;
  int to_type;
  void *to_host;
  unsigned to_device;
  CUarray to_array;
  void *to_reserved;
  unsigned to_pitch, to_height, width, height, depth;
};

static void boxes(void) {
  struct flat_v1 old = {.from_type = 1, .from_host = host, .from_pitch = 64, .to_type = 2,
                        .to_device = low, .to_pitch = 64, .width = 40, .height = 3};
  struct deep_v1 older = {.from_type = 2, .from_device = low, .from_pitch = 64, .from_height = 3,
                          .to_type = 1, .to_host = host, .to_pitch = 64, .to_height = 3,
                          .width = 40, .height = 3, .depth = 2};
  CUDA_MEMCPY2D flat = {.srcMemoryType = 1, .srcHost = host, .srcPitch = 64, .dstMemoryType = 2,
                        .dstDevice = wide, .dstPitch = 64, .WidthInBytes = 40, .Height = 3};
  CUDA_MEMCPY3D deep = {.srcMemoryType = 2, .srcDevice = wide, .srcPitch = 64, .srcHeight = 3,
                        .dstMemoryType = 1, .dstHost = host, .dstPitch = 64, .dstHeight = 3,
                        .WidthInBytes = 40, .Height = 3, .Depth = 2};
#define FLAT(manner) did_copy(HOST_TO_DEVICE, manner, 40 * 3)
#define DEEP(manner) did_copy(DEVICE_TO_HOST, manner, 40 * 3 * 2)
  CALL(cuMemcpy2D, (FROM), (&old), FLAT(SYNC));
  CALL(cuMemcpy2D_v2, (FROM), (&flat), FLAT(SYNC));
  CALL(cuMemcpy2D_v2_ptds, (FROM), (&flat), FLAT(SYNC));
  CALL(cuMemcpy2DUnaligned, (FROM), (&old), FLAT(SYNC));
  CALL(cuMemcpy2DUnaligned_v2, (FROM), (&flat), FLAT(SYNC));
  CALL(cuMemcpy2DUnaligned_v2_ptds, (FROM), (&flat), FLAT(SYNC));
  CALL(cuMemcpy2DAsync, (FROM, S), (&old, 0), FLAT(ASYNC));
  CALL(cuMemcpy2DAsync_v2, (FROM, S), (&flat, 0), FLAT(ASYNC));
  CALL(cuMemcpy2DAsync_v2_ptsz, (FROM, S), (&flat, 0), FLAT(ASYNC));
  CALL(cuMemcpy3D, (FROM), (&older), DEEP(SYNC));
  CALL(cuMemcpy3D_v2, (FROM), (&deep), DEEP(SYNC));
  CALL(cuMemcpy3D_v2_ptds, (FROM), (&deep), DEEP(SYNC));
  CALL(cuMemcpy3DAsync, (FROM, S), (&older, 0), DEEP(ASYNC));
  CALL(cuMemcpy3DAsync_v2, (FROM, S), (&deep, 0), DEEP(ASYNC));
  CALL(cuMemcpy3DAsync_v2_ptsz, (FROM, S), (&deep, 0), DEEP(ASYNC));
  deep.dstMemoryType = 2;
  deep.dstDevice = other;
#define ACROSS(manner) did_copy(DEVICE_TO_DEVICE, manner, 40 * 3 * 2)
  CALL(cuMemcpy3DPeer, (FROM), (&deep), ACROSS(SYNC));
  CALL(cuMemcpy3DPeer_ptds, (FROM), (&deep), ACROSS(SYNC));
  CALL(cuMemcpy3DPeerAsync, (FROM, S), (&deep, 0), ACROSS(ASYNC));
  CALL(cuMemcpy3DPeerAsync_ptsz, (FROM, S), (&deep, 0), ACROSS(ASYNC));
}

static void batches(void) {
  CUdeviceptr to[] = {wide, (CUdeviceptr)host}, from[] = {(CUdeviceptr)host, other};
  size_t sizes[] = {100, 200}, index = 0, failed_at = 0;
  CUmemcpyAttributes attributes = {.srcAccessOrder = 1};
  CUDA_MEMCPY3D_BATCH_OP list[2] = {{.extent = {16, 2, 2}}, {.extent = {32, 1, 1}}};
  for (int i = 0; i < 2; i++) {
    list[i].src.type = list[i].dst.type = 1;
    list[i].src.op.ptr.ptr = from[i], list[i].dst.op.ptr.ptr = to[i];
    list[i].src.op.ptr.rowLength = list[i].dst.op.ptr.rowLength = 32;
    list[i].src.op.ptr.layerHeight = list[i].dst.op.ptr.layerHeight = 2;
  }
#define MEMBERS(in, out) (did_copy(HOST_TO_DEVICE, ASYNC, in), did_copy(DEVICE_TO_HOST, ASYNC, out))
#define LINES P64 *, P64 *, N64 *, N64, void *, N64 *, N64
#define VALUES to, from, sizes, 2, &attributes, &index, 1
  CALL(cuMemcpyBatchAsync, (LINES, N64 *, S), (VALUES, &failed_at, 0), MEMBERS(100, 200));
  CALL(cuMemcpyBatchAsync_ptsz, (LINES, N64 *, S), (VALUES, &failed_at, 0), MEMBERS(100, 200));
  CALL(cuMemcpyBatchAsync_v2, (LINES, S), (VALUES, 0), MEMBERS(100, 200));
  CALL(cuMemcpyBatchAsync_v2_ptsz, (LINES, S), (VALUES, 0), MEMBERS(100, 200));
#define FLAGS unsigned long long
  CALL(cuMemcpy3DBatchAsync, (N64, TO, N64 *, FLAGS, S), (2, list, &failed_at, 0, 0),
       MEMBERS(64, 32));
  CALL(cuMemcpy3DBatchAsync_ptsz, (N64, TO, N64 *, FLAGS, S), (2, list, &failed_at, 0, 0),
       MEMBERS(64, 32));
  CALL(cuMemcpy3DBatchAsync_v2, (N64, TO, FLAGS, S), (2, list, 0, 0), MEMBERS(64, 32));
  CALL(cuMemcpy3DBatchAsync_v2_ptsz, (N64, TO, FLAGS, S), (2, list, 0, 0), MEMBERS(64, 32));
}

#define SETS(bits, V)                                                                          \
  CALL(cuMemsetD##bits, (P32, V, N32), (low, 1, n), LINE(SYNC, V));                            \
  CALL(cuMemsetD##bits##_v2, (P64, V, N64), (wide, 1, n), LINE(SYNC, V));                      \
  CALL(cuMemsetD##bits##_v2_ptds, (P64, V, N64), (wide, 1, n), LINE(SYNC, V));                 \
  CALL(cuMemsetD##bits##Async, (P64, V, N64, S), (wide, 1, n, 0), LINE(ASYNC, V));             \
  CALL(cuMemsetD##bits##Async_ptsz, (P64, V, N64, S), (wide, 1, n, 0), LINE(ASYNC, V));        \
  CALL(cuMemsetD2D##bits, (P32, N32, V, N32, N32), (low, 512, 1, 9, 7), AREA(SYNC, V));        \
  CALL(cuMemsetD2D##bits##_v2, (P64, N64, V, N64, N64), (wide, 512, 1, 9, 7), AREA(SYNC, V));  \
  CALL(cuMemsetD2D##bits##_v2_ptds, (P64, N64, V, N64, N64), (wide, 512, 1, 9, 7),             \
       AREA(SYNC, V));                                                                         \
  CALL(cuMemsetD2D##bits##Async, (P64, N64, V, N64, N64, S), (wide, 512, 1, 9, 7, 0),          \
       AREA(ASYNC, V));                                                                        \
  CALL(cuMemsetD2D##bits##Async_ptsz, (P64, N64, V, N64, N64, S), (wide, 512, 1, 9, 7, 0),     \
       AREA(ASYNC, V))

static void sets(void) {
#define LINE(manner, V) did_set(manner, n * sizeof(V))
#define AREA(manner, V) did_set(manner, 9 * 7 * sizeof(V))
  SETS(8, unsigned char);
  SETS(16, unsigned short);
  SETS(32, unsigned);
}

int main(int argc, char **argv) {
  left_out_count = argc - 1, left_out_names = argv + 1;
  CUDA_ARRAY_DESCRIPTOR shape = {1024, 16, 1, 1};
  context = start_driver();
  driver = dlopen("libcuda.so.1", RTLD_NOW);
  wide = take(65536);
  other = take(65536);
  CALL(cuMemAlloc, (P32 *, N32), (&low, 65536), did_alloc(DEVICE, 65536));
  CALL(cuMemAlloc, (P32 *, N32), (&low_other, 65536), did_alloc(DEVICE, 65536));
  MUST(cuArrayCreate_v2(&array, &shape));
  MUST(cuArrayCreate_v2(&second_array, &shape));
  did_alloc(ARRAY, 1024 * 16);
  did_alloc(ARRAY, 1024 * 16);
  symbols = 0;
  lines();
  arrays();
  boxes();
  batches();
  sets();
  say("", "symbols", symbols);
  CALL(cuMemFree, (P32), (low), did_free(DEVICE, 65536));
  for (int i = 0; i < ARRAYS; i++)
    print_traffic("", array_names[i], array_count[i], array_bytes[i]);
  print_tally("", true);
  return 0;
}
