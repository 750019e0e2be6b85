// Candidates that are kept as rows of a multiple sequence alignment, and their bases under columns.
#pragma once
#include "ngsgpu/align/candidates.cuh"

// A candidate that the filter keeps, with all that the columns ask for again and again.
struct Row {
    const uint32_t* planes;  // of 32-bit words: the low plane, then the high one
    const uint8_t* qualities;
    int32_t shift, length, reverse_complemented, weight;
    __device__ int position(int aligned_offset) const {
        return reverse_complemented ? length - 1 - aligned_offset : aligned_offset;
    }
};

__device__ __forceinline__ Row row_of(const Reads& reads, const Candidates& c, int k) {
    const uint64_t entry = c.entry[c.kept[k]];
    const int64_t read = entry_read(entry);
    Row row;
    row.planes = (const uint32_t*)(reads.planes + plane_start(reads, read));
    row.qualities = reads.qualities + quality_start(reads, read);
    row.shift = entry_shift(entry);
    row.length = read_length(reads, read);
    row.reverse_complemented = entry_reverse_complemented(entry);
    row.weight = c.weight[k];
    return row;
}

// Base of a candidate at an offset from its first column.
__device__ __forceinline__ int base_at_offset(const Row& row, int aligned_offset) {
    const int position = row.position(aligned_offset), bit = position & 31;
    const uint32_t* half = row.planes + (position >> 5);
    const int base = int((half[0] >> bit) & 1) |
                     int((half[2 * ((row.length + 63) >> 6)] >> bit) & 1) << 1;
    return row.reverse_complemented ? 3 - base : base;
}

// 32 bits of a plane of 32-bit words from a bit on; beyond its words there are zeros.
__device__ __forceinline__ uint32_t plane_bits(const uint32_t* plane, int words, int first) {
    const int word = first >> 5;
    const uint32_t low = word >= 0 && word < words ? plane[word] : 0;
    const uint32_t high = word >= -1 && word < words - 1 ? plane[word + 1] : 0;
    return __funnelshift_r(low, high, first & 31);
}

// Bases of a candidate under the 32 columns from the one at ``aligned_offset`` from its first on.
__device__ __forceinline__ uint32_t bits_at_offset(const Row& row, int plane, int aligned_offset) {
    const int words = 2 * ((row.length + 63) >> 6);
    const uint32_t* own = row.planes + plane * words;
    if (!row.reverse_complemented) return plane_bits(own, words, aligned_offset);
    return ~__brev(plane_bits(own, words, row.length - 32 - aligned_offset));
}

// The columns of a word that a read at a first column covers.
__device__ __forceinline__ uint32_t covered(int word, int first, int length) {
    const int low = max(first - 32 * word, 0), high = min(first + length - 32 * word, 32);
    if (low >= high) return 0;
    return (~0u << low) & (~0u >> (32 - high));
}
