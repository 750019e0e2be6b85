// The multiple sequence alignment of one anchor, by one block; see ngsgpu/align/msa.py.
//
// Where all reads agree, weights do not matter: the consensus is that base with support 1. Bit
// masks separate these columns from the mixed ones, and only the latter are summed read by read.
//
// Cold loops are not unrolled: the kernel fills the instruction cache, and waiting for instructions
// costs more than unrolling saves.
#pragma once
#include "ngsgpu/align/rows.cuh"
#include "ngsgpu/device/cuda/reduce.cuh"

constexpr uint16_t TAKEN_OUT = 0x8000;  // beside a weight: to be taken out in this round
constexpr int ROWS = 64;
constexpr int MAX_LOG_PARTS = 5;  // 32, a warp
constexpr int MASKS = 4;

// The weights of a column's bases, and the number of Q20 reads of each.
struct Sums {
    uint32_t weight[4];
    uint64_t q20;  // 16 bits a base
};

struct Msa {
    Sums* sums;           // [columns], of the mixed ones only
    Row* rows;            // [ROWS] of the candidates that are being added
    uint32_t* masks;      // [MASKS x words] per column: any 1, any 0 in the low plane, in the high
    uint32_t* mixed;      // [words] per column: whether reads differ
    uint32_t* ambiguous;  // [words of the length] bit per position: the anchor's base is ambiguous
    int32_t* begins;      // [columns + 1] candidates that begin at a column less those that ended;
                          // after summarise_msa the reads of each column
    uint16_t* list;       // [columns] the mixed columns
    uint8_t* consensus;   // [columns]
    uint8_t* anchor;      // [length]
    uint8_t* alleles;     // [columns] a bit for each base that is an allele beside the consensus
    int length, margin, columns;
    int* listed;
    int64_t* support_sum;
    int* smallest;        // support
    int* coverage;
    int* repeat;          // position x 4 + 3 - base of the column to refine
    __device__ int words() const { return (columns + 31) >> 5; }
};

__device__ __forceinline__ int q20_reads(const Msa& msa, int column, int base) {
    return int((msa.sums[column].q20 >> (16 * base)) & 0xFFFF);
}

__device__ __forceinline__ int q20_depth(const Msa& msa, int column) {
    int depth = 0;
    for (int base = 0; base < 4; ++base) depth += q20_reads(msa, column, base);
    return depth;
}

__device__ __forceinline__ int support_of(const Msa& msa, int column, int base) {
    const Sums& sums = msa.sums[column];
    const int64_t total = int64_t(sums.weight[0]) + sums.weight[1] + sums.weight[2] + sums.weight[3];
    return int(divide(int64_t(sums.weight[base]) << SUPPORT_BITS, total));
}

// Weight of a base, from its quality and the weight of its read.
__device__ __forceinline__ int base_weight(int own, int weight) {
    const int product = (weight * own) >> WEIGHT_BITS;
    return product > 1 ? product : 1;
}

// Set the bits of the anchor's bases that are good enough to be compared with others.
__device__ __forceinline__ void mark_compared(const Reads& reads, const Weight* weights,
                                              const Rules& rules, int64_t anchor,
                                              const Candidates& c, int thread, int threads) {
    const int length = read_length(reads, anchor), bits = int(reads.quality_bits);
    const uint8_t* qualities = reads.qualities + quality_start(reads, anchor);
    const int rounded = (length + 63) / 64 * 64;
    for (int position = thread; position < rounded; position += threads) {
        const bool good = position < length &&
                          weights[quality_code(qualities, bits, position)] >= rules.compared_weight;
        // A warp is together here, since the rounded length is a multiple of 32.
        const uint32_t all = __ballot_sync(~0u, good);
        if ((position & 31) == 0) ((uint32_t*)c.compared)[position >> 5] = all;
    }
}

// Count a read at the columns where it begins and ends, or with ``by`` = -1 no longer.
__device__ __forceinline__ void count_read(const Msa& msa, int first, int length, int by) {
    atomicAdd(&msa.begins[min(max(0, first), msa.columns)], by);
    atomicAdd(&msa.begins[min(max(0, first + length), msa.columns)], -by);
}

