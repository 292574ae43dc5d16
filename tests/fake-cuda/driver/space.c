/*
 * Addresses, and what lives at them.
 *
 * Device memory has addresses but no bytes: its region is one where neither the program, its
 * heap nor its libraries are mapped. Pinned and managed memory is real host memory, mapped at
 * addresses chosen here. The same sequence of calls gives the same addresses in every run.
 */
#include <search.h>
#include <stdlib.h>

#include "internal.h"

void *live_ranges, *mapped_ranges, *reserved_ranges;

/* Addresses of one size that were given back, the last one on top. */
struct bin {
  enum region region;
  uint64_t span;
  uint64_t *bases;
  size_t count, room;
  struct bin *next;
};

#define BUCKETS 1024
static struct bin *buckets[BUCKETS];

static struct {
  uint64_t next, end;
} bounds[REGIONS] = {
    [REGION_DEVICE] = {0x302000000, 0x10000000000},
    [REGION_LOW] = {0x80000000, 0xfff00000}, /* CUDA 2.0 pointers have 32 bits */
    [REGION_PINNED] = {0x200000000000, 0x300000000000},
    [REGION_MANAGED] = {0x300000000000, 0x400000000000},
    [REGION_VMM] = {0x10000000000, 0x100000000000},
};

static struct bin *bin_of(enum region region, uint64_t span) {
  struct bin **bucket = &buckets[(span / UNIT * 31 + region) % BUCKETS];
  for (struct bin *bin = *bucket; bin; bin = bin->next)
    if (bin->region == region && bin->span == span) return bin;
  struct bin *bin = calloc(1, sizeof *bin);
  if (!bin) abort();
  bin->region = region;
  bin->span = span;
  bin->next = *bucket;
  *bucket = bin;
  return bin;
}

uint64_t space_take(enum region region, uint64_t span) {
  struct bin *bin = bin_of(region, span);
  if (bin->count) return bin->bases[--bin->count];
  if (span > bounds[region].end - bounds[region].next) return 0;
  uint64_t base = bounds[region].next;
  bounds[region].next += span;
  return base;
}

void space_give(enum region region, uint64_t base, uint64_t span) {
  struct bin *bin = bin_of(region, span);
  if (bin->count == bin->room) {
    bin->room = bin->room ? bin->room * 2 : 16;
    bin->bases = realloc(bin->bases, bin->room * sizeof *bin->bases);
    if (!bin->bases) abort();
  }
  bin->bases[bin->count++] = base;
}

void space_forget(void) {
  for (int i = 0; i < BUCKETS; i++)
    for (struct bin *bin = buckets[i]; bin; bin = bin->next) bin->count = 0;
  live_ranges = mapped_ranges = reserved_ranges = NULL;
}

/* Ranges that overlap are equal: a tree never holds two of them. */
static int compare(const void *left, const void *right) {
  const struct range *a = left, *b = right;
  if (a->base + a->span <= b->base) return -1;
  return a->base >= b->base + b->span;
}

/* The range as it is kept, or null when its addresses are taken. */
struct range *range_add(void **tree, const struct range *range) {
  struct range *kept = malloc(sizeof *kept);
  if (!kept) abort();
  *kept = *range;
  struct range **node = tsearch(kept, tree, compare);
  if (!node) abort();
  if (*node != kept) {
    free(kept);
    return NULL;
  }
  if (kept->context) {
    kept->previous = NULL;
    kept->next = kept->context->ranges;
    if (kept->next) kept->next->previous = kept;
    kept->context->ranges = kept;
  }
  return kept;
}

struct range *range_at(void **tree, uint64_t address) {
  struct range key = {.base = address, .span = 1};
  struct range **node = tfind(&key, tree, compare);
  return node ? *node : NULL;
}

struct range *range_based_at(void **tree, uint64_t base) {
  struct range *range = range_at(tree, base);
  return range && range->base == base ? range : NULL;
}

void range_remove(void **tree, struct range *range) {
  tdelete(range, tree, compare);
  if (range->context) {
    if (range->previous) range->previous->next = range->next;
    else range->context->ranges = range->next;
    if (range->next) range->next->previous = range->previous;
  }
  free(range);
}
