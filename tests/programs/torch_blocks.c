/*
 * torch_blocks [ROUNDS|cpu]: an allocator like PyTorch's, opened as Python opens it (RTLD_LOCAL), reports
 * its blocks to a libc10.so of our own. Two threads take and give blocks on two devices; blocks of
 * other device types, requests that fail, reporters that throw, and frees at exit. With `cpu` it
 * reports about other device types only.
 *
 * Run with: FAKE_CUDA_DEVICES=2
 * Expected: the CUDA blocks are the `torch` ledger, exactly; libc10 was told everything once, with
 * the arguments and the caller that it has without a preload, and what it throws arrives.
 */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>

#include "tally.h"
#include "torch_allocator.h"

static __typeof__(torch_take) *take_block;
static __typeof__(torch_give) *give_block;
static __typeof__(torch_empty_cache) *empty_cache;
static __typeof__(torch_elsewhere) *elsewhere;
static __typeof__(torch_of_old) *of_old;
static __typeof__(torch_counts) *counts_now;
static __typeof__(torch_totals) *totals;
static __typeof__(torch_segments) *segments;
static __typeof__(torch_throw) *throw_next;
static __typeof__(torch_give_back_at_exit) *give_back_at_exit;

static uint64_t rounds;
static uint64_t torch_allocs, torch_frees, torch_alloc_bytes, torch_free_bytes, odd;

static void load(void) {
  void *library = dlopen(beside("libc10_cuda.so"), RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    fprintf(stderr, "%s\n", dlerror());
    exit(9);
  }
#define FIND(pointer, name) \
  if (!(pointer = (__typeof__(pointer))dlsym(library, name))) exit(9)
  FIND(take_block, "torch_take");
  FIND(give_block, "torch_give");
  FIND(empty_cache, "torch_empty_cache");
  FIND(elsewhere, "torch_elsewhere");
  FIND(of_old, "torch_of_old");
  FIND(counts_now, "torch_counts");
  FIND(totals, "torch_totals");
  FIND(segments, "torch_segments");
  FIND(throw_next, "torch_throw");
  FIND(give_back_at_exit, "torch_give_back_at_exit");
}

static uint64_t rounded(size_t size) { return (size + 511) / 512 * 512; }

static uint64_t block(int device, size_t size) {
  errno = 77;
  uint64_t pointer = take_block(device, size);
  /* The reporter itself sets it to 0. */
  if (!pointer || errno != 0) exit(9);
  BUMP(torch_allocs, 1);
  BUMP(torch_alloc_bytes, rounded(size));
  return pointer;
}

static void back(int device, uint64_t pointer, size_t size) {
  BUMP(odd, (uint64_t)give_block(device, pointer));
  BUMP(torch_frees, 1);
  BUMP(torch_free_bytes, rounded(size));
}

static void *work(void *argument) {
  int device = (int)(intptr_t)argument;
  CUcontext context;
  MUST(cuDevicePrimaryCtxRetain(&context, device));
  MUST(cuCtxSetCurrent(context));
  for (uint64_t round = 0; round < rounds; round++) {
    uint64_t blocks[8];
    for (size_t i = 0; i < 8; i++) blocks[i] = block(device, 100 * (i + 1) + round % 3000);
    for (size_t i = 0; i < 8; i++) back(device, blocks[i], 100 * (i + 1) + round % 3000);
  }
  return NULL;
}

int main(int argc, char **argv) {
  rounds = argument(argc, argv, 1, 500);
  load();
  /* Before any CUDA call: nobody may begin a log for these. */
  elsewhere(&rounds, 4096);
  if (argc > 1 && !strcmp(argv[1], "cpu")) return 0;
  MUST(cuInit(0));
  pthread_t threads[2];
  for (intptr_t i = 0; i < 2; i++) MUST(pthread_create(&threads[i], NULL, work, (void *)i));
  for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);

  CUcontext context;
  MUST(cuDevicePrimaryCtxRetain(&context, 0));
  MUST(cuCtxSetCurrent(context));
  elsewhere(&rounds, -4096);
  uint64_t first = block(0, 4 << 20), kept = block(0, 3000);
  /* More than there is: the driver fails, and the allocator says so. */
  if (take_block(0, (size_t)1 << 60)) exit(9);
  throw_next("thrown by the reporter");
  if (give_block(0, first) != 1) exit(1);
  torch_frees++;
  torch_free_bytes += 4 << 20;
  empty_cache(0);
  of_old(0x7000, 512, 512 + 3072, 2 << 20);
  torch_allocs++;
  torch_alloc_bytes += 512;
  of_old(0x7000, -512, 3072, 2 << 20);
  torch_frees++;
  torch_free_bytes += 512;

  uint64_t counts[7], allocated, reserved;
  counts_now(counts);
  const char *const names[7] = {"told.calls",  "told.cuda",     "told.other", "told.out_of_memory",
                                "told.thrown", "told.by_caller", "told.odd"};
  const uint64_t values[7] = {counts[0], counts[1], counts[2], counts[3], counts[5], counts[6], odd};
  for (int i = 0; i < 7; i++) say("", names[i], values[i]);
  for (int device = 0; device < 2; device++) {
    totals(device, &allocated, &reserved);
    say("", device ? "allocated.1" : "allocated.0", allocated);
    say("", device ? "reserved.1" : "reserved.0", reserved);
  }
  (void)kept;
  /* The block that is left is given back when the process ends. */
  give_back_at_exit();
  torch_frees++;
  torch_free_bytes += rounded(3000);
  uint64_t parts[5];
  segments(parts);
  tally.ledgers[DEVICE] = (struct account){.allocs = parts[0],
                                           .alloc_bytes = parts[1],
                                           .frees = parts[2],
                                           .free_bytes = parts[3],
                                           .failed_allocs = parts[4]};
  print_tally("", false);
  say("", "torch.failed_allocs", 1);
  say("", "torch.allocs", torch_allocs);
  say("", "torch.frees", torch_frees);
  say("", "torch.alloc_bytes", torch_alloc_bytes);
  say("", "torch.free_bytes", torch_free_bytes);
  say("", "torch.live_count", 0);
  say("", "torch.live_bytes", 0);
  return 0;
}
