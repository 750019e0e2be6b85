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

// What an overlap's bases say against chance; all, and different ones, against related sequences;
// for a whole warp.
struct Evidence {
    int chance;
    int related;
    int differences;
};

__device__ __forceinline__ Evidence evidence(const Planes& left, const Read& left_read, int start,
                                             const Planes& right, const Read& right_read,
                                             int length, const Rules& rules, const Tables& tables,
                                             u32 lane) {
    Evidence sum = {0, 0, 0};
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
            sum.differences += tables.unlike[cell];
        }
    }
    const int differences = __reduce_add_sync(kAll, sum.differences);
    return {__reduce_add_sync(kAll, sum.chance),
            __reduce_add_sync(kAll, sum.related) + differences, differences};
}

__device__ __forceinline__ int known_of(const Planes& planes, int length) {
    int known = length;
    for (int word = 0; 32 * word < length; ++word) known -= __popc(planes.hidden[word]);
    return known;
}

// What is known of the placements seen, as ngsgpu/merge/likelihood.py has it.
struct Found {
    int best = kLeast;
    int next;
    int related = kLeast;
    int sure = kLeast;
    int sure_total = kLeast;
    int rival = kLeast;
    int most = kLeast;
    int place = kLeast;
    int sure_place = kLeast;
};

// Compare a placement with those seen before: ``_weigh``.
__device__ __forceinline__ void weigh(int place, int total, const Evidence& own, const Rules& rules,
                                      Found& found) {
    const bool copies = own.related < rules.related;
    if (copies) found.related = max(found.related, total);
    if (own.chance < rules.strong) {
        if (copies || total <= found.best) {
            found.next = max(found.next, total);
        } else {
            found.next = max(found.next, found.best);
            found.best = total;
            found.place = place;
        }
        return;
    }
    found.most = max(found.most, total);
    if (copies || own.differences <= found.sure) {
        found.rival = max(found.rival, own.differences);
    } else {
        found.rival = max(found.rival, found.sure);
        found.sure = own.differences;
        found.sure_total = total;
        found.sure_place = place;
    }
}

// The place of the best overlap, kNothing or kUndecided: ``_decide``.
__device__ __forceinline__ int decide(const Rules& rules, const Found& found) {
    const bool is_sure = found.sure_place >= 0;
    const int total = is_sure ? found.sure_total : found.best;
    const int other = max(found.next, is_sure ? found.best : found.most);
    if (max(found.best, found.sure_total) < rules.accept) return kNothing;
    if (total - other < rules.lead) return kUndecided;
    if (!is_sure) return found.place;
    int needed = rules.clear;
    if (total < found.most) {
        if (total < rules.certain) return kUndecided;
        needed = rules.clearer;
    }
    return found.sure - found.rival >= needed ? found.sure_place : kUndecided;
}

// Binary logarithm of a positive integer below 2^30, in 1/256, rounded down: ``_logarithm``.
__device__ __forceinline__ int logarithm(u32 number) {
    int found = 31 - __clz(number);
    u64 scaled = u64(number) << (30 - found);
    for (int bit = 0; bit < 8; ++bit) {
        scaled = (scaled * scaled) >> 30;
        const int carry = int(scaled >> 31);
        scaled >>= carry;
        found = 2 * found + carry;
    }
    return found;
}

// The known bases of a word that have a code.
__device__ __forceinline__ u32 bases_of(u32 low, u32 high, u32 hidden, u32 code) {
    return (code & 1 ? low : ~low) & (code & 2 ? high : ~high) & ~hidden;
}

// Evidence for an overlap that is due to bases more frequent in this pair: ``_composed``; for a
// whole warp.
__device__ __forceinline__ int composed(const Planes& left, int left_length, const Planes& right,
                                        int right_length, int start, const Tables& tables,
                                        u32 lane) {
    const int overlap = min(left_length - start, right_length);
    u32 counts[4], equal[4], sum = 0;
    for (u32 code = 0; code < 4; ++code) {
        u32 seen = 0, alike = 0;
        for (int word = int(lane); 32 * word < left_length; word += 32)
            seen += __popc(bases_of(left.low[word], left.high[word], left.hidden[word], code) &
                           first_bits(left_length - 32 * word));
        for (int word = int(lane); 32 * word < right_length; word += 32) {
            const u32 own = bases_of(right.low[word], right.high[word], right.hidden[word], code);
            seen += __popc(own & first_bits(right_length - 32 * word));
            if (32 * word < overlap)
                alike += __popc(own & ~hidden_bases(left, start, right, word) &
                                ~different_bases(left, start, right, word) &
                                first_bits(overlap - 32 * word));
        }
        counts[code] = 1 + __reduce_add_sync(kAll, seen);
        equal[code] = __reduce_add_sync(kAll, alike);
        sum += counts[code];
    }
    const int every = logarithm(sum);
    int found = 0;
    for (int code = 0; code < 4; ++code)
        found += max(tables.base[code] + logarithm(counts[code]) - every, 0) * int(equal[code]);
    return found;
}

