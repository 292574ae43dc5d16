/*
 * The state of the simulated driver and the contracts between its files.
 *
 * One mutex guards everything below. A function whose name starts with `driver_enter` takes it
 * and `driver_leave` gives it back with the result, so that an entry point reads as: enter,
 * decide, leave. Nothing here is reached in fast mode (fast.c), except contexts and queries.
 */
#ifndef FAKE_CUDA_INTERNAL_H
#define FAKE_CUDA_INTERNAL_H

#include <stdbool.h>
#include <stdio.h>

#include "fake_cuda.h"

#define DRIVER_VERSION 13000
#define BLOCK ((uint64_t)2 << 20) /* physical memory is handed out in these */
#define UNIT ((uint64_t)512)      /* small requests share a block at this step */
#define SMALL ((uint64_t)1 << 20) /* the largest request that shares a block */
#define UNITS ((unsigned)(BLOCK / UNIT))
#define MAX_DEVICES 16

#define LIKELY(x) __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)

/* ---- the table, as identifiers ---------------------------------------------------------- */

enum symbol_id {
#define ROW(base, version, stream, symbol) ID_##symbol,
#include "table.inc"
#undef ROW
  SYMBOLS
};

/* ---- script.c: failures, delays and hangs on demand ------------------------------------- */

extern bool script_armed[SYMBOLS];
void script_init(void);
CUresult script_step(enum symbol_id id);

/* What the script says about this call: the code to return, or 0 to go on. */
static inline CUresult step(enum symbol_id id) {
  return UNLIKELY(script_armed[id]) ? script_step(id) : CUDA_SUCCESS;
}

/* ---- truth.c: what really happened ------------------------------------------------------ */

enum ledger {
  DEVICE,
  ASYNC_POOL,
  VMM_PHYSICAL,
  VMM_MAPPED,
  VMM_ADDRESS,
  MANAGED,
  PINNED,
  REGISTERED,
  ARRAY,
  GRAPH,
  IMPORTED,
  LEDGERS
};

enum direction {
  HOST_TO_DEVICE,
  DEVICE_TO_HOST,
  DEVICE_TO_DEVICE,
  HOST_TO_HOST,
  HOST_TO_ARRAY,
  ARRAY_TO_HOST,
  ARRAY_TO_ARRAY,
  ARRAY_TO_DEVICE,
  DEVICE_TO_ARRAY,
  PEER,
  DIRECTIONS
};

void truth_reset(void);
void truth_alloc(enum ledger ledger, uint64_t bytes);
void truth_free(enum ledger ledger, uint64_t bytes);
void truth_implicit_free(enum ledger ledger, uint64_t bytes);
void truth_null_free(enum ledger ledger);
void truth_reserved(int64_t change);
void truth_context(int change);
void truth_copy(enum direction direction, bool async, bool pinned, uint64_t bytes);
void truth_set(bool async, uint64_t bytes);
/* These two take the lock: they are called after the entry point has left. */
CUresult truth_alloc_result(enum ledger ledger, CUresult result);
CUresult truth_free_result(enum ledger ledger, CUresult result);
CUresult truth_other_result(bool set, CUresult result);
void truth_at_exit(void);

/* ---- space.c: addresses and what lives at them ------------------------------------------ */

enum region { REGION_DEVICE, REGION_LOW, REGION_PINNED, REGION_MANAGED, REGION_VMM, REGIONS };

struct block;
struct range {
  uint64_t base, span; /* the addresses it covers; the key */
  uint64_t bytes;      /* what was asked for */
  enum ledger ledger;
  enum region region;
  int device;
  unsigned flags;
  CUcontext context;   /* whose end frees it, or null */
  CUmemoryPool pool;
  void *owner;         /* a block, a span of a pool, a mapping's handle … */
  struct range *previous, *next; /* within its context */
};

/* Addresses are given out again last in, first out, as a real driver does. */
uint64_t space_take(enum region region, uint64_t span);
void space_give(enum region region, uint64_t base, uint64_t span);
void space_forget(void);

extern void *live_ranges;     /* every ledger except the two below */
extern void *mapped_ranges;   /* VMM mappings */
extern void *reserved_ranges; /* VMM reservations */
struct range *range_add(void **tree, const struct range *range);
struct range *range_at(void **tree, uint64_t address);
struct range *range_based_at(void **tree, uint64_t base);
void range_remove(void **tree, struct range *range);