// Set which bases occur in each column, and how many reads begin and end there.
__device__ __forceinline__ void mask_columns(const Reads& reads, int64_t anchor,
                                             const Candidates& c, const Msa& msa, int thread,
                                             int threads) {
    const int words = msa.words();
#pragma unroll 1
    for (int i = thread; i < MASKS * words; i += threads) msa.masks[i] = 0;
#pragma unroll 1
    for (int i = thread; i <= msa.columns; i += threads) msa.begins[i] = 0;
    __syncthreads();
    const int kept = *c.kept_count, margin = msa.margin;
    uint32_t* masks = msa.masks;
    const int lane = thread & 31, warps = threads >> 5;
    // Each warp takes some of the words of each 32 reads. The anchor is a read like the others here,
    // and comes last.
    int next = thread >> 5;
#pragma unroll 1
    for (int base = 0; base <= kept; base += 32) {
        const int k = base + lane;
        Row row = {};
        if (k < kept) {
            row = row_of(reads, c, k);
        } else if (k == kept) {
            row.planes = (const uint32_t*)(reads.planes + plane_start(reads, anchor));
            row.length = msa.length;
            row.weight = 1 << WEIGHT_BITS;
        }
        const int first = row.shift + margin;
        if (next == 0 && row.weight) count_read(msa, first, row.length, 1);
        int word = next;
#pragma unroll 1
        for (; word < words; word += warps) {
            const uint32_t cover = row.weight ? covered(word, first, row.length) : 0;
            uint32_t low = 0, high = 0;
            if (cover) {
                low = bits_at_offset(row, 0, 32 * word - first);
                high = bits_at_offset(row, 1, 32 * word - first);
            }
            const uint32_t any[MASKS] = {low & cover, ~low & cover, high & cover, ~high & cover};
#pragma unroll
            for (int mask = 0; mask < MASKS; ++mask) {
                const uint32_t all = __reduce_or_sync(~0u, any[mask]);
                if (lane == mask && all) atomicOr(&masks[mask * words + word], all);
            }
        }
        next = word - words;
    }
    __syncthreads();
}

// From the masks: the consensus of the other columns, the list of the mixed ones with the anchor
// in their sums. The block calls it together.
__device__ __forceinline__ void list_mixed(const Reads& reads, const Weight* weights,
                                           int64_t anchor, const Msa& msa, int thread,
                                           int threads) {
    const uint32_t* planes = (const uint32_t*)(reads.planes + plane_start(reads, anchor));
    const uint8_t* qualities = reads.qualities + quality_start(reads, anchor);
    const int words = msa.words(), high_plane = 2 * ((msa.length + 63) >> 6);
#pragma unroll 1
    for (int column = thread; column < 32 * words; column += threads) {
        const int word = column >> 5, bit = column & 31, position = column - msa.margin;
        const bool inside = position >= 0 && position < msa.length;
        const uint32_t low = msa.masks[word] >> bit, high = msa.masks[2 * words + word] >> bit;
        const uint32_t both = (low & (msa.masks[words + word] >> bit)) |
                              (high & (msa.masks[3 * words + word] >> bit));
        // Q20 reads decide ambiguous bases.
        const bool ambiguous = inside && ((msa.ambiguous[position >> 5] >> (position & 31)) & 1);
        const bool mixed = column < msa.columns && ((both & 1) || ambiguous);
        const uint32_t all = __ballot_sync(~0u, mixed);
        int at = 0;
        if (bit == 0) {
            msa.mixed[word] = all;
            at = all ? atomicAdd(msa.listed, __popc(all)) : 0;
        }
        at = __shfl_sync(~0u, at, 0) + __popc(all & ((1u << bit) - 1));
        if (column >= msa.columns) continue;
        int own = 0;
        if (inside) {
            own = int((planes[position >> 5] >> (position & 31)) & 1) |
                  int((planes[high_plane + (position >> 5)] >> (position & 31)) & 1) << 1;
            msa.anchor[position] = uint8_t(own);
        }
        if (!mixed) {
            msa.consensus[column] = uint8_t((low & 1) | (high & 1) << 1);
            continue;
        }
        msa.list[at] = uint16_t(column);
        Sums sums = {};
        if (inside) {
            const int weight =
                weights[quality_code(qualities, int(reads.quality_bits), position)];
            const int share = base_weight(weight, 1 << WEIGHT_BITS);
#pragma unroll
            for (int base = 0; base < 4; ++base) sums.weight[base] = base == own ? share : 0;
            sums.q20 = uint64_t(weight >= Q20_WEIGHT) << (16 * own);
        }
        msa.sums[column] = sums;
    }
    __syncthreads();
}

// How many neighbouring threads share a column, so that all columns are soonest done: a power of
// two. The rounds that a thread takes count, and in each its rows and the steps of adding up.
__device__ __forceinline__ int parts_of(int listed, int rows, int thread, int threads) {
    const int log = min(thread & 31, MAX_LOG_PARTS), parts = 1 << log;
    const uint32_t rounds = uint32_t(listed * parts + threads - 1) / uint32_t(threads);
    const uint32_t cost = rounds * (2 * ((rows + parts - 1) >> log) + log + 2);
    return 1 << (__reduce_min_sync(~0u, cost << 3 | log) & 7);
}

