// Tiles of 64-bit words for a warp, in blocks of kThreads; the sizes are those of kernels.py.
#pragma once
#include "ngsgpu/device/warp.cuh"

namespace {

constexpr int kThreads = 256;
constexpr int kRounds = 8;               // words for each lane of a warp
constexpr int kTile = LANES * kRounds;  // and for the warp

// Index of the last element of ``starts`` (ascending, count of them) that is at most ``value``.
template <class T>
__device__ __forceinline__ int64_t last_not_above(const T* starts, int64_t count, T value) {
    int64_t low = 0, high = count;
    while (high - low > 1) {
        const int64_t middle = (low + high) / 2;
        if (starts[middle] <= value) low = middle;
        else high = middle;
    }
    return low;
}

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
    to = __shfl_sync(WARP, to, 0);
#pragma unroll
    for (int round = 0; round < kRounds; ++round) {
        if (chosen[round] >> lane & 1)
            words[to + count_before(chosen[round], lane)] = own[round];
        to += __popc(chosen[round]);
    }
}

}  // namespace
