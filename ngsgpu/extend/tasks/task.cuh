// A task of the extension, processed by one warp; see ngsgpu/extend/tasks/task.py.
//
// The state of a task is in shared memory (``Task``), its sequence and its candidates are in global
// memory, one slab per warp: some kilobytes of it are in use at a time, which fit the
// multiprocessor's cache. Lanes are candidates, nearly always in a single iteration; kept ones are
// compacted in order with ballots.
//
// Loops are not unrolled: warps are at different places of the code, which should fit the cache for
// instructions.
#pragma once
#include "ngsgpu/align/weights.cuh"
#include "ngsgpu/extend/rules.structs"
#include "ngsgpu/minhash/ends.cuh"

constexpr int MAX_CANDIDATES = 512;

// STARTING: it has begun, and its start read is not corrected yet.
enum Status { RUNNING, STOPPED, FOUND, WAITING, NOT_BEGUN, STARTING };

// The reads that overlap a sequence's end, MAX_CANDIDATES at most.
struct Candidates {
    uint32_t* end;
    int32_t* start;       // in the sequence
    int32_t* mismatches;  // in the overlap with it
    int32_t* left;        // bases behind the sequence's end
    uint64_t* low;        // planes of 64 bases, mostly the first of these
    uint64_t* high;
};

struct Task {
    uint64_t* planes;    // of the sequence: ``words`` words a plane
    uint32_t* stream;    // the same, 2 bits a base, the first of 16 in the highest bits
    uint8_t* qualities;  // of the bases behind the start read
    Candidates candidates;
    EndSet met;          // flagged: was a candidate, and is not known to be a stranger
    int32_t words, length, scanned, count, status, doubts, start_length, found_at, tested;
    int32_t steps, taken;
    int32_t wider;  // whether the candidates are those of the first scan, with its wider bound
};

// The context of a warp; identical for all its lanes except for the lane number.
struct Worker {
    const Reads& reads;
    const EndTables& tables;
    const Rules& rules;
    const Weight* weights;
    Task* tasks;
    LookUp* look_ups;
    int lane;
    int64_t pair;
};

// One candidate in registers.
struct Candidate {
    uint32_t end;
    int32_t start, mismatches, left;
    uint64_t low, high;
};

__device__ __forceinline__ Candidate candidate_at(const Candidates& all, int i) {
    return {all.end[i], all.start[i], all.mismatches[i], all.left[i], all.low[i], all.high[i]};
}

__device__ __forceinline__ void keep_candidate(const Candidates& all, int i, const Candidate& c) {
    all.end[i] = c.end;
    all.start[i] = c.start;
    all.mismatches[i] = c.mismatches;
    all.left[i] = c.left;
    all.low[i] = c.low;
    all.high[i] = c.high;
}

// The lowest ``count`` of 64 bits, from 1 to 64.
__device__ __forceinline__ uint64_t lowest_bits(int count) { return ~0ull >> (64 - count); }

__device__ __forceinline__ Bases oriented_bases(const Reads& reads, uint32_t end, int offset) {
    const int64_t read = end >> 1;
    const int length = read_length(reads, read);
    return bases_from(reads.planes + plane_start(reads, read), (length + 63) >> 6, length, end & 1,
                      offset);
}

__device__ __forceinline__ uint64_t differences(const Bases& a, const Bases& b) {
    return (a.low ^ b.low) | (a.high ^ b.high);
}

// Weight of the quality of an end's base at a position.
__device__ __forceinline__ int quality_weight(const Worker& w, uint32_t end, int position) {
    const int64_t read = end >> 1;
    if (end & 1) position = read_length(w.reads, read) - 1 - position;
    const uint8_t* qualities = w.reads.qualities + quality_start(w.reads, read);
    return w.weights[quality_code(qualities, int(w.reads.quality_bits), position)];
}

// 16 bits, in opposite order, to every second of 32.
__device__ __forceinline__ uint32_t spread_bits(uint32_t bits) {
    bits = __brev(bits) >> 16;
    bits = (bits | (bits << 8)) & 0x00FF00FFu;
    bits = (bits | (bits << 4)) & 0x0F0F0F0Fu;
    bits = (bits | (bits << 2)) & 0x33333333u;
    return (bits | (bits << 1)) & 0x55555555u;
}

// Write the stream from the planes for positions ``first`` to ``last``, exclusive.
__device__ __forceinline__ void write_stream(const Task& task, int first, int last, int lane) {
#pragma unroll 1
    for (int word = (first >> 4) + lane; word <= (last - 1) >> 4; word += LANES) {
        const int shift = 16 * (word & 3);
        const uint32_t low = uint32_t(task.planes[word >> 2] >> shift) & 0xFFFF;
        const uint32_t high = uint32_t(task.planes[task.words + (word >> 2)] >> shift) & 0xFFFF;
        task.stream[word] = spread_bits(low) | (spread_bits(high) << 1);
    }
    __syncwarp();
}

