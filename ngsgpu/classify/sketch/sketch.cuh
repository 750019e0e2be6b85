// Sketches of windows; what building and querying have in common. The reference is sketch.py.
#pragma once

#include "ngsgpu/sequence/hashing.cuh"

namespace {

using u8 = unsigned char;

constexpr uint32_t kAll = 0xFFFFFFFFu;   // lanes of a warp
constexpr uint32_t kNone = 0xFFFFFFFFu;  // no feature; no k-mer has this hash by definition
constexpr int kThreads = 256;
constexpr int kCountBits = 16;  // of an entry: locations; above them the rest of the key

// Lane's value after sorting the values of a warp, ascending.
__device__ __forceinline__ uint32_t warp_sort(uint32_t value, uint32_t lane) {
    for (uint32_t size = 2; size <= 32; size *= 2) {
        for (uint32_t distance = size / 2; distance > 0; distance /= 2) {
            const uint32_t other = __shfl_xor_sync(kAll, value, distance);
            const bool takes_smaller = ((lane & distance) == 0) == ((lane & size) == 0);
            value = takes_smaller ? min(value, other) : max(value, other);
        }
    }
    return value;
}

// Hash of the canonical k-mer at ``text``; kNone where it has an ambiguous base.
__device__ __forceinline__ uint32_t feature_at(const u8* text, int kmer, const u8* codes) {
    uint32_t forward = 0, backward = 0, unknown = 0;
    for (int i = 0; i < kmer; ++i) {
        const uint32_t code = codes[text[i]];
        unknown |= code >> 2;
        forward = (forward << 2) | (code & 3);
        backward |= (3 - (code & 3)) << (2 * i);
    }
    return unknown ? kNone : mix32(min(forward, backward));
}

// The 32 smallest of ``best`` (ascending over the lanes, distinct) and of the lanes' values, distinct;
// values that cannot be among the ``sketch`` smallest may be left out.
//
// Those that may are sorted and merged, without the ones that are there already.
__device__ __forceinline__ uint32_t add_to_sketch(uint32_t best, uint32_t value, int sketch,
                                                  uint32_t lane) {
    if (value >= __shfl_sync(kAll, best, sketch - 1)) value = kNone;
    if (!__any_sync(kAll, value != kNone)) return best;
    uint32_t place = 0;
    for (uint32_t step = 16; step > 0; step /= 2)
        if (__shfl_sync(kAll, best, place + step - 1) < value) place += step;
    if (__shfl_sync(kAll, best, place) == value) value = kNone;
    value = warp_sort(value, lane);
    const uint32_t before = __shfl_up_sync(kAll, value, 1);
    const bool twice = lane > 0 && value == before && value != kNone;
    if (__any_sync(kAll, twice)) value = warp_sort(twice ? kNone : value, lane);
    best = min(best, __shfl_sync(kAll, value, 31 - lane));
    for (uint32_t distance = 16; distance > 0; distance /= 2) {
        const uint32_t other = __shfl_xor_sync(kAll, best, distance);
        best = lane & distance ? max(best, other) : min(best, other);
    }
    return best;
}

// The ``sketch`` smallest distinct features of a window, for a whole warp: lane i gets the i-th in
// ``own``; returns how many there are. ``sketch`` is at most 32. Lanes take a k-mer each, 32 at a
// time.
__device__ int sketch_window(const u8* text, int length, int kmer, int sketch, const u8* codes,
                             uint32_t lane, uint32_t* own) {
    uint32_t best = kNone;
    for (int base = 0; base + kmer <= length; base += 32) {
        const int at = base + int(lane);
        const uint32_t value = at + kmer <= length ? feature_at(text + at, kmer, codes) : kNone;
        best = add_to_sketch(best, value, sketch, lane);
    }
    *own = best;
    return __popc(__ballot_sync(kAll, best != kNone && int(lane) < sketch));
}

__device__ __forceinline__ int windows_of(int64_t length, int kmer, int window, int stride) {
    if (length <= window) return length >= kmer;
    const int64_t full = (length - window) / stride + 1;
    return int(full) + (length - full * stride >= kmer);
}

__device__ __forceinline__ void load_codes(u8* shared, const u8* codes) {
    for (int i = threadIdx.x; i < 256; i += blockDim.x) shared[i] = codes[i];
    __syncthreads();
}

}  // namespace
