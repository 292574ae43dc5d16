// What a program says of itself, for tests/gpu/claims.py to hold against its log: counts that the
// report must have, and what NVML shows for the process at named moments. Written to the file that
// GMM_CLAIMS_OUT names, with the process's id behind it; nothing without it.
#pragma once

#include <dlfcn.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

// NVML's figure for this process, added over devices; 0 when it has none.
class ProcessMemory {
public:
    uint64_t bytes() {
        if (!start()) return 0;
        uint64_t sum = 0;
        for (unsigned index = 0; index < count_; ++index) {
            void *device = nullptr;
            if (by_index_(index, &device) != 0) continue;
            std::vector<Process> list(256);
            unsigned entries = static_cast<unsigned>(list.size());
            if (processes_(device, &entries, list.data()) != 0) continue;
            for (unsigned at = 0; at < entries; ++at)
                if (list[at].pid == static_cast<unsigned>(getpid()) && list[at].used != UINT64_MAX)
                    sum += list[at].used;
        }
        return sum;
    }

private:
    struct Process {
        unsigned pid;
        unsigned long long used;
        unsigned gpu_instance, compute_instance;
    };

    bool start() {
        if (processes_ != nullptr) return true;
        void *nvml = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
        if (nvml == nullptr) return false;
        const auto init = reinterpret_cast<int (*)()>(dlsym(nvml, "nvmlInit_v2"));
        const auto count =
            reinterpret_cast<int (*)(unsigned *)>(dlsym(nvml, "nvmlDeviceGetCount_v2"));
        by_index_ = reinterpret_cast<int (*)(unsigned, void **)>(
            dlsym(nvml, "nvmlDeviceGetHandleByIndex_v2"));
        if (init == nullptr || count == nullptr || by_index_ == nullptr || init() != 0 ||
            count(&count_) != 0)
            return false;
        processes_ = reinterpret_cast<int (*)(void *, unsigned *, Process *)>(
            dlsym(nvml, "nvmlDeviceGetComputeRunningProcesses_v3"));
        return processes_ != nullptr;
    }

    unsigned count_ = 0;
    int (*by_index_)(unsigned, void **) = nullptr;
    int (*processes_)(void *, unsigned *, Process *) = nullptr;
};

class Claims {
public:
    // The report's number at this path (claims.py says how paths are written) grows by so much.
    void add(const std::string &path, int64_t amount) { equal_[path] += amount; }

    void is(const std::string &path, int64_t value) { equal_[path] = value; }

    // Text that goes into the results as it is.
    void note(const std::string &text) { notes_.push_back(text); }

    // Waits until gmmtrace has read NVML in this state, reads it too, and sets a mark.
    void moment(const char *name) {
        const auto mark =
            reinterpret_cast<void (*)(const char *)>(dlsym(RTLD_DEFAULT, "gmmtrace_mark"));
        if (getenv("GMM_CLAIMS_OUT") == nullptr) return;
        usleep(1'300'000);
        moments_.emplace_back(name, memory_.bytes());
        if (mark != nullptr) mark(name);
    }

    void write() {
        const char *name = getenv("GMM_CLAIMS_OUT");
        if (name == nullptr) return;
        FILE *out = fopen((std::string(name) + '.' + std::to_string(getpid())).c_str(), "w");
        if (out == nullptr) exit(2);
        fprintf(out, "pid %d\n", getpid());
        for (const auto &text : notes_) fprintf(out, "note %s\n", text.c_str());
        for (const auto &[path, value] : equal_)
            fprintf(out, "equal %s\t%lld\n", path.c_str(), static_cast<long long>(value));
        for (const auto &[moment, bytes] : moments_)
            fprintf(out, "moment %s\t%llu\n", moment.c_str(),
                    static_cast<unsigned long long>(bytes));
        fprintf(out, "complete\n");
        fclose(out);
    }

private:
    std::map<std::string, int64_t> equal_;
    std::vector<std::string> notes_;
    std::vector<std::pair<std::string, uint64_t>> moments_;
    ProcessMemory memory_;
};
