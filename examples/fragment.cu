// Device memory that is free and cannot be used: the driver hands it out in 2 MiB blocks.
//
//     nvcc examples/fragment.cu -o fragment && gmmtrace run -- ./fragment
//
// 1. One byte too many: 200 buffers of 1 MiB fit two to a block; 200 of 1 MiB + 512 B do not.
// 2. Survivors: of 2,000 buffers of 100,000 B one in 20 stays, and with it nearly every block.
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

static void ok(cudaError_t status) {
    if (status == cudaSuccess) return;
    fprintf(stderr, "fragment: %s\n", cudaGetErrorString(status));
    exit(1);
}

static size_t in_use() {
    size_t free_bytes = 0, total_bytes = 0;
    ok(cudaMemGetInfo(&free_bytes, &total_bytes));
    return total_bytes - free_bytes;
}

static std::vector<void *> buffers(size_t count, size_t bytes) {
    std::vector<void *> all(count);
    for (void *&buffer : all) ok(cudaMalloc(&buffer, bytes));
    return all;
}

static void release(const std::vector<void *> &all) {
    for (void *buffer : all) ok(cudaFree(buffer));
}

static void say(const char *what, size_t asked, size_t before) {
    printf("%-42s asked %6.1f MiB, the device lost %6.1f MiB\n", what, asked / 1048576.0,
           (in_use() - before) / 1048576.0);
}

int main() {
    ok(cudaFree(nullptr));
    const size_t before = in_use(), MiB = 1 << 20;
    for (size_t bytes : {MiB, MiB + 512}) {
        const std::vector<void *> all = buffers(200, bytes);
        say(bytes == MiB ? "200 buffers of 1 MiB" : "200 buffers of 1 MiB + 512 B", 200 * bytes,
            before);
        release(all);
    }

    std::vector<void *> all = buffers(2000, 100'000);
    say("2,000 buffers of 100,000 B", 2000 * 100'000, before);
    std::vector<void *> survivors;
    for (size_t at = 0; at < all.size(); ++at) {
        if (at % 20 == 0) survivors.push_back(all[at]);
        else ok(cudaFree(all[at]));
    }
    say("the 100 of them that stayed", survivors.size() * 100'000, before);
    release(survivors);
}
