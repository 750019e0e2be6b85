// Finds where reads begin in a growing sequence, by one warp; see ngsgpu/minhash/ends.py.
//
// The sequence is a stream of 2-bit codes: the k-mer at a position takes two funnel shifts, and
// recomputing its hash costs less than storing it. For each function the leftmost window minima
// are processed in turn, lanes over positions; each gives one look-up for all positions that share
// it. Up to 32 look-ups are then made at once: lanes iterate over the entries of all their cells as
// if they were one list, so that memory latency is paid only twice.
#pragma once
#include "ngsgpu/device/cuda/warp.cuh"
#include "ngsgpu/minhash/ends_gpu.structs"
#include "ngsgpu/readset/reads.cuh"

constexpr int MARK_BITS = 24, PLACE_BITS = 8;
constexpr int MAX_ENDS = 1 << 12;  // that a set takes note of
constexpr int SMALLEST_SET = 8, LARGEST_SET = 13;  // bits of the number of a set's cells
static_assert(MAX_ENDS < 1 << LARGEST_SET, "a full set would be probed for ever");
constexpr int SET_CELLS = (2 << LARGEST_SET) - (1 << SMALLEST_SET);  // of all sizes together
constexpr uint32_t MAX_IN_CELL = 1u << 25;
constexpr uint32_t FREE_CELL = 0xFFFFFFFFu;

// Ends that a sequence has met, each with a flag: a hash table of end << 1 | flag that grows with
// their number. Tables of all sizes are stored consecutively.
struct EndSet {
    uint32_t* cells;
    int32_t bits, count;
};

// A look-up: the k-mer of windows ``begin`` to ``stop``, exclusive, is at ``best``.
struct LookUp {
    int64_t first;    // entry
    int32_t until;    // entries of all look-ups up to the end of this one
    uint32_t cell, mark;
    int32_t function, best, begin, stop;
};

// The result: ends and where they begin, up to the available room.
struct Found {
    uint32_t* end;
    int32_t* start;
    int32_t room, count;
};

__device__ __forceinline__ uint32_t* cells_of_set(const EndSet& set) {
    return set.cells + (1 << set.bits) - (1 << SMALLEST_SET);
}

__device__ __forceinline__ int home_cell(uint32_t end, int bits) {
    return int((end * 0x9E3779B1u) >> (32 - bits));
}

// Cell where an end is, or of the first free one where it is not.
__device__ __forceinline__ uint32_t* cell_of(const EndSet& set, uint32_t end) {
    uint32_t* cells = cells_of_set(set);
    const int mask = (1 << set.bits) - 1;
    int cell = home_cell(end, set.bits);
    while (cells[cell] >> 1 != end && cells[cell] != FREE_CELL) cell = (cell + 1) & mask;
    return cells + cell;
}

__device__ __forceinline__ bool has_end(const EndSet& set, uint32_t end) {
    return *cell_of(set, end) != FREE_CELL;
}

__device__ __forceinline__ bool has_flag(const EndSet& set, uint32_t end) {
    const uint32_t value = *cell_of(set, end);
    return value != FREE_CELL && (value & 1);
}

// Each lane has a different end, all of which are in the set.
__device__ __forceinline__ void set_flag(const EndSet& set, uint32_t end, bool flag) {
    *cell_of(set, end) = (end << 1) | uint32_t(flag);
}

__device__ __forceinline__ void free_cells(uint32_t* cells, int bits, int lane) {
#pragma unroll 1
    for (int cell = lane; cell < 1 << bits; cell += LANES) cells[cell] = FREE_CELL;
    __syncwarp();
}

__device__ __forceinline__ void empty_set(EndSet& set, int lane) {
    __syncwarp();
    if (lane == 0) {
        set.bits = SMALLEST_SET;
        set.count = 0;
    }
    __syncwarp();
    free_cells(cells_of_set(set), SMALLEST_SET, lane);
}