// Whether two bases of a read are known and equal.
__device__ __forceinline__ bool recurs(const Planes& read, int one, int two) {
    return !(bit_of(read.hidden, one) | bit_of(read.hidden, two) |
             (bit_of(read.low, one) ^ bit_of(read.low, two)) |
             (bit_of(read.high, one) ^ bit_of(read.high, two)));
}

// What two bases of a read say for being copies of each other: ``_said``.
__device__ __forceinline__ int said(const Planes& planes, const Read& read, int one, int two,
                                    const Rules& rules, const Tables& tables) {
    if (bit_of(planes.hidden, one) | bit_of(planes.hidden, two)) return 0;
    const int cell = score_of(read, one, rules, tables) * kScores +
                     score_of(read, two, rules, tables);
    if (!recurs(planes, one, two)) return tables.mismatch[cell];
    return tables.match[cell] +
           tables.base[bit_of(planes.low, one) | bit_of(planes.high, one) << 1];
}

// Most evidence for an overlap that a tandem repeat explains: ``_predicted``; for a whole warp, a
// lane per period.
__device__ __forceinline__ int predicted(const Planes& first, const Read& read1,
                                         const Planes& second, const Read& read2, int overlap,
                                         const Rules& rules, const Tables& tables, u32 lane) {
    const int start = read1.length - overlap;
    int most = 0;
    for (int period = 1 + int(lane); period < max(read1.length, read2.length); period += 32) {
        const int in_first = min(overlap, read1.length - period);
        const int in_second = min(overlap, read2.length - period);
        int ahead = 0, behind = 0;
        while (ahead < in_second && recurs(second, ahead, ahead + period)) ++ahead;
        while (behind < in_first &&
               recurs(first, read1.length - 1 - behind, read1.length - 1 - behind - period))
            ++behind;
        if (2 * (ahead + behind) < overlap) continue;
        int by_first = 0, lead = 0, best = 0;
        for (int k = 0; k < overlap; ++k) {
            if (start + k >= period) {
                const int own = said(first, read1, start + k, start + k - period, rules, tables);
                by_first += own;
                lead -= own;
            }
            if (k < read2.length - period) {
                lead += said(second, read2, k, k + period, rules, tables);
                best = max(best, lead);
            }
        }
        most = max(most, by_first + best);
    }
    return __reduce_max_sync(kAll, most);
}

// The best overlap of a pair: twice the place where one read begins in the other, plus one if that
// is the first; or why there is none. For a whole warp.
__device__ __forceinline__ int likeliest(const Planes& first, const Read& read1,
                                         const Planes& second, const Read& read2, bool known,
                                         const Rules& rules, const Tables& tables, u32 lane) {
    const int shortest = rules.min_overlap, last = tables.longest;
    Found found;
    found.next = rules.accept - rules.lead - 1;
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
            Similar seen = {0, 0};
            if (own <= end)
                seen = similar(left, right, own, min(left_read.length - own, right_read.length),
                               known, rules);
            for (u32 left_over = __ballot_sync(kAll, seen.bases > 0); left_over;
                 left_over &= left_over - 1) {
                const int source = __ffs(left_over) - 1;
                const int bases = __shfl_sync(kAll, seen.bases, source);
                const int mismatches = __shfl_sync(kAll, seen.mismatches, source);
                const int start = tile + source;
                const int fragment =
                    min(direction ? read2.length - start : start + read2.length, last);
                const int prior = tables.prior[fragment], usual = tables.usual[fragment];
                const int most = (bases - mismatches) * rules.most_match +
                                 mismatches * rules.most_mismatch;
                if (most < rules.strong && prior + most <= found.next) continue;
                Evidence own_evidence =
                    evidence(left, left_read, start, right, right_read,
                             min(left_read.length - start, right_read.length), rules, tables, lane);
                own_evidence.related += usual;
                own_evidence.differences += prior;
                weigh(2 * start + direction, prior + own_evidence.chance, own_evidence, rules,
                      found);
            }
        }
    }
    const int code = decide(rules, found);
    if (code >= 0) {
        const int start = code >> 1;
        int most;
        if (code & 1) {
            most = composed(second, read2.length, first, read1.length, start, tables, lane);
        } else {
            most = composed(first, read1.length, second, read2.length, start, tables, lane);
            const int overlap = read1.length - start;
            if (overlap < read2.length)
                most = max(most, predicted(first, read1, second, read2, overlap, rules, tables,
                                           lane));
        }
        const int total = found.sure_place >= 0 ? found.sure_total : found.best;
        return total - most < rules.accept ? kUndecided : code;
    }
    if (code != kNothing) return code;
    if (read1.length < shortest || read2.length < shortest) return kTooShort;
    if (!known && min(known_of(first, read1.length), known_of(second, read2.length)) < shortest)
        return kTooShort;
    return found.related >= rules.accept ? kUndecided : kNothing;
}

}  // namespace
