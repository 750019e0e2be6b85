// K-mers, two bits a base: of a word, or of W words with the first base in the highest bits of the
// first word and unused bits 0. The reference is ngsgpu/sequence/kmers.py.
#pragma once
#include "ngsgpu/sequence/hashing.cuh"

// A k-mer of at most 32 bases and its reverse complement, which grow base by base; the last base is
// in the lowest bits.
struct Kmer {
    uint64_t forward, backward, mask;
    int top;

    __device__ __forceinline__ explicit Kmer(int k)
        : forward(0), backward(0), mask(~0ull >> (64 - 2 * k)), top(2 * (k - 1)) {}
    __device__ __forceinline__ void add(uint64_t code) {
        forward = ((forward << 2) | code) & mask;
        backward = (backward >> 2) | ((3 - code) << top);
    }
    // Takes the last base away, ``gone`` being the one that it pushed out.
    __device__ __forceinline__ void remove(uint64_t gone) {
        forward = (forward >> 2) | (gone << top);
        backward = ((backward << 2) & mask) | (3 - gone);
    }
    __device__ __forceinline__ uint64_t canonical() const {
        return forward < backward ? forward : backward;
    }
};

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
