// K-mers of W words, two bits a base, the first base in the highest bits of the first word and
// unused bits 0; the reference is ngsgpu/kmers/cpu.py.
#pragma once
#include "ngsgpu/sequence/hashing.cuh"

// Bits of the last word that no base has.
template <int W>
__device__ __forceinline__ int unused_bits(int k) {
    return 64 * W - 2 * k;
}

// The 32 bases of a word from the last to the first.
__device__ __forceinline__ uint64_t reversed_bases(uint64_t word) {
    const uint64_t odd = 0x5555555555555555ull;
    word = __brevll(word);
    return ((word >> 1) & odd) | ((word & odd) << 1);
}

// Writes the reverse complement of a k-mer.
template <int W>
__device__ __forceinline__ void turn(const uint64_t* kmer, int k, uint64_t* turned) {
    const int unused = unused_bits<W>(k);
#pragma unroll
    for (int j = 0; j < W; ++j) turned[j] = reversed_bases(~kmer[W - 1 - j]);
    if (unused == 0) return;
#pragma unroll
    for (int j = 0; j < W; ++j) {
        const uint64_t rest = j + 1 < W ? turned[j + 1] >> (64 - unused) : 0;
        turned[j] = (turned[j] << unused) | rest;
    }
}

// Whether a k-mer comes before another one.
template <int W>
__device__ __forceinline__ bool is_less(const uint64_t* a, const uint64_t* b) {
#pragma unroll
    for (int j = 0; j < W; ++j)
        if (a[j] != b[j]) return a[j] < b[j];
    return false;
}
