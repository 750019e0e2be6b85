// Where things are that come one after the other: sums of what is before, and looking places up.
#pragma once

#include "ngsgpu/classify/sketch.cuh"

namespace {

// Sum of the values of the threads before this one, and of all, in a block of kThreads.
__device__ __forceinline__ uint32_t block_exclusive_sum(uint32_t value, uint32_t* total) {
    __shared__ uint32_t sums[kThreads / 32];
    const uint32_t lane = threadIdx.x & 31, warp = threadIdx.x / 32;
    uint32_t sum = value;
    for (uint32_t distance = 1; distance < 32; distance *= 2) {
        const uint32_t other = __shfl_up_sync(kAll, sum, distance);
        if (lane >= distance) sum += other;
    }
    if (lane == 31) sums[warp] = sum;
    __syncthreads();
    uint32_t before = 0, all = 0;
    for (uint32_t i = 0; i < kThreads / 32; ++i) {
        if (i < warp) before += sums[i];
        all += sums[i];
    }
    *total = all;
    __syncthreads();  // the sums may be written again
    return before + sum - value;
}

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

}  // namespace
