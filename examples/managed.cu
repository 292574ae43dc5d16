// Managed memory: one address for host and GPU, pages that move to whoever touches them.
//
//     nvcc examples/managed.cu -o managed && gmmtrace run -- ./managed
//
// Sixteen buffers of 1 to 4 MiB, filled by the host, changed by the GPU, read by the host; small on
// purpose, since managed memory beyond what the card has free can stall it.
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

static void ok(cudaError_t status) {
    if (status == cudaSuccess) return;
    fprintf(stderr, "managed: %s\n", cudaGetErrorString(status));
    exit(1);
}

__global__ void add_one(float *values, size_t count) {
    const size_t at = blockIdx.x * size_t{blockDim.x} + threadIdx.x;
    if (at < count) values[at] += 1;
}

static void prefetch(void *memory, size_t bytes) {
#if CUDART_VERSION >= 13000
    ok(cudaMemPrefetchAsync(memory, bytes, {cudaMemLocationTypeDevice, 0}, 0));
#else
    ok(cudaMemPrefetchAsync(memory, bytes, 0));
#endif
}

int main() {
    int can_prefetch = 0;
    ok(cudaDeviceGetAttribute(&can_prefetch, cudaDevAttrConcurrentManagedAccess, 0));
    std::vector<float *> buffers;
    double sum = 0;
    for (size_t number = 0; number < 16; ++number) {
        const size_t count = (1 + number % 4) << 18;
        float *values = nullptr;
        ok(cudaMallocManaged(&values, count * sizeof(float)));
        for (size_t at = 0; at < count; ++at) values[at] = 1;
        if (can_prefetch != 0 && number % 2 == 0) prefetch(values, count * sizeof(float));
        add_one<<<static_cast<unsigned>((count + 255) / 256), 256>>>(values, count);
        ok(cudaDeviceSynchronize());
        for (size_t at = 0; at < count; ++at) sum += values[at];
        buffers.push_back(values);
    }
    for (float *values : buffers) ok(cudaFree(values));
    printf("sum %.0f\n", sum);
}