// Add the rows to the mixed columns, or take them out; ``parts`` neighbouring threads share a
// column.
__device__ __forceinline__ void add_rows(const Reads& reads, const Weight* weights,
                                         const Msa& msa, int rows, bool out, int parts, int thread,
                                         int threads) {
    // Loop-invariant values are in registers.
    const Row* all_rows = msa.rows;
    const int listed = *msa.listed, margin = msa.margin, bits = int(reads.quality_bits);
    const int step = threads / parts;
    const int rounded = (listed + step - 1) / step * step;
#pragma unroll 1
    for (int at = thread / parts; at < rounded; at += step) {
        const bool has = at < listed;
        const int column = has ? msa.list[at] : 0;
        uint32_t sums[4] = {0, 0, 0, 0};
        uint64_t q20 = 0;
        for (int k = thread % parts; has && k < rows; k += parts) {
            const Row& row = all_rows[k];
            const int aligned_offset = column - margin - row.shift;
            if (row.weight == 0 || uint32_t(aligned_offset) >= uint32_t(row.length)) continue;
            const int base = base_at_offset(row, aligned_offset);
            const int own =
                weights[quality_code(row.qualities, bits, row.position(aligned_offset))];
            const uint32_t share = base_weight(own, row.weight);
#pragma unroll
            for (int b = 0; b < 4; ++b) sums[b] += base == b ? share : 0;
            q20 += uint64_t(own >= Q20_WEIGHT) << (16 * base);
        }
        for (int other = 1; other < parts; other <<= 1) {
#pragma unroll
            for (int b = 0; b < 4; ++b) sums[b] += __shfl_xor_sync(~0u, sums[b], other);
            q20 += __shfl_xor_sync(~0u, q20, other);
        }
        if (has && thread % parts == 0) {
#pragma unroll
            for (int b = 0; b < 4; ++b) msa.sums[column].weight[b] += out ? 0 - sums[b] : sums[b];
            msa.sums[column].q20 += out ? 0 - q20 : q20;
        }
    }
}

// Set the columns from the anchor and its kept candidates, or take those out that are marked; their
// consensus. The block calls it together.
//
// Columns that are mixed no more when reads are taken out stay listed: what their sums say is true
// of columns that are not mixed.
__device__ __forceinline__ void build_msa(const Reads& reads, const Weight* weights,
                                          int64_t anchor, const Candidates& c, bool out,
                                          const Msa& msa, int thread, int threads) {
    const int kept = *c.kept_count;
    if (out) {
#pragma unroll 1
        for (int k = thread; k < kept; k += threads) {
            if (!(c.weight[k] & TAKEN_OUT)) continue;
            const Row row = row_of(reads, c, k);
            count_read(msa, row.shift + msa.margin, row.length, -1);
        }
    } else {
        if (thread == 0) *msa.listed = 0;
        mask_columns(reads, anchor, c, msa, thread, threads);
        list_mixed(reads, weights, anchor, msa, thread, threads);
    }
    const int listed = *msa.listed;
    if (listed == 0) return;
    const int parts = parts_of(listed, min(kept, ROWS), thread, threads);
#pragma unroll 1
    for (int first = 0; first < kept; first += ROWS) {
        const int rows = min(ROWS, kept - first);
        for (int k = thread; k < rows; k += threads) {
            Row row = row_of(reads, c, first + k);
            if (out) row.weight = row.weight & TAKEN_OUT ? row.weight ^ TAKEN_OUT : 0;
            msa.rows[k] = row;
        }
        __syncthreads();
        add_rows(reads, weights, msa, rows, out, parts, thread, threads);
        __syncthreads();
    }
#pragma unroll 1
    for (int at = thread; at < listed; at += threads) {
        const int column = msa.list[at];
        const Sums& sums = msa.sums[column];
        int best = 0;
        for (int base = 1; base < 4; ++base)
            if (sums.weight[base] > sums.weight[best]) best = base;
        msa.consensus[column] = uint8_t(best);
    }
    __syncthreads();
}

// Mark the candidates that a column assigns to another copy of a repeat; return how many this
// thread marked. ``trusted`` is set if one of them must be kept.
__device__ __forceinline__ int mark_leaving(const Reads& reads, const Rules& rules,
                                            const Candidates& c, int position, int base, bool own,
                                            int thread, int threads, bool& trusted) {
    int leaving = 0;
#pragma unroll 1
    for (int k = thread; k < *c.kept_count; k += threads) {
        const int weight = c.weight[k];
        if (weight == 0) continue;
        const Row row = row_of(reads, c, k);
        const int aligned_offset = position - row.shift;
        if (aligned_offset < 0 || aligned_offset >= row.length) continue;
        if ((base_at_offset(row, aligned_offset) == base) == own) continue;
        trusted = trusted || weight >= rules.refine_keep_weight;
        c.weight[k] = uint16_t(weight | TAKEN_OUT);
        ++leaving;
    }
    return leaving;
}

