// Which driver calls take device memory: reads NVML's figure for the process before and after each
// driver call that CUPTI reports, and sums what it rose by, by the call's name. For people to read;
// gmmtrace has no part in it.
//
// Loaded by the CUDA driver when CUDA_INJECTION64_PATH names this library. At exit it writes a table
// to the file that GMM_GROWTH_OUT names. Calls of several threads at once blur into each other.
//
// Build: g++ -shared -fPIC -O2 call_growth.cpp -o libgmm_growth.so -lcupti
#include <cupti.h>

#include <cstdio>
#include <map>
#include <mutex>
#include <string>

#include "programs/claims.h"

namespace {

struct Growth {
    uint64_t calls = 0, grew = 0;
    int64_t bytes = 0;
};

struct State {
    std::mutex lock;
    ProcessMemory memory;
    uint64_t last = 0;
    std::map<std::string, Growth> by_call;
    std::string order;  // the first rises, one by one
    int lines = 0;
};

State &state() {
    static State &one = *new State;
    return one;
}

void look(const char *call, const char *what) {
    State &all = state();
    std::lock_guard<std::mutex> guard(all.lock);
    const uint64_t now = all.memory.bytes();
    const int64_t rise = static_cast<int64_t>(now) - static_cast<int64_t>(all.last);
    all.last = now;
    Growth &growth = all.by_call[std::string(call) + what];
    growth.calls += 1;
    if (rise == 0) return;
    growth.grew += 1;
    growth.bytes += rise;
    if (++all.lines > 400) return;
    all.order += std::string(call) + what + " " + std::to_string(rise) + "\n";
}

void CUPTIAPI called(void *, CUpti_CallbackDomain, CUpti_CallbackId, const void *data) {
    const auto *call = static_cast<const CUpti_CallbackData *>(data);
    const bool before = call->callbackSite == CUPTI_API_ENTER;
    look(call->functionName, before ? " (before it)" : "");
}

void finish() {
    const char *name = getenv("GMM_GROWTH_OUT");
    FILE *out = name == nullptr ? nullptr : fopen(name, "w");
    if (out == nullptr) return;
    State &all = state();
    std::lock_guard<std::mutex> guard(all.lock);
    fprintf(out, "bytes calls of_them_grew call\n");
    for (const auto &[call, growth] : all.by_call)
        if (growth.grew != 0 || growth.calls != 0)
            fprintf(out, "%lld %llu %llu %s\n", static_cast<long long>(growth.bytes),
                    static_cast<unsigned long long>(growth.calls),
                    static_cast<unsigned long long>(growth.grew), call.c_str());
    fprintf(out, "\n%s", all.order.c_str());
    fclose(out);
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int InitializeInjection() {
    CUpti_SubscriberHandle subscriber = nullptr;
    if (cuptiSubscribe(&subscriber, called, nullptr) != CUPTI_SUCCESS) return 1;
    cuptiEnableDomain(1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API);
    atexit(finish);
    return 1;
}
