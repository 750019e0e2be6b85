// From two tasks to one connection: the mate in a sequence, strict modes, merging; see
// ngsgpu/extend/tasks/joining.py. Lanes are places of the mate, positions of the gap, or overlaps.
#pragma once
#include "ngsgpu/device/cuda/reduce.cuh"
#include "ngsgpu/extend/tasks/task.cuh"

// How a pair was connected, as in joining.py.
enum Kind {
    NOT_CONNECTED, BOTH_AGREE, ONE_CONFIRMED, ONE_ONLY, BOTH_DIFFER, MERGED, KINDS
};

// A connection of two reads: the gap comes from one task, or from both.
struct Connection {
    int kind, total;
    bool with_first, with_third;
};

// Look for the mate where the sequence is new; on success the status is ``FOUND``. Of several
// places that of fewest mismatches counts, then the nearest to the mean length, then the first.
__device__ __forceinline__ bool find_mate(const Worker& w, Task& task, uint32_t mate) {
    const Rules& rules = w.rules;
    const int own = read_length(w.reads, mate >> 1), length = task.length;
    const int needed = min(own, rules.mate_overlap);
    const int most = min(own * rules.mate_permille / 1000, rules.mate_mismatches);
    const int last = min(length - needed, rules.max_length - own);
    const int first = max(max(task.tested + 1, rules.min_length - own), 0);
    // Mismatches, then the distance from the mean; below 2^16 both.
    uint32_t best = ~0u, best_start = ~0u;
#pragma unroll 1
    for (int start = first + w.lane; start <= last; start += LANES) {
        const int mismatches =
            count_mismatches(w, task, mate, start, min(own, length - start), most);
        const uint32_t rank = uint32_t(mismatches) << 16 | abs(start + own - rules.mean_length);
        if (mismatches <= most && rank < best) {
            best = rank;
            best_start = start;
        }
    }
    const uint32_t smallest = __reduce_min_sync(WARP, best);
    const uint32_t at = __reduce_min_sync(WARP, best == smallest ? best_start : ~0u);
    __syncwarp();
    if (w.lane == 0) {
        task.tested = max(task.tested, last);
        if (at != ~0u) {
            task.found_at = int(at);
            task.status = FOUND;
        }
    }
    __syncwarp();
    return at != ~0u;
}

__device__ __forceinline__ int base_of(const Task& task, int position) {
    return base_at(task.planes, task.words, position);
}

// Positions ``begin`` to ``end`` of the whole at which the two tasks differ.
__device__ __forceinline__ int compare_gaps(const Task& first, const Task& third, int total,
                                            int begin, int end, int lane) {
    int differences = 0;
#pragma unroll 1
    for (int at = begin; at < end; at += LANES) {
        const int i = at + lane;
        const bool differs = i < end && base_of(first, i) != 3 - base_of(third, total - 1 - i);
        differences += __popc(__ballot_sync(WARP, differs));
    }
    return differences;
}

// Whether an unfinished task agrees with a gap that the other one filled (section 8.2.2).
__device__ __forceinline__ bool is_confirmed(const Worker& w, const Task& found, const Task& other,
                                             int gap) {
    const int begin = found.start_length, total = found.found_at + other.start_length;
    const int reached = min(gap, other.length - other.start_length);
    if (int64_t(reached) * 1000 < int64_t(gap) * w.rules.confirm_permille) return false;
    const int different =
        compare_gaps(found, other, total, begin + gap - reached, begin + gap, w.lane);
    return int64_t(reached - different) * 1000 >=
           int64_t(reached) * w.rules.confirm_match_permille;
}

// Length of the whole if two unfinished sequences overlap, by their longest overlap; or 0.
__device__ __forceinline__ int merged_length(const Worker& w, const Task& first,
                                             const Task& third) {
    const int length = first.length, other = third.length, both = length + other;
    const int longest = min(min(length, other), both - w.rules.min_length);
    const int shortest = max(w.rules.merge_overlap, both - w.rules.max_length);
#pragma unroll 1
    for (int at = longest; at >= shortest; at -= LANES) {
        const int overlap = at - w.lane;
        bool fits = overlap >= shortest;
        if (fits) {
            const int most = overlap * w.rules.merge_mismatch_permille / 1000;
            int mismatches = 0;
#pragma unroll 1
            for (int i = 0; i < overlap && mismatches <= most; i += 64) {
                const Bases mine =
                    bases_from(first.planes, first.words, length, 0, length - overlap + i);
                const Bases theirs = bases_from(third.planes, third.words, other, 1, i);
                mismatches += __popcll(differences(mine, theirs) &
                                       lowest_bits(min(64, overlap - i)));
            }
            fits = mismatches <= most;
        }
        const uint32_t fitting = __ballot_sync(WARP, fits);
        if (fitting) return both - (at - (__ffs(fitting) - 1));
    }
    return 0;
}

// Make one connection of the results of tasks 1 and 3, as the strict mode asks for.
__device__ __forceinline__ Connection join(const Worker& w, const Task& first,
                                           const Task& third) {
    const Rules& rules = w.rules;
    const bool found = first.status == FOUND, other = third.status == FOUND;
    const bool doubt = first.doubts > 0, other_doubt = third.doubts > 0;
    const int begin = first.start_length, back = third.start_length;
    const int other_total = third.found_at + begin;
    Connection result = {NOT_CONNECTED, first.found_at + back, found, other};
    if (found && other) {
        if (result.total == other_total &&
            compare_gaps(first, third, result.total, begin, result.total - back, w.lane) <=
                rules.gap_mismatches) {
            if (doubt + other_doubt <= rules.agreed_doubts) result.kind = BOTH_AGREE;
        } else if (doubt + other_doubt <= rules.differing_doubts) {
            // The one without doubts, then the one nearer to the mean length, then task 1.
            const int far = abs(result.total - rules.mean_length);
            const int other_far = abs(other_total - rules.mean_length);
            const bool take_other =
                doubt == other_doubt ? other_far < far : other_doubt < doubt;
            if (take_other) result.total = other_total;
            result.kind = BOTH_DIFFER;
            result.with_first = !take_other;
            result.with_third = take_other;
        }
    } else if (found || other) {
        if (!found) result.total = other_total;
        const bool unsure = found ? doubt : other_doubt;
        const int gap = result.total - begin - back;
        if (rules.strict < 2) {
            const bool confirmed = is_confirmed(w, found ? first : third, found ? third : first, gap);
            const int most = rules.strict == 0 ? rules.agreed_doubts : 0;
            if (confirmed && doubt + other_doubt <= most) {
                result.kind = ONE_CONFIRMED;
            } else if (rules.strict == 0 && !unsure) {
                result.kind = ONE_ONLY;
            }
        }
    } else if (rules.strict == 0 && !doubt && !other_doubt) {
        result.total = merged_length(w, first, third);
        result.with_first = result.with_third = true;
        if (result.total > 0) result.kind = MERGED;
    }
    return result;
}

struct BaseQuality {
    uint8_t code, quality;
};

// A base between the reads; where both tasks count, that of better quality.
__device__ __forceinline__ BaseQuality base_between(const Task& first, const Task& third,
                                                    const Connection& connection, int i) {
    const int back = connection.total - 1 - i;
    int code = 0, quality = -1;
    if (connection.with_first && i < first.length) {
        code = base_of(first, i);
        quality = first.qualities[i];
    }
    if (connection.with_third && back < third.length && third.qualities[back] > quality) {
        code = 3 - base_of(third, back);
        quality = third.qualities[back];
    }
    return {uint8_t(code), uint8_t(quality)};
}