// Write new values of different ends into cells of a table; all lanes call it.
__device__ __forceinline__ void place_values(uint32_t* cells, int bits, uint32_t value,
                                             bool waiting) {
    const int mask = (1 << bits) - 1;
    int cell = home_cell(value >> 1, bits);
    while (__any_sync(WARP, waiting)) {
        const bool tries = waiting && cells[cell] == FREE_CELL;
        __syncwarp();
        if (tries) cells[cell] = value;  // one of those that try the same cell gets it
        __syncwarp();
        if (waiting) {
            waiting = !tries || cells[cell] != value;
            cell = (cell + 1) & mask;
        }
        __syncwarp();
    }
}

// Add ends that are not in the set, ``added`` of them, different ones; all lanes call it.
__device__ __forceinline__ void add_ends(EndSet& set, uint32_t end, bool adds, int added,
                                         int lane) {
    const int count = set.count + added;
    int bits = set.bits;
    if (2 * count > 1 << bits && bits < LARGEST_SET) {
        const uint32_t* old = cells_of_set(set);
        uint32_t* cells = set.cells + (2 << bits) - (1 << SMALLEST_SET);
        free_cells(cells, bits + 1, lane);
#pragma unroll 1
        for (int cell = lane; cell < 1 << bits; cell += LANES)
            place_values(cells, bits + 1, old[cell], old[cell] != FREE_CELL);
        ++bits;
    }
    __syncwarp();
    if (lane == 0) {
        set.bits = bits;
        set.count = count;
    }
    __syncwarp();
    place_values(cells_of_set(set), bits, end << 1, adds);
}

// Hash of the k-mer at a position of a stream; the first of 16 bases is in the highest bits.
__device__ __forceinline__ uint64_t hash_at(const uint32_t* stream, int position, int kmer,
                                            uint64_t function) {
    const uint32_t* word = stream + (position >> 4);
    const int shift = 2 * (position & 15);
    const uint32_t high = __funnelshift_l(word[1], word[0], shift);
    const uint32_t low = __funnelshift_l(word[2], word[1], shift);
    return mix64((((uint64_t(high) << 32) | low) >> (64 - 2 * kmer)) + function);
}

// The leftmost smallest hash of the k-mers at positions ``begin`` to ``last``; sets its position.
__device__ __forceinline__ uint64_t smallest_hash(const uint32_t* stream, int begin, int last,
                                                  int kmer, uint64_t function, int lane,
                                                  int& position) {
    uint64_t best = ~0ull;
    uint32_t at = ~0u;
#pragma unroll 1
    for (int i = begin + lane; i <= last; i += LANES) {
        const uint64_t hash = hash_at(stream, i, kmer, function);
        if (at == ~0u || hash < best) {
            best = hash;
            at = uint32_t(i);
        }
    }
    const uint32_t high = __reduce_min_sync(WARP, uint32_t(best >> 32));
    const bool top = uint32_t(best >> 32) == high;
    const uint32_t low = __reduce_min_sync(WARP, top ? uint32_t(best) : ~0u);
    position = int(__reduce_min_sync(WARP, top && uint32_t(best) == low ? at : ~0u));
    return (uint64_t(high) << 32) | low;
}

