// Every runtime call that moves or holds memory, with sizes that differ, on one thread and then
// on eight; it counts what it did (tally.h), so gmmtrace and CUPTI have a truth to meet.
//
//     nvcc -std=c++17 every_call.cu                              static runtime
//     nvcc -std=c++17 -cudart shared every_call.cu               shared runtime
//     nvcc -std=c++17 --default-stream per-thread every_call.cu  the _ptds and _ptsz entry points
//
// Without arguments every common section runs; with names, those sections alone. The odd ones run
// only by name: CUPTI has its own view of them, or does not survive them (README.md). The name of
// each section goes to stderr before it begins, so a crash has a place.
#include <cuda_runtime.h>

#include <cstring>
#include <thread>
#include <vector>

#include "tally.h"

namespace {

Tally tally;

void require(cudaError_t status, const char *call, int line) {
    if (status == cudaSuccess) return;
    fprintf(stderr, "every_call.cu:%d: %s: %s\n", line, call, cudaGetErrorString(status));
    exit(1);
}
#define OK(call) require((call), #call, __LINE__)

void refuse(cudaError_t status, const char *call, int line) {
    cudaGetLastError();  // the refusal must not show up in a later call
    if (status != cudaSuccess) return;
    fprintf(stderr, "every_call.cu:%d: %s succeeded and should not\n", line, call);
    exit(1);
}
#define REFUSED(call) refuse((call), #call, __LINE__)

constexpr size_t KiB = 1024, MiB = 1024 * KiB;
const size_t sizes[] = {1,   255,       512,     513,         4097,    100'000,
                        MiB, MiB + 512, 2 * MiB, 3 * MiB + 1, 40 * MiB};
constexpr size_t too_much = size_t{1} << 50;

__device__ char symbol[3000];

template <typename T = char> T *device(size_t bytes) {
    void *pointer = nullptr;
    OK(cudaMalloc(&pointer, bytes));
    tally.taken("device", pointer, bytes);
    return static_cast<T *>(pointer);
}

char *pinned(size_t bytes, unsigned flags = cudaHostAllocDefault) {
    void *pointer = nullptr;
    OK(cudaHostAlloc(&pointer, bytes, flags));
    tally.taken("pinned", pointer, bytes);
    return static_cast<char *>(pointer);
}

void release(void *pointer) {
    tally.given_back(pointer);
    OK(cudaFree(pointer));
}

void release_pinned(void *pointer) {
    tally.given_back(pointer);
    OK(cudaFreeHost(pointer));
}

void linear_memory() {
    std::vector<char *> blocks;
    for (size_t bytes : sizes) blocks.push_back(device(bytes));
    for (size_t at = 1; at < blocks.size(); at += 2) release(blocks[at]);  // the rest stays live
    OK(cudaFree(nullptr));
}

void pitched_memory() {
    for (size_t width : {5, 300, 4000}) {
        void *pointer = nullptr;
        size_t pitch = 0;
        OK(cudaMallocPitch(&pointer, &pitch, width, 37));
        tally.taken("device", pointer, pitch * 37);
        release(pointer);
    }
    cudaPitchedPtr cube;
    OK(cudaMalloc3D(&cube, make_cudaExtent(100, 11, 7)));
    tally.taken("device", cube.ptr, cube.pitch * 11 * 7);
    release(cube.ptr);
}

// Small on purpose: managed memory beyond what the card has free can stall it.
void managed_memory() {
    for (size_t bytes : {size_t{1}, 70 * KiB, MiB + 3}) {
        char *pointer = nullptr;
        OK(cudaMallocManaged(&pointer, bytes));
        tally.taken("managed", pointer, bytes);
        pointer[bytes - 1] = 1;
        OK(cudaMemset(pointer, 0, bytes));
        tally.set(bytes);
        OK(cudaDeviceSynchronize());
        if (bytes != 70 * KiB) release(pointer);
    }
}

void host_memory() {
    void *pointer = nullptr;
    OK(cudaMallocHost(&pointer, 12'345));
    tally.taken("pinned", pointer, 12'345);
    release_pinned(pointer);
    release_pinned(pinned(MiB, cudaHostAllocPortable));
    release_pinned(pinned(2 * MiB + 1, cudaHostAllocMapped));
    pinned(777, cudaHostAllocWriteCombined);  // stays live
}

void registered_memory() {
    std::vector<char> own(300'000);
    OK(cudaHostRegister(own.data(), own.size(), cudaHostRegisterDefault));
    tally.taken("registered", own.data(), own.size());
    tally.given_back(own.data());
    OK(cudaHostUnregister(own.data()));
}

void *from_pool(size_t bytes, cudaMemPool_t pool, cudaStream_t stream) {
    void *pointer = nullptr;
    if (pool == nullptr) OK(cudaMallocAsync(&pointer, bytes, stream));
    else OK(cudaMallocFromPoolAsync(&pointer, bytes, pool, stream));
    tally.taken("async_pool", pointer, bytes);
    return pointer;
}

void release_in_order(void *pointer, cudaStream_t stream) {
    tally.given_back(pointer);
    OK(cudaFreeAsync(pointer, stream));
}

void stream_ordered_memory(cudaStream_t stream) {
    for (size_t bytes : sizes) release_in_order(from_pool(bytes, nullptr, stream), stream);
    from_pool(5000, nullptr, stream);  // stays live
    OK(cudaStreamSynchronize(stream));
}

void pool_of_its_own(cudaStream_t stream) {
    cudaMemPoolProps properties = {};
    properties.allocType = cudaMemAllocationTypePinned;
    properties.location = {cudaMemLocationTypeDevice, 0};
    cudaMemPool_t pool = nullptr;
    OK(cudaMemPoolCreate(&pool, &properties));
    release_in_order(from_pool(6 * MiB, pool, stream), stream);
    OK(cudaStreamSynchronize(stream));
    OK(cudaMemPoolDestroy(pool));
}

// Each kind may be given back by the other's call.
void crossed_frees(cudaStream_t stream) {
    release(from_pool(70'000, nullptr, stream));
    release_in_order(device(80'000), stream);
    OK(cudaStreamSynchronize(stream));
}

void linear_copies(cudaStream_t stream) {
    const size_t room = 4 * MiB;
    std::vector<char> pageable(room);
    char *host = pinned(room), *from = device(room), *to = device(room);
    const size_t lengths[] = {1, 64, 4097, 65'536, 65'537, MiB, 3 * MiB + 1};
    for (size_t bytes : lengths) {
        OK(cudaMemcpy(from, pageable.data(), bytes, cudaMemcpyHostToDevice));
        OK(cudaMemcpy(from, host, bytes, cudaMemcpyHostToDevice));
        OK(cudaMemcpyAsync(from, host, bytes, cudaMemcpyHostToDevice, stream));
        OK(cudaMemcpyAsync(from, pageable.data(), bytes, cudaMemcpyHostToDevice, stream));
        OK(cudaMemcpy(from, host, bytes, cudaMemcpyDefault));
        for (int copy = 0; copy < 5; ++copy) tally.copied("host_to_device", bytes);
        OK(cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToDevice));
        OK(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream));
        OK(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream));
        for (int copy = 0; copy < 3; ++copy) tally.copied("device_to_device", bytes);
        OK(cudaMemcpy(pageable.data(), to, bytes, cudaMemcpyDeviceToHost));
        OK(cudaMemcpyAsync(host, to, bytes, cudaMemcpyDeviceToHost, stream));
        OK(cudaMemcpyAsync(pageable.data(), to, bytes, cudaMemcpyDeviceToHost, stream));
        OK(cudaMemcpyAsync(host, to, bytes, cudaMemcpyDefault, stream));
        for (int copy = 0; copy < 4; ++copy) tally.copied("device_to_host", bytes);
    }
    OK(cudaMemcpyToSymbol(symbol, host, 2000));
    tally.copied("host_to_device", 2000);
    OK(cudaMemcpyFromSymbol(host, symbol, 1000, 500));
    tally.copied("device_to_host", 1000);
    OK(cudaStreamSynchronize(stream));
    release_pinned(host);
    release(from);
    release(to);
}

void shaped_copies(cudaStream_t stream) {
    const size_t width = 300, height = 37, depth = 5, pitch = 512;
    const size_t rows = width * height, cube = rows * depth;
    char *host = pinned(pitch * height * depth), *from = device(pitch * height * depth);
    char *to = device(pitch * height * depth);
    OK(cudaMemcpy2D(from, pitch, host, pitch, width, height, cudaMemcpyHostToDevice));
    OK(cudaMemcpy2DAsync(from, pitch, host, width, width, height, cudaMemcpyHostToDevice, stream));
    tally.copied("host_to_device", rows);
    tally.copied("host_to_device", rows);
    OK(cudaMemcpy2DAsync(to, pitch, from, pitch, width, height, cudaMemcpyDeviceToDevice, stream));
    tally.copied("device_to_device", rows);
    OK(cudaMemcpy2D(host, pitch, to, pitch, width, height, cudaMemcpyDeviceToHost));
    tally.copied("device_to_host", rows);

    cudaMemcpy3DParms copy = {};
    copy.extent = make_cudaExtent(width, height, depth);
    copy.srcPtr = make_cudaPitchedPtr(host, pitch, width, height);
    copy.dstPtr = make_cudaPitchedPtr(from, pitch, width, height);
    copy.kind = cudaMemcpyHostToDevice;
    OK(cudaMemcpy3D(&copy));
    tally.copied("host_to_device", cube);
    copy.srcPtr.ptr = from;
    copy.dstPtr.ptr = to;
    copy.kind = cudaMemcpyDeviceToDevice;
    OK(cudaMemcpy3DAsync(&copy, stream));
    tally.copied("device_to_device", cube);
    copy.srcPtr.ptr = to;
    copy.dstPtr.ptr = host;
    copy.kind = cudaMemcpyDeviceToHost;
    OK(cudaMemcpy3DAsync(&copy, stream));
    tally.copied("device_to_host", cube);
    OK(cudaStreamSynchronize(stream));
    release_pinned(host);
    release(from);
    release(to);
}

void array_copies(cudaStream_t stream) {
    const size_t width = 256, height = 16, bytes = width * height;
    const cudaChannelFormatDesc bytewise = cudaCreateChannelDesc<unsigned char>();
    cudaArray_t from = nullptr, to = nullptr;
    OK(cudaMallocArray(&from, &bytewise, width, height));
    OK(cudaMallocArray(&to, &bytewise, width, height));
    char *host = pinned(bytes), *linear = device(bytes);
    OK(cudaMemcpy2DToArray(from, 0, 0, host, width, width, height, cudaMemcpyHostToDevice));
    tally.copied("host_to_array", bytes);
    OK(cudaMemcpy2DArrayToArray(to, 0, 0, from, 0, 0, width, height, cudaMemcpyDeviceToDevice));
    tally.copied("array_to_array", bytes);
    OK(cudaMemcpy2DFromArrayAsync(linear, width, to, 0, 0, width, height,
                                  cudaMemcpyDeviceToDevice, stream));
    tally.copied("array_to_device", bytes);
    OK(cudaMemcpy2DToArrayAsync(from, 0, 0, linear, width, width, height,
                                cudaMemcpyDeviceToDevice, stream));
    tally.copied("device_to_array", bytes);
    OK(cudaMemcpy2DFromArray(host, width, from, 0, 0, width, height, cudaMemcpyDeviceToHost));
    tally.copied("array_to_host", bytes);
    OK(cudaStreamSynchronize(stream));
    OK(cudaFreeArray(from));
    OK(cudaFreeArray(to));
    release_pinned(host);
    release(linear);
}

void sets(cudaStream_t stream) {
    const size_t width = 300, height = 37, depth = 5, pitch = 512;
    char *memory = device(pitch * height * depth);
    for (size_t bytes : {size_t{1}, size_t{4096}, size_t{70'001}}) {
        OK(cudaMemset(memory, 1, bytes));
        OK(cudaMemsetAsync(memory, 2, bytes, stream));
        tally.set(bytes);
        tally.set(bytes);
    }
    OK(cudaMemset2D(memory, pitch, 3, width, height));
    OK(cudaMemset2DAsync(memory, pitch, 4, width, height, stream));
    tally.set(width * height);
    tally.set(width * height);
    const cudaPitchedPtr cube = make_cudaPitchedPtr(memory, pitch, width, height);
    OK(cudaMemset3D(cube, 5, make_cudaExtent(width, height, depth)));
    OK(cudaMemset3DAsync(cube, 6, make_cudaExtent(width, height, depth), stream));
    tally.set(width * height * depth);
    tally.set(width * height * depth);
    OK(cudaStreamSynchronize(stream));
    release(memory);
}

void refused_allocation() {
    void *pointer = nullptr;
    REFUSED(cudaMalloc(&pointer, too_much));
    size_t free_bytes = 0, total_bytes = 0;
    OK(cudaMemGetInfo(&free_bytes, &total_bytes));
}

// None of these may count as an allocation or a free.
void refused_calls() {
    void *pointer = nullptr;
    size_t pitch = 0;
    REFUSED(cudaMallocPitch(&pointer, &pitch, too_much, 2));
    REFUSED(cudaHostAlloc(&pointer, too_much, cudaHostAllocDefault));
    REFUSED(cudaFree(reinterpret_cast<void *>(0x1000)));
    REFUSED(cudaFreeHost(reinterpret_cast<void *>(0x1000)));
    OK(cudaFreeHost(nullptr));
}

void refused_in_order(cudaStream_t stream) {
    void *pointer = nullptr;
    REFUSED(cudaMallocAsync(&pointer, too_much, stream));
}

void one_worker(int number) {
    cudaStream_t stream = nullptr;
    OK(cudaStreamCreate(&stream));
    char *host = pinned(MiB);
    for (int round = 0; round < 100; ++round) {
        const size_t bytes = 1 + (static_cast<size_t>(round) * 7919 + number * 104'729) % MiB;
        char *memory = device(bytes);
        OK(cudaMemsetAsync(memory, round, bytes, stream));
        tally.set(bytes);
        OK(cudaMemcpyAsync(memory, host, bytes, cudaMemcpyHostToDevice, stream));
        tally.copied("host_to_device", bytes);
        OK(cudaMemcpy(host, memory, bytes / 2 + 1, cudaMemcpyDeviceToHost));
        tally.copied("device_to_host", bytes / 2 + 1);
        release_in_order(from_pool(bytes, nullptr, stream), stream);
        release(memory);
    }
    OK(cudaStreamSynchronize(stream));
    release_pinned(host);
    OK(cudaStreamDestroy(stream));
}

void workers() {
    std::vector<std::thread> threads;
    for (int number = 0; number < 8; ++number) threads.emplace_back(one_worker, number);
    for (std::thread &thread : threads) thread.join();
}

// Taken here, given back by a thread that does nothing else.
void freed_elsewhere() {
    std::vector<char *> blocks;
    for (size_t bytes : sizes) blocks.push_back(device(bytes));
    std::thread([&] { for (char *block : blocks) release(block); }).join();
}

void zero_bytes(cudaStream_t stream) {
    char *memory = device(64);
    char host[64];
    OK(cudaMemcpy(memory, host, 0, cudaMemcpyHostToDevice));
    OK(cudaMemcpyAsync(host, memory, 0, cudaMemcpyDeviceToHost, stream));
    OK(cudaMemset(memory, 0, 0));
    OK(cudaMemsetAsync(memory, 0, 0, stream));
    OK(cudaStreamSynchronize(stream));
    void *nothing = nullptr;
    OK(cudaMalloc(&nothing, 0));
    printf("cudaMalloc(0) gave %p\n", nothing);
    release(memory);
}

void host_to_host(cudaStream_t stream) {
    char *from = pinned(5000), *to = pinned(5000);
    char pageable[100] = {};
    OK(cudaMemcpy(to, from, 5000, cudaMemcpyHostToHost));
    OK(cudaMemcpyAsync(to, from, 4000, cudaMemcpyHostToHost, stream));
    OK(cudaMemcpy(to, pageable, 100, cudaMemcpyDefault));
    tally.copied("host_to_host", 5000);
    tally.copied("host_to_host", 4000);
    tally.copied("host_to_host", 100);
    OK(cudaStreamSynchronize(stream));
    release_pinned(from);
    release_pinned(to);
}

struct Section {
    const char *name;
    bool common;
    void (*run)(cudaStream_t);
};

const Section sections[] = {
    {"linear", true, [](cudaStream_t) { linear_memory(); }},
    {"pitched", true, [](cudaStream_t) { pitched_memory(); }},
    {"managed", true, [](cudaStream_t) { managed_memory(); }},
    {"pinned", true, [](cudaStream_t) { host_memory(); }},
    {"registered", true, [](cudaStream_t) { registered_memory(); }},
    {"stream_ordered", true, stream_ordered_memory},
    {"pool", true, pool_of_its_own},
    {"copies", true, linear_copies},
    {"shaped_copies", true, shaped_copies},
    {"array_copies", true, array_copies},
    {"sets", true, sets},
    {"refused_allocation", true, [](cudaStream_t) { refused_allocation(); }},
    {"workers", true, [](cudaStream_t) { workers(); }},
    {"freed_elsewhere", false, [](cudaStream_t) { freed_elsewhere(); }},
    {"zero", false, zero_bytes},
    {"host_to_host", false, host_to_host},
    {"crossed_frees", false, crossed_frees},
    {"refused_calls", false, [](cudaStream_t) { refused_calls(); }},
    {"refused_in_order", false, refused_in_order},
};

bool chosen(const Section &section, int count, char **names) {
    for (int at = 1; at < count; ++at)
        if (strcmp(names[at], section.name) == 0) return true;
    return count == 1 && section.common;
}

}  // namespace

int main(int count, char **arguments) {
    if (count == 2 && strcmp(arguments[1], "--list") == 0) {
        for (const Section &section : sections) puts(section.name);
        return 0;
    }
    OK(cudaFree(nullptr));  // creates the context, frees nothing
    cudaStream_t stream = nullptr;
    OK(cudaStreamCreate(&stream));
    for (const Section &section : sections) {
        if (!chosen(section, count, arguments)) continue;
        fprintf(stderr, "%s\n", section.name);
        section.run(stream);
        OK(cudaDeviceSynchronize());
    }
    tally.write();
}
