// Features of a window from its letters: bases packed into registers, k-mers extracted from them.
//
// A lane packs 16 letters into a word, so that a warp holds 512 bases; a k-mer is then two words of
// other lanes and a shift, instead of k letters. The features are those of sketch/cpu.py.
#pragma once

#include "ngsgpu/classify/sketch/sketch.cuh"

namespace {

constexpr int kSegment = 480;  // k-mers that begin in the bases that a warp holds

// Four letters as 2-bit codes, the first one highest; bit i of ``unknown`` is set where letter i is
// not one of ACGT.
__device__ __forceinline__ uint32_t pack_letters(uint32_t letters, uint32_t* unknown) {
    const uint32_t bits = (letters >> 1) & 0x03030303u;          // A 0, C 1, T 2, G 3
    const uint32_t codes = bits ^ ((bits >> 1) & 0x01010101u);   // A 0, C 1, G 2, T 3
    const uint32_t nibbles = __byte_perm(codes | (codes >> 4), 0, 0x4420);
    const uint32_t expected = __byte_perm(0x54474341u, 0, nibbles);
    uint32_t differ = expected ^ (letters & 0xDFDFDFDFu);
    *unknown = 0;
    if (differ) {
        for (uint32_t i = 0; i < 4; ++i, differ >>= 8) *unknown |= uint32_t((differ & 0xFF) != 0) << i;
    }
    return (codes * 0x40100401u) >> 24;
}

// Sixteen letters from ``text`` on; the four words from the aligned one below it on are read, and
// the one after them.
__device__ __forceinline__ uint32_t pack_bases(const u8* text, uint32_t* unknown) {
    const uint32_t shift = uint32_t(reinterpret_cast<uint64_t>(text) & 3) * 8;
    const uint32_t* words = reinterpret_cast<const uint32_t*>(text - shift / 8);
    uint32_t packed = 0, before = words[0];
    *unknown = 0;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const uint32_t next = words[i + 1];
        uint32_t strangers;
        packed = packed << 8 | pack_letters(__funnelshift_r(before, next, shift), &strangers);
        *unknown |= strangers << (4 * i);
        before = next;
    }
    return packed;
}

// Order of the 16 bases of a word reversed.
__device__ __forceinline__ uint32_t reverse_bases(uint32_t word) {
    word = __brev(word);
    return (word >> 1 & 0x55555555u) | (word & 0x55555555u) << 1;
}

// The ``sketch`` smallest distinct features of a window, for a whole warp: lane i gets the i-th in
// ``own``; returns their number. ``sketch`` is at most 32. Sixteen bytes after the text must be
// readable.
__device__ int sketch_letters(const u8* text, int length, int kmer, int sketch, uint32_t lane,
                              uint32_t* own) {
    uint32_t best = kNone;
    const int spare = 32 - 2 * kmer;
    for (int start = 0; start + kmer <= length; start += kSegment) {
        const int left = length - start;
        uint32_t packed = 0, unknown = 0;
        if (16 * int(lane) < left) {
            packed = pack_bases(text + start + 16 * lane, &unknown);
            if (left - 16 * int(lane) < 16) unknown &= (1u << (left - 16 * lane)) - 1;
        }
        const bool is_clean = !__any_sync(WARP, unknown != 0);
        const int kmers = min(left - kmer + 1, kSegment);
        for (int base = 0; base < kmers; base += 32) {
            const int at = base + int(lane), word = at >> 4, shift = at & 15;
            const uint32_t high = __shfl_sync(WARP, packed, word);
            const uint32_t low = __shfl_sync(WARP, packed, word + 1);
            const uint32_t forward = __funnelshift_l(low, high, 2 * shift) >> spare;
            const uint32_t backward = reverse_bases(~forward) >> spare;
            uint32_t value = mix32(min(forward, backward));
            if (!is_clean) {
                const uint32_t here = __shfl_sync(WARP, unknown, word);
                const uint32_t after = __shfl_sync(WARP, unknown, word + 1);
                if (((here | after << 16) >> shift) & ((1u << kmer) - 1)) value = kNone;
            }
            best = add_to_sketch(best, at < kmers ? value : kNone, sketch, lane);
        }
    }
    *own = best;
    return __popc(__ballot_sync(WARP, best != kNone && int(lane) < sketch));
}

}  // namespace