/* ---- blocks.c: physical device memory --------------------------------------------------- */

bool device_take(int device, uint64_t bytes);
void device_give(int device, uint64_t bytes);
uint64_t round_up(uint64_t bytes, uint64_t step);
CUresult blocks_alloc(CUcontext context, uint64_t bytes, bool low, struct range *range);
void blocks_free(struct range *range);
bool blocks_open_context(CUcontext context);
void blocks_close_context(CUcontext context);

/* ---- driver.c: lock, initialisation, devices, contexts ---------------------------------- */

struct device {
  uint64_t total, used;
  CUcontext primary;
  CUmemoryPool default_pool, current_pool;
  unsigned contexts;
};

struct CUctx_st {
  int device;
  bool primary, alive;
  unsigned references, flags;
  uint64_t id;
  struct block *partial; /* blocks with room in them, last touched first */
  struct range *ranges;
  struct CUctx_st *next;
};

extern struct device devices[MAX_DEVICES];
extern int device_count;
extern uint64_t context_bytes;
extern CUcontext all_contexts;

CUresult driver_enter(void);
CUresult driver_enter_context(CUcontext *context);
CUresult driver_enter_device(CUdevice device);
CUresult driver_leave(CUresult result);
void driver_lock(void);
void driver_unlock(void);
bool driver_used(void);

/* ---- context.c -------------------------------------------------------------------------- */

CUcontext context_current(void);
/* Ends a context and everything that it owns. */
void context_end(CUcontext context);
void context_restart(void);

/* ---- memory.c --------------------------------------------------------------------------- */

void memory_release(struct range *range);

/* ---- pool.c ----------------------------------------------------------------------------- */

void pool_restart(void);
CUresult pool_free_range(struct range *range);
bool pool_is_valid(CUmemoryPool pool);
CUmemoryPool pool_new(int device);
/* A point of synchronisation: unused memory above the release threshold goes back. */
void pool_synchronise(int device);

/* ---- vmm.c ------------------------------------------------------------------------------ */

void vmm_restart(void);

/* ---- stream.c, graph.c ------------------------------------------------------------------ */

struct CUstream_st {
  bool alive;
  bool joined; /* the capture began on another stream */
  int device;
  CUgraph capturing;
  struct CUstream_st *next;
};

/* Stream 0 of a per-thread variant is the thread's own default stream. */
#define PER_THREAD_STREAM ((CUstream)(uintptr_t)2)
#define THREAD_STREAM(stream) ((stream) ? (stream) : PER_THREAD_STREAM)
/* The same for a symbol of either variant. */
#define STREAM_IN(symbol, stream) \
  (sizeof #symbol > 6 && !strcmp(#symbol + sizeof #symbol - 6, "_ptsz") ? THREAD_STREAM(stream) \
                                                                        : (stream))

bool stream_is_capturing(CUstream stream);
bool stream_is_valid(CUstream stream);
/* The stream behind a handle, or null for the default streams and unknown handles. */
CUstream stream_of(CUstream handle);
CUresult capture_alloc(CUstream stream, CUdeviceptr *pointer, uint64_t bytes);
CUresult capture_free(CUstream stream, CUdeviceptr pointer);
/* Every stream and event of a capture leaves it. */
void stream_end_capture(CUgraph graph);
void graph_release(struct range *range);
void stream_restart(void);

/* ---- array.c ---------------------------------------------------------------------------- */

bool array_is_valid(CUarray array);
void array_release(struct range *range);
CUresult array_lend(CUcontext context, CUmipmappedArray *out,
                    const CUDA_ARRAY3D_DESCRIPTOR *descriptor, unsigned levels);

/* The size in bytes of one row's element. */
unsigned array_element(int format, unsigned channels);

/* ---- fast.c: the driver that does nothing, quickly -------------------------------------- */

extern bool fast_mode;
void fast_init(const char *mode);
CUresult fast_alloc(CUdeviceptr *pointer, uint64_t bytes);
/* False when the address, null among them, is not one of its own. */
bool fast_free(CUdeviceptr pointer);

#endif
