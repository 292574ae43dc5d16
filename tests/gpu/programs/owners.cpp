// Memory by every owner but cuMemAlloc, a section for each, and objects that are left behind. Each
// section counts what it did and tells what NVML shows before, at the most, and after (claims.h).
//
//     owners managed|arrays|pools|graph_execs|graph_memory|streams|vmm|ipc|old_abis
//
//     nvcc -std=c++17 owners.cpp -lcuda
#include <cuda.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <cstring>

#include "claims.h"

namespace {

Claims claims;

std::string error_name(CUresult status) {
    const char *name = "?";
    cuGetErrorName(status, &name);
    return name == nullptr ? std::to_string(status) : name;
}

void require(CUresult status, const char *call, int line) {
    if (status == CUDA_SUCCESS) return;
    fprintf(stderr, "owners.cpp:%d: %s: %s\n", line, call, error_name(status).c_str());
    exit(1);
}
#define OK(call) require((call), #call, __LINE__)

void must(bool holds, const char *what, int line) {
    if (holds) return;
    fprintf(stderr, "owners.cpp:%d: %s\n", line, what);
    exit(1);
}
#define MUST(what) must((what), #what, __LINE__)

constexpr size_t KiB = 1024, MiB = 1024 * KiB;
CUdevice gpu = 0;
CUstream stream = nullptr;

void taken(const std::string &ledger, uint64_t bytes) {
    claims.add("ledgers." + ledger + ".allocs", 1);
    claims.add("ledgers." + ledger + ".alloc_bytes", static_cast<int64_t>(bytes));
    claims.add("ledgers." + ledger + ".live_count", 1);
    claims.add("ledgers." + ledger + ".live_bytes", static_cast<int64_t>(bytes));
}

void given_back(const std::string &ledger, uint64_t bytes) {
    claims.add("ledgers." + ledger + ".frees", 1);
    claims.add("ledgers." + ledger + ".live_count", -1);
    claims.add("ledgers." + ledger + ".live_bytes", -static_cast<int64_t>(bytes));
}

void made(const char *objects, int64_t count = 1) {
    claims.add(std::string("handles.") + objects + ".created", count);
    claims.add(std::string("handles.") + objects + ".live", count);
}

void destroyed(const char *objects, int64_t count = 1) {
    claims.add(std::string("handles.") + objects + ".destroyed", count);
    claims.add(std::string("handles.") + objects + ".live", -count);
}

// The entry point of this name that a program built for that version gets.
template <typename Function>
Function entry(const char *name, int version, cuuint64_t flags = CU_GET_PROC_ADDRESS_DEFAULT) {
    void *found = nullptr;
    OK(cuGetProcAddress(name, &found, version, flags, nullptr));
    if (found == nullptr) {
        fprintf(stderr, "owners.cpp: %s %d is missing\n", name, version);
        exit(1);
    }
    return reinterpret_cast<Function>(found);
}

void start() {
    OK(cuInit(0));
    OK(cuDeviceGet(&gpu, 0));
    CUcontext context = nullptr;
    OK(cuDevicePrimaryCtxRetain(&context, gpu));
    OK(cuCtxSetCurrent(context));
    claims.add("handles.contexts.created", 1);
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    made("streams");
    OK(cuCtxSynchronize());
    claims.moment("start");
}

CUdeviceptr device(size_t bytes) {
    CUdeviceptr pointer = 0;
    OK(cuMemAlloc(&pointer, bytes));
    taken("device", bytes);
    return pointer;
}

// --- managed memory, both signatures of prefetch and advice -------------------------------------

void managed() {
    using PrefetchOld = CUresult (*)(CUdeviceptr, size_t, CUdevice, CUstream);
    using Prefetch = CUresult (*)(CUdeviceptr, size_t, CUmemLocation, unsigned, CUstream);
    using AdviseOld = CUresult (*)(CUdeviceptr, size_t, CUmem_advise, CUdevice);
    using Advise = CUresult (*)(CUdeviceptr, size_t, CUmem_advise, CUmemLocation);
    const auto prefetch_old = entry<PrefetchOld>("cuMemPrefetchAsync", 8000);
    const auto prefetch_own = entry<PrefetchOld>("cuMemPrefetchAsync", 8000, 2);
    const auto prefetch = entry<Prefetch>("cuMemPrefetchAsync", 12020);
    const auto advise_old = entry<AdviseOld>("cuMemAdvise", 8000);
    const auto advise = entry<Advise>("cuMemAdvise", 12020);
    const size_t bytes = 64 * MiB;
    CUdeviceptr pointer = 0;
    OK(cuMemAllocManaged(&pointer, bytes, CU_MEM_ATTACH_GLOBAL));
    taken("managed", bytes);
    memset(reinterpret_cast<void *>(pointer), 1, bytes);  // on the host at first
    CUmemLocation here = {}, host = {};
    here.type = CU_MEM_LOCATION_TYPE_DEVICE;
    here.id = gpu;
    host.type = CU_MEM_LOCATION_TYPE_HOST;
    claims.moment("host");

    const auto advised = [](const char *name, const char *place, size_t size) {
        const std::string row = std::string("managed.advice[name=") + name + "]";
        claims.note(std::string("advice: ") + name + " " + place);
        claims.add(row + ".count", 1);
        claims.add(row + ".bytes", static_cast<int64_t>(size));
    };
    OK(advise_old(pointer, bytes, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, gpu));
    advised("set_preferred_location", "gpu 0", bytes);
    OK(advise(pointer, bytes, CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION, here));
    advised("unset_preferred_location", "gpu 0", bytes);
    OK(advise(pointer, bytes / 2, CU_MEM_ADVISE_SET_READ_MOSTLY, here));
    advised("set_read_mostly", "gpu 0", bytes / 2);
    OK(advise(pointer, bytes / 2, CU_MEM_ADVISE_UNSET_READ_MOSTLY, here));
    advised("unset_read_mostly", "gpu 0", bytes / 2);
    OK(advise(pointer, bytes, CU_MEM_ADVISE_SET_ACCESSED_BY, here));
    advised("set_accessed_by", "gpu 0", bytes);

    const auto moved = [](const char *place, size_t size) {
        const std::string row = std::string("managed.prefetches[label=") + place + "]";
        claims.add(row + ".count", 1);
        claims.add(row + ".bytes", static_cast<int64_t>(size));
    };
    OK(prefetch_old(pointer, bytes / 2, gpu, stream));
    moved("gpu 0", bytes / 2);
    OK(prefetch(pointer + bytes / 2, bytes / 2, here, 0, stream));
    moved("gpu 0", bytes / 2);
    OK(cuCtxSynchronize());
    claims.moment("on the GPU");
    OK(prefetch_own(pointer, bytes / 4, CU_DEVICE_CPU, nullptr));
    moved("host", bytes / 4);
    OK(prefetch(pointer + bytes / 4, 3 * bytes / 4, host, 0, stream));
    moved("host", 3 * bytes / 4);
    OK(cuCtxSynchronize());
    claims.moment("host again");
    OK(cuMemFree(pointer));
    given_back("managed", bytes);
}

// --- arrays: what the descriptor says against what the device has less --------------------------

size_t free_bytes() {
    size_t free = 0, total = 0;
    OK(cuMemGetInfo(&free, &total));
    return free;
}

struct Shape {
    const char *name;
    CUDA_ARRAY3D_DESCRIPTOR descriptor;
    unsigned levels;  // 0: not a mipmapped array
    size_t bytes;     // by the descriptor
};

CUDA_ARRAY3D_DESCRIPTOR shape(size_t width, size_t height, size_t depth, CUarray_format format,
                              unsigned channels, unsigned flags = 0) {
    CUDA_ARRAY3D_DESCRIPTOR made = {};
    made.Width = width;
    made.Height = height;
    made.Depth = depth;
    made.Format = format;
    made.NumChannels = channels;
    made.Flags = flags;
    return made;
}

void arrays() {
    const CUarray_format f32 = CU_AD_FORMAT_FLOAT, u8 = CU_AD_FORMAT_UNSIGNED_INT8;
    size_t mips = 0;
    for (size_t side = 1024; side > 0; side /= 2) mips += side * side * 4;
    const Shape shapes[] = {
        {"1024 x 1024, 4 floats", shape(1024, 1024, 0, f32, 4), 0, 16 * MiB},
        {"1000 x 1000, 1 byte", shape(1000, 1000, 0, u8, 1), 0, 1'000'000},
        {"4096, 1 float", shape(4096, 0, 0, f32, 1), 0, 16 * KiB},
        {"128 x 128 x 128, 1 float", shape(128, 128, 128, f32, 1), 0, 8 * MiB},
        {"100 x 60 x 50, 2 halves", shape(100, 60, 50, CU_AD_FORMAT_HALF, 2), 0, 1'200'000},
        {"512 x 512, 16 layers, 2 halves",
         shape(512, 512, 16, CU_AD_FORMAT_HALF, 2, CUDA_ARRAY3D_LAYERED), 0, 16 * MiB},
        {"256 x 256 cube, 1 float", shape(256, 256, 6, f32, 1, CUDA_ARRAY3D_CUBEMAP), 0,
         256 * 256 * 6 * 4},
        {"1024 x 1024 BC1", shape(1024, 1024, 0, CU_AD_FORMAT_BC1_UNORM, 4), 0, MiB / 2},
        {"1024 x 1024, 4 bytes, 11 levels", shape(1024, 1024, 0, u8, 4), 11, mips},
        {"deferred mapping, 64 x 64",
         shape(64, 64, 0, f32, 1, CUDA_ARRAY3D_DEFERRED_MAPPING), 0, 0},
    };
    std::vector<CUarray> plain;
    std::vector<std::pair<CUmipmappedArray, size_t>> mipmapped;
    std::vector<size_t> sizes;
    for (const Shape &one : shapes) {
        const size_t before = free_bytes();
        CUarray array = nullptr;
        CUmipmappedArray levels = nullptr;
        const CUresult status = one.levels == 0
                                    ? cuArray3DCreate(&array, &one.descriptor)
                                    : cuMipmappedArrayCreate(&levels, &one.descriptor, one.levels);
        if (status != CUDA_SUCCESS) {
            claims.note(std::string(one.name) + ": " + error_name(status));
            claims.add("ledgers.array.failed", 1);
            continue;
        }
        taken("array", one.bytes);
        if (one.levels == 0) plain.push_back(array), sizes.push_back(one.bytes);
        else mipmapped.emplace_back(levels, one.bytes);
        claims.note("array " + std::string(one.name) + ": " + std::to_string(one.bytes) +
                    " bytes by the descriptor, " + std::to_string(before - free_bytes()) +
                    " less on the device");
    }
    // Many small ones, 8 KiB each.
    const CUDA_ARRAY3D_DESCRIPTOR small = shape(64, 128, 0, u8, 1);
    const size_t before = free_bytes();
    for (int count = 0; count < 200; ++count) {
        CUarray array = nullptr;
        OK(cuArray3DCreate(&array, &small));
        taken("array", 8 * KiB);
        plain.push_back(array);
        sizes.push_back(8 * KiB);
    }
    claims.note("200 arrays of 64 x 128, 1 byte: 1638400 bytes by the descriptor, " +
                std::to_string(before - free_bytes()) + " less on the device");
    claims.moment("peak");
    for (size_t at = 0; at < plain.size(); ++at) {
        OK(cuArrayDestroy(plain[at]));
        given_back("array", sizes[at]);
    }
    for (const auto &[levels, bytes] : mipmapped) {
        OK(cuMipmappedArrayDestroy(levels));
        given_back("array", bytes);
    }
    claims.moment("end");
}

// --- pools: the driver's own attributes ---------------------------------------------------------

std::string pool_path(CUmemoryPool pool, const char *key) {
    char text[96];
    snprintf(text, sizeof text, "pools.pools[handle=0x%zx].%s", reinterpret_cast<size_t>(pool), key);
    return text;
}

cuuint64_t attribute(CUmemoryPool pool, CUmemPool_attribute which) {
    cuuint64_t value = 0;
    OK(cuMemPoolGetAttribute(pool, which, &value));
    return value;
}

// What the driver says, and the report must say.
uint64_t ask(const char *name, CUmemoryPool pool) {
    const cuuint64_t reserved = attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT);
    const cuuint64_t high = attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH);
    const cuuint64_t used = attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT);
    const cuuint64_t used_high = attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH);
    claims.note(std::string(name) + ": reserved " + std::to_string(reserved) + " (high " +
                std::to_string(high) + "), used " + std::to_string(used) + " (high " +
                std::to_string(used_high) + ")");
    claims.is(pool_path(pool, "reserved_bytes"), static_cast<int64_t>(reserved));
    claims.is(pool_path(pool, "reserved_high_bytes"), static_cast<int64_t>(high));
    claims.is(pool_path(pool, "live_bytes"), static_cast<int64_t>(used));
    claims.is(pool_path(pool, "peak_bytes"), static_cast<int64_t>(used_high));
    return reserved;
}

