// What one call costs, in nanoseconds: run with and without the preload, the difference is what
// gmmtrace adds. Prints `name median_ns undisturbed_ns`, over the means of many short batches:
// their median, and their lowest tenth, which a busy neighbour on the same host does not reach. The
// stream is drained between batches so that no call waits for the GPU's queue.
//
//     nvcc -std=c++17 -O2 hook_cost.cu
#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

void ok(cudaError_t status) {
    if (status == cudaSuccess) return;
    fprintf(stderr, "hook_cost.cu: %s\n", cudaGetErrorString(status));
    exit(1);
}

template <typename Call> void measure(const char *name, int batches, int calls, Call call) {
    std::vector<double> means;
    for (int batch = 0; batch < batches; ++batch) {
        ok(cudaDeviceSynchronize());
        const auto start = std::chrono::steady_clock::now();
        for (int at = 0; at < calls; ++at) call();
        const auto end = std::chrono::steady_clock::now();
        const std::chrono::duration<double, std::nano> took = end - start;
        if (batch >= batches / 10) means.push_back(took.count() / calls);  // the first are warm-up
    }
    std::sort(means.begin(), means.end());
    printf("%s %.1f %.1f\n", name, means[means.size() / 2], means[means.size() / 10]);
}

}  // namespace

int main() {
    cudaStream_t stream = nullptr;
    ok(cudaStreamCreate(&stream));
    // Keep freed memory in the pool: otherwise each drain gives it back to the device.
    cudaMemPool_t pool = nullptr;
    ok(cudaDeviceGetDefaultMemPool(&pool, 0));
    size_t keep = ~size_t{0};
    ok(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &keep));

    void *device = nullptr, *pinned = nullptr;
    ok(cudaMalloc(&device, 1 << 20));
    ok(cudaMallocHost(&pinned, 1 << 20));
    measure("malloc_async_free_async_pair", 500, 100, [&] {
        void *block = nullptr;
        ok(cudaMallocAsync(&block, 1 << 20, stream));
        ok(cudaFreeAsync(block, stream));
    });
    measure("memcpy_async_64_pinned_h2d", 500, 100, [&] {
        ok(cudaMemcpyAsync(device, pinned, 64, cudaMemcpyHostToDevice, stream));
    });
    measure("memset_async", 500, 100, [&] { ok(cudaMemsetAsync(device, 0, 4096, stream)); });
    measure("malloc_free_pair", 500, 20, [&] {
        void *block = nullptr;
        ok(cudaMalloc(&block, 1 << 20));
        ok(cudaFree(block));
    });
}
