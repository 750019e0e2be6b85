// Sets of solid k-mers on the device; the reference is ngsgpu/spectrum/kmers/solid.py.
//
// The exact table has buckets of kSlots slots, a sector of memory. A k-mer is in the first bucket
// from its own on that had room for it, so an empty slot ends every search. Its slots differ from
// the CPU's, what it knows does not. The Bloom filter has the CPU's bits.
#pragma once
#include "ngsgpu/sequence/hashing.cuh"
#include "ngsgpu/spectrum/gpu.structs"

namespace {

constexpr int kRare = 1, kSolid = 2, kStrong = 3;
constexpr int kSlots = 4;  // of a bucket; SLOTS of gpu.py
constexpr int kBloomHashes = 8;

__device__ __forceinline__ uint64_t bloom_step(uint64_t canonical) {
    return mix64(canonical ^ 0x9E3779B97F4A7C15ull) | 1;
}

__device__ __noinline__ int level_in_filter(const Solid& solid, uint64_t canonical) {
    const uint64_t bits = (solid.buckets << 6) - 1;
    const uint64_t step = bloom_step(canonical);
    uint64_t place = mix64(canonical);
    for (int i = 0; i < kBloomHashes; ++i) {
        const uint64_t bit = place & bits;
        if (((solid.words[bit >> 6] >> (bit & 63)) & 1) == 0) return 0;
        place += step;
    }
    return kSolid;
}

// Level of a canonical k-mer; 0 for one that the set does not know.
__device__ __forceinline__ int level_of(const Solid& solid, uint64_t canonical) {
    if (solid.bloom) return level_in_filter(solid, canonical);
    uint64_t bucket = __umul64hi(mix64(canonical), solid.buckets);
    while (true) {
        const ulonglong2* at = reinterpret_cast<const ulonglong2*>(solid.words + kSlots * bucket);
        const ulonglong2 front = __ldg(at), back = __ldg(at + 1);
        if (front.x >> 2 == canonical && front.x) return int(front.x & 3);
        if (front.y >> 2 == canonical && front.y) return int(front.y & 3);
        if (back.x >> 2 == canonical && back.x) return int(back.x & 3);
        if (back.y >> 2 == canonical && back.y) return int(back.y & 3);
        if (back.y == 0) return 0;
        if (++bucket == solid.buckets) bucket = 0;
    }
}

__device__ __forceinline__ void prefetch(const uint64_t* at) {
    asm volatile("prefetch.global.L1 [%0];" ::"l"(at));
}

// Brings near what ``level_of`` reads of the table, if it is going to be called soon.
__device__ __forceinline__ void ask_for(const Solid& solid, uint64_t canonical) {
    if (solid.bloom) return;
    const uint64_t bucket = __umul64hi(mix64(canonical), solid.buckets);
    prefetch(solid.words + kSlots * bucket);
}

// Puts a k-mer that is not yet there into the table.
__device__ __forceinline__ void insert(unsigned long long* words, uint64_t buckets,
                                       uint64_t canonical, int level) {
    const unsigned long long word = (canonical << 2) | uint64_t(level);
    uint64_t bucket = __umul64hi(mix64(canonical), buckets);
    while (true) {
        unsigned long long* slots = words + kSlots * bucket;
        for (int i = 0; i < kSlots; ++i)
            if (slots[i] == 0 && atomicCAS(slots + i, 0ull, word) == 0) return;
        if (++bucket == buckets) bucket = 0;
    }
}

// Sets the bits of a k-mer in the filter.
__device__ __forceinline__ void programme(unsigned long long* words, uint64_t count,
                                          uint64_t canonical) {
    const uint64_t bits = (count << 6) - 1, step = bloom_step(canonical);
    uint64_t place = mix64(canonical);
    for (int i = 0; i < kBloomHashes; ++i) {
        const uint64_t bit = place & bits;
        atomicOr(words + (bit >> 6), 1ull << (bit & 63));
        place += step;
    }
}

}  // namespace