__device__ __forceinline__ void append_bases(Task& task, const Bases& bases, int count, int lane) {
    const int length = task.length;
    __syncwarp();
    if (lane < 2) {
        uint64_t* plane = task.planes + (lane ? task.words : 0) + (length >> 6);
        const uint64_t bits = (lane ? bases.high : bases.low) & lowest_bits(count);
        const int bit = length & 63;
        if (bit) {
            plane[0] = (plane[0] & lowest_bits(bit)) | (bits << bit);
            plane[1] = bits >> (64 - bit);
        } else {
            plane[0] = bits;
        }
    }
    if (lane == 0) task.length = length + count;
    __syncwarp();
    write_stream(task, length, length + count, lane);
}

// Let a task begin with a read in a direction.
__device__ __forceinline__ void begin_task(const Worker& w, Task& task, uint32_t end) {
    const int length = read_length(w.reads, end >> 1);
#pragma unroll 1
    for (int word = w.lane; 64 * word < length; word += LANES) {
        const Bases bases = oriented_bases(w.reads, end, 64 * word);
        const uint64_t mask = lowest_bits(min(64, length - 64 * word));
        task.planes[word] = bases.low & mask;
        task.planes[task.words + word] = bases.high & mask;
    }
    __syncwarp();
    if (w.lane == 0) {
        task.length = task.start_length = length;
        task.scanned = task.tested = -1;
        task.count = task.doubts = task.found_at = task.steps = task.taken = task.wider = 0;
        task.status = STARTING;
    }
    __syncwarp();
    write_stream(task, 0, length, w.lane);
    empty_set(task.met, w.lane);
}

__device__ __forceinline__ int count_mismatches(const Worker& w, const Task& task, uint32_t end,
                                                int start, int overlap, int most) {
    int total = 0;
#pragma unroll 1
    for (int offset = 0; offset < overlap && total <= most; offset += 64) {
        const Bases own = bases_from(task.planes, task.words, task.length, 0, start + offset);
        total += __popcll(differences(oriented_bases(w.reads, end, offset), own) &
                          lowest_bits(min(64, overlap - offset)));
    }
    return total;
}

