// Candidates of one anchor, by one block: found in the tables, aligned, the best of each read.
//
// An entry is read << 17 | (shift + 32768) << 1 | reverse_complemented. Entries are made distinct
// by a hash set; the reads with a valid alignment are kept in a second one, which also answers
// whether a read is a candidate (for its mate). The reference is ngsgpu/minhash/cpu.py,
// find_candidates, and ngsgpu/align/alignment.py.
#pragma once
#include "ngsgpu/align/rules.cuh"
#include "ngsgpu/minhash/gpu.structs"
#include "ngsgpu/minhash/slots.cuh"
#include "ngsgpu/readset/reads.cuh"

constexpr uint64_t FREE_ENTRY = ~0ull;
constexpr uint32_t FREE_READ = ~0u;
constexpr int MIN_COMPARED = 20;  // bases of an overlap

// Storage for the candidates of one anchor; ``cells`` is a power of two, and more than ``limit``
// and a block's threads together: at most that many entries are inserted before all threads see
// that there are too many, so that the sets always have a free cell (tiers_for in gpu.py). Probing
// nevertheless ends after ``cells`` steps.
struct Candidates {
    uint64_t* set;          // [cells] distinct entries, later the best rank of each read
    uint32_t* set_reads;    // [cells] reads with a valid alignment; behind ``set``
    uint64_t* entry;        // [limit]
    uint32_t* fit;          // [limit] mismatches << 16 | overlap; 0 overlap where not valid
    uint16_t* kept;         // [limit] the entries that the filter keeps, in any order
    uint16_t* weight;       // [limit] of those kept; 0 once taken out
    uint64_t* compared;     // [words] bit per base of the anchor: good enough to be compared
    int cells, limit;
    int* count;             // entries found, more than ``limit`` where they did not fit
    int* kept_count;
};

static_assert(FREE_ENTRY == ~0ull && FREE_READ == ~0u, "cells are freed by bytes");

// Free the cells of both sets, or of ``set`` alone. All threads of the block share the work.
__device__ __forceinline__ void free_cells(const Candidates& c, bool both, int thread,
                                           int threads) {
    uint4* cells = (uint4*)c.set;
    const int count = c.cells / 4 * (both ? 3 : 2);
    for (int i = thread; i < count; i += threads) cells[i] = make_uint4(~0u, ~0u, ~0u, ~0u);
}

__device__ __forceinline__ int64_t entry_read(uint64_t entry) { return int64_t(entry >> 17); }
__device__ __forceinline__ int entry_shift(uint64_t entry) {
    return int((entry >> 1) & 0xFFFF) - 32768;
}
__device__ __forceinline__ int entry_reverse_complemented(uint64_t entry) { return int(entry & 1); }

// First cell to probe for a read or an entry; the lower bits of the hash are not used.
__device__ __forceinline__ uint32_t hash_read(uint32_t read) { return (read * 0x9E3779B1u) >> 12; }

__device__ __forceinline__ uint32_t hash_entry(uint64_t entry) {
    return (uint32_t(entry >> 17) * 0x9E3779B1u + uint32_t(entry & 0x1FFFF) * 0x85EBCA77u) >> 12;
}

__device__ __forceinline__ void insert_entry(const Candidates& c, uint64_t entry) {
    uint32_t cell = hash_entry(entry) & (c.cells - 1);
    for (int probes = 0; probes < c.cells; ++probes) {
        // Most entries are already present; a load detects that more cheaply than an exchange.
        uint64_t seen = *(volatile uint64_t*)&c.set[cell];
        if (seen == FREE_ENTRY) {
            // This anchor is left to a larger set.
            if (*(volatile int*)c.count > c.limit) return;
            seen = atomicCAS((unsigned long long*)&c.set[cell], (unsigned long long)FREE_ENTRY,
                             (unsigned long long)entry);
            if (seen == FREE_ENTRY) {
                const int at = atomicAdd(c.count, 1);
                if (at < c.limit) c.entry[at] = entry;
                return;
            }
        }
        if (seen == entry) return;
        cell = (cell + 1) & (c.cells - 1);
    }
    // A full set holds more than ``limit`` entries, all of which are counted.
}

