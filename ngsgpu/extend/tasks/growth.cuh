// Growth of a task's sequence: consensus, branches, update of the candidates; see
// ngsgpu/extend/tasks/growth.py.
//
// Where all candidates agree, nothing is weighed: six warp reductions give the next 64 columns and
// mark the mixed ones. Lanes are candidates throughout.
#pragma once
#include "ngsgpu/device/cuda/reduce.cuh"
#include "ngsgpu/extend/tasks/task.cuh"

constexpr int MAX_QUALITY = 40, MIN_QUALITY = 2, QUALITY_PER_READ = 12;
constexpr int MAX_QUALITY_READS = (MAX_QUALITY + QUALITY_PER_READ - 1) / QUALITY_PER_READ;

// Fetch the first 64 bases of each candidate after the end of the sequence.
__device__ __forceinline__ void look_ahead(const Worker& w, const Task& task) {
    const Candidates& all = task.candidates;
#pragma unroll 1
    for (int i = w.lane; i < task.count; i += LANES) {
        const uint32_t end = all.end[i];
        const int offset = task.length - all.start[i];
        const Bases bases = oriented_bases(w.reads, end, offset);
        all.low[i] = bases.low;
        all.high[i] = bases.high;
        all.left[i] = read_length(w.reads, end >> 1) - offset;
    }
    __syncwarp();
}

// Candidates that have at least ``columns`` bases behind the end.
__device__ __forceinline__ int count_covering(const Worker& w, const Task& task, int columns) {
    int covering = 0;
#pragma unroll 1
    for (int at = 0; at < task.count; at += LANES) {
        const int i = at + w.lane;
        covering += __popc(
            __ballot_sync(WARP, i < task.count && task.candidates.left[i] >= columns));
    }
    return covering;
}

// The most columns behind the end, up to ``most``, that ``min_reads`` candidates cover.
__device__ __forceinline__ int columns_covered(const Worker& w, const Task& task, int most) {
    if (task.count < w.rules.min_reads || most <= 0) return 0;
    int covered = 0, above = most + 1;
#pragma unroll 1
    for (int columns = most; covered + 1 < above; columns = (covered + above) >> 1) {
        if (count_covering(w, task, columns) >= w.rules.min_reads) {
            covered = columns;
        } else {
            above = columns;
        }
    }
    return covered;
}

// The bases in the next columns; sets which columns have more than one base.
__device__ __forceinline__ Bases agreement(const Worker& w, const Task& task, int columns,
                                           uint64_t& mixed) {
    const Candidates& all = task.candidates;
    uint64_t low_set = 0, low_clear = 0, high_set = 0, high_clear = 0;
#pragma unroll 1
    for (int i = w.lane; i < task.count; i += LANES) {
        const uint64_t valid = lowest_bits(min(columns, all.left[i]));
        const uint64_t low = all.low[i], high = all.high[i];
        low_set |= low & valid;
        low_clear |= ~low & valid;
        high_set |= high & valid;
        high_clear |= ~high & valid;
    }
    const Bases bases = {any_lane(low_set), any_lane(high_set)};
    mixed = (bases.low & any_lane(low_clear)) | (bases.high & any_lane(high_clear));
    return bases;
}

// Base of a candidate in a column behind the end, or -1 where it does not reach.
__device__ __forceinline__ int base_in_column(const Task& task, int i, int column) {
    const Candidates& all = task.candidates;
    if (i >= task.count || all.left[i] <= column) return -1;
    return int((all.low[i] >> column) & 1) | (int((all.high[i] >> column) & 1) << 1);
}

// Weight of a candidate's base in a column; also returns the weight of its quality.
__device__ __forceinline__ int base_weight(const Worker& w, const Task& task, int i, int column,
                                           int& quality) {
    const Candidates& all = task.candidates;
    const int overlap = task.length - all.start[i], mismatches = all.mismatches[i];
    quality = quality_weight(w, all.end[i], overlap + column);
    const int weight =
        mismatches ? alignment_weight(mismatches, overlap, w.rules.max_mismatch_permille)
                   : 1 << WEIGHT_BITS;
    return max(1, (weight * quality) >> WEIGHT_BITS);
}

// Weights or counts of the four bases of a column; the same in all lanes.
struct Column {
    int of[4];
};

__device__ __forceinline__ void add_to_column(Column& sums, int base, int value) {
#pragma unroll
    for (int which = 0; which < 4; ++which)
        sums.of[which] += int(__reduce_add_sync(WARP, base == which ? unsigned(value) : 0u));
}