// Go over the entries of look-ups in their order and add what begins in their windows.
__device__ __forceinline__ void look_up(const EndTables& tables, LookUp* look_ups, int count,
                                        int most, EndSet& met, Found& found, int lane) {
    int size = 0;
    __syncwarp();
    if (lane < count) {
        LookUp& own = look_ups[lane];
        const int64_t cells_per_table = (int64_t(1) << tables.cell_bits) + 1;
        const uint32_t* cell = tables.cells + own.function * cells_per_table + own.cell;
        const uint32_t first = cell[0];
        size = int(min(cell[1] - first, MAX_IN_CELL));
        const int on_host = own.function - tables.on_device;
        own.first = first + tables.entries_per_table * (on_host < 0 ? own.function : on_host);
        if (on_host >= 0) own.first += tables.host_start;
    }
    const int until = sum_up_to(size, lane);
    look_ups[lane].until = until;
    const int total = __shfl_sync(WARP, until, LANES - 1);
    __syncwarp();
    // Matching entries of the first look-up in earlier iterations.
    int carried = 0;
#pragma unroll 1
    for (int at = 0; at < total;) {
        const int i = at + lane;
        int number = 0;
#pragma unroll 1
        for (int step = LANES / 2; step > 0; step >>= 1)
            if (look_ups[number + step - 1].until <= i) number += step;
        const LookUp& own = look_ups[number];
        const int from = number ? look_ups[number - 1].until : 0;
        const uint64_t entry = i < total ? tables.entries[own.first + (i - from)] : 0;
        bool counts = i < total && uint32_t(entry >> (32 + PLACE_BITS)) == own.mark;
        const uint32_t marked = __ballot_sync(WARP, counts);
        int earlier = count_before(from > at ? marked & (WARP << (from - at)) : marked, lane);
        if (from < at) earlier += carried;
        const int last = min(LANES, total - at) - 1;
        carried = __shfl_sync(WARP, earlier + int(counts), last);
        const int behind = __shfl_sync(WARP, own.until, last);
        at = carried >= most ? max(at + LANES, behind) : at + LANES;

        const int start = own.best - int((entry >> 32) & ((1 << PLACE_BITS) - 1));
        const uint32_t end = uint32_t(entry);
        counts = counts && earlier < most && start >= own.begin && start < own.stop &&
                 !has_end(met, end);
        uint32_t news = __ballot_sync(WARP, counts);
        if (!news) continue;
        // An end counts for the first of its entries.
        if (counts) counts = __ffs(__match_any_sync(news, end)) - 1 == lane;
        news = __ballot_sync(WARP, counts);
        const int place = count_before(news, lane);
        const int room = min(found.room - found.count, MAX_ENDS - met.count);
        counts = counts && place < room;
        const int added = min(room, __popc(news));
        if (counts) {
            found.end[found.count + place] = end;
            found.start[found.count + place] = start;
        }
        found.count += added;
        add_ends(met, end, counts, added, lane);
    }
    // What comes next writes look-ups that other lanes have read.
    __syncwarp();
}

// Find the reads that begin at positions ``first`` to ``last``, exclusive, of a sequence, and are
// not in ``met``, which they are added to; see ``find_begins`` in ends.py.
__device__ __forceinline__ void find_begins(const EndTables& tables, const uint32_t* stream,
                                            int first, int last, int most, EndSet& met,
                                            LookUp* look_ups, Found& found, int lane) {
    const int kmer = tables.kmer, reach = tables.window - kmer;
    const uint64_t mask = ~0ull >> (64 - 2 * kmer);
    const int below = 2 * kmer - tables.cell_bits;
    uint64_t smallest = 0;
    int count = 0;
#pragma unroll 1
    for (int function = 0, begin = first, best = -1;;) {
        const uint64_t number = uint64_t(tables.first_function + function);
        while (begin < last && count < LANES) {
            if (best < begin)
                smallest = smallest_hash(stream, begin, begin + reach, kmer, number, lane, best);
            // Windows share a minimum until it leaves them or a smaller one enters.
            int stop = min(last, best + 1), following = best;
            uint64_t next = smallest;
#pragma unroll 1
            for (int at = begin + 1; at < stop; at += LANES) {
                const int position = at + lane + reach;
                const uint64_t hash =
                    at + lane < stop ? hash_at(stream, position, kmer, number) : ~0ull;
                const uint32_t smaller =
                    __ballot_sync(WARP, at + lane < stop && hash < smallest);
                if (!smaller) continue;
                const int which = __ffs(smaller) - 1;
                stop = at + which;
                following = stop + reach;
                next = __shfl_sync(WARP, hash, which);
            }
            if (lane == count) {
                const uint64_t key = smallest & mask;
                LookUp& own = look_ups[lane];
                own.cell = below < 64 ? uint32_t(key >> below) : 0;
                own.mark = uint32_t(key >> max(0, below - MARK_BITS)) & ((1u << MARK_BITS) - 1);
                own.function = function;
                own.best = best;
                own.begin = begin;
                own.stop = stop;
            }
            ++count;
            best = following;
            smallest = next;
            begin = stop;
        }
        const bool done = begin >= last && function + 1 == tables.hashes;
        if (done || count == LANES) {
            look_up(tables, look_ups, count, most, met, found, lane);
            count = 0;
        }
        if (done) return;
        if (begin >= last) {
            ++function;
            begin = first;
            best = -1;
        }
    }
}