CUdeviceptr from(CUmemoryPool pool, size_t bytes) {
    CUdeviceptr pointer = 0;
    if (pool == nullptr) OK(cuMemAllocAsync(&pointer, bytes, stream));
    else OK(cuMemAllocFromPoolAsync(&pointer, bytes, pool, stream));
    taken("async_pool", bytes);
    return pointer;
}

void release(CUdeviceptr pointer, size_t bytes) {
    OK(cuMemFreeAsync(pointer, stream));
    given_back("async_pool", bytes);
}

void pools() {
    CUmemoryPool usual = nullptr, own = nullptr;
    OK(cuDeviceGetDefaultMemPool(&usual, gpu));
    const CUdeviceptr kept = from(nullptr, 6 * MiB);
    const CUdeviceptr gone = from(nullptr, 24 * MiB);
    OK(cuStreamSynchronize(stream));
    ask("default pool, 6 MiB and 24 MiB", usual);
    release(gone, 24 * MiB);
    OK(cuStreamSynchronize(stream));
    const uint64_t left_in_usual = ask("default pool, 24 MiB given back", usual);

    CUmemPoolProps properties = {};
    properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    properties.location.id = gpu;
    OK(cuMemPoolCreate(&own, &properties));
    cuuint64_t all = UINT64_MAX;
    OK(cuMemPoolSetAttribute(own, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &all));
    const CUdeviceptr small = from(own, 64 * KiB), large = from(own, 160 * MiB);
    OK(cuStreamSynchronize(stream));
    const uint64_t most = ask("own pool, 64 KiB and 160 MiB", own);
    claims.is("pools.reserved_peak_bytes", static_cast<int64_t>(left_in_usual + most));
    claims.moment("peak");
    release(large, 160 * MiB);
    OK(cuStreamSynchronize(stream));
    ask("own pool, 160 MiB given back, nothing released", own);
    claims.moment("kept");
    OK(cuMemPoolTrimTo(own, 0));
    const uint64_t trimmed = ask("own pool, trimmed", own);
    claims.is("pools.reserved_bytes", static_cast<int64_t>(left_in_usual + trimmed));
    claims.is(pool_path(own, "trims"), 1);
    claims.moment("end");
    (void)small;
    (void)kept;

    // How the driver rounds: what follows is not in `used` as asked for.
    std::string text = "a pool's used bytes after one allocation of";
    for (size_t bytes : {size_t{1}, size_t{512}, size_t{513}, 100 * KiB + 1, MiB + 1, 2 * MiB + 1}) {
        CUmemoryPool probe = nullptr;
        OK(cuMemPoolCreate(&probe, &properties));
        CUdeviceptr pointer = 0;
        OK(cuMemAllocFromPoolAsync(&pointer, bytes, probe, stream));
        OK(cuStreamSynchronize(stream));
        cuuint64_t used = attribute(probe, CU_MEMPOOL_ATTR_USED_MEM_CURRENT);
        text += " " + std::to_string(bytes) + ": " + std::to_string(used) + ",";
        OK(cuMemFreeAsync(pointer, stream));
        OK(cuStreamSynchronize(stream));
        OK(cuMemPoolDestroy(probe));
        claims.add("ledgers.async_pool.allocs", 1);
        claims.add("ledgers.async_pool.alloc_bytes", static_cast<int64_t>(bytes));
        claims.add("ledgers.async_pool.frees", 1);
    }
    claims.note(text);
}

