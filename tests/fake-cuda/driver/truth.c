/*
 * What really happened, counted where it happens, so that a test compares a report with the
 * driver and not with a number written twice. Counters change under the driver's lock.
 *
 * FAKE_CUDA_TRUTH=PATH writes them at exit when the process used the driver (%p in the path is
 * the process id); fakeCudaDumpTruth(path) writes them at any time.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "internal.h"

struct account {
  uint64_t allocs, frees, failed_allocs, failed_frees, null_frees, implicit_frees;
  uint64_t alloc_bytes, free_bytes, implicit_bytes, live_count, live_bytes, peak_bytes;
};

struct traffic {
  uint64_t count, bytes, pinned;
};

static struct {
  struct account ledgers[LEDGERS];
  struct traffic copies[DIRECTIONS][2];
  struct traffic sets[2];
  uint64_t failed_copies, failed_sets;
  uint64_t reserved, reserved_peak;
  uint64_t contexts_created, contexts_destroyed;
} truth;

static const char *const ledger_names[LEDGERS] = {
    "device",  "async_pool", "vmm_physical", "vmm_mapped", "vmm_address", "managed",
    "pinned",  "registered", "array",        "graph",      "imported",
};

static const char *const direction_names[DIRECTIONS] = {
    "host_to_device", "device_to_host", "device_to_device", "host_to_host",    "host_to_array",
    "array_to_host",  "array_to_array", "array_to_device",  "device_to_array", "peer",
};

void truth_reset(void) { memset(&truth, 0, sizeof truth); }

void truth_alloc(enum ledger ledger, uint64_t bytes) {
  struct account *account = &truth.ledgers[ledger];
  account->allocs++;
  account->alloc_bytes += bytes;
  account->live_count++;
  account->live_bytes += bytes;
  if (account->live_bytes > account->peak_bytes) account->peak_bytes = account->live_bytes;
}

static void drop(struct account *account, uint64_t bytes) {
  account->live_count--;
  account->live_bytes -= bytes;
}

void truth_free(enum ledger ledger, uint64_t bytes) {
  struct account *account = &truth.ledgers[ledger];
  account->frees++;
  account->free_bytes += bytes;
  drop(account, bytes);
}

void truth_implicit_free(enum ledger ledger, uint64_t bytes) {
  struct account *account = &truth.ledgers[ledger];
  account->implicit_frees++;
  account->implicit_bytes += bytes;
  drop(account, bytes);
}

void truth_null_free(enum ledger ledger) { truth.ledgers[ledger].null_frees++; }

void truth_reserved(int64_t change) {
  truth.reserved += (uint64_t)change;
  if (truth.reserved > truth.reserved_peak) truth.reserved_peak = truth.reserved;
}

void truth_context(int change) {
  if (change > 0) truth.contexts_created++;
  else truth.contexts_destroyed++;
}

static void pass(struct traffic *traffic, bool pinned, uint64_t bytes) {
  traffic->count++;
  traffic->bytes += bytes;
  traffic->pinned += pinned;
}

void truth_copy(enum direction direction, bool async, bool pinned, uint64_t bytes) {
  pass(&truth.copies[direction][async], pinned, bytes);
}

void truth_set(bool async, uint64_t bytes) { pass(&truth.sets[async], false, bytes); }

static CUresult count_failure(uint64_t *counter, CUresult result) {
  if (result == CUDA_SUCCESS || fast_mode) return result;
  driver_lock();
  ++*counter;
  driver_unlock();
  return result;
}

CUresult truth_alloc_result(enum ledger ledger, CUresult result) {
  return count_failure(&truth.ledgers[ledger].failed_allocs, result);
}

CUresult truth_free_result(enum ledger ledger, CUresult result) {
  return count_failure(&truth.ledgers[ledger].failed_frees, result);
}

CUresult truth_other_result(bool set, CUresult result) {
  return count_failure(set ? &truth.failed_sets : &truth.failed_copies, result);
}

static void write_account(FILE *file, const char *name, const struct account *account) {
  const struct { const char *key; uint64_t value; } rows[] = {
      {"allocs", account->allocs},
      {"frees", account->frees},
      {"failed_allocs", account->failed_allocs},
      {"failed_frees", account->failed_frees},
      {"null_frees", account->null_frees},
      {"implicit_frees", account->implicit_frees},
      {"alloc_bytes", account->alloc_bytes},
      {"free_bytes", account->free_bytes},
      {"implicit_bytes", account->implicit_bytes},
      {"live_count", account->live_count},
      {"live_bytes", account->live_bytes},
      {"peak_bytes", account->peak_bytes},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    fprintf(file, "%s.%s %" PRIu64 "\n", name, rows[i].key, rows[i].value);
}

static void write_traffic(FILE *file, const char *name, const struct traffic both[2]) {
  for (int async = 0; async < 2; async++) {
    const char *manner = async ? "async" : "sync";
    fprintf(file, "%s.%s.count %" PRIu64 "\n", name, manner, both[async].count);
    fprintf(file, "%s.%s.bytes %" PRIu64 "\n", name, manner, both[async].bytes);
    fprintf(file, "%s.%s.pinned_count %" PRIu64 "\n", name, manner, both[async].pinned);
  }
}

static void write_devices(FILE *file) {
  for (int i = 0; i < device_count; i++) {
    fprintf(file, "device.%d.total_bytes %" PRIu64 "\n", i, devices[i].total);
    fprintf(file, "device.%d.used_bytes %" PRIu64 "\n", i, devices[i].used);
  }
}

static void write_all(FILE *file) {
  for (int i = 0; i < LEDGERS; i++) write_account(file, ledger_names[i], &truth.ledgers[i]);
  char name[64];
  for (int i = 0; i < DIRECTIONS; i++) {
    snprintf(name, sizeof name, "copies.%s", direction_names[i]);
    write_traffic(file, name, truth.copies[i]);
  }
  write_traffic(file, "sets", truth.sets);
  fprintf(file, "copies.failed %" PRIu64 "\n", truth.failed_copies);
  fprintf(file, "sets.failed %" PRIu64 "\n", truth.failed_sets);
  fprintf(file, "async_reserved.live_bytes %" PRIu64 "\n", truth.reserved);
  fprintf(file, "async_reserved.peak_bytes %" PRIu64 "\n", truth.reserved_peak);
  fprintf(file, "contexts.created %" PRIu64 "\n", truth.contexts_created);
  fprintf(file, "contexts.destroyed %" PRIu64 "\n", truth.contexts_destroyed);
  write_devices(file);
}

int fakeCudaDumpTruth(const char *path) {
  if (fast_mode) return 1;
  FILE *file = fopen(path, "we");
  if (!file) return 1;
  driver_lock();
  write_all(file);
  driver_unlock();
  return fclose(file) != 0;
}

/* The path with %p replaced by the process id. */
static void expand(const char *pattern, char *path, size_t room) {
  const char *mark = strstr(pattern, "%p");
  if (!mark) snprintf(path, room, "%s", pattern);
  else
    snprintf(path, room, "%.*s%d%s", (int)(mark - pattern), pattern, (int)getpid(), mark + 2);
}

void truth_at_exit(void) {
  const char *pattern = getenv("FAKE_CUDA_TRUTH");
  if (!pattern || !*pattern || !driver_used()) return;
  char path[4096];
  expand(pattern, path, sizeof path);
  fakeCudaDumpTruth(path);
}
