// The canonical k-mers of stored reads, in any order; the reference is ngsgpu/spectrum/kmers/counts.py.
#pragma once
#include "ngsgpu/device/cuda/warp.cuh"
#include "ngsgpu/spectrum/kmers/reads.cuh"

namespace {

constexpr int kThreads = 256;
constexpr int kPartBits = 12;  // PART_BITS of gpu.py
constexpr int kParts = 1 << kPartBits;

__device__ __forceinline__ int part_of(uint64_t canonical) {
    return int(mix64(canonical) >> (64 - kPartBits));
}

// The longest of the reads that the lanes of a warp have.
__device__ __forceinline__ int longest(int length) {
    return int(__reduce_max_sync(WARP, unsigned(length)));
}

// Calls ``found(canonical)`` for every k-mer of a read whose part is in [first, last).
template <class Found>
__device__ __forceinline__ void each_kmer(Kmers kmers, int first, int last, Found found) {
    const bool all = first == 0 && last == kParts;
    while (kmers.at < kmers.length) {
        if (!kmers.next()) continue;
        const uint64_t canonical = kmers.kmer.canonical();
        if (!all) {
            const int part = part_of(canonical);
            if (part < first || part >= last) continue;
        }
        found(canonical);
    }
}

}  // namespace
