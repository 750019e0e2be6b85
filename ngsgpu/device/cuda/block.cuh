// A block whose threads work together; all of them call these functions.
#pragma once

// Sum of the values of the threads before this one, and of all, in a block of kBlock threads.
template <unsigned kBlock>
__device__ __forceinline__ unsigned block_exclusive_sum(unsigned value, unsigned* total) {
    __shared__ unsigned sums[kBlock / 32];
    const unsigned lane = threadIdx.x & 31, warp = threadIdx.x / 32;
    unsigned sum = value;
    for (unsigned distance = 1; distance < 32; distance *= 2) {
        const unsigned other = __shfl_up_sync(0xFFFFFFFFu, sum, distance);
        if (lane >= distance) sum += other;
    }
    if (lane == 31) sums[warp] = sum;
    __syncthreads();
    unsigned before = 0, all = 0;
    for (unsigned i = 0; i < kBlock / 32; ++i) {
        if (i < warp) before += sums[i];
        all += sums[i];
    }
    *total = all;
    __syncthreads();  // the sums may be written again
    return before + sum - value;
}
