// Units of work of the kernels of suffix arrays: each thread takes some, a grid apart.
#pragma once

namespace {

constexpr int kThreads = 256;

__device__ __forceinline__ int64_t first_unit() {
    return int64_t(blockIdx.x) * kThreads + threadIdx.x;
}

__device__ __forceinline__ int64_t unit_step() { return int64_t(gridDim.x) * kThreads; }

}  // namespace
