// What the library adds to one driver call. Everything happens in one process with the library
// preloaded: rounds of calls through the hook take turns with rounds of the same calls straight to
// the driver's function, whose address is read from the driver's own symbol table, where no hook
// stands. Two identical processes can differ by more than a hook costs (README.md).
//
//     hook_cost [CORE]        CORE: where the measuring thread stays
//
// Prints `hooked 0|1`, then for each turn `CALL through_ns straight_ns straight_again_ns`, each the
// mean of one call in a round. The last two are the same thing, so their difference is the noise of
// the method. The order within a turn is drawn, and the GPU is drained before each round, so that
// no call waits for its queue. gmmtrace does not see the straight calls; they leave no block behind.
//
//     nvcc -std=c++17 hook_cost.cpp -lcuda -ldl
#include <cuda.h>
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>

namespace {

constexpr size_t MiB = 1024 * 1024;
constexpr int TURNS = 400, WARM_UP = 40;

void require(CUresult status, const char *call, int line) {
    if (status == CUDA_SUCCESS) return;
    const char *name = "?";
    cuGetErrorName(status, &name);
    fprintf(stderr, "hook_cost.cpp:%d: %s: %s\n", line, call, name);
    exit(1);
}
#define OK(call) require((call), #call, __LINE__)

// --- the driver's own functions ----------------------------------------------------------------

// One loaded object's table of exported symbols.
class Exports {
public:
    explicit Exports(const link_map &object) : base_(object.l_addr) {
        for (const ElfW(Dyn) *entry = object.l_ld; entry->d_tag != DT_NULL; ++entry) {
            // glibc has made addresses of most of these, not of all objects'.
            const uintptr_t value = entry->d_un.d_ptr;
            const uintptr_t place = value < base_ ? base_ + value : value;
            switch (entry->d_tag) {
                case DT_SYMTAB: symbols_ = reinterpret_cast<const ElfW(Sym) *>(place); break;
                case DT_STRTAB: names_ = reinterpret_cast<const char *>(place); break;
                case DT_HASH: hash_ = reinterpret_cast<const uint32_t *>(place); break;
                case DT_GNU_HASH: gnu_hash_ = reinterpret_cast<const uint32_t *>(place); break;
            }
        }
    }

    // A function's address, or null.
    void *find(const char *name) const {
        if (symbols_ == nullptr || names_ == nullptr) return nullptr;
        for (uint32_t at = 0; at < count(); ++at) {
            const ElfW(Sym) &symbol = symbols_[at];
            const bool here = symbol.st_shndx != SHN_UNDEF && (symbol.st_info & 15) == STT_FUNC;
            if (here && strcmp(names_ + symbol.st_name, name) == 0)
                return reinterpret_cast<void *>(base_ + symbol.st_value);
        }
        return nullptr;
    }

private:
    // The table does not say how long it is; the hash tables over it do.
    uint32_t count() const {
        if (hash_ != nullptr) return hash_[1];
        if (gnu_hash_ == nullptr) return 0;
        const uint32_t buckets = gnu_hash_[0], first = gnu_hash_[1], bloom = gnu_hash_[2];
        const uint32_t *bucket = gnu_hash_ + 4 + 2 * size_t{bloom}, *chain = bucket + buckets;
        uint32_t last = *std::max_element(bucket, chain);
        if (last < first) return first;
        while ((chain[last - first] & 1) == 0) ++last;
        return last + 1;
    }