// The entries of a bucket that the read at ``slot`` looks at; a warp together.
__device__ __forceinline__ void bucket_window(const uint32_t* ids, int64_t slot,
                                              int max_bucket_size,
                                              int window, int lane, int64_t& low, int64_t& high,
                                              bool& crowded) {
    int64_t begin = -1, end = -1;
    // Backwards in steps of 32, at most ``max_bucket_size`` entries, until a bucket's start.
    for (int64_t back = 0; back <= max_bucket_size && begin < 0; back += 32) {
        const int64_t at = slot - back - lane;
        const bool start = at >= 0 && back + lane <= max_bucket_size && ids[at] >= BUCKET_START;
        const unsigned starts = __ballot_sync(~0u, start);
        if (starts) begin = slot - back - (__ffs(starts) - 1);
    }
    for (int64_t ahead = 1; ahead <= max_bucket_size + 1 && end < 0; ahead += 32) {
        const int64_t at = slot + ahead + lane;
        // The entry behind the table's last is marked, so that no walk leaves the table.
        const bool start = ahead + lane <= max_bucket_size + 1 && ids[at] >= BUCKET_START;
        const unsigned starts = __ballot_sync(~0u, start);
        if (starts) end = slot + ahead + (__ffs(starts) - 1);
    }
    crowded = begin < 0 || end < 0 || end - begin > max_bucket_size;
    if (!crowded && end - begin <= window) {
        low = begin;
        high = end;
        return;
    }
    low = slot - window / 2;
    if (end >= 0) low = low < end - window ? low : end - window;
    if (begin >= 0) low = low > begin ? low : begin;
    high = low + window;
}

// Entries of a table from ``first`` on, one per lane.
struct Entries {
    uint32_t id;
    uint16_t place;  // of the k-mer
};

__device__ __forceinline__ uint16_t place_at(const Tables& tables, int table, int64_t entry) {
    const uint8_t* positions = tables.table[table].positions;
    return tables.wide ? ((const uint16_t*)positions)[entry] : positions[entry];
}

__device__ __forceinline__ Entries entries_from(const Tables& tables, int table, int64_t first,
                                                int lane) {
    return {tables.table[table].ids[first + lane], place_at(tables, table, first + lane)};
}

__device__ __forceinline__ void insert_neighbour(const Reads& reads, const Rules& rules,
                                                 const Candidates& c, int64_t anchor, int own,
                                                 uint32_t id, int place) {
    const int64_t read = id & ~BUCKET_START;
    if (read == anchor) return;
    const int reverse_complemented = (own ^ place) & 1;
    int position = place >> 1;
    if (reverse_complemented) position = read_length(reads, read) - rules.kmer - position;
    const int shift = (own >> 1) - position;
    insert_entry(c, (uint64_t(read) << 17) |
                        uint64_t(((shift + 32768) << 1) | reverse_complemented));
}

// Entries of buckets, one per lane, that are inserted when there are ``count`` = 32.
struct Waiting {
    uint32_t id, places;  // of k-mers: the anchor's << 16 | the entry's
    int count;
};

__device__ __forceinline__ void insert_waiting(const Reads& reads, const Rules& rules,
                                               const Candidates& c, int64_t anchor,
                                               Waiting& waiting, int lane) {
    if (lane < waiting.count)
        insert_neighbour(reads, rules, c, anchor, int(waiting.places >> 16), waiting.id,
                         int(waiting.places & 0xFFFF));
    waiting.count = 0;
    // Lanes that found their cells late would else go through the next bucket apart.
    __syncwarp();
}

// Insert the entries of a bucket that is large or crowded; ``slot`` is the anchor's own entry.
__device__ __noinline__ void insert_large_bucket(const Reads& reads, const Tables& tables,
                                                 const Rules& rules, const Candidates& c,
                                                 int64_t anchor, int table, uint32_t slot,
                                                 int* crowded_any, int lane) {
    const uint32_t* ids = tables.table[table].ids;
    int64_t low, high;
    bool crowded;
    bucket_window(ids, slot, rules.max_bucket_size, rules.window, lane, low, high, crowded);
    if (crowded && lane == 0) *crowded_any = 1;
    const int own = place_at(tables, table, slot);
    for (int64_t at = low + lane; at < high; at += 32)
        insert_neighbour(reads, rules, c, anchor, own, ids[at], place_at(tables, table, at));
    __syncwarp();
}

