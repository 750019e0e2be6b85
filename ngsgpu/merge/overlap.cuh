// Finds the overlap of a pair: ngsgpu/merge/overlap.py, a warp per pair, a lane per overlap.
#pragma once

#include "ngsgpu/io/gpu/lines.cuh"
#include "ngsgpu/merge/gpu.structs"

namespace {

// A read in the direction of the fragment.
struct Read {
    const u8* bases;
    const u8* quals;
    int length;
    bool reversed;  // whether it lies there as its reverse complement
};

// Planes of a read in shared memory: 32 bases per word, one word of zeros after each plane.
struct Planes {
    const u32* low;
    const u32* high;
    const u32* hidden;
};

struct Best {
    float density;
    float penalty;  // negative where there is none yet
    int place;      // negative where none is better than what was to be beaten
};

constexpr u32 kPlanes = 3;
constexpr int kNothing = -1;   // no overlap is good enough
constexpr int kTooShort = -2;  // none has enough known bases

// Code of a base, kAmbiguous if it is ambiguous.
__device__ __forceinline__ u32 base_of(const Read& read, int i, const u8* classes) {
    const u32 code = classes[read.bases[read.reversed ? read.length - 1 - i : i]];
    return read.reversed && code < 4 ? code ^ 3 : code;
}

__device__ __forceinline__ int stated_score(const Read& read, int i, int phred_offset) {
    return max(int(read.quals[read.reversed ? read.length - 1 - i : i]) - phred_offset, 0);
}

// Fill the planes of a read, which are ``words`` apart; return whether all its bases are
// unambiguous. For a whole warp.
__device__ __forceinline__ bool pack(const Read& read, const u8* classes, u32* planes, u32 words,
                                     u32 lane) {
    bool known = true;
    int base = 0;
    for (; base < read.length; base += 32) {
        const int i = base + int(lane);
        const u32 code = i < read.length ? base_of(read, i, classes) : 0;
        const u32 low = __ballot_sync(kAll, code & 1), high = __ballot_sync(kAll, code & 2);
        const u32 hidden = __ballot_sync(kAll, code == kAmbiguous);
        if (lane < kPlanes)
            planes[lane * words + (base >> 5)] = lane == 0 ? low : lane == 1 ? high : hidden;
        known = known && hidden == 0;
    }
    if (lane < kPlanes) planes[lane * words + (base >> 5)] = 0;
    __syncwarp();
    return known;
}

__device__ __forceinline__ Planes planes_at(const u32* planes, u32 words) {
    return {planes, planes + words, planes + 2 * words};
}

// 32 bits of a plane from bit ``start`` on.
__device__ __forceinline__ u32 bits_from(const u32* plane, int start) {
    return __funnelshift_r(plane[start >> 5], plane[(start >> 5) + 1], start & 31);
}

// The first bits of a word, as many as remain, at most 32.
__device__ __forceinline__ u32 first_bits(int left) {
    return left >= 32 ? kAll : (1u << left) - 1;
}

__device__ __forceinline__ u32 different_bases(const Planes& first, int start,
                                               const Planes& second, int word) {
    const int at = start + 32 * word;
    return (bits_from(first.low, at) ^ second.low[word]) |
           (bits_from(first.high, at) ^ second.high[word]);
}

__device__ __forceinline__ u32 hidden_bases(const Planes& first, int start, const Planes& second,
                                            int word) {
    return bits_from(first.hidden, start + 32 * word) | second.hidden[word];
}

// Bases of an overlap that are known in both reads.
__device__ __forceinline__ int known_bases(const Planes& first, int start, const Planes& second,
                                           int length) {
    int known = length;
    for (int word = 0; 32 * word < length; ++word)
        known -= __popc(hidden_bases(first, start, second, word) & first_bits(length - 32 * word));
    return known;
}

// Sum of the lower scores of the mismatching bases of an overlap.
__device__ __forceinline__ int mismatch_scores(const Planes& first, const Read& read1, int start,
                                               const Planes& second, const Read& read2, int length,
                                               int phred_offset) {
    int total = 0;
    for (int word = 0; 32 * word < length; ++word) {
        u32 different = different_bases(first, start, second, word) &
                        ~hidden_bases(first, start, second, word) & first_bits(length - 32 * word);
        for (; different; different &= different - 1) {
            const int i = 32 * word + __ffs(different) - 1;
            total += min(stated_score(read1, start + i, phred_offset),
                         stated_score(read2, i, phred_offset));
        }
    }
    return total;
}

// The best overlap of those that are this lane's; ``enough`` becomes true if one of them has at
// least ``shortest`` known bases.
__device__ __forceinline__ Best best_of_lane(const Planes& first, const Read& read1,
                                             const Planes& second, const Read& read2, bool known,
                                             int shortest, const Rules& rules, Best best,
                                             u32 lane, bool* enough) {
    best.place = kNothing;
    for (int start = max(0, read1.length - read2.length) + int(lane);
         start <= read1.length - shortest; start += 32) {
        const int length = read1.length - start;
        // More mismatches than this give a higher density, however the numbers are rounded.
        const int limit = int(best.density * float(min(length, rules.max_overlap))) + 2;
        int mismatches = 0, overlap = length;
        for (int word = 0; 32 * word < length && mismatches <= limit; ++word) {
            u32 inside = first_bits(length - 32 * word);
            if (!known) {
                const u32 hidden = hidden_bases(first, start, second, word) & inside;
                overlap -= __popc(hidden);
                inside &= ~hidden;
            }
            mismatches += __popc(different_bases(first, start, second, word) & inside);
        }
        if (mismatches > limit) {
            *enough = *enough || known || known_bases(first, start, second, length) >= shortest;
            continue;
        }
        if (overlap < shortest) continue;
        *enough = true;
        const float scored = float(min(overlap, rules.max_overlap));
        const float density = __fdiv_rn(float(mismatches), scored);
        if (density > best.density) continue;
        float penalty = 0;
        if (mismatches)
            penalty = __fdiv_rn(float(mismatch_scores(first, read1, start, second, read2, length,
                                                      rules.phred_offset)),
                                scored);
        if (best.penalty >= 0 && density == best.density && penalty >= best.penalty) continue;
        best = {density, penalty, start};
    }
    return best;
}

// Offset of ``read2`` within ``read1`` at their best overlap, or kNothing, or kTooShort; ``best``
// is the score to beat, updated if a better overlap is found. For a whole warp.
__device__ __forceinline__ int best_overlap(const Planes& first, const Read& read1,
                                            const Planes& second, const Read& read2, bool known,
                                            int shortest, const Rules& rules, Best* best,
                                            u32 lane) {
    bool enough = false;
    Best own = best_of_lane(first, read1, second, read2, known, shortest, rules, *best, lane,
                            &enough);
    for (int distance = 16; distance; distance /= 2) {
        const Best other = {__shfl_xor_sync(kAll, own.density, distance),
                            __shfl_xor_sync(kAll, own.penalty, distance),
                            __shfl_xor_sync(kAll, own.place, distance)};
        if (other.place < 0) continue;
        const bool same = other.density == own.density && other.penalty == own.penalty;
        const bool better =
            other.density < own.density ||
            (other.density == own.density && other.penalty < own.penalty) ||
            (same && other.place < own.place);
        if (own.place < 0 || better) own = other;
    }
    enough = __any_sync(kAll, enough);
    if (own.place >= 0) *best = own;
    return own.place >= 0 ? own.place : enough ? kNothing : kTooShort;
}

}  // namespace
