// Where the mates of a pair overlap, and correcting one by the other, as ngsgpu/trim/overlap.py.
#pragma once
#include "ngsgpu/trim/cuda/cuts.cuh"

namespace {

constexpr int kLookedAt = 50;  // bases of an overlap that must not differ too much
constexpr int kStep = 8;       // bases of a word
constexpr int kGood = kLowest + 30;
constexpr int kLow = kLowest + 14;

// An overlap of mates: ``offset`` is the base of the first at which the second, turned back, begins;
// negative if the mates go on into adapters.
struct Overlap {
    bool found;
    int offset;
    int length;
    int differences;
};

// The complement of any letter in capitals; N of what is no base.
__device__ __forceinline__ u8 complement(u8 letter) {
    switch (letter & ~0x20) {
        case 'A': return 'T';
        case 'C': return 'G';
        case 'G': return 'C';
        case 'T': return 'A';
        default: return 'N';
    }
}

// Eight bytes from any address on; up to seven before and behind them are read, too.
__device__ __forceinline__ u64 word_at(const u8* bytes) {
    const u64 place = reinterpret_cast<u64>(bytes);
    const u64* words = reinterpret_cast<const u64*>(place & ~7ull);
    const u32 shift = u32(place & 7) * 8;
    if (shift == 0) return words[0];
    return words[0] >> shift | words[1] << (64 - shift);
}

// Bytes in which words differ.
__device__ __forceinline__ int differing(u64 one, u64 other) {
    constexpr u64 kSevens = 0x7F7F7F7F7F7F7F7Full;
    const u64 word = one ^ other;
    return __popcll((((word & kSevens) + kSevens) | word) & ~kSevens);
}

// Bases that differ, -1 if too many.
__device__ __forceinline__ int differences_of(const u8* first, const u8* second, int length,
                                              const Rules& rules) {
    const int most = min(rules.overlap_most, int(double(length) * rules.overlap_share));
    const int looked_at = min(length, kLookedAt);
    int i = 0, differences = 0;
    for (; i + kStep <= looked_at; i += kStep) {
        differences += differing(word_at(first + i), word_at(second + i));
        if (differences > most) return -1;
    }
    for (; i < looked_at; ++i) differences += first[i] != second[i];
    if (differences > most) return -1;
    for (; i + kStep <= length; i += kStep)
        differences += differing(word_at(first + i), word_at(second + i));
    for (; i < length; ++i) differences += first[i] != second[i];
    return differences;
}

// Find the overlap of mates: the one with the longest fragment that is good enough. ``turned`` is
// room for the second mate turned back.
__device__ __forceinline__ Overlap find_overlap(const Read& first, const Read& second, u8* turned,
                                                const Rules& rules) {
    const int length1 = first.length(), length2 = second.length();
    for (int i = 0; i < length2; ++i) turned[i] = complement(second.bases[second.end - 1 - i]);
    const u8* bases = first.bases + first.begin;
    for (int offset = 0; offset < length1 - rules.overlap_least; ++offset) {
        const int length = min(length1 - offset, length2);
        const int differences = differences_of(bases + offset, turned, length, rules);
        if (differences >= 0) return {true, offset, length, differences};
    }
    for (int offset = 0; offset < length2 - rules.overlap_least; ++offset) {
        const int length = min(length1, length2 - offset);
        const int differences = differences_of(bases, turned + offset, length, rules);
        if (differences >= 0) return {true, -offset, length, differences};
    }
    return {false, 0, 0, 0};
}

// Replace poor bases by good ones of the other mate, with their quality, where they are. Bases that
// were corrected; ``reads`` is in how many of both reads.
__device__ __forceinline__ int correct(const Read& first, const Read& second,
                                       const Overlap& overlap, int* reads) {
    *reads = 0;
    if (!overlap.found || overlap.differences == 0) return 0;
    const int begin = first.begin + max(0, overlap.offset);
    const int last = second.end - 1 - max(0, -overlap.offset);
    int bases = 0;
    bool changed1 = false, changed2 = false;
    for (int i = 0; i < overlap.length; ++i) {
        const int here = begin + i, there = last - i;
        const u8 letter = first.bases[here], other_letter = second.bases[there];
        if (letter == complement(other_letter)) continue;
        const u8 one = first.qualities[here], other = second.qualities[there];
        if (one >= kGood && other <= kLow) {
            second.bases[there] = complement(letter);
            second.qualities[there] = one;
            changed2 = true;
        } else if (other >= kGood && one <= kLow) {
            first.bases[here] = complement(other_letter);
            first.qualities[here] = other;
            changed1 = true;
        } else {
            continue;
        }
        ++bases;
    }
    *reads = changed1 + changed2;
    return bases;
}

}  // namespace