// Collect the distinct entries of an anchor, from its slots in all tables (find_slots in
// ngsgpu/minhash/kernels.cu); the block's warps process the tables in turn.
//
// Each table access waits for memory, so a warp requests the next table's entries before it inserts
// the current ones. Most buckets have fewer entries than a warp has lanes: they wait until there is
// one for each.
__device__ __forceinline__ void find_candidates(const Reads& reads, const Tables& tables,
                                                const Rules& rules, const uint32_t* slots,
                                                int64_t anchor, const Candidates& c,
                                                int* crowded_any, int warp, int warps, int lane) {
    Waiting waiting = {};
    for (int first = warp; first < tables.hashes; first += 32 * warps) {
        const int own_table = first + lane * warps;
        const uint32_t own_slot = own_table < tables.hashes ? slots[own_table] : NO_SLOT;
        unsigned left = __ballot_sync(~0u, own_slot != NO_SLOT);
        if (!left) continue;
        int next = __ffs(left) - 1;
        uint32_t next_slot = __shfl_sync(~0u, own_slot, next);
        Entries coming =
            entries_from(tables, first + next * warps, next_slot & ~NEAR_START, lane);
        while (left) {
            const Entries entries = coming;
            const uint32_t slot = next_slot & ~NEAR_START;
            const bool near = next_slot >= NEAR_START;
            const int table = first + next * warps;
            left &= left - 1;
            if (left) {
                next = __ffs(left) - 1;
                next_slot = __shfl_sync(~0u, own_slot, next);
                coming = entries_from(tables, first + next * warps, next_slot & ~NEAR_START, lane);
            }
            // From its first entry on: the bucket's size, and where the anchor is.
            const unsigned starts = __ballot_sync(~0u, entries.id >= BUCKET_START) & ~1u;
            unsigned own = __ballot_sync(~0u, (entries.id & ~BUCKET_START) == anchor);
            int size = __ffs(starts) - 1, at = __ffs(own) - 1;
            Entries behind = {BUCKET_START, 0};
            if (near && !starts) {
                behind = entries_from(tables, table, slot + 32, lane);
                const unsigned ends = __ballot_sync(~0u, behind.id >= BUCKET_START);
                own = __ballot_sync(~0u, behind.id == anchor);
                size = ends ? 31 + __ffs(ends) : 0x7FFFFFFF;
                if (at < 0) at = 31 + __ffs(own);
            }
            if (!near || size > rules.max_bucket_size || size > rules.window) {
                insert_large_bucket(reads, tables, rules, c, anchor, table,
                                    near ? slot + at : slot, crowded_any, lane);
                continue;
            }
            const uint32_t own_place =
                __shfl_sync(~0u, uint32_t(at < 32 ? entries.place : behind.place), at);
            for (int done = 0; done < size;) {
                const bool first_32 = done < 32;
                const int source = done + lane - waiting.count;
                const uint32_t id = __shfl_sync(~0u, first_32 ? entries.id : behind.id, source);
                const uint32_t place =
                    __shfl_sync(~0u, uint32_t(first_32 ? entries.place : behind.place), source);
                const int fits = min((first_32 ? min(size, 32) : size) - done, 32 - waiting.count);
                if (lane >= waiting.count && lane < waiting.count + fits) {
                    waiting.id = id;
                    waiting.places = own_place << 16 | place;
                }
                waiting.count += fits;
                done += fits;
                if (waiting.count == 32) insert_waiting(reads, rules, c, anchor, waiting, lane);
            }
        }
    }
    insert_waiting(reads, rules, c, anchor, waiting, lane);
}

// Mismatches << 16 | compared bases in the overlap of the anchor's planes with a read at ``shift``.
__device__ __forceinline__ uint32_t mismatches_at(const uint64_t* anchor, int anchor_length,
                                                  const uint64_t* planes, int length,
                                                  int reverse_complemented, int shift,
                                                  const uint64_t* compared) {
    const int anchor_words = (anchor_length + 63) >> 6;
    const int words = (length + 63) >> 6;
    const int begin = shift > 0 ? shift : 0;
    const int end = anchor_length < shift + length ? anchor_length : shift + length;
    uint32_t total = 0;
    for (int word = begin >> 6; word < (end + 63) >> 6; ++word) {
        const int first = word * 64 - shift;
        const int source = first >> 6, bit = first & 63;
        uint64_t low = 0, high = 0;
        if (source >= 0 && source < words) {
            low = (reverse_complemented ? reverse_complement_word(planes, length, source)
                                        : planes[source]) >> bit;
            high = (reverse_complemented ? reverse_complement_word(planes + words, length, source)
                           : planes[words + source]) >> bit;
        }
        if (bit && source >= -1 && source < words - 1) {
            const int next = source + 1;
            low |= (reverse_complemented ? reverse_complement_word(planes, length, next)
                                         : planes[next]) << (64 - bit);
            high |= (reverse_complemented ? reverse_complement_word(planes + words, length, next)
                                          : planes[words + next])
                    << (64 - bit);
        }
        const uint64_t different = (anchor[word] ^ low) | (anchor[anchor_words + word] ^ high);
        uint64_t inside = compared[word];
        if (word * 64 < begin) inside &= ~0ull << (begin & 63);
        if (word * 64 + 64 > end) inside &= ~0ull >> (word * 64 + 64 - end);
        total += uint32_t(__popcll(different & inside)) << 16 | uint32_t(__popcll(inside));
    }
    return total;
}