    uintptr_t base_;
    const ElfW(Sym) *symbols_ = nullptr;
    const char *names_ = nullptr;
    const uint32_t *hash_ = nullptr, *gnu_hash_ = nullptr;
};

Exports driver_exports() {
    void *handle = dlopen("libcuda.so.1", RTLD_NOW);
    link_map *object = nullptr;
    if (handle == nullptr || dlinfo(handle, RTLD_DI_LINKMAP, &object) != 0) {
        fprintf(stderr, "hook_cost.cpp: %s\n", dlerror());
        exit(1);
    }
    return Exports(*object);
}

// `ordinary` gives the type only.
template <typename Function>
Function straight(const Exports &exports, Function ordinary, const char *name) {
    void *found = exports.find(name);
    if (found == nullptr) {
        fprintf(stderr, "hook_cost.cpp: the driver's table has no %s\n", name);
        exit(1);
    }
    return reinterpret_cast<decltype(ordinary)>(found);
}

struct Calls {
    decltype(&cuMemAlloc) alloc;
    decltype(&cuMemFree) free;
    decltype(&cuMemAllocAsync) alloc_async;
    decltype(&cuMemFreeAsync) free_async;
    decltype(&cuMemcpyHtoDAsync) copy;
    decltype(&cuMemsetD8Async) set;
};

// The header renames functions to their newest version: the name in the table is the renamed one.
#define TEXT(name) #name
#define STRAIGHT(exports, name) straight(exports, &name, TEXT(name))

Calls straight_calls() {
    const Exports exports = driver_exports();
    return {STRAIGHT(exports, cuMemAlloc),        STRAIGHT(exports, cuMemFree),
            STRAIGHT(exports, cuMemAllocAsync),   STRAIGHT(exports, cuMemFreeAsync),
            STRAIGHT(exports, cuMemcpyHtoDAsync), STRAIGHT(exports, cuMemsetD8Async)};
}

Calls ordinary_calls() {
    return {&cuMemAlloc, &cuMemFree, &cuMemAllocAsync, &cuMemFreeAsync, &cuMemcpyHtoDAsync,
            &cuMemsetD8Async};
}

// --- measuring ---------------------------------------------------------------------------------

// Not inlined: both ways must run the same machine code.
template <typename Call>
__attribute__((noinline)) double round_ns(const Calls &calls, int count, const Call &call) {
    OK(cuCtxSynchronize());
    const auto start = std::chrono::steady_clock::now();
    for (int at = 0; at < count; ++at) call(calls);
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - start;
    return took.count() / count;
}

template <typename Call>
void measure(const char *name, const Calls &through, const Calls &straight, int count, Call call) {
    const std::array<const Calls *, 3> ways = {&through, &straight, &straight};
    std::array<size_t, 3> order = {0, 1, 2};
    std::mt19937 chooser(1);
    for (int turn = 0; turn < WARM_UP + TURNS; ++turn) {
        std::shuffle(order.begin(), order.end(), chooser);
        double took[3];
        for (size_t way : order) took[way] = round_ns(*ways[way], count, call);
        if (turn >= WARM_UP) printf("%s %.1f %.1f %.1f\n", name, took[0], took[1], took[2]);
    }
}

// Freed memory stays in the pool: otherwise each drain gives it back to the device.
void keep_pool(CUdevice gpu) {
    CUmemoryPool pool = nullptr;
    OK(cuDeviceGetDefaultMemPool(&pool, gpu));
    cuuint64_t keep = ~cuuint64_t{0};
    OK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep));
}

// Only this thread: those of the driver and of the library stay free.
void stay_on(int core) {
    cpu_set_t allowed;
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0 || !CPU_ISSET(core, &allowed)) return;
    CPU_ZERO(&allowed);
    CPU_SET(core, &allowed);
    sched_setaffinity(0, sizeof allowed, &allowed);
}

}  // namespace

int main(int count, char **arguments) {
    OK(cuInit(0));
    CUdevice gpu = 0;
    OK(cuDeviceGet(&gpu, 0));
    CUcontext context = nullptr;
    OK(cuDevicePrimaryCtxRetain(&context, gpu));
    OK(cuCtxSetCurrent(context));
    CUstream stream = nullptr;
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    keep_pool(gpu);
    // It stays, so that the driver's own block under the pairs of cuMemAlloc stays too.
    CUdeviceptr device = 0;
    void *pinned = nullptr;
    OK(cuMemAlloc(&device, MiB));
    OK(cuMemAllocHost(&pinned, MiB));
    if (count > 1) stay_on(atoi(arguments[1]));

    const Calls through = ordinary_calls(), straight = straight_calls();
    printf("hooked %d\n", through.alloc != straight.alloc ? 1 : 0);
    measure("cuMemAllocAsync+cuMemFreeAsync", through, straight, 100, [&](const Calls &calls) {
        CUdeviceptr block = 0;
        OK(calls.alloc_async(&block, MiB, stream));
        OK(calls.free_async(block, stream));
    });
    measure("cuMemcpyHtoDAsync_v2", through, straight, 100,
            [&](const Calls &calls) { OK(calls.copy(device, pinned, 64, stream)); });
    measure("cuMemsetD8Async", through, straight, 100,
            [&](const Calls &calls) { OK(calls.set(device, 0, 4096, stream)); });
    measure("cuMemAlloc_v2+cuMemFree_v2", through, straight, 20, [&](const Calls &calls) {
        CUdeviceptr block = 0;
        OK(calls.alloc(&block, MiB));
        OK(calls.free(block));
    });
}