// --- objects that are left behind ---------------------------------------------------------------

// A chain of sets on one block.
CUgraph chain(CUdeviceptr block, int length) {
    CUgraph graph = nullptr;
    OK(cuGraphCreate(&graph, 0));
    made("graphs");
    CUcontext context = nullptr;
    OK(cuCtxGetCurrent(&context));
    CUgraphNode last = nullptr;
    for (int at = 0; at < length; ++at) {
        CUDA_MEMSET_NODE_PARAMS set = {};
        set.dst = block;
        set.value = static_cast<unsigned>(at);
        set.elementSize = 1;
        set.width = 1000;
        set.height = 1;
        CUgraphNode node = nullptr;
        OK(cuGraphAddMemsetNode(&node, graph, at == 0 ? nullptr : &last, at == 0 ? 0 : 1, &set,
                                context));
        last = node;
    }
    return graph;
}

void graph_execs() {
    const CUdeviceptr block = device(MiB);
    const CUgraph graph = chain(block, 200);
    std::vector<CUgraphExec> executables(100);
    for (CUgraphExec &one : executables) {
        OK(cuGraphInstantiateWithFlags(&one, graph, 0));
        OK(cuGraphLaunch(one, stream));
        claims.add("graphs.launches", 1);
    }
    made("graph_execs", 100);
    OK(cuStreamSynchronize(stream));
    claims.moment("peak");
    for (int at = 0; at < 7; ++at) OK(cuGraphExecDestroy(executables[at]));
    destroyed("graph_execs", 7);
    OK(cuGraphDestroy(graph));
    destroyed("graphs");
    OK(cuCtxSynchronize());
    claims.moment("end");
}

