// Finds the overlap of a pair by likelihood: ngsgpu/merge/likelihood.py, a warp per pair.
//
// A lane per placement counts mismatches; what is similar enough is then scored by the whole warp,
// one placement after the other.
#pragma once
#include "ngsgpu/device/cuda/reduce.cuh"
#include "ngsgpu/merge/overlap.cuh"

namespace {

constexpr int kUndecided = -3;
constexpr int kLeast = -(1 << 30);
constexpr int kScores = 128;
constexpr int kCycles = 10;
constexpr int kCycleBits = 5;

// A score of a read in the direction of the fragment: calibrated, as the rules have it. The second
// mates are the ones that lie there as their reverse complements.
__device__ __forceinline__ int score_of(const Read& read, int i, const Rules& rules,
                                        const Tables& tables) {
    const int stated = stated_score(read, i, rules.phred_offset);
    if (!rules.likelihood) return stated;
    const int cycle = read.reversed ? read.length - 1 - i : i;
    const int part = min(cycle >> kCycleBits, kCycles - 1);
    return tables.scores[(int(read.reversed) * kCycles + part) * kScores + stated];
}

// Known bases and mismatches of an overlap; no bases if either are too few or too many.
struct Similar {
    int bases;
    int mismatches;
};

__device__ __forceinline__ Similar similar(const Planes& left, const Planes& right, int start,
                                           int length, bool known, const Rules& rules) {
    const int limit = (rules.density * length) >> 10;
    int mismatches = 0, bases = length;
    for (int word = 0; 32 * word < length && mismatches <= limit; ++word) {
        u32 inside = first_bits(length - 32 * word);
        if (!known) {
            const u32 hidden = hidden_bases(left, start, right, word) & inside;
            bases -= __popc(hidden);
            inside &= ~hidden;
        }
        mismatches += __popc(different_bases(left, start, right, word) & inside);
    }
    if (mismatches > limit || bases < rules.min_overlap ||
        1024 * mismatches > rules.density * bases)
        return {0, 0};
    return {bases, mismatches};
}

__device__ __forceinline__ u32 bit_of(const u32* plane, int i) {
    return plane[i >> 5] >> (i & 31) & 1;
}

// What the bases of an overlap say for it, against chance and against related sequences; for a
// whole warp.
struct Evidence {
    int chance;
    int related;
};

__device__ __forceinline__ Evidence evidence(const Planes& left, const Read& left_read, int start,
                                             const Planes& right, const Read& right_read,
                                             int length, const Rules& rules, const Tables& tables,
                                             u32 lane) {
    Evidence sum = {0, 0};
    for (int k = int(lane); k < length; k += 32) {
        const int i = start + k;
        if (bit_of(left.hidden, i) | bit_of(right.hidden, k)) continue;
        const u32 one = bit_of(left.low, i) | bit_of(left.high, i) << 1;
        const u32 two = bit_of(right.low, k) | bit_of(right.high, k) << 1;
        const int cell = score_of(left_read, i, rules, tables) * kScores +
                         score_of(right_read, k, rules, tables);
        if (one == two) {
            sum.chance += tables.match[cell] + tables.base[one];
            sum.related += tables.alike[cell];
        } else {
            sum.chance += tables.mismatch[cell];
            sum.related += tables.unlike[cell];
        }
    }
    return {__reduce_add_sync(kAll, sum.chance), __reduce_add_sync(kAll, sum.related)};
}

__device__ __forceinline__ int known_of(const Planes& planes, int length) {
    int known = length;
    for (int word = 0; 32 * word < length; ++word) known -= __popc(planes.hidden[word]);
    return known;
}

// The best overlap of a pair: twice the place where one read begins in the other, plus one if that
// is the first; or why there is none. For a whole warp.
__device__ __forceinline__ int likeliest(const Planes& first, const Read& read1,
                                         const Planes& second, const Read& read2, bool known,
                                         const Rules& rules, const Tables& tables, u32 lane) {
    const int shortest = rules.min_overlap, last = tables.longest;
    int best = kLeast, next = rules.accept - rules.lead - 1, copy = kLeast, place = kNothing;
    int plain = 0, rival = kLeast;
    for (int direction = 0; direction < 2; ++direction) {
        const Planes& left = direction ? second : first;
        const Planes& right = direction ? first : second;
        const Read& left_read = direction ? read2 : read1;
        const Read& right_read = direction ? read1 : read2;
        const int begin =
            rules.contained ? direction : max(direction, left_read.length - right_read.length);
        const int end = left_read.length - shortest;
        for (int tile = begin; tile <= end; tile += 32) {
            const int own = tile + int(lane);
            Similar found = {0, 0};
            if (own <= end)
                found = similar(left, right, own, min(left_read.length - own, right_read.length),
                                known, rules);
            for (u32 left_over = __ballot_sync(kAll, found.bases > 0); left_over;
                 left_over &= left_over - 1) {
                const int source = __ffs(left_over) - 1;
                const int bases = __shfl_sync(kAll, found.bases, source);
                const int mismatches = __shfl_sync(kAll, found.mismatches, source);
                const int start = tile + source;
                const int fragment =
                    min(direction ? read2.length - start : start + read2.length, last);
                int total = tables.prior[fragment];
                const int most = (bases - mismatches) * rules.most_match +
                                 mismatches * rules.most_mismatch;
                if (total + most <= min(next, rules.strong - 1)) continue;
                const Evidence own_evidence =
                    evidence(left, left_read, start, right, right_read,
                             min(left_read.length - start, right_read.length), rules, tables, lane);
                const int related = own_evidence.related + tables.usual[fragment];
                total += own_evidence.chance;
                if (related < rules.related) {
                    next = max(next, total);
                    copy = max(copy, total);
                } else if (total > best) {
                    if (best >= rules.strong) rival = max(rival, plain);
                    next = max(best, next);
                    best = total;
                    plain = related;
                    place = 2 * start + direction;
                } else {
                    next = max(next, total);
                    if (total >= rules.strong) rival = max(rival, related);
                }
            }
        }
    }
    if (best >= rules.accept) {
        const bool leads = best - next >= rules.lead && plain - rival >= rules.lead;
        return leads ? place : kUndecided;
    }
    if (read1.length < shortest || read2.length < shortest) return kTooShort;
    if (!known && min(known_of(first, read1.length), known_of(second, read2.length)) < shortest)
        return kTooShort;
    return copy >= rules.accept ? kUndecided : kNothing;
}

}  // namespace
