// A second opinion on what a process did with GPU memory: CUPTI's activity records, summed.
//
// Loaded by the CUDA driver itself when CUDA_INJECTION64_PATH names this library, so it shares no
// mechanism with gmmtrace (no preload, no symbol of the process replaced) and can stand beside it
// in the same process. At exit it writes `key value` lines to the file that GMM_CUPTI_OUT names;
// `tests/gpu/compare.py` reads them. GMM_CUPTI_RECORDS=1 adds one line per memory record, for the
// day the sums differ.
//
// Build: g++ -shared -fPIC -O2 cupti_collector.cpp -o libgmm_cupti.so -lcupti
#include <cupti.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <map>
#include <mutex>
#include <string>
#include <unistd.h>

namespace {

// One buffer holds some 10,000 records. Small enough that the worker thread hands them over
// while the process runs, large enough that none is ever refused.
constexpr size_t kBufferBytes = 2 << 20;
constexpr uint32_t kFlushMillis = 200;

struct Collector {
    std::mutex lock;
    std::map<std::string, uint64_t> sums;
    std::string records;
    bool keep_records = false;
    int out = -1;
    pid_t owner = 0;
};

// Never destroyed: records may arrive while static objects of the process already are.
Collector &collector() {
    static Collector &one = *new Collector;
    return one;
}

void add(const std::string &key, uint64_t amount) { collector().sums[key] += amount; }

const char *ledger(const CUpti_ActivityMemory4 &record) {
    // Stream-ordered memory is device memory to CUPTI; gmmtrace keeps a ledger of its own for it.
    // The pool decides, not the call: such memory may also be given back by plain cudaFree.
    if (record.isAsync != 0 ||
        record.memoryPoolConfig.memoryPoolType != CUPTI_ACTIVITY_MEMORY_POOL_TYPE_INVALID)
        return "async_pool";
    switch (record.memoryKind) {
    case CUPTI_ACTIVITY_MEMORY_KIND_PINNED: return "pinned";
    case CUPTI_ACTIVITY_MEMORY_KIND_DEVICE: return "device";
    case CUPTI_ACTIVITY_MEMORY_KIND_ARRAY: return "array";
    case CUPTI_ACTIVITY_MEMORY_KIND_MANAGED: return "managed";
    case CUPTI_ACTIVITY_MEMORY_KIND_DEVICE_STATIC: return "device_static";
    case CUPTI_ACTIVITY_MEMORY_KIND_MANAGED_STATIC: return "managed_static";
    case CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE: return "pageable";
    default: return "unknown";
    }
}

const char *direction(uint8_t kind) {
    switch (kind) {
    case CUPTI_ACTIVITY_MEMCPY_KIND_HTOD: return "host_to_device";
    case CUPTI_ACTIVITY_MEMCPY_KIND_DTOH: return "device_to_host";
    case CUPTI_ACTIVITY_MEMCPY_KIND_HTOA: return "host_to_array";
    case CUPTI_ACTIVITY_MEMCPY_KIND_ATOH: return "array_to_host";
    case CUPTI_ACTIVITY_MEMCPY_KIND_ATOA: return "array_to_array";
    case CUPTI_ACTIVITY_MEMCPY_KIND_ATOD: return "array_to_device";
    case CUPTI_ACTIVITY_MEMCPY_KIND_DTOA: return "device_to_array";
    case CUPTI_ACTIVITY_MEMCPY_KIND_DTOD: return "device_to_device";
    case CUPTI_ACTIVITY_MEMCPY_KIND_HTOH: return "host_to_host";
    case CUPTI_ACTIVITY_MEMCPY_KIND_PTOP: return "peer";
    default: return "unknown";
    }
}

void note(const char *what, const char *which, uint64_t address, uint64_t bytes, unsigned flags) {
    if (!collector().keep_records) return;
    char line[160];
    snprintf(line, sizeof line, "record %s %s 0x%jx %ju flags=%u\n", what, which,
             uintmax_t{address}, uintmax_t{bytes}, flags);
    collector().records += line;
}

void add_memory(const CUpti_ActivityMemory4 &record) {
    const bool taken =
        record.memoryOperationType == CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION;
    const std::string name = ledger(record);
    add(name + (taken ? ".allocs" : ".frees"), 1);
    add(name + (taken ? ".alloc_bytes" : ".free_bytes"), record.bytes);
    note(taken ? "alloc" : "free", name.c_str(), record.address, record.bytes, record.isAsync);
}

// What the launch of a graph does is no call, and is counted apart.
void add_copy(const char *name, uint64_t copies, uint64_t bytes, unsigned flags, bool in_graph) {
    const std::string key = std::string(in_graph ? "graph_copy." : "copy.") + name;
    add(key + ".count", copies);
    add(key + ".bytes", bytes);
    note(in_graph ? "graph_copy" : "copy", name, 0, bytes, flags);
}

void add_record(const CUpti_Activity &record) {
    add("records", 1);
    switch (record.kind) {
    case CUPTI_ACTIVITY_KIND_MEMORY2:
        add_memory(reinterpret_cast<const CUpti_ActivityMemory4 &>(record));
        break;
    case CUPTI_ACTIVITY_KIND_MEMCPY: {
        const auto &copy = reinterpret_cast<const CUpti_ActivityMemcpy6 &>(record);
        // A batch may be one record; any other copy says 1.
        add_copy(direction(copy.copyKind), copy.copyCount > 1 ? copy.copyCount : 1, copy.bytes,
                 copy.flags, copy.graphNodeId != 0);
        break;
    }
    case CUPTI_ACTIVITY_KIND_MEMCPY2: {
        const auto &copy = reinterpret_cast<const CUpti_ActivityMemcpyPtoP4 &>(record);
        add_copy(direction(copy.copyKind), 1, copy.bytes, copy.flags, copy.graphNodeId != 0);
        break;
    }
    case CUPTI_ACTIVITY_KIND_MEMSET: {
        const auto &set = reinterpret_cast<const CUpti_ActivityMemset4 &>(record);
        const char *name = set.graphNodeId != 0 ? "graph_set" : "set";
        add(std::string(name) + ".count", 1);
        add(std::string(name) + ".bytes", set.bytes);
        note(name, "set", 0, set.bytes, set.memoryKind);
        break;
    }
    default: add("other_records", 1); break;
    }
}

void CUPTIAPI buffer_requested(uint8_t **buffer, size_t *size, size_t *max_records) {
    *buffer = static_cast<uint8_t *>(aligned_alloc(8, kBufferBytes));
    *size = *buffer == nullptr ? 0 : kBufferBytes;
    *max_records = 0;
}

void CUPTIAPI buffer_completed(CUcontext context, uint32_t stream, uint8_t *buffer, size_t,
                               size_t valid) {
    Collector &all = collector();
    std::lock_guard<std::mutex> guard(all.lock);
    CUpti_Activity *record = nullptr;
    while (valid > 0 && cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS)
        add_record(*record);
    size_t dropped = 0;
    // Reading the count also resets it, hence the sum.
    if (cuptiActivityGetNumDroppedRecords(context, stream, &dropped) == CUPTI_SUCCESS)
        add("dropped", dropped);
    free(buffer);
}

void write_all(int file, const std::string &text) {
    size_t done = 0;
    while (done < text.size()) {
        const ssize_t count = write(file, text.data() + done, text.size() - done);
        if (count <= 0) return;
        done += static_cast<size_t>(count);
    }
}

// Runs before the handlers and destructors that were registered before the driver's start, so
// CUPTI and the driver are both still there. Flushing calls buffer_completed on this thread: the
// lock is not held meanwhile.
void finish() {
    Collector &all = collector();
    if (getpid() != all.owner) return;  // a forked child inherits the handler, not the records
    const bool flushed = cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED) == CUPTI_SUCCESS;
    std::lock_guard<std::mutex> guard(all.lock);
    add("errors", flushed ? 0 : 1);
    std::string text = all.records;
    for (const auto &[key, value] : all.sums) text += key + ' ' + std::to_string(value) + '\n';
    text += "complete 1\n";
    write_all(all.out, text);
}

