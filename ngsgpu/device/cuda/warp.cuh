// A warp whose lanes work together; all of them call these functions.
#pragma once
#include "ngsgpu/device/cuda/reduce.cuh"
#include "ngsgpu/sequence/hashing.cuh"

constexpr int LANES = 32;
constexpr uint32_t WARP = 0xFFFFFFFFu;

// The lanes before a lane, of those in a mask: how many.
__device__ __forceinline__ int count_before(uint32_t mask, int lane) {
    return __popc(mask & ((1u << lane) - 1));
}

// The bits that any lane has.
__device__ __forceinline__ uint64_t any_lane(uint64_t bits) {
    const uint32_t low = __reduce_or_sync(WARP, uint32_t(bits));
    const uint32_t high = __reduce_or_sync(WARP, uint32_t(bits >> 32));
    return (uint64_t(high) << 32) | low;
}

// Lanes in ascending order: the sum of the values up to each lane, its own included.
template <class T>
__device__ __forceinline__ T sum_up_to(T value, int lane) {
    for (int step = 1; step < LANES; step <<= 1) {
        const T before = __shfl_up_sync(WARP, value, step);
        if (lane >= step) value += before;
    }
    return value;
}