// Set the columns and their consensus from the anchor and its kept candidates, without those from
// other copies of a repeat; return how many this thread removed. The block calls it together, after
// ``ambiguous`` was set.
//
// The columns are set at one place in the code, for the first time and after each removal.
__device__ __forceinline__ int refined_msa(const Reads& reads, const Weight* weights,
                                           const Rules& rules, int64_t anchor, const Candidates& c,
                                           const Msa& msa, int thread, int threads) {
    const int kept = *c.kept_count;
    int removed = 0;
#pragma unroll 1
    for (int round = 0;; ++round) {
        build_msa(reads, weights, anchor, c, round > 0, msa, thread, threads);
#pragma unroll 1
        for (int k = thread; round > 0 && k < kept; k += threads)
            if (c.weight[k] & TAKEN_OUT) c.weight[k] = 0;
        if (round == rules.refine_rounds) break;
        if (thread == 0) *msa.repeat = 0x7FFFFFFF;
        const int listed = *msa.listed;
        bool agrees = true;
#pragma unroll 1
        for (int at = thread; at < listed; at += threads) {
            const int column = msa.list[at], position = column - msa.margin;
            if (position >= 0 && position < msa.length)
                agrees = agrees && msa.anchor[position] == msa.consensus[column];
        }
        if (__syncthreads_and(agrees)) break;
#pragma unroll 1
        for (int at = thread; at < listed; at += threads) {
            const int column = msa.list[at], position = column - msa.margin;
            if (position < 0 || position >= msa.length) continue;
#pragma unroll 1
            for (int base = 3; base >= 0; --base) {
                if (base == msa.consensus[column]) continue;
                if (q20_reads(msa, column, base) >= rules.refine_reads) {
                    atomicMin(msa.repeat, position * 4 + 3 - base);
                    break;
                }
            }
        }
        __syncthreads();
        const int repeat = *msa.repeat;
        if (repeat == 0x7FFFFFFF) break;
        const int position = repeat >> 2, base = 3 - (repeat & 3);
        bool trusted = false;
        const int leaving = mark_leaving(reads, rules, c, position, base,
                                         msa.anchor[position] == base, thread, threads, trusted);
        if (__syncthreads_or(trusted)) break;
        removed += leaving;
    }
    __syncthreads();
    // Marks of a round that removed nothing in the end.
#pragma unroll 1
    for (int k = thread; k < kept; k += threads) c.weight[k] &= uint16_t(~TAKEN_OUT);
    return removed;
}

// Sum of the supports, smallest support and coverage over the anchor's columns; zeroed before.
// Sets the reads of each column.
__device__ __forceinline__ void summarise_msa(const Msa& msa, int thread, int threads) {
    int64_t sum = 0;
    int smallest = 1 << SUPPORT_BITS;
    const int listed = *msa.listed;
    if (thread == 0) sum = int64_t(msa.length) << SUPPORT_BITS;
#pragma unroll 1
    for (int at = thread; at < listed; at += threads) {
        const int column = msa.list[at], position = column - msa.margin;
        if (position < 0 || position >= msa.length) continue;
        const int support = support_of(msa, column, msa.consensus[column]);
        sum += support - (1 << SUPPORT_BITS);
        smallest = support < smallest ? support : smallest;
    }
#pragma unroll 1
    for (int step = 16; step; step >>= 1) sum += __shfl_down_sync(~0u, sum, step);
    smallest = __reduce_min_sync(~0u, smallest);
    if ((thread & 31) == 0) {
        if (sum) atomicAdd((unsigned long long*)msa.support_sum, (unsigned long long)sum);
        atomicMin(msa.smallest, smallest);
    }
    if (thread >= 32) return;
    int before = 0, coverage = 0x7FFFFFFF;
#pragma unroll 1
    for (int first = 0; first < msa.columns; first += 32) {
        const int column = first + thread;
        int reads = column < msa.columns ? msa.begins[column] : 0;
        for (int step = 1; step < 32; step <<= 1) {
            const int left = __shfl_up_sync(~0u, reads, step);
            if (thread >= step) reads += left;
        }
        reads += before;
        if (column < msa.columns) msa.begins[column] = reads;
        if (column >= msa.margin && column < msa.margin + msa.length)
            coverage = reads < coverage ? reads : coverage;
        before = __shfl_sync(~0u, reads, 31);
    }
    coverage = __reduce_min_sync(~0u, coverage);
    if (thread == 0) *msa.coverage = coverage;
}