// The first process of a tree gets the name as given, every other one its pid behind it.
int create_output() {
    const char *name = getenv("GMM_CUPTI_OUT");
    if (name == nullptr) return -1;
    const int flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC;
    const int file = open(name, flags, 0644);
    if (file >= 0) return file;
    return open((std::string(name) + '.' + std::to_string(getpid())).c_str(), flags, 0644);
}

}  // namespace

// Called once by the driver, from within cuInit.
extern "C" __attribute__((visibility("default"))) int InitializeInjection() {
    Collector &all = collector();
    all.out = create_output();
    if (all.out < 0) return 1;
    all.owner = getpid();
    all.keep_records = getenv("GMM_CUPTI_RECORDS") != nullptr;
    add("dropped", 0);
    const CUpti_ActivityKind kinds[] = {CUPTI_ACTIVITY_KIND_MEMORY2, CUPTI_ACTIVITY_KIND_MEMCPY,
                                        CUPTI_ACTIVITY_KIND_MEMCPY2, CUPTI_ACTIVITY_KIND_MEMSET};
    uint64_t errors = 0;
    errors += cuptiActivityRegisterCallbacks(buffer_requested, buffer_completed) != CUPTI_SUCCESS;
    for (CUpti_ActivityKind kind : kinds) errors += cuptiActivityEnable(kind) != CUPTI_SUCCESS;
    errors += cuptiActivityFlushPeriod(kFlushMillis) != CUPTI_SUCCESS;
    {
        std::lock_guard<std::mutex> guard(all.lock);
        add("errors", errors);
    }
    atexit(finish);
    return 1;
}