__device__ __forceinline__ uint64_t rank_of(const Candidates& c, int i, int anchor_length,
                                            int length) {
    const int mismatches = int(c.fit[i] >> 16), overlap = int(c.fit[i] & 0xFFFF);
    const uint64_t score = uint64_t(mismatches + anchor_length + length - 2 * overlap);
    return (score << 17) | (c.entry[i] & 0x1FFFF);
}

// Cell of a read in ``set_reads``, or of the free cell where it belongs.
__device__ __forceinline__ uint32_t read_cell(const Candidates& c, uint32_t read) {
    uint32_t cell = hash_read(read) & (c.cells - 1);
    for (int probes = 0; probes < c.cells; ++probes) {
        if (c.set_reads[cell] == read || c.set_reads[cell] == FREE_READ) break;
        cell = (cell + 1) & (c.cells - 1);
    }
    return cell;
}

// Align the entries. Afterwards ``set`` holds the best rank of each read in ``set_reads``.
// The block must synchronise before, with ``set`` and ``set_reads`` all free and ``compared`` set,
// and after.
__device__ __forceinline__ void align_entries(const Reads& reads, const Rules& rules,
                                              int64_t anchor, const Candidates& c, int count,
                                              int thread, int threads) {
    const int anchor_length = read_length(reads, anchor);
    const uint64_t* anchor_planes = reads.planes + plane_start(reads, anchor);
    const int ratio = anchor_length * rules.min_overlap_permille / 1000;
    const int min_overlap = rules.min_overlap > ratio ? rules.min_overlap : ratio;
    const int min_compared = rules.min_overlap < MIN_COMPARED ? rules.min_overlap : MIN_COMPARED;
    for (int i = thread; i < count; i += threads) {
        const uint64_t entry = c.entry[i];
        const int64_t read = entry_read(entry);
        const int shift = entry_shift(entry);
        const int length = read_length(reads, read);
        const int end = anchor_length < shift + length ? anchor_length : shift + length;
        c.fit[i] = 0;
        if (end - (shift > 0 ? shift : 0) < min_overlap) continue;
        const uint32_t fit =
            mismatches_at(anchor_planes, anchor_length, reads.planes + plane_start(reads, read),
                          length, entry_reverse_complemented(entry), shift, c.compared);
        const int mismatches = int(fit >> 16), overlap = int(fit & 0xFFFF);
        if (overlap < min_compared) continue;
        if (mismatches >= overlap * rules.max_mismatch_permille / 1000) continue;
        c.fit[i] = fit;
        uint32_t cell = hash_read(uint32_t(read)) & (c.cells - 1);
        for (int probes = 0; probes < c.cells; ++probes) {
            const uint32_t seen = atomicCAS(&c.set_reads[cell], FREE_READ, uint32_t(read));
            if (seen == FREE_READ || seen == uint32_t(read)) break;
            cell = (cell + 1) & (c.cells - 1);
        }
        atomicMin((unsigned long long*)&c.set[cell],
                  (unsigned long long)rank_of(c, i, anchor_length, length));
    }
}

// Whether an entry is its read's best one.
__device__ __forceinline__ bool is_best(const Reads& reads, const Candidates& c, int i,
                                        int anchor_length) {
    if ((c.fit[i] & 0xFFFF) == 0) return false;
    const int64_t read = entry_read(c.entry[i]);
    return c.set[read_cell(c, uint32_t(read))] ==
           rank_of(c, i, anchor_length, read_length(reads, read));
}
