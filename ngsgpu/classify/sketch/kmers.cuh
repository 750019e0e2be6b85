// Features of letters: bases packed into registers, k-mers and s-mers extracted from them.
//
// A lane packs 16 letters into a word, so that a warp holds 512 bases; a k-mer is then two words of
// other lanes and a shift, instead of k letters. The features are those of sketch/cpu.py.
#pragma once

#include "ngsgpu/classify/sketch/sketch.cuh"

namespace {

constexpr int kSegment = 480;  // k-mers that begin in the bases that a warp holds
constexpr int kBatch = 224;    // syncmers from which on the next chunk begins another batch
constexpr int kMostKeys = kBatch + 32;  // of a batch

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

// The bases that a warp holds, 16 a lane.
struct Bases {
    uint32_t packed;
    uint32_t unknown;  // bit i: base i is not one of ACGT
    bool is_clean;     // no lane has such a base
};

// The bases of a text of ``length`` letters. Sixteen bytes after the text must be readable.
__device__ __forceinline__ Bases load_bases(const u8* text, int length, uint32_t lane) {
    Bases bases = {0, 0, true};
    const int own = length - 16 * int(lane);
    if (own > 0) {
        bases.packed = pack_bases(text + 16 * lane, &bases.unknown);
        if (own < 16) bases.unknown &= (1u << own) - 1;
    }
    bases.is_clean = !__any_sync(WARP, bases.unknown != 0);
    return bases;
}

// Sixteen bases from place ``at`` on, the first one highest; those beyond all bases are arbitrary.
__device__ __forceinline__ uint32_t bases_from(const Bases& bases, int at) {
    const uint32_t high = __shfl_sync(WARP, bases.packed, at >> 4);
    const uint32_t low = __shfl_sync(WARP, bases.packed, (at >> 4) + 1);
    return __funnelshift_l(low, high, 2 * (at & 15));
}

// Whether any of ``kmer`` bases from place ``at`` on is not one of ACGT, where ``is_clean`` is not.
__device__ __forceinline__ bool has_unknown(const Bases& bases, int at, int kmer) {
    const uint32_t here = __shfl_sync(WARP, bases.unknown, at >> 4);
    const uint32_t after = __shfl_sync(WARP, bases.unknown, (at >> 4) + 1);
    return ((here | after << 16) >> (at & 15)) & ((1u << kmer) - 1);
}

// The hash of the canonical form of the first ``size`` of sixteen bases.
__device__ __forceinline__ uint32_t hash_bases(uint32_t bases, int size) {
    const int spare = 32 - 2 * size;
    const uint32_t forward = bases >> spare;
    return mix32(min(forward, reverse_bases(~forward) >> spare));
}

// The ``sketch`` smallest distinct features of a window, for a whole warp: lane i gets the i-th in
// ``own``; returns their number. ``sketch`` is at most 32.
__device__ int sketch_letters(const u8* text, int length, int kmer, int sketch, uint32_t lane,
                              uint32_t* own) {
    uint32_t best = kNone;
    for (int start = 0; start + kmer <= length; start += kSegment) {
        const Bases bases = load_bases(text + start, length - start, lane);
        const int kmers = min(length - start - kmer + 1, kSegment);
        for (int base = 0; base < kmers; base += 32) {
            const int at = base + int(lane);
            uint32_t value = hash_bases(bases_from(bases, at), kmer);
            if (!bases.is_clean && has_unknown(bases, at, kmer)) value = kNone;
            best = add_to_sketch(best, at < kmers ? value : kNone, sketch, lane);
        }
    }
    *own = best;
    return __popc(__ballot_sync(WARP, best != kNone && int(lane) < sketch));
}

// Write the keys of a window's sketch; returns their number.
__device__ int sketch_keys(const u8* text, int length, const SketchRules& rules, uint32_t lane,
                           uint32_t* keys) {
    uint32_t feature;
    const int count = sketch_letters(text, length, rules.kmer, rules.sketch, lane, &feature);
    const uint32_t key = mix32(feature);
    const bool is_own = int(lane) < count && is_kept(key, rules.kept);
    const uint32_t lanes = __ballot_sync(WARP, is_own);
    if (is_own) keys[count_before(lanes, lane)] = key;
    __syncwarp();
    return __popc(lanes);
}

// The value ``distance`` places after the lane's, of those of two chunks.
__device__ __forceinline__ uint32_t value_after(uint32_t here, uint32_t next, int distance,
                                                uint32_t lane) {
    return __shfl_sync(WARP, int(lane) < distance ? next : here, (lane + distance) & 31);
}

// Append the keys of the syncmers among the first ``kmers`` k-mers of a text from ``*at`` on (a
// multiple of 32) to ``keys``, for a whole warp, until more than kBatch are there; returns how many
// are, at most kMostKeys. ``*at`` becomes where to go on: at least ``kmers`` if nothing is left.
//
// A k-mer is a syncmer if the hash of its first or of its last s-mer is below those of all others.
__device__ int add_syncmers(const u8* text, int kmers, const SketchRules& rules, uint32_t lane, int* at,
                            uint32_t* keys, int found) {
    const int more = rules.kmer - rules.smer;
    while (*at < kmers && found <= kBatch) {
        const Bases bases = load_bases(text + *at, kmers - *at + rules.kmer - 1, lane);
        const int end = min(kmers - *at, kSegment);
        uint32_t here = bases_from(bases, lane);
        uint32_t rank = hash_bases(here, rules.smer);
        int base = 0;
        for (; base < end && found <= kBatch; base += 32) {
            const int place = base + int(lane);
            const uint32_t next = bases_from(bases, place + 32);
            const uint32_t next_rank = hash_bases(next, rules.smer);
            uint32_t inner = kNone;
            for (int i = 1; i < more; ++i)
                inner = min(inner, value_after(rank, next_rank, i, lane));
            const uint32_t last = value_after(rank, next_rank, more, lane);
            const uint32_t key = mix32(hash_bases(here, rules.kmer));
            bool is_own = place < end && is_kept(key, rules.kept) &&
                          (rank < min(inner, last) || last < min(inner, rank));
            if (!bases.is_clean && has_unknown(bases, place, rules.kmer)) is_own = false;
            const uint32_t lanes = __ballot_sync(WARP, is_own);
            if (is_own) keys[found + count_before(lanes, lane)] = key;
            found += __popc(lanes);
            here = next;
            rank = next_rank;
        }
        *at += base;
    }
    __syncwarp();
    return found;
}

// Keep the first of equal keys; returns how many are left. For a whole warp.
__device__ int unique_keys(uint32_t* keys, int count, uint32_t lane) {
    int kept = 0;
    for (int base = 0; base < count; base += 32) {
        bool is_new = base + int(lane) < count;
        const uint32_t key = is_new ? keys[base + lane] : 0;
        for (int i = 0; i < kept; ++i) is_new &= keys[i] != key;
        const uint32_t candidates = __ballot_sync(WARP, is_new);
        if (is_new) is_new = count_before(__match_any_sync(candidates, key), lane) == 0;
        const uint32_t lanes = __ballot_sync(WARP, is_new);
        __syncwarp();  // all have read what is overwritten
        if (is_new) keys[kept + count_before(lanes, lane)] = key;
        __syncwarp();
        kept += __popc(lanes);
    }
    return kept;
}

}  // namespace
