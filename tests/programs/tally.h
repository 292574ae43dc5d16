/*
 * What a program did, counted by the program itself and printed as `key value` lines, with the
 * keys of the simulated driver's truth, so that a test can hold the report against either.
 *
 * A program with threads counts too, but its peak depends on the schedule: it prints none.
 */
#ifndef TALLY_H
#define TALLY_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake_cudart.h"

enum ledger { DEVICE, ASYNC_POOL, VMM_PHYSICAL, VMM_MAPPED, VMM_ADDRESS, MANAGED, PINNED,
              REGISTERED, ARRAY, GRAPH, IMPORTED, LEDGERS };
enum direction { HOST_TO_DEVICE, DEVICE_TO_HOST, DEVICE_TO_DEVICE, HOST_TO_HOST, PEER,
                 DIRECTIONS };
enum manner { SYNC, ASYNC };

static const char *const ledger_names[LEDGERS] = {
    "device",  "async_pool", "vmm_physical", "vmm_mapped", "vmm_address", "managed",
    "pinned",  "registered", "array",        "graph",      "imported"};
static const char *const direction_names[DIRECTIONS] = {
    "host_to_device", "device_to_host", "device_to_device", "host_to_host", "peer"};

struct account {
  uint64_t allocs, frees, failed_allocs, failed_frees, null_frees;
  uint64_t alloc_bytes, free_bytes, peak_bytes;
};

static struct {
  struct account ledgers[LEDGERS];
  uint64_t copy_count[DIRECTIONS][2], copy_bytes[DIRECTIONS][2];
  uint64_t set_count[2], set_bytes[2];
} tally;

#define BUMP(counter, by) __atomic_fetch_add(&(counter), (by), __ATOMIC_RELAXED)
#define NOW(counter) __atomic_load_n(&(counter), __ATOMIC_RELAXED)

static inline void did_alloc(enum ledger ledger, uint64_t bytes) {
  struct account *account = &tally.ledgers[ledger];
  BUMP(account->allocs, 1);
  uint64_t live = BUMP(account->alloc_bytes, bytes) + bytes - NOW(account->free_bytes);
  if (live > NOW(account->peak_bytes))
    __atomic_store_n(&account->peak_bytes, live, __ATOMIC_RELAXED);
}

static inline void did_free(enum ledger ledger, uint64_t bytes) {
  BUMP(tally.ledgers[ledger].frees, 1);
  BUMP(tally.ledgers[ledger].free_bytes, bytes);
}

static inline void did_copy(enum direction direction, enum manner manner, uint64_t bytes) {
  BUMP(tally.copy_count[direction][manner], 1);
  BUMP(tally.copy_bytes[direction][manner], bytes);
}

static inline void did_set(enum manner manner, uint64_t bytes) {
  BUMP(tally.set_count[manner], 1);
  BUMP(tally.set_bytes[manner], bytes);
}

/* An allocation or free that must fail, and is counted as failed. */
#define FAILED_ALLOC(ledger, call) \
  (failed(call, #call), BUMP(tally.ledgers[ledger].failed_allocs, 1))
#define FAILED_FREE(ledger, call) \
  (failed(call, #call), BUMP(tally.ledgers[ledger].failed_frees, 1))
/* A call that must succeed. */
#define MUST(call) must(call, #call)

static inline void must(int result, const char *call) {
  if (result == 0) return;
  fprintf(stderr, "%s: error %d\n", call, result);
  exit(9);
}

static inline void failed(int result, const char *call) {
  if (result != 0) return;
  fprintf(stderr, "%s: did not fail\n", call);
  exit(9);
}

/* The first context, made current, as most programs here begin. */
static inline CUcontext start_driver(void) {
  CUcontext context;
  MUST(cuInit(0));
  MUST(cuCtxCreate_v2(&context, 0, 0));
  return context;
}

static inline CUdeviceptr take(size_t bytes) {
  CUdeviceptr pointer;
  MUST(cuMemAlloc_v2(&pointer, bytes));
  did_alloc(DEVICE, bytes);
  return pointer;
}

static inline void give(CUdeviceptr pointer, size_t bytes) {
  MUST(cuMemFree_v2(pointer));
  did_free(DEVICE, bytes);
}

static inline void say(const char *prefix, const char *key, uint64_t value) {
  printf("%s%s %" PRIu64 "\n", prefix, key, value);
}

static inline void print_account(const char *prefix, int ledger, bool peak) {
  const struct account *account = &tally.ledgers[ledger];
  const struct { const char *key; uint64_t value; } rows[] = {
      {"allocs", account->allocs},
      {"frees", account->frees},
      {"failed_allocs", account->failed_allocs},
      {"failed_frees", account->failed_frees},
      {"null_frees", account->null_frees},
      {"alloc_bytes", account->alloc_bytes},
      {"free_bytes", account->free_bytes},
      {"live_count", account->allocs - account->frees},
      {"live_bytes", account->alloc_bytes - account->free_bytes},
      {"peak_bytes", account->peak_bytes},
  };
  char key[64];
  for (size_t i = 0; i < sizeof rows / sizeof *rows - !peak; i++) {
    snprintf(key, sizeof key, "%s.%s", ledger_names[ledger], rows[i].key);
    say(prefix, key, rows[i].value);
  }
}

static inline bool in_use(const struct account *account) {
  return account->allocs || account->frees || account->failed_allocs || account->failed_frees ||
         account->null_frees;
}

static inline void print_traffic(const char *prefix, const char *name, const uint64_t count[2],
                                 const uint64_t bytes[2]) {
  char key[96];
  for (int manner = 0; manner < 2; manner++) {
    if (!count[manner]) continue;
    const char *how = manner ? "async" : "sync";
    snprintf(key, sizeof key, "%s.%s.count", name, how);
    say(prefix, key, count[manner]);
    snprintf(key, sizeof key, "%s.%s.bytes", name, how);
    say(prefix, key, bytes[manner]);
  }
}

/* Prints the ledgers in use, copies and sets; `peak` for programs with one thread. */
static inline void print_tally(const char *prefix, bool peak) {
  char name[64];
  for (int i = 0; i < LEDGERS; i++)
    if (in_use(&tally.ledgers[i])) print_account(prefix, i, peak);
  for (int i = 0; i < DIRECTIONS; i++) {
    snprintf(name, sizeof name, "copies.%s", direction_names[i]);
    print_traffic(prefix, name, tally.copy_count[i], tally.copy_bytes[i]);
  }
  print_traffic(prefix, "sets", tally.set_count, tally.set_bytes);
  fflush(stdout);
}

/* The path of a file beside the program. */
static inline const char *beside(const char *name) {
  static char path[4096];
  ssize_t readlink(const char *, char *, size_t);
  ssize_t length = readlink("/proc/self/exe", path, sizeof path - 256);
  if (length < 0) exit(9);
  path[length] = 0;
  strcpy(strrchr(path, '/') + 1, name);
  return path;
}

static inline uint64_t argument(int count, char **values, int index, uint64_t otherwise) {
  return count > index ? strtoull(values[index], NULL, 0) : otherwise;
}

#endif
