/*
 * allocator FACTS: PyTorch's own caching allocator, straight from its library, under load: two
 * threads on device 0 and one on device 1 take and give blocks, a request is far too large, and the
 * cache is emptied. Writes what the allocator says of itself (compare.py reads it).
 */
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/PeerToPeerAccess.h>
#include <dlfcn.h>

#include <cstdio>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace allocator = c10::cuda::CUDACachingAllocator;

namespace {

constexpr int kDevices = 2;

std::string moments;

void work(int device, unsigned seed, int rounds) {
  c10::cuda::set_device(static_cast<c10::DeviceIndex>(device));
  std::mt19937_64 random(seed);
  std::vector<void *> blocks;
  for (int i = 0; i < rounds; i++) {
    if (blocks.size() < 40 || random() % 2) {
      std::size_t size = random() % 3 ? random() % 400'000 : random() % (30 << 20);
      blocks.push_back(allocator::raw_alloc(size + 1));
    } else {
      std::swap(blocks[random() % blocks.size()], blocks.back());
      allocator::raw_delete(blocks.back());
      blocks.pop_back();
    }
  }
  for (std::size_t i = 10; i < blocks.size(); i++) allocator::raw_delete(blocks[i]);
}

/* Nothing else runs: a mark, and the blocks that are allocated. */
void moment(const char *name) {
  if (auto mark = reinterpret_cast<void (*)(const char *)>(dlsym(RTLD_DEFAULT, "gmmtrace_mark")))
    mark(name);
  moments += moments.empty() ? "" : ",\n  ";
  moments += std::string("{\"mark\": \"") + name + "\", \"blocks\": [";
  const char *comma = "";
  for (const auto &segment : allocator::snapshot().segments) {
    std::size_t at = segment.address;
    for (const auto &block : segment.blocks) {
      if (block.allocated) {
        moments += comma + ("[" + std::to_string(segment.device)) + ", " + std::to_string(at) +
                   ", " + std::to_string(block.size) + "]";
        comma = ", ";
      }
      at += block.size;
    }
  }
  moments += "]}";
}

void write_stat(std::FILE *file, const char *name, const c10::CachingAllocator::Stat &stat) {
  std::fprintf(file,
               "\"%s.all.allocated\": %lld, \"%s.all.freed\": %lld, \"%s.all.current\": %lld, "
               "\"%s.all.peak\": %lld, ",
               name, static_cast<long long>(stat.allocated), name,
               static_cast<long long>(stat.freed), name, static_cast<long long>(stat.current),
               name, static_cast<long long>(stat.peak));
}

}  // namespace

int main(int argc, char **argv) {
  if (argc != 2) return 2;
  allocator::init(kDevices);
  c10::cuda::detail::init_p2p_access_cache(kDevices);
  std::thread first(work, 0, 1, 4000), second(work, 1, 2, 4000), third(work, 0, 3, 3000);
  first.join(), second.join(), third.join();
  moment("worked");
  c10::cuda::set_device(0);
  try {
    allocator::raw_alloc(std::size_t{1} << 45);
  } catch (const c10::Error &error) {
    std::printf("%.60s\n", error.what_without_backtrace());
  }
  moment("refused");
  allocator::emptyCache();
  work(1, 4, 500);
  moment("end");
  std::FILE *file = std::fopen(argv[1], "w");
  if (!file) return 2;
  std::fprintf(file, "{\"devices\": {");
  for (int device = 0; device < kDevices; device++) {
    auto stats = allocator::getDeviceStats(static_cast<c10::DeviceIndex>(device));
    std::fprintf(file, "%s\"%d\": {", device ? ", " : "", device);
    write_stat(file, "allocation", stats.allocation[0]);
    write_stat(file, "allocated_bytes", stats.allocated_bytes[0]);
    write_stat(file, "reserved_bytes", stats.reserved_bytes[0]);
    std::fprintf(file, "\"num_ooms\": %lld}", static_cast<long long>(stats.num_ooms));
  }
  std::fprintf(file, "},\n \"moments\": [\n  %s]}\n", moments.c_str());
  return std::fclose(file) ? 2 : 0;
}