// Of the candidates of the first scan, keep those within the stricter bound of all later ones.
__device__ __forceinline__ void keep_closer(const Worker& w, Task& task) {
    const Candidates& all = task.candidates;
    const int length = task.length, count = task.count;
    int kept = 0;
#pragma unroll 1
    for (int at = 0; at < count; at += LANES) {
        const int i = at + w.lane;
        bool keeps = false;
        uint32_t end = 0;
        int start = 0, mismatches = 0;
        if (i < count) {
            end = all.end[i];
            start = all.start[i];
            mismatches = all.mismatches[i];
            keeps = mismatches <= (length - start) * w.rules.max_mismatch_permille / 1000;
            if (!keeps) set_flag(task.met, end, false);
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
    __syncwarp();
    if (w.lane == 0) {
        task.count = kept;
        task.taken += kept;
        task.wider = 0;
    }
    __syncwarp();
}

// Add the reads that now overlap the sequence far enough, but for the pair itself.
__device__ __forceinline__ void find_candidates(const Worker& w, Task& task, int permille) {
    if (task.wider) keep_closer(w, task);
    const int length = task.length, lane = w.lane;
    const int overlap =
        max(w.rules.min_overlap, task.start_length * w.rules.min_overlap_permille / 1000);
    const int last = length - overlap;
    const int first = task.scanned + 1;
    if (last < first) return;
    const Candidates& all = task.candidates;
    int count = task.count;
    Found found = {all.end + count, all.start + count, MAX_CANDIDATES - count, 0};
    find_begins(w.tables, task.stream, first, last + 1, w.rules.bucket_entries, task.met,
                w.look_ups, found, lane);
    __syncwarp();
    int taken = 0;
#pragma unroll 1
    for (int at = 0; at < found.count; at += LANES) {
        bool keeps = at + lane < found.count;
        const uint32_t end = keeps ? found.end[at + lane] : 0;
        const int start = keeps ? found.start[at + lane] : 0;
        int mismatches = 0;
        keeps = keeps && int64_t(end >> 2) != w.pair &&
                start + read_length(w.reads, end >> 1) > length;
        if (keeps) {
            const int most = (length - start) * permille / 1000;
            mismatches = count_mismatches(w, task, end, start, length - start, most);
            keeps = mismatches <= most;
        }
        const uint32_t kept = __ballot_sync(WARP, keeps);
        const int place = count + taken + count_before(kept, lane);
        __syncwarp();
        if (keeps) {
            all.end[place] = end;
            all.start[place] = start;
            all.mismatches[place] = mismatches;
            set_flag(task.met, end, true);
        }
        taken += __popc(kept);
    }
    __syncwarp();
    if (lane == 0) {
        task.scanned = last;
        task.count = count + taken;
        task.taken += taken;
    }
    __syncwarp();
}

// What the candidates have in 64 columns of the start read; the columns in which they differ.
__device__ __forceinline__ uint64_t lay_over_start(const Worker& w, const Task& task, int column,
                                                   const Bases& own, uint64_t within) {
    const Candidates& all = task.candidates;
    uint64_t mixed = 0;
#pragma unroll 1
    for (int i = w.lane; i < task.count; i += LANES) {
        const int ahead = all.start[i] - column;
        Bases bases = own;
        if (ahead <= 0) {
            bases = oriented_bases(w.reads, all.end[i], -ahead);
        } else if (ahead < 64) {
            const uint64_t before = lowest_bits(ahead);
            bases = oriented_bases(w.reads, all.end[i], 0);
            bases.low = (bases.low << ahead) | (own.low & before);
            bases.high = (bases.high << ahead) | (own.high & before);
        }
        all.low[i] = bases.low;
        all.high[i] = bases.high;
        mixed |= differences(bases, own) & within;
    }
    __syncwarp();
    return any_lane(mixed);
}

// The corrected base in a column of the anchor read: its own, or another one if ``min_reads``
// candidates have it at Q20 and hardly any candidate has the read's own.
__device__ __forceinline__ int corrected_base(const Worker& w, const Task& task, int column,
                                              int base) {
    const Candidates& all = task.candidates;
    int votes[4] = {0, 0, 0, 0};
    int agreeing = 0;
#pragma unroll 1
    for (int at = 0; at < task.count; at += LANES) {
        const int i = at + w.lane;
        bool covers = i < task.count && all.start[i] <= column;
        int other = base;
        bool q20 = false;
        if (covers) {
            other = int((all.low[i] >> (column & 63)) & 1) |
                    (int((all.high[i] >> (column & 63)) & 1) << 1);
            if (other != base)
                q20 = quality_weight(w, all.end[i], column - all.start[i]) >= Q20_WEIGHT;
        }
        agreeing += __popc(__ballot_sync(WARP, covers && other == base));
#pragma unroll
        for (int which = 0; which < 4; ++which)
            votes[which] += __popc(__ballot_sync(WARP, q20 && other == which));
    }
    int best = 0, most = votes[0];
#pragma unroll
    for (int which = 1; which < 4; ++which) {
        if (votes[which] > most) {
            most = votes[which];
            best = which;
        }
    }
    return most >= w.rules.min_reads && 10 * agreeing <= most ? best : base;
}

// Replace bases of the start read that its candidates show to be errors. The candidates were found
// with a wider bound and are to be found again; where no base was replaced, they are the same.
__device__ __forceinline__ void correct_start(const Worker& w, Task& task) {
    const int length = task.length;
    bool replaced = false;
#pragma unroll 1
    for (int column = 0; column < length; column += 64) {
        const int word = column >> 6;
        const Bases own = {task.planes[word], task.planes[task.words + word]};
        Bases corrected = own;
        uint64_t mixed =
            lay_over_start(w, task, column, own, lowest_bits(min(64, length - column)));
#pragma unroll 1
        for (; mixed; mixed &= mixed - 1) {
            const int bit = __ffsll(mixed) - 1;
            const int base = int((own.low >> bit) & 1) | (int((own.high >> bit) & 1) << 1);
            const int better = corrected_base(w, task, column + bit, base);
            corrected.low ^= uint64_t((better ^ base) & 1) << bit;
            corrected.high ^= uint64_t((better ^ base) >> 1) << bit;
        }
        if (differences(own, corrected)) {
            replaced = true;
            if (w.lane == 0) {
                task.planes[word] = corrected.low;
                task.planes[task.words + word] = corrected.high;
            }
        }
        __syncwarp();
    }
    if (w.lane == 0) {
        task.status = RUNNING;
        task.wider = !replaced;
    }
    __syncwarp();
    if (!replaced) return;
    write_stream(task, 0, length, w.lane);
    empty_set(task.met, w.lane);
    if (w.lane == 0) {
        task.scanned = -1;
        task.count = 0;
    }
    __syncwarp();
}