__device__ __forceinline__ void count_in_column(Column& counts, int base, bool counted) {
#pragma unroll
    for (int which = 0; which < 4; ++which)
        counts.of[which] += __popc(__ballot_sync(WARP, counted && base == which));
}

// The heaviest base, the first of equal ones; sets its weight and that of all.
__device__ __forceinline__ int heaviest(const Column& sums, int& most, int& total) {
    int best = 0;
    most = total = sums.of[0];
#pragma unroll
    for (int which = 1; which < 4; ++which) {
        total += sums.of[which];
        if (sums.of[which] > most) {
            most = sums.of[which];
            best = which;
        }
    }
    return best;
}

// The heaviest base of a column; also counts the Q20 reads of each base.
__device__ __forceinline__ int weigh_column(const Worker& w, const Task& task, int column,
                                            Column& q20) {
    Column sums = {};
    q20 = {};
#pragma unroll 1
    for (int at = 0; at < task.count; at += LANES) {
        const int base = base_in_column(task, at + w.lane, column);
        int weight = 0, quality = 0;
        if (base >= 0) weight = base_weight(w, task, at + w.lane, column, quality);
        add_to_column(sums, base, weight);
        count_in_column(q20, base, quality >= Q20_WEIGHT);
    }
    int most, total;
    return heaviest(sums, most, total);
}

// Whether another base than the heaviest has too many Q20 reads to be an error.
__device__ __forceinline__ bool is_branch(const Rules& rules, const Column& q20, int best) {
    const int total = q20.of[0] + q20.of[1] + q20.of[2] + q20.of[3];
    bool branch = false;
#pragma unroll
    for (int base = 0; base < 4; ++base)
        branch |= base != best && q20.of[base] >= rules.branch_reads &&
                  q20.of[base] * 1000 >= rules.branch_permille * total;
    return branch;
}

// Choose a base at a branch; also returns whether the choice is certain.
__device__ __forceinline__ int take_branch(const Worker& w, const Task& task, const Task& partner,
                                           int column, bool& certain) {
    const Candidates& all = task.candidates;
    Column paired = {};
    int decile = 0;
#pragma unroll 1
    for (int at = 0; at < task.count; at += LANES) {
        const int i = at + w.lane;
        const int base = base_in_column(task, i, column);
        // A candidate's mate is, or was, one of the partner, in the other direction.
        const bool in_pair = base >= 0 && has_flag(partner.met, all.end[i] ^ 3);
        count_in_column(paired, base, in_pair);
        if (base >= 0 && !in_pair)
            decile = max(decile, (task.length - all.start[i]) * 10 / task.start_length);
    }
    int most, total;
    const int best = heaviest(paired, most, total);
    certain = most >= 2 && 4 * (total - most) <= most;
    if (certain) return best;
    decile = int(__reduce_max_sync(WARP, unsigned(decile)));
    Column sums = {};
#pragma unroll 1
    for (int at = 0; at < task.count; at += LANES) {
        const int i = at + w.lane;
        const int base = base_in_column(task, i, column);
        int weight = 0, quality;
        if (base >= 0 && ((task.length - all.start[i]) * 10 / task.start_length >= decile ||
                          has_flag(partner.met, all.end[i] ^ 3)))
            weight = base_weight(w, task, i, column, quality);
        add_to_column(sums, base, weight);
    }
    const int heavy = heaviest(sums, most, total);
    certain = 10 * (total - most) < total;
    return heavy;
}

// Drop the candidates with another base in a column.
__device__ __forceinline__ void drop_discordant(const Worker& w, Task& task, int column, int base) {
    const Candidates& all = task.candidates;
    const int count = task.count;
    int kept = 0;
#pragma unroll 1
    for (int at = 0; at < count; at += LANES) {
        const int i = at + w.lane;
        const int other = base_in_column(task, i, column);
        const bool keeps = i < count && (other < 0 || other == base);
        Candidate own = {};
        if (keeps) own = candidate_at(all, i);
        if (i < count && !keeps) set_flag(task.met, all.end[i], false);
        const uint32_t mask = __ballot_sync(WARP, keeps);
        __syncwarp();
        if (keeps) keep_candidate(all, kept + count_before(mask, w.lane), own);
        kept += __popc(mask);
        __syncwarp();
    }
    if (w.lane == 0) task.count = kept;
    __syncwarp();
}

