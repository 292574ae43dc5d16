/*
 * Physical device memory, as measured on an H200.
 *
 * Memory is taken in blocks of 2 MiB. A request of at most 1 MiB shares a block with others at
 * 512-byte steps; a larger one is rounded up to whole blocks of its own. A context comes with
 * one block of which the driver itself uses 64 KiB, so the first small requests take nothing
 * new. Measured (and tested): 64 × 512 B take 0, 64 × 100,000 B take 6 MiB, 64 × 1 MiB take
 * 64 MiB, 64 × (1 MiB + 512 B) take 128 MiB, 64 × 3 MiB take 256 MiB.
 */
#include <stdlib.h>
#include <string.h>

#include "internal.h"

#define DRIVERS_SHARE ((unsigned)((64 << 10) / UNIT))

struct block {
  struct block *previous, *next; /* among the blocks with room, when it has room */
  CUcontext context;
  uint64_t base;
  unsigned used, hint; /* units; where a freed piece is */
  bool fixed;          /* part of the context's own memory */
  uint64_t map[UNITS / 64];
};

uint64_t round_up(uint64_t bytes, uint64_t step) { return (bytes + step - 1) / step * step; }

bool device_take(int device, uint64_t bytes) {
  if (bytes > devices[device].total - devices[device].used) return false;
  devices[device].used += bytes;
  return true;
}

void device_give(int device, uint64_t bytes) { devices[device].used -= bytes; }

static void link_block(struct block *block) {
  CUcontext context = block->context;
  block->previous = NULL;
  block->next = context->partial;
  if (block->next) block->next->previous = block;
  context->partial = block;
}

static void unlink_block(struct block *block) {
  if (block->previous) block->previous->next = block->next;
  else block->context->partial = block->next;
  if (block->next) block->next->previous = block->previous;
}

static bool taken(const struct block *block, unsigned unit) {
  return block->map[unit / 64] >> (unit % 64) & 1;
}

static void mark(struct block *block, unsigned first, unsigned count, bool take) {
  for (unsigned unit = first; unit < first + count; unit++) {
    uint64_t bit = (uint64_t)1 << (unit % 64);
    if (take) block->map[unit / 64] |= bit;
    else block->map[unit / 64] &= ~bit;
  }
}

/* The first run of free units at or after `start`; UNITS when there is none. */
static unsigned find_run(const struct block *block, unsigned start, unsigned count) {
  unsigned run = 0;
  for (unsigned unit = start; unit < UNITS; unit++) {
    if (unit % 64 == 0 && block->map[unit / 64] == UINT64_MAX) {
      run = 0;
      unit += 63;
      continue;
    }
    run = taken(block, unit) ? 0 : run + 1;
    if (run == count) return unit + 1 - count;
  }
  return UNITS;
}

static unsigned find_place(const struct block *block, unsigned count) {
  if (UNITS - block->used < count) return UNITS;
  unsigned unit = find_run(block, block->hint, count);
  return unit == UNITS && block->hint ? find_run(block, 0, count) : unit;
}

static struct block *new_block(CUcontext context, bool fixed) {
  uint64_t base = space_take(REGION_DEVICE, BLOCK);
  struct block *block = base ? calloc(1, sizeof *block) : NULL;
  if (!block) return NULL;
  block->context = context;
  block->base = base;
  block->fixed = fixed;
  link_block(block);
  return block;
}

static void drop_block(struct block *block) {
  unlink_block(block);
  space_give(REGION_DEVICE, block->base, BLOCK);
  free(block);
}

static void place(struct block *block, unsigned unit, unsigned count, struct range *range) {
  mark(block, unit, count, true);
  block->used += count;
  block->hint = 0;
  if (block->used == UNITS) unlink_block(block);
  range->base = block->base + unit * UNIT;
  range->span = count * UNIT;
  range->owner = block;
}

static CUresult small_alloc(CUcontext context, struct range *range) {
  unsigned count = (unsigned)(round_up(range->bytes, UNIT) / UNIT);
  for (struct block *block = context->partial; block; block = block->next) {
    unsigned unit = find_place(block, count);
    if (unit == UNITS) continue;
    place(block, unit, count, range);
    return CUDA_SUCCESS;
  }
  if (!device_take(context->device, BLOCK)) return CUDA_ERROR_OUT_OF_MEMORY;
  struct block *block = new_block(context, false);
  if (!block) {
    device_give(context->device, BLOCK);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  place(block, 0, count, range);
  return CUDA_SUCCESS;
}

static CUresult large_alloc(CUcontext context, enum region region, struct range *range) {
  if (range->bytes > devices[context->device].total) return CUDA_ERROR_OUT_OF_MEMORY;
  range->span = round_up(range->bytes, BLOCK);
  range->region = region;
  if (!device_take(context->device, range->span)) return CUDA_ERROR_OUT_OF_MEMORY;
  range->base = space_take(region, range->span);
  if (range->base) return CUDA_SUCCESS;
  device_give(context->device, range->span);
  return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult blocks_alloc(CUcontext context, uint64_t bytes, bool low, struct range *range) {
  range->bytes = bytes;
  range->context = context;
  range->device = context->device;
  if (low) return large_alloc(context, REGION_LOW, range);
  return bytes <= SMALL ? small_alloc(context, range)
                        : large_alloc(context, REGION_DEVICE, range);
}

void blocks_free(struct range *range) {
  struct block *block = range->owner;
  if (!block) {
    device_give(range->device, range->span);
    space_give(range->region, range->base, range->span);
    return;
  }
  unsigned unit = (unsigned)((range->base - block->base) / UNIT);
  unsigned count = (unsigned)(range->span / UNIT);
  if (block->used != UNITS) unlink_block(block);
  mark(block, unit, count, false);
  block->used -= count;
  block->hint = unit;
  link_block(block);
  if (block->used == 0 && !block->fixed) {
    device_give(range->device, BLOCK);
    drop_block(block);
  }
}

bool blocks_open_context(CUcontext context) {
  if (!device_take(context->device, context_bytes)) return false;
  context->partial = NULL;
  struct block *block = new_block(context, true);
  if (!block) abort();
  mark(block, 0, DRIVERS_SHARE, true);
  block->used = DRIVERS_SHARE;
  return true;
}

/* After every range of the context is gone: only its own block is left. */
void blocks_close_context(CUcontext context) {
  while (context->partial) drop_block(context->partial);
  device_give(context->device, context_bytes);
}