// Memory that graphs hold: by nodes, and by capture.
void graph_memory() {
    CUgraph graph = nullptr;
    OK(cuGraphCreate(&graph, 0));
    made("graphs");
    CUDA_MEM_ALLOC_NODE_PARAMS wanted = {};
    wanted.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    wanted.poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    wanted.poolProps.location.id = gpu;
    wanted.bytesize = 96 * MiB;
    CUgraphNode take = nullptr, give = nullptr;
    OK(cuGraphAddMemAllocNode(&take, graph, nullptr, 0, &wanted));
    OK(cuGraphAddMemFreeNode(&give, graph, &take, 1, wanted.dptr));
    CUgraphExec executable = nullptr, captured_executable = nullptr;
    OK(cuGraphInstantiateWithFlags(&executable, graph, 0));
    made("graph_execs");
    OK(cuGraphLaunch(executable, stream));
    OK(cuStreamSynchronize(stream));
    taken("graph", 96 * MiB);
    given_back("graph", 96 * MiB);

    // A captured allocation that outlives its graph.
    CUdeviceptr outlives = 0;
    OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    OK(cuMemAllocAsync(&outlives, 32 * MiB, stream));
    OK(cuMemsetD8Async(outlives, 1, 32 * MiB, stream));
    CUgraph captured = nullptr;
    OK(cuStreamEndCapture(stream, &captured));
    made("graphs");
    OK(cuGraphInstantiateWithFlags(&captured_executable, captured, 0));
    made("graph_execs");
    OK(cuGraphLaunch(captured_executable, stream));
    OK(cuStreamSynchronize(stream));
    taken("graph", 32 * MiB);
    claims.add("graphs.launches", 2);
    claims.add("graphs.alloc_nodes", 2);
    claims.add("graphs.free_nodes", 1);
    claims.add("graphs.captured.sets.count", 1);
    const auto told = [](const char *name) {
        cuuint64_t value[4] = {};
        const CUgraphMem_attribute which[] = {
            CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, CU_GRAPH_MEM_ATTR_USED_MEM_HIGH,
            CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH};
        for (int at = 0; at < 4; ++at) OK(cuDeviceGetGraphMemAttribute(gpu, which[at], &value[at]));
        claims.note(std::string(name) + ": graph memory used " + std::to_string(value[0]) +
                    " (high " + std::to_string(value[1]) + "), reserved " +
                    std::to_string(value[2]) + " (high " + std::to_string(value[3]) + ")");
        claims.is("graphs.told[gpu=0].used_bytes", static_cast<int64_t>(value[0]));
        claims.is("graphs.told[gpu=0].reserved_bytes", static_cast<int64_t>(value[2]));
    };
    claims.moment("untold");
    told("after both launches");
    claims.moment("peak");
    OK(cuMemFree(outlives));
    given_back("graph", 32 * MiB);
    OK(cuDeviceGraphMemTrim(gpu));
    claims.add("graphs.trims", 1);
    told("after the free and a trim");
    claims.moment("end");
}

