/* libc10.so in small: reporters that count what they are told, and throw when asked to. */
#include "torch_c10.h"

#include <atomic>
#include <cerrno>
#include <stdexcept>

static std::atomic<std::uint64_t> calls, cuda, other, out_of_memory, checksum, thrown, returns_to;
static std::atomic<const char *> text;

static void told(std::uint64_t sum, c10::Device device, void *back) {
  if (device.index == kUncounted) return;
  calls++;
  (device.type == c10::DeviceType::CUDA ? cuda : other)++;
  checksum += sum * (3 + static_cast<std::uint64_t>(device.index + 1));
  returns_to = reinterpret_cast<std::uint64_t>(back);
  errno = 0;
  if (const char *why = text.exchange(nullptr)) {
    thrown++;
    throw std::runtime_error(why);
  }
}

namespace c10 {

__attribute__((visibility("default"))) void reportMemoryUsageToProfiler(
    void *pointer, std::int64_t size, std::size_t allocated, std::size_t reserved, Device device) {
  told((reinterpret_cast<std::uint64_t>(pointer) & 0xffff) + static_cast<std::uint64_t>(size) * 3 +
           allocated * 5 + reserved * 7,
       device, __builtin_return_address(0));
}

__attribute__((visibility("default"))) void reportMemoryUsageToProfiler(
    void *pointer, std::int64_t size, std::int64_t allocated, std::int64_t reserved,
    Device device) {
  told((reinterpret_cast<std::uint64_t>(pointer) & 0xffff) + static_cast<std::uint64_t>(size) * 11 +
           static_cast<std::uint64_t>(allocated) * 13 + static_cast<std::uint64_t>(reserved) * 17,
       device, __builtin_return_address(0));
}

__attribute__((visibility("default"))) void reportOutOfMemoryToProfiler(std::int64_t size,
                                                                        std::size_t allocated,
                                                                        std::size_t reserved,
                                                                        Device device) {
  out_of_memory++;
  told(static_cast<std::uint64_t>(size) * 19 + allocated * 23 + reserved * 29, device,
       __builtin_return_address(0));
}

}  // namespace c10

extern "C" torch_told torch_told_now(void) {
  return {calls, cuda, other, out_of_memory, checksum, thrown, returns_to};
}

extern "C" void torch_throw_next(const char *why) { text = why; }
