/*
 * What of PyTorch's c10 the stand-ins for libc10.so and libc10_cuda.so share: names, types and so
 * mangled symbols are PyTorch's own.
 */
#ifndef TORCH_C10_H
#define TORCH_C10_H

#include <cstddef>
#include <cstdint>

namespace c10 {

enum class DeviceType : std::int8_t { CPU = 0, CUDA = 1, XPU = 12 };

struct Device {
  DeviceType type;
  std::int8_t index;
};

void reportMemoryUsageToProfiler(void *pointer, std::int64_t size, std::size_t allocated,
                                 std::size_t reserved, Device device);
void reportOutOfMemoryToProfiler(std::int64_t size, std::size_t allocated, std::size_t reserved,
                                 Device device);
/* Of PyTorch up to 1.13. */
void reportMemoryUsageToProfiler(void *pointer, std::int64_t size, std::int64_t allocated,
                                 std::int64_t reserved, Device device);

}  // namespace c10

/* Reports about this device are not counted, so that they cost nothing. */
constexpr int kUncounted = 7;

/* What the stand-in for libc10.so was told. */
struct torch_told {
  std::uint64_t calls, cuda, other, out_of_memory, checksum, thrown, returns_to;
};
extern "C" torch_told torch_told_now(void);
/* The next report throws this text. */
extern "C" void torch_throw_next(const char *text);

#endif