void streams() {
    std::vector<CUstream> left(300);
    for (CUstream &one : left) OK(cuStreamCreate(&one, CU_STREAM_NON_BLOCKING));
    made("streams", 300);
    const CUdeviceptr block = device(MiB);
    for (CUstream one : left) OK(cuMemsetD8Async(block, 1, 1000, one));
    OK(cuCtxSynchronize());
    std::vector<CUevent> events(100);
    for (CUevent &one : events) OK(cuEventCreate(&one, CU_EVENT_DEFAULT));
    made("events", 100);
    claims.moment("peak");
    for (int at = 0; at < 11; ++at) OK(cuStreamDestroy(left[at]));
    destroyed("streams", 11);
    OK(cuEventDestroy(events[0]));
    destroyed("events");
    claims.moment("end");
}

void vmm() {
    CUmemAllocationProp properties = {};
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    properties.location.id = gpu;
    size_t step = 0;
    OK(cuMemGetAllocationGranularity(&step, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    const size_t bytes = 8 * step;
    CUdeviceptr range = 0;
    OK(cuMemAddressReserve(&range, 16 * bytes, 0, 0, 0));
    taken("vmm_address", 16 * bytes);
    CUmemGenericAllocationHandle handles[12];
    for (auto &handle : handles) {
        OK(cuMemCreate(&handle, bytes, &properties, 0));
        taken("vmm_physical", bytes);
    }
    CUmemAccessDesc access = {};
    access.location = properties.location;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    for (size_t at = 0; at < 6; ++at) {
        OK(cuMemMap(range + at * bytes, bytes, 0, handles[at], 0));
        taken("vmm_mapped", bytes);
    }
    OK(cuMemSetAccess(range, 6 * bytes, &access, 1));
    OK(cuMemsetD8(range, 1, 6 * bytes));
    OK(cuCtxSynchronize());
    claims.moment("peak");
    // 0: unmapped, then released. 1: released, then unmapped. 2: released, its mapping left.
    // 3: unmapped, its handle left. 4 and 5: both left. 6: released, never mapped. 7: one more
    // reference, and one release. 8 to 11: left.
    OK(cuMemUnmap(range, bytes));
    OK(cuMemRelease(handles[0]));
    OK(cuMemRelease(handles[1]));
    OK(cuMemUnmap(range + bytes, bytes));
    OK(cuMemRelease(handles[2]));
    OK(cuMemUnmap(range + 3 * bytes, bytes));
    OK(cuMemRelease(handles[6]));
    CUmemGenericAllocationHandle again = 0;
    OK(cuMemRetainAllocationHandle(&again, reinterpret_cast<void *>(range + 4 * bytes)));
    MUST(again == handles[4]);
    OK(cuMemRelease(handles[4]));
    for (int count = 0; count < 3; ++count) {
        given_back("vmm_mapped", bytes);
        given_back("vmm_physical", bytes);
    }
    claims.is("fragmentation.vmm.stuck.unreferenced_bytes", static_cast<int64_t>(bytes));
    claims.is("fragmentation.vmm.unmapped_physical_bytes", static_cast<int64_t>(6 * bytes));
    claims.moment("end");
    claims.note("left: 9 handles of " + std::to_string(bytes) + " bytes, 3 of them mapped");
}

// --- memory shared with a child process ---------------------------------------------------------

struct Shared {
    CUipcMemHandle blocks[2];
    CUmemPoolPtrExportData in_pool;
};

void send(int socket, const Shared &shared, const int (&descriptors)[2]) {
    iovec data = {const_cast<Shared *>(&shared), sizeof shared};
    alignas(cmsghdr) char room[CMSG_SPACE(sizeof descriptors)] = {};
    msghdr message = {};
    message.msg_iov = &data;
    message.msg_iovlen = 1;
    message.msg_control = room;
    message.msg_controllen = sizeof room;
    cmsghdr *control = CMSG_FIRSTHDR(&message);
    control->cmsg_level = SOL_SOCKET;
    control->cmsg_type = SCM_RIGHTS;
    control->cmsg_len = CMSG_LEN(sizeof descriptors);
    memcpy(CMSG_DATA(control), descriptors, sizeof descriptors);
    MUST(sendmsg(socket, &message, 0) == static_cast<ssize_t>(sizeof shared));
}

void receive(int socket, Shared &shared, int (&descriptors)[2]) {
    iovec data = {&shared, sizeof shared};
    alignas(cmsghdr) char room[CMSG_SPACE(sizeof descriptors)] = {};
    msghdr message = {};
    message.msg_iov = &data;
    message.msg_iovlen = 1;
    message.msg_control = room;
    message.msg_controllen = sizeof room;
    MUST(recvmsg(socket, &message, 0) == static_cast<ssize_t>(sizeof shared));
    const cmsghdr *control = CMSG_FIRSTHDR(&message);
    MUST(control != nullptr && control->cmsg_type == SCM_RIGHTS);
    memcpy(descriptors, CMSG_DATA(control), sizeof descriptors);
}

constexpr size_t block_sizes[] = {5 * MiB, 100 * KiB};

void *as_handle(int descriptor) { return reinterpret_cast<void *>(static_cast<intptr_t>(descriptor)); }

void child(int socket) {
    Shared shared;
    int descriptors[2];
    receive(socket, shared, descriptors);
    start();
    CUdeviceptr first = 0, again = 0, second = 0;
    OK(cuIpcOpenMemHandle(&first, shared.blocks[0], CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    taken("imported", 0);
    OK(cuIpcOpenMemHandle(&again, shared.blocks[0], CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    claims.note(std::string("a handle that is opened twice gives ") +
                (first == again ? "the same address" : "two addresses"));
    // The ABI before 11.0.
    const auto old_open =
        entry<CUresult (*)(CUdeviceptr *, CUipcMemHandle, unsigned)>("cuIpcOpenMemHandle", 4010);
    OK(old_open(&second, shared.blocks[1], CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    taken("imported", 0);
    OK(cuMemsetD8(first, 2, block_sizes[0]));
    OK(cuCtxSynchronize());
    claims.moment("open");
    OK(cuIpcCloseMemHandle(first));
    OK(cuIpcCloseMemHandle(again));
    given_back("imported", 0);

    CUmemGenericAllocationHandle handle = 0;
    OK(cuMemImportFromShareableHandle(&handle, as_handle(descriptors[0]),
                                      CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
    taken("imported", 4 * MiB);  // its size is known when it is mapped
    CUdeviceptr range = 0;
    OK(cuMemAddressReserve(&range, 4 * MiB, 0, 0, 0));
    taken("vmm_address", 4 * MiB);
    OK(cuMemMap(range, 4 * MiB, 0, handle, 0));
    taken("vmm_mapped", 4 * MiB);
    OK(cuMemRelease(handle));
    OK(cuMemUnmap(range, 4 * MiB));
    given_back("vmm_mapped", 4 * MiB);
    given_back("imported", 4 * MiB);

    CUmemoryPool pool = nullptr;
    OK(cuMemPoolImportFromShareableHandle(&pool, as_handle(descriptors[1]),
                                          CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    CUdeviceptr lent = 0;
    OK(cuMemPoolImportPointer(&lent, pool, &shared.in_pool));
    taken("imported", 0);
    OK(cuMemFree(lent));
    given_back("imported", 0);
    claims.is("ledgers.imported.unsized_count", 1);
    claims.is("ledgers.vmm_physical.allocs", 0);
    claims.is("ledgers.device.allocs", 0);
    claims.is("unknown_frees", 0);
    claims.moment("end");
    claims.write();
    MUST(write(socket, "x", 1) == 1);
}

void parent(int socket) {
    start();
    Shared shared;
    for (int at = 0; at < 2; ++at)
        OK(cuIpcGetMemHandle(&shared.blocks[at], device(block_sizes[at])));
    CUmemAllocationProp properties = {};
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    properties.location.id = gpu;
    properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    CUmemGenericAllocationHandle handle = 0;
    OK(cuMemCreate(&handle, 4 * MiB, &properties, 0));
    taken("vmm_physical", 4 * MiB);
    int descriptors[2] = {};
    OK(cuMemExportToShareableHandle(&descriptors[0], handle,
                                    CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    CUmemPoolProps pool_properties = {};
    pool_properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    pool_properties.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    pool_properties.location = properties.location;
    CUmemoryPool pool = nullptr;
    OK(cuMemPoolCreate(&pool, &pool_properties));
    OK(cuMemPoolExportToShareableHandle(&descriptors[1], pool,
                                        CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    const CUdeviceptr in_pool = from(pool, 3 * MiB);
    OK(cuStreamSynchronize(stream));
    OK(cuMemPoolExportPointer(&shared.in_pool, in_pool));
    send(socket, shared, descriptors);
    char done = 0;
    MUST(read(socket, &done, 1) == 1);
    claims.is("ledgers.imported.allocs", 0);
    claims.moment("end");
    claims.write();
}

int ipc() {
    int ends[2];
    MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    const pid_t pid = fork();  // before the driver is started, as it must be
    if (pid == 0) {
        close(ends[0]);  // the end of the parent is then seen
        child(ends[1]);
        exit(0);
    }
    close(ends[1]);
    parent(ends[0]);
    int status = 0;
    waitpid(pid, &status, 0);
    return status == 0 ? 0 : 1;
}

// --- entry points of old versions ---------------------------------------------------------------

// A call that this driver may refuse; its answer goes into the results.
bool worked(CUresult status, const char *call) {
    claims.note(std::string(call) + ": " + error_name(status));
    return status == CUDA_SUCCESS;
}

void old_memory() {
    unsigned free_bytes_32 = 0, total_32 = 0;
    worked(entry<CUresult (*)(unsigned *, unsigned *)>("cuMemGetInfo", 2000)(&free_bytes_32,
                                                                           &total_32),
           "cuMemGetInfo of 2.0");
    unsigned pointer = 0;
    if (worked(entry<CUresult (*)(unsigned *, unsigned)>("cuMemAlloc", 2000)(&pointer, 70'000),
               "cuMemAlloc of 2.0")) {
        taken("device", 70'000);
        std::vector<char> bytes(1000);
        OK(entry<CUresult (*)(unsigned, const void *, unsigned)>("cuMemcpyHtoD", 2000)(
            pointer, bytes.data(), 1000));
        OK(entry<CUresult (*)(unsigned)>("cuMemFree", 2000)(pointer));
        given_back("device", 70'000);
    } else {
        claims.add("ledgers.device.failed", 1);
    }
    void *host = nullptr;
    if (worked(entry<CUresult (*)(void **, unsigned)>("cuMemAllocHost", 2000)(&host, 5000),
               "cuMemAllocHost of 2.0")) {
        taken("pinned", 5000);
        OK(cuMemFreeHost(host));
        given_back("pinned", 5000);
    } else {
        claims.add("ledgers.pinned.failed", 1);
    }
    std::vector<char> own(64 * KiB);
    const auto old_register =
        entry<CUresult (*)(void *, size_t, unsigned)>("cuMemHostRegister", 4000);
    if (worked(old_register(own.data(), own.size(), 0), "cuMemHostRegister of 4.0")) {
        taken("registered", own.size());
        OK(cuMemHostUnregister(own.data()));
        given_back("registered", own.size());
    } else {
        claims.add("ledgers.registered.failed", 1);
    }
    struct {
        unsigned width, height;
        CUarray_format format;
        unsigned channels;
    } flat = {64, 32, CU_AD_FORMAT_FLOAT, 1};
    CUarray array = nullptr;
    if (worked(entry<CUresult (*)(CUarray *, const void *)>("cuArrayCreate", 2000)(&array, &flat),
               "cuArrayCreate of 2.0")) {
        taken("array", 64 * 32 * 4);
        OK(cuArrayDestroy(array));
        given_back("array", 64 * 32 * 4);
    } else {
        claims.add("ledgers.array.failed", 1);
    }
}

void old_graphs() {
    CUgraph graph = nullptr;
    const auto begin = entry<CUresult (*)(CUstream)>("cuStreamBeginCapture", 10000);
    if (!worked(begin(stream), "cuStreamBeginCapture of 10.0")) return;
    const CUdeviceptr block = device(1000);  // is not captured
    OK(cuMemsetD8Async(block, 1, 1000, stream));
    claims.add("graphs.captured.sets.count", 1);
    OK(cuStreamEndCapture(stream, &graph));
    made("graphs");
    using Instantiate = CUresult (*)(CUgraphExec *, CUgraph, CUgraphNode *, char *, size_t);
    CUgraphExec executables[4] = {};
    char log[64];
    int count = 0;
    for (int version : {10000, 11000}) {
        const auto instantiate = entry<Instantiate>("cuGraphInstantiate", version);
        if (worked(instantiate(&executables[count], graph, nullptr, log, sizeof log),
                   version == 10000 ? "cuGraphInstantiate of 10.0" : "cuGraphInstantiate of 11.0"))
            ++count;
        else
            claims.add("handles.graph_execs.failed", 1);
    }
    const auto with_flags = entry<CUresult (*)(CUgraphExec *, CUgraph, unsigned long long)>(
        "cuGraphInstantiateWithFlags", 11040);
    OK(with_flags(&executables[count++], graph, 0));
    made("graph_execs", count);
    CUgraphNode node = nullptr;
    int result = 0;
    worked(entry<CUresult (*)(CUgraphExec, CUgraph, CUgraphNode *, int *)>(
               "cuGraphExecUpdate", 10020)(executables[0], graph, &node, &result),
           "cuGraphExecUpdate of 10.2");
    for (int at = 0; at < count; ++at) OK(cuGraphExecDestroy(executables[at]));
    destroyed("graph_execs", count);
    OK(cuGraphDestroy(graph));
    destroyed("graphs");
    OK(cuMemFree(block));
    given_back("device", 1000);
}

void old_contexts() {
    const auto two = entry<CUresult (*)(CUcontext *, unsigned, CUdevice)>("cuCtxCreate", 3020);
    const auto three =
        entry<CUresult (*)(CUcontext *, void *, int, unsigned, CUdevice)>("cuCtxCreate", 11040);
    const auto old_destroy = entry<CUresult (*)(CUcontext)>("cuCtxDestroy", 2000);
    for (int which = 0; which < 2; ++which) {
        CUcontext context = nullptr, before = nullptr;
        OK(cuCtxGetCurrent(&before));
        if (!worked(which == 0 ? two(&context, 0, gpu) : three(&context, nullptr, 0, 0, gpu),
                    which == 0 ? "cuCtxCreate of 3.2" : "cuCtxCreate of 11.4"))
            continue;
        claims.add("handles.contexts.created", 1);
        device(3000);  // goes with the context
        claims.add("ledgers.device.live_count", -1);
        claims.add("ledgers.device.live_bytes", -3000);
        claims.add("ledgers.device.implicit_frees", 1);
        if (which == 0) OK(old_destroy(context));
        else OK(cuCtxDestroy(context));
        claims.add("handles.contexts.destroyed", 1);
        OK(cuCtxSetCurrent(before));
    }
}

void old_abis() {
    CUstream one = nullptr;
    CUevent event = nullptr;
    OK(entry<CUresult (*)(CUstream *, unsigned)>("cuStreamCreate", 2000)(&one, 0));
    made("streams");
    OK(entry<CUresult (*)(CUstream)>("cuStreamDestroy", 2000)(one));
    destroyed("streams");
    OK(cuEventCreate(&event, 0));
    made("events");
    OK(entry<CUresult (*)(CUevent)>("cuEventDestroy", 2000)(event));
    destroyed("events");
    old_memory();
    old_graphs();
    old_contexts();
    OK(cuCtxSynchronize());
    claims.moment("end");
    CUcontext primary = nullptr;
    OK(cuDevicePrimaryCtxRetain(&primary, gpu));
    const auto old_release = entry<CUresult (*)(CUdevice)>("cuDevicePrimaryCtxRelease", 7000);
    OK(old_release(gpu));
}

struct Section {
    const char *name;
    void (*run)();
};

const Section sections[] = {
    {"managed", managed},       {"arrays", arrays},   {"pools", pools}, {"graph_execs", graph_execs},
    {"graph_memory", graph_memory}, {"streams", streams}, {"vmm", vmm},     {"old_abis", old_abis},
};

}  // namespace

int main(int count, char **arguments) {
    const std::string name = count > 1 ? arguments[1] : "";
    if (name == "ipc") return ipc();
    for (const Section &section : sections) {
        if (name != section.name) continue;
        start();
        section.run();
        claims.is("unknown_frees", 0);
        claims.is("overlaps", 0);
        claims.write();
        return 0;
    }
    fprintf(stderr, "owners: no section '%s'\n", name.c_str());
    return 2;
}