// After ``n`` columns were appended: drop candidates that end there or do not fit any more.
__device__ __forceinline__ void keep_candidates(const Worker& w, Task& task, const Bases& bases,
                                                int n) {
    const Candidates& all = task.candidates;
    const int count = task.count, length = task.length;
    int kept = 0;
#pragma unroll 1
    for (int at = 0; at < count; at += LANES) {
        const int i = at + w.lane;
        bool keeps = i < count && all.left[i] > n;
        uint32_t end = 0;
        int start = 0, mismatches = 0;
        if (keeps) {
            end = all.end[i];
            start = all.start[i];
            const Bases own = {all.low[i], all.high[i]};
            mismatches = all.mismatches[i] + __popcll(differences(own, bases) & lowest_bits(n));
            keeps = int64_t(mismatches) * 1000 <=
                    int64_t(length - start) * w.rules.max_mismatch_permille;
        }
        const uint32_t mask = __ballot_sync(WARP, keeps);
        const int place = kept + count_before(mask, w.lane);
        __syncwarp();
        if (keeps) {
            all.end[place] = end;
            all.start[place] = start;
            all.mismatches[place] = mismatches;
        }
        kept += __popc(mask);
        __syncwarp();
    }
    if (w.lane == 0) task.count = kept;
    __syncwarp();
}

// Phred scores of the next ``n`` columns: what agrees, less what differs. Where enough candidates
// reach beyond all of them, only mixed columns can have less than the best score.
__device__ __forceinline__ void score_columns(const Worker& w, const Task& task,
                                              const Bases& bases, int n, uint64_t mixed,
                                              uint64_t doubtful) {
    const Candidates& all = task.candidates;
    const bool many = count_covering(w, task, n) >= MAX_QUALITY_READS;
    int scores[2] = {MAX_QUALITY, MAX_QUALITY};
#pragma unroll 1
    for (uint64_t columns = many ? mixed : lowest_bits(n); columns; columns &= columns - 1) {
        const int column = __ffsll(columns) - 1;
        int votes = 0;
#pragma unroll 1
        for (int at = 0; at < task.count; at += LANES) {
            const int i = at + w.lane;
            const bool reaches = i < task.count && all.left[i] > column;
            const Bases own = {reaches ? all.low[i] : 0, reaches ? all.high[i] : 0};
            const bool differs = reaches && ((differences(own, bases) >> column) & 1);
            votes += __popc(__ballot_sync(WARP, reaches)) -
                     2 * __popc(__ballot_sync(WARP, differs));
        }
        const int score = max(MIN_QUALITY, min(MAX_QUALITY, QUALITY_PER_READ * votes));
        if ((column & (LANES - 1)) == w.lane) scores[column >> 5] = score;
    }
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        const int column = LANES * half + w.lane;
        if (column < n)
            task.qualities[task.length + column] =
                (doubtful >> column) & 1 ? MIN_QUALITY : scores[half];
    }
}

// One iteration: let the sequence grow by up to ``step`` bases; returns its status. Before a
// branch, unless the partner is ready, nothing is done and the status is ``WAITING``.
__device__ __forceinline__ int advance(const Worker& w, Task& task, const Task& partner,
                                       bool partner_ready, int limit) {
    look_ahead(w, task);
    uint64_t doubtful = 0, mixed;
    Bases bases;
    int n;
#pragma unroll 1
    for (bool again = true; again;) {
        again = false;
        n = columns_covered(w, task, min(w.rules.step, limit - task.length));
        if (n <= 0) {
            __syncwarp();
            if (w.lane == 0) task.status = STOPPED;
            __syncwarp();
            return STOPPED;
        }
        bases = agreement(w, task, n, mixed);
#pragma unroll 1
        for (uint64_t rest = mixed; rest && !again; rest &= rest - 1) {
            const int column = __ffsll(rest) - 1;
            Column q20;
            int best = weigh_column(w, task, column, q20);
            if (is_branch(w.rules, q20, best)) {
                if (!partner_ready) return WAITING;
                bool certain;
                best = take_branch(w, task, partner, column, certain);
                if (!certain) doubtful |= 1ull << column;
                drop_discordant(w, task, column, best);
                again = true;
            }
            const uint64_t bit = 1ull << column;
            bases.low = best & 1 ? bases.low | bit : bases.low & ~bit;
            bases.high = best & 2 ? bases.high | bit : bases.high & ~bit;
        }
    }
    doubtful &= lowest_bits(n);
    score_columns(w, task, bases, n, mixed, doubtful);
    append_bases(task, bases, n, w.lane);
    keep_candidates(w, task, bases, n);
    if (w.lane == 0) {
        task.doubts += __popcll(doubtful);
        ++task.steps;
        task.status = RUNNING;
    }
    __syncwarp();
    return RUNNING;
}
