// Sketches of windows; what building and querying have in common. The reference is cpu.py.
#pragma once

#include "ngsgpu/device/cuda/tiles.cuh"

namespace {

using u8 = unsigned char;

constexpr uint32_t kNone = 0xFFFFFFFFu;  // no feature; no k-mer has this hash by definition
constexpr int kCountBits = 16;  // of an entry: locations; above them the rest of the key

// ``SketchRules`` of params/sketch.py.
struct SketchRules {
    int kmer;
    int sketch;
    int window;
    int stride;
    int kept;
    int smer;  // 0: the features are those of windows
};

// Lane's value after sorting the values of a warp, ascending.
__device__ __forceinline__ uint32_t warp_sort(uint32_t value, uint32_t lane) {
    for (uint32_t size = 2; size <= 32; size *= 2) {
        for (uint32_t distance = size / 2; distance > 0; distance /= 2) {
            const uint32_t other = __shfl_xor_sync(WARP, value, distance);
            const bool takes_smaller = ((lane & distance) == 0) == ((lane & size) == 0);
            value = takes_smaller ? min(value, other) : max(value, other);
        }
    }
    return value;
}

// The 32 smallest of ``best`` (ascending over the lanes, distinct) and of the lanes' values,
// distinct; values that cannot be among the ``sketch`` smallest may be dropped.
//
// The remaining ones are sorted and merged, without duplicates.
__device__ __forceinline__ uint32_t add_to_sketch(uint32_t best, uint32_t value, int sketch,
                                                  uint32_t lane) {
    if (value >= __shfl_sync(WARP, best, sketch - 1)) value = kNone;
    if (!__any_sync(WARP, value != kNone)) return best;
    uint32_t place = 0;
    for (uint32_t step = 16; step > 0; step /= 2)
        if (__shfl_sync(WARP, best, place + step - 1) < value) place += step;
    if (__shfl_sync(WARP, best, place) == value) value = kNone;
    value = warp_sort(value, lane);
    const uint32_t before = __shfl_up_sync(WARP, value, 1);
    const bool twice = lane > 0 && value == before && value != kNone;
    if (__any_sync(WARP, twice)) value = warp_sort(twice ? kNone : value, lane);
    best = min(best, __shfl_sync(WARP, value, 31 - lane));
    for (uint32_t distance = 16; distance > 0; distance /= 2) {
        const uint32_t other = __shfl_xor_sync(WARP, best, distance);
        best = lane & distance ? max(best, other) : min(best, other);
    }
    return best;
}

__device__ __forceinline__ int windows_of(int64_t length, const SketchRules& rules) {
    if (length <= rules.window) return length >= rules.kmer;
    const int64_t full = (length - rules.window) / rules.stride + 1;
    return int(full) + (length - full * rules.stride >= rules.kmer);
}

// Whether a database has the feature of a key; ``is_kept`` of cpu.py.
__device__ __forceinline__ bool is_kept(uint32_t key, int kept) { return int(key & 0xFFFF) < kept; }

__device__ __forceinline__ void load_codes(u8* shared, const u8* codes) {
    for (int i = threadIdx.x; i < 256; i += blockDim.x) shared[i] = codes[i];
    __syncthreads();
}

}  // namespace
