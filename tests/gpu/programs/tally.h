// What a test program did, counted by the program itself: the third column beside gmmtrace and
// CUPTI. Keys are those of the collector; the sums go to the file that GMM_TALLY_OUT names.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string>

class Tally {
public:
    void add(const std::string &key, uint64_t amount) {
        std::lock_guard<std::mutex> guard(lock_);
        sums_[key] += amount;
    }

    void taken(const char *ledger, const void *pointer, uint64_t bytes) {
        std::lock_guard<std::mutex> guard(lock_);
        live_[pointer] = {ledger, bytes};
        sums_[std::string(ledger) + ".allocs"] += 1;
        sums_[std::string(ledger) + ".alloc_bytes"] += bytes;
    }

    // Called before the block is given back: afterwards another thread may get the same address.
    void given_back(const void *pointer) {
        std::lock_guard<std::mutex> guard(lock_);
        const auto found = live_.find(pointer);
        if (found == live_.end()) {
            fprintf(stderr, "tally: %p is not live\n", pointer);
            exit(2);
        }
        sums_[found->second.ledger + ".frees"] += 1;
        sums_[found->second.ledger + ".free_bytes"] += found->second.bytes;
        live_.erase(found);
    }

    void copied(const char *direction, uint64_t bytes) {
        add(std::string("copy.") + direction + ".count", 1);
        add(std::string("copy.") + direction + ".bytes", bytes);
    }

    void set(uint64_t bytes) {
        add("set.count", 1);
        add("set.bytes", bytes);
    }

    void write() {
        const char *name = getenv("GMM_TALLY_OUT");
        FILE *out = name == nullptr ? stdout : fopen(name, "w");
        if (out == nullptr) exit(2);
        for (const auto &[key, value] : sums_)
            fprintf(out, "%s %llu\n", key.c_str(), static_cast<unsigned long long>(value));
        fprintf(out, "complete 1\n");
        if (out != stdout) fclose(out);
    }

private:
    struct Block {
        std::string ledger;
        uint64_t bytes;
    };
    std::mutex lock_;
    std::map<std::string, uint64_t> sums_;
    std::map<const void *, Block> live_;
};
