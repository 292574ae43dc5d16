/*
 * The driver that does nothing, quickly: for logs of 10^8 events and for the cost of a hook.
 *
 *   FAKE_CUDA_FAST=1       one lock-free stack of free addresses per size, shared by all
 *                          threads: an address that one thread frees is the next that any gets
 *   FAKE_CUDA_FAST=local   the same per thread, without atomic operations
 *
 * Sizes are rounded up to powers of two and an address tells its class, so a free needs no
 * table. Nothing is checked and nothing is counted. Kinds of memory that are not handled here
 * (pitched, managed, pinned, mapped) are handled as ever.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "internal.h"

#define CLASSES 30       /* 512 B << class, up to 256 GiB */
#define SLOTS (1u << 20) /* at most, of each class (and of each thread in local mode) */
#define WINDOW_SHIFT 39  /* the addresses of one class */
#define FAST_BASE ((uint64_t)1 << 44)
#define MAX_THREADS 64 /* in local mode; more would share addresses */

/* Low half: index + 1 of the top, or 0. High half: changes at each pop, against reuse. */
struct shared {
  uint64_t top __attribute__((aligned(64)));
  uint32_t fresh;
  uint32_t *below;
};

struct local {
  uint32_t fresh[CLASSES], depth[CLASSES];
  uint64_t number; /* which part of every class is this thread's */
  uint32_t *stacks[CLASSES];
};

bool fast_mode;
static bool local_mode;
static struct shared shared[CLASSES];
static uint64_t threads;
static __thread struct local *mine __attribute__((tls_model("initial-exec")));

static uint32_t *slots(void) {
  void *memory = mmap(NULL, SLOTS * sizeof(uint32_t), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) abort();
  return memory;
}

void fast_init(const char *mode) {
  fast_mode = mode && *mode && strcmp(mode, "0") != 0;
  local_mode = fast_mode && strcmp(mode, "local") == 0;
  for (int i = 0; fast_mode && i < CLASSES; i++) shared[i].below = slots();
}

static unsigned class_of(uint64_t bytes) {
  return bytes <= UNIT ? 0 : 64 - 9 - (unsigned)__builtin_clzll(bytes - 1);
}

static uint64_t address(unsigned class, uint64_t index) {
  return FAST_BASE | (uint64_t)class << WINDOW_SHIFT | index << (9 + class);
}

/* How many blocks of the class can live at once, in 1/share of its window. */
static uint32_t limit(unsigned class, unsigned share) {
  uint64_t blocks = ((uint64_t)1 << (WINDOW_SHIFT - 9 - class)) / share;
  return blocks > SLOTS ? SLOTS : blocks ? (uint32_t)blocks : 1;
}

static CUresult shared_alloc(unsigned class, CUdeviceptr *pointer) {
  struct shared *stack = &shared[class];
  uint64_t top = __atomic_load_n(&stack->top, __ATOMIC_ACQUIRE);
  while ((uint32_t)top) {
    uint32_t index = (uint32_t)top - 1;
    uint32_t below = __atomic_load_n(&stack->below[index], __ATOMIC_RELAXED);
    uint64_t next = ((top >> 32) + 1) << 32 | below;
    if (__atomic_compare_exchange_n(&stack->top, &top, next, true, __ATOMIC_ACQ_REL,
                                    __ATOMIC_ACQUIRE)) {
      *pointer = address(class, index);
      return CUDA_SUCCESS;
    }
  }
  uint32_t index = __atomic_fetch_add(&stack->fresh, 1, __ATOMIC_RELAXED);
  if (index >= limit(class, 1)) {
    __atomic_fetch_sub(&stack->fresh, 1, __ATOMIC_RELAXED);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  *pointer = address(class, index);
  return CUDA_SUCCESS;
}

static void shared_free(unsigned class, uint32_t index) {
  struct shared *stack = &shared[class];
  uint64_t top = __atomic_load_n(&stack->top, __ATOMIC_RELAXED), next;
  do {
    __atomic_store_n(&stack->below[index], (uint32_t)top, __ATOMIC_RELAXED);
    next = (top >> 32) << 32 | (index + 1);
  } while (!__atomic_compare_exchange_n(&stack->top, &top, next, true, __ATOMIC_ACQ_REL,
                                        __ATOMIC_RELAXED));
}

static __attribute__((noinline)) struct local *start_thread(void) {
  mine = calloc(1, sizeof *mine);
  if (!mine) abort();
  mine->number = __atomic_fetch_add(&threads, 1, __ATOMIC_RELAXED) % MAX_THREADS;
  for (int i = 0; i < CLASSES; i++) mine->stacks[i] = slots();
  return mine;
}

static CUresult local_alloc(unsigned class, CUdeviceptr *pointer) {
  struct local *local = mine;
  if (UNLIKELY(!local)) local = start_thread();
  uint32_t index;
  if (LIKELY(local->depth[class])) index = local->stacks[class][--local->depth[class]];
  else if (local->fresh[class] < limit(class, MAX_THREADS)) index = local->fresh[class]++;
  else return CUDA_ERROR_OUT_OF_MEMORY;
  *pointer = address(class, local->number * limit(class, MAX_THREADS) + index);
  return CUDA_SUCCESS;
}

/* A block of another thread is given up: its address is not used again. */
static void local_free(unsigned class, uint64_t index) {
  struct local *local = mine;
  if (UNLIKELY(!local)) local = start_thread();
  uint64_t own = index - local->number * limit(class, MAX_THREADS);
  if (own < limit(class, MAX_THREADS) && local->depth[class] < SLOTS)
    local->stacks[class][local->depth[class]++] = (uint32_t)own;
}

CUresult fast_alloc(CUdeviceptr *pointer, uint64_t bytes) {
  if (UNLIKELY(!pointer || !bytes)) return CUDA_ERROR_INVALID_VALUE;
  unsigned class = class_of(bytes);
  if (UNLIKELY(class >= CLASSES)) return CUDA_ERROR_OUT_OF_MEMORY;
  return local_mode ? local_alloc(class, pointer) : shared_alloc(class, pointer);
}

bool fast_free(CUdeviceptr pointer) {
  uint64_t class = (pointer - FAST_BASE) >> WINDOW_SHIFT;
  if (UNLIKELY(class >= CLASSES)) return false;
  uint64_t index = (pointer & (((uint64_t)1 << WINDOW_SHIFT) - 1)) >> (9 + class);
  if (local_mode) local_free((unsigned)class, index);
  else if (index < SLOTS) shared_free((unsigned)class, (uint32_t)index);
  return true;
}
