// Tiles of 64-bit words for a warp, in blocks of kThreads; the sizes are those of kernels.py.
#pragma once
#include "ngsgpu/device/cuda/warp.cuh"
#include "ngsgpu/sequence/search.cuh"

namespace {

constexpr int kThreads = 256;
constexpr int kRounds = 8;               // words for each lane of a warp
constexpr int kTile = LANES * kRounds;  // and for the warp

// Index of the last element of ``starts`` (ascending, count of them) that is at most ``value``.
template <class T>
__device__ __forceinline__ int64_t last_not_above(const T* starts, int64_t count, T value) {
    return last_that(int64_t(0), count, [&](int64_t i) { return starts[i] <= value; });
}

// Writes the words that ``choose(i, &word)`` selects from ``all`` items, in no order, or counts
// them if ``words`` is null. A warp takes kTile items at a time.
template <class Choose>
__device__ __forceinline__ void collect_words(int64_t all, uint64_t* words,
                                              unsigned long long* count, Choose choose) {
    const uint32_t lane = threadIdx.x & 31;
    const int64_t step = int64_t(gridDim.x) * (kThreads / 32) * kTile;
    int64_t tile = (int64_t(blockIdx.x) * kThreads + threadIdx.x) / 32 * kTile;
    for (; tile < all; tile += step) {
        uint64_t own[kRounds];
        uint32_t chosen[kRounds], total = 0;
#pragma unroll
        for (int round = 0; round < kRounds; ++round) {
            const int64_t i = tile + round * 32 + lane;
            chosen[round] = __ballot_sync(WARP, i < all && choose(i, &own[round]));
            total += __popc(chosen[round]);
        }
        unsigned long long to = 0;
        if (lane == 0 && total > 0) to = atomicAdd(count, (unsigned long long)(total));
        if (words == nullptr) continue;
        to = __shfl_sync(WARP, to, 0);
#pragma unroll
        for (int round = 0; round < kRounds; ++round) {
            if (chosen[round] >> lane & 1)
                words[to + count_before(chosen[round], lane)] = own[round];
            to += __popc(chosen[round]);
        }
    }
}

}  // namespace
