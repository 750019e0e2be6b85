// Sorted (key, window) words, key << 32 | window, and tiles of words or slots for a warp.
#pragma once

#include "ngsgpu/classify/sketch/sketch.cuh"

namespace {

constexpr int kRounds = 8;               // slots or words for each lane of a warp
constexpr int kWordTile = 32 * kRounds;  // and for the warp

__device__ __forceinline__ uint32_t lanes_below(uint32_t lane) { return (1u << lane) - 1; }

__device__ __forceinline__ uint32_t key_of(uint64_t word) { return uint32_t(word >> 32); }

// Whether a key's top ``bits`` bits are ``part``.
__device__ __forceinline__ bool is_of_part(uint32_t key, int bits, uint32_t part) {
    return uint64_t(key) >> (32 - bits) == part;
}

// Sorted words.
struct SortedWords {
    const uint64_t* words;
    int64_t count;

    // Whether there is a word j and it has the key of word i.
    __device__ bool same_key(int64_t i, int64_t j) const {
        return j >= 0 && j < count && key_of(words[i]) == key_of(words[j]);
    }

    // How many of the ``most`` words from word i on have its key.
    __device__ int64_t run_from(int64_t i, int64_t most) const {
        int64_t step = 1;
        while (step < most && same_key(i, i + step)) step *= 2;
        int64_t low = i + step / 2, high = i + min(step, most);  // high is not counted
        while (high - low > 1) {
            const int64_t middle = (low + high) / 2;
            if (same_key(i, middle)) low = middle;
            else high = middle;
        }
        return low - i + 1;
    }
};

// Writes the words that lanes have chosen in kRounds rounds one after the other, or counts them
// where ``words`` is null. For a whole warp.
__device__ __forceinline__ void append_chosen(const uint64_t (&own)[kRounds],
                                              const uint32_t (&chosen)[kRounds], uint32_t lane,
                                              uint64_t* words, unsigned long long* count) {
    uint32_t total = 0;
#pragma unroll
    for (int round = 0; round < kRounds; ++round) total += __popc(chosen[round]);
    unsigned long long to = 0;
    if (lane == 0 && total > 0) to = atomicAdd(count, (unsigned long long)(total));
    if (words == nullptr) return;
    to = __shfl_sync(kAll, to, 0);
#pragma unroll
    for (int round = 0; round < kRounds; ++round) {
        if (chosen[round] >> lane & 1)
            words[to + __popc(chosen[round] & lanes_below(lane))] = own[round];
        to += __popc(chosen[round]);
    }
}

}  // namespace
