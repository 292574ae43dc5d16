// The driver API called by name: by plain linking, by dlsym and by cuGetProcAddress, with the
// calls that no runtime function reaches (cuMemAllocHost, virtual memory). With the argument `peer`
// or `second_context` only that section runs: CUPTI has its own view of the second (README.md).
//
//     nvcc -std=c++17 driver_calls.cpp -lcuda
#include <cuda.h>
#include <dlfcn.h>

#include <vector>

#include "tally.h"

namespace {

Tally tally;

void require(CUresult status, const char *call, int line) {
    if (status == CUDA_SUCCESS) return;
    const char *name = "?";
    cuGetErrorName(status, &name);
    fprintf(stderr, "driver_calls.cpp:%d: %s: %s\n", line, call, name);
    exit(1);
}
#define OK(call) require((call), #call, __LINE__)

constexpr size_t KiB = 1024, MiB = 1024 * KiB;

void *address(CUdeviceptr pointer) { return reinterpret_cast<void *>(pointer); }

using Alloc = CUresult (*)(CUdeviceptr *, size_t);
using AllocAsync = CUresult (*)(CUdeviceptr *, size_t, CUstream);

// The three ways by which processes come to an entry point.
std::vector<Alloc> every_way_to_alloc() {
    void *handle = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    void *looked_up = dlsym(handle, "cuMemAlloc_v2");
    void *asked_for = nullptr;
    OK(cuGetProcAddress("cuMemAlloc", &asked_for, 12000, CU_GET_PROC_ADDRESS_DEFAULT, nullptr));
    return {cuMemAlloc, reinterpret_cast<Alloc>(looked_up), reinterpret_cast<Alloc>(asked_for)};
}

CUdeviceptr device(size_t bytes, Alloc alloc = cuMemAlloc) {
    CUdeviceptr pointer = 0;
    OK(alloc(&pointer, bytes));
    tally.taken("device", address(pointer), bytes);
    return pointer;
}

void release(CUdeviceptr pointer) {
    tally.given_back(address(pointer));
    OK(cuMemFree(pointer));
}

char *pinned(size_t bytes) {
    void *pointer = nullptr;
    OK(cuMemAllocHost(&pointer, bytes));
    tally.taken("pinned", pointer, bytes);
    return static_cast<char *>(pointer);
}

void release_pinned(void *pointer) {
    tally.given_back(pointer);
    OK(cuMemFreeHost(pointer));
}

void memory() {
    for (Alloc alloc : every_way_to_alloc())
        for (size_t bytes : {size_t{7}, 100 * KiB, 5 * MiB}) release(device(bytes, alloc));
    CUdeviceptr pointer = 0;
    size_t pitch = 0;
    OK(cuMemAllocPitch(&pointer, &pitch, 1000, 33, 16));
    tally.taken("device", address(pointer), pitch * 33);
    release(pointer);
    OK(cuMemAllocManaged(&pointer, 90'000, CU_MEM_ATTACH_GLOBAL));
    tally.taken("managed", address(pointer), 90'000);
    release(pointer);
    release_pinned(pinned(3333));
    void *host = nullptr;
    OK(cuMemHostAlloc(&host, 4444, CU_MEMHOSTALLOC_PORTABLE));
    tally.taken("pinned", host, 4444);
    release_pinned(host);
    std::vector<char> own(64 * KiB);
    OK(cuMemHostRegister(own.data(), own.size(), 0));
    tally.taken("registered", own.data(), own.size());
    tally.given_back(own.data());
    OK(cuMemHostUnregister(own.data()));

    if (cuMemAlloc(&pointer, size_t{1} << 50) == CUDA_SUCCESS) exit(1);
    if (cuMemAlloc(&pointer, 0) == CUDA_SUCCESS) exit(1);
    tally.add("device.failed", 2);
    OK(cuMemFree(0));
    size_t free_bytes = 0, total_bytes = 0;
    OK(cuMemGetInfo(&free_bytes, &total_bytes));
}

void stream_ordered(CUstream stream) {
    void *per_thread = nullptr;
    OK(cuGetProcAddress("cuMemAllocAsync", &per_thread, 12000,
                        CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, nullptr));
    const AllocAsync both[] = {cuMemAllocAsync, reinterpret_cast<AllocAsync>(per_thread)};
    for (AllocAsync alloc : both) {
        CUdeviceptr pointer = 0;
        OK(alloc(&pointer, 60'000, stream));
        tally.taken("async_pool", address(pointer), 60'000);
        tally.given_back(address(pointer));
        OK(cuMemFreeAsync(pointer, stream));
    }
    OK(cuStreamSynchronize(stream));
}

// Two physical allocations behind one range, as expandable segments do it.
void virtual_memory(CUdevice gpu) {
    CUmemAllocationProp properties = {};
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, gpu};
    size_t step = 0;
    OK(cuMemGetAllocationGranularity(&step, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    CUdeviceptr range = 0;
    OK(cuMemAddressReserve(&range, 8 * step, 0, 0, 0));
    tally.taken("vmm_address", address(range), 8 * step);
    CUmemGenericAllocationHandle handles[2];
    const CUmemAccessDesc access = {properties.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    for (size_t at = 0; at < 2; ++at) {
        OK(cuMemCreate(&handles[at], 2 * step, &properties, 0));
        tally.add("vmm_physical.allocs", 1);
        tally.add("vmm_physical.alloc_bytes", 2 * step);
        OK(cuMemMap(range + at * 2 * step, 2 * step, 0, handles[at], 0));
        tally.add("vmm_mapped.allocs", 1);
        tally.add("vmm_mapped.alloc_bytes", 2 * step);
    }
    OK(cuMemSetAccess(range, 4 * step, &access, 1));
    OK(cuMemsetD8(range + step, 1, 2 * step));  // across both
    tally.set(2 * step);
    OK(cuCtxSynchronize());
    for (size_t at = 0; at < 2; ++at) {
        OK(cuMemUnmap(range + at * 2 * step, 2 * step));
        tally.add("vmm_mapped.frees", 1);
        tally.add("vmm_mapped.free_bytes", 2 * step);
        OK(cuMemRelease(handles[at]));
        tally.add("vmm_physical.frees", 1);
        tally.add("vmm_physical.free_bytes", 2 * step);
    }
    tally.given_back(address(range));
    OK(cuMemAddressFree(range, 8 * step));
}

void copies(CUstream stream) {
    const size_t bytes = 70'001;
    char *host = pinned(bytes);
    const CUdeviceptr from = device(bytes), to = device(bytes);
    OK(cuMemcpyHtoD(from, host, bytes));
    OK(cuMemcpyHtoDAsync(from, host, bytes, stream));
    OK(cuMemcpy(from, reinterpret_cast<CUdeviceptr>(host), bytes));
    OK(cuMemcpyAsync(from, reinterpret_cast<CUdeviceptr>(host), bytes, stream));
    for (int copy = 0; copy < 4; ++copy) tally.copied("host_to_device", bytes);
    OK(cuMemcpyDtoD(to, from, bytes));
    OK(cuMemcpyDtoDAsync(to, from, bytes, stream));
    for (int copy = 0; copy < 2; ++copy) tally.copied("device_to_device", bytes);
    OK(cuMemcpyDtoH(host, to, bytes));
    OK(cuMemcpyDtoHAsync(host, to, bytes, stream));
    for (int copy = 0; copy < 2; ++copy) tally.copied("device_to_host", bytes);

    CUDA_MEMCPY2D shape = {};
    shape.srcMemoryType = CU_MEMORYTYPE_HOST;
    shape.srcHost = host;
    shape.srcPitch = 400;
    shape.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    shape.dstDevice = to;
    shape.dstPitch = 512;
    shape.WidthInBytes = 399;
    shape.Height = 100;
    OK(cuMemcpy2D(&shape));
    OK(cuMemcpy2DUnaligned(&shape));
    OK(cuMemcpy2DAsync(&shape, stream));
    for (int copy = 0; copy < 3; ++copy) tally.copied("host_to_device", 39'900);
    // Pinned memory at an end that is on the device by the call's name.
    const CUdeviceptr there = reinterpret_cast<CUdeviceptr>(host);
    char *other = pinned(bytes);
    OK(cuMemcpyDtoHAsync(other, there, 501, stream));
    OK(cuMemcpyHtoDAsync(there, other, 502, stream));
    tally.copied("host_to_host", 501);
    tally.copied("host_to_host", 502);
    OK(cuMemcpyDtoDAsync(to, there, 503, stream));
    tally.copied("host_to_device", 503);
    OK(cuMemcpyDtoDAsync(there, to, 504, stream));
    tally.copied("device_to_host", 504);
    OK(cuStreamSynchronize(stream));
    release_pinned(other);
    release_pinned(host);
    release(from);
    release(to);
}

void sets(CUstream stream) {
    const CUdeviceptr memory = device(MiB);
    OK(cuMemsetD8(memory, 1, 1001));
    tally.set(1001);
    OK(cuMemsetD16(memory, 1, 1001));
    tally.set(2002);
    OK(cuMemsetD32(memory, 1, 1001));
    tally.set(4004);
    OK(cuMemsetD32Async(memory, 1, 77, stream));
    tally.set(308);
    OK(cuMemsetD2D8(memory, 512, 1, 300, 20));
    tally.set(6000);
    OK(cuMemsetD2D16(memory, 512, 1, 100, 20));
    tally.set(4000);
    OK(cuMemsetD2D32Async(memory, 512, 1, 100, 20, stream));
    tally.set(8000);
    OK(cuStreamSynchronize(stream));
    release(memory);
}

// One GPU is enough: both sides may name the same context.
void peer_copies(CUcontext context) {
    const CUdeviceptr from = device(9000), to = device(9000);
    OK(cuMemcpyPeer(to, context, from, context, 9000));
    OK(cuMemcpyPeerAsync(to, context, from, context, 8000, nullptr));
    OK(cuCtxSynchronize());
    tally.copied("device_to_device", 9000);  // within one GPU, as CUPTI says too
    tally.copied("device_to_device", 8000);
    release(from);
    release(to);
}

// A second context of the process, with memory of its own.
void second_context(CUdevice gpu) {
    CUcontext other = nullptr;
#if CUDA_VERSION >= 13000
    OK(cuCtxCreate(&other, nullptr, 0, gpu));
#else
    OK(cuCtxCreate(&other, 0, gpu));
#endif
    release(device(123'456));
    OK(cuCtxDestroy(other));
}

}  // namespace

int main(int count, char **arguments) {
    const std::string only = count > 1 ? arguments[1] : "";
    OK(cuInit(0));
    CUdevice gpu = 0;
    OK(cuDeviceGet(&gpu, 0));
    CUcontext context = nullptr;
    OK(cuDevicePrimaryCtxRetain(&context, gpu));
    OK(cuCtxSetCurrent(context));
    CUstream stream = nullptr;
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    if (only == "peer") {
        peer_copies(context);
    } else if (only == "second_context") {
        second_context(gpu);
        OK(cuCtxSetCurrent(context));
    } else {
        memory();
        stream_ordered(stream);
        virtual_memory(gpu);
        copies(stream);
        sets(stream);
    }
    OK(cuStreamDestroy(stream));
    tally.write();
}
