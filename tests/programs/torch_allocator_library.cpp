/*
 * libc10_cuda.so in small: a caching allocator over cuMemAlloc. Segments of 2 MiB, or of the size
 * asked for when it is more; blocks in steps of 512 bytes, the first hole that fits. It reports
 * each block to libc10 through its own PLT, under its lock, as PyTorch does.
 */
#include "torch_allocator.h"

#include <dlfcn.h>

#include <atomic>
#include <cstring>
#include <map>
#include <mutex>
#include <stdexcept>

#include "fake_cuda.h"
#include "torch_c10.h"

namespace {

constexpr std::size_t kStep = 512, kSegment = 2 << 20;
constexpr int kDevices = 2;

struct Allocator {
  std::mutex mutex;
  std::map<std::uint64_t, std::size_t> segments, blocks;
  std::size_t allocated = 0, reserved = 0;
};

// Never destroyed: blocks are given back when the process ends.
Allocator *const allocators = new Allocator[kDevices];
bool at_exit;
std::atomic<std::uint64_t> taken, taken_bytes, given, given_bytes, refused;

c10::Device on(int device) { return {c10::DeviceType::CUDA, static_cast<std::int8_t>(device)}; }

void report(Allocator &self, int device, std::uint64_t pointer, std::int64_t size) {
  c10::reportMemoryUsageToProfiler(reinterpret_cast<void *>(pointer), size, self.allocated,
                                   self.reserved, on(device));
}

std::uint64_t hole(const Allocator &self, std::size_t size) {
  for (auto [start, length] : self.segments) {
    std::uint64_t at = start;
    for (auto block = self.blocks.lower_bound(start);
         block != self.blocks.end() && block->first < start + length; ++block) {
      if (block->first - at >= size) return at;
      at = block->first + block->second;
    }
    if (start + length - at >= size) return at;
  }
  return 0;
}

}  // namespace

extern "C" std::uint64_t torch_take(int device, std::size_t size) {
  Allocator &self = allocators[device];
  std::lock_guard<std::mutex> lock(self.mutex);
  size = (size + kStep - 1) / kStep * kStep;
  std::uint64_t pointer = hole(self, size);
  if (!pointer) {
    std::size_t length = size > kSegment ? size : kSegment;
    CUdeviceptr start;
    if (cuMemAlloc_v2(&start, length) != 0) {
      refused++;
      c10::reportOutOfMemoryToProfiler(static_cast<std::int64_t>(size), self.allocated,
                                       self.reserved, on(device));
      return 0;
    }
    taken++, taken_bytes += length;
    self.segments[start] = length;
    self.reserved += length;
    pointer = start;
  }
  self.blocks[pointer] = size;
  self.allocated += size;
  report(self, device, pointer, static_cast<std::int64_t>(size));
  return pointer;
}

extern "C" int torch_give(int device, std::uint64_t pointer) {
  Allocator &self = allocators[device];
  std::lock_guard<std::mutex> lock(self.mutex);
  std::size_t size = self.blocks.at(pointer);
  self.blocks.erase(pointer);
  self.allocated -= size;
  try {
    report(self, device, pointer, -static_cast<std::int64_t>(size));
  } catch (const std::runtime_error &error) {
    return std::strcmp(error.what(), "thrown by the reporter") == 0 ? 1 : 2;
  }
  return 0;
}

extern "C" void torch_empty_cache(int device) {
  Allocator &self = allocators[device];
  std::lock_guard<std::mutex> lock(self.mutex);
  for (auto segment = self.segments.begin(); segment != self.segments.end();) {
    auto block = self.blocks.lower_bound(segment->first);
    if (block != self.blocks.end() && block->first < segment->first + segment->second) {
      ++segment;
      continue;
    }
    cuMemFree_v2(segment->first);
    given++, given_bytes += segment->second;
    self.reserved -= segment->second;
    segment = self.segments.erase(segment);
  }
}

extern "C" void torch_elsewhere(void *pointer, std::int64_t size) {
  c10::reportMemoryUsageToProfiler(pointer, size, std::size_t{0}, std::size_t{0},
                                   {c10::DeviceType::CPU, -1});
  c10::reportMemoryUsageToProfiler(pointer, size, std::size_t{0}, std::size_t{0},
                                   {c10::DeviceType::XPU, 1});
  c10::reportOutOfMemoryToProfiler(size, 0, 0, {c10::DeviceType::XPU, 1});
}

extern "C" void torch_of_old(std::uint64_t pointer, std::int64_t size, std::int64_t allocated,
                             std::int64_t reserved) {
  c10::reportMemoryUsageToProfiler(reinterpret_cast<void *>(pointer), size, allocated, reserved,
                                   on(0));
  /* Not a tail call, so that the caller is this library. */
  __asm__ volatile("");
}

extern "C" void torch_report(std::uint64_t pointer, std::int64_t size, std::uint64_t allocated,
                             std::uint64_t reserved) {
  c10::reportMemoryUsageToProfiler(reinterpret_cast<void *>(pointer), size,
                                   std::size_t{allocated}, std::size_t{reserved},
                                   on(kUncounted));
  __asm__ volatile("");
}

extern "C" void torch_counts(std::uint64_t counts[7]) {
  torch_told told = torch_told_now();
  Dl_info caller = {}, own = {};
  dladdr(reinterpret_cast<void *>(told.returns_to), &caller);
  dladdr(reinterpret_cast<void *>(torch_counts), &own);
  const std::uint64_t values[7] = {told.calls,    told.cuda,   told.other, told.out_of_memory,
                                   told.checksum, told.thrown, caller.dli_fbase == own.dli_fbase};
  std::memcpy(counts, values, sizeof values);
}

extern "C" void torch_totals(int device, std::uint64_t *allocated, std::uint64_t *reserved) {
  *allocated = allocators[device].allocated;
  *reserved = allocators[device].reserved;
}

extern "C" void torch_segments(std::uint64_t counts[5]) {
  const std::uint64_t values[5] = {taken, taken_bytes, given, given_bytes, refused};
  std::memcpy(counts, values, sizeof values);
}

extern "C" void torch_throw(const char *text) { torch_throw_next(text); }

extern "C" void torch_give_back_at_exit(void) { at_exit = true; }

__attribute__((destructor)) static void give_back() {
  if (!at_exit) return;
  for (int device = 0; device < kDevices; device++)
    while (!allocators[device].blocks.empty())
      torch_give(device, allocators[device].blocks.begin()->first);
}
