// The multiple sequence alignment of one anchor, by one block; see ngsgpu/correct/msa.py.
//
// A thread owns columns and goes through the kept candidates, so that no two threads add to the
// same sums; the sums lie in shared memory because every thread reads them when it decides.
#pragma once
#include "ngsgpu/correct/candidates.cuh"

constexpr int SURE_SHIFT = 30;
constexpr int COUNT_SHIFT = 46;
constexpr int64_t ONE_READ = 1ll << COUNT_SHIFT;
constexpr int64_t ONE_SURE = 1ll << SURE_SHIFT;
constexpr int64_t SURE_MASK = (1ll << (COUNT_SHIFT - SURE_SHIFT)) - 1;
constexpr int64_t WEIGHT_MASK = ONE_SURE - 1;
constexpr uint16_t TAKEN_OUT = 0x8000;  // beside a weight: to be taken out in this round

struct Msa {
    int64_t* sums;       // [4 x columns]
    uint8_t* consensus;  // [columns]
    uint8_t* anchor;     // [length]
    int length, margin, columns;
    int64_t* support_sum;
    int* smallest;  // support
    int* coverage;
    int* repeat;    // position x 4 + 3 - base of the column to refine
};

__device__ __forceinline__ int sure_reads(const Msa& msa, int column, int base) {
    return int((msa.sums[4 * column + base] >> SURE_SHIFT) & SURE_MASK);
}

__device__ __forceinline__ int read_count(const Msa& msa, int column, int base) {
    return int(msa.sums[4 * column + base] >> COUNT_SHIFT);
}

__device__ __forceinline__ int support_of(const Msa& msa, int column, int base) {
    int64_t total = 0;
    for (int other = 0; other < 4; ++other) total += msa.sums[4 * column + other] & WEIGHT_MASK;
    return int(((msa.sums[4 * column + base] & WEIGHT_MASK) << SUPPORT_BITS) / total);
}

// What a read of a weight adds to the sums of its base.
__device__ __forceinline__ int64_t share_of(const int32_t* weights, int code, int weight) {
    const int own = weights[code];
    const int product = (weight * own) >> WEIGHT_BITS;
    return ONE_READ + (product > 1 ? product : 1) + (own >= SURE_WEIGHT ? ONE_SURE : 0);
}

// Base of a candidate at an offset from its first column.
__device__ __forceinline__ int laid_base(const Row& row, int laid) {
    const int base = base_at(row.planes, (row.length + 63) >> 6, row.position(laid));
    return row.turned ? 3 - base : base;
}

__device__ __forceinline__ void find_consensus(const Msa& msa, int thread, int threads) {
    for (int column = thread; column < msa.columns; column += threads) {
        int best = 0;
        int64_t best_weight = msa.sums[4 * column] & WEIGHT_MASK;
        for (int base = 1; base < 4; ++base) {
            const int64_t weight = msa.sums[4 * column + base] & WEIGHT_MASK;
            if (weight > best_weight) {
                best = base;
                best_weight = weight;
            }
        }
        msa.consensus[column] = uint8_t(best);
    }
}

// Add the kept candidates (or take out those marked so) to the columns of a thread.
__device__ __forceinline__ void add_candidates(const Reads& reads, const int32_t* weights,
                                               const Candidates& c, const Msa& msa, bool take_out,
                                               int thread, int threads) {
    const int kept = *c.kept_count;
    for (int column = thread; column < msa.columns; column += threads) {
        int64_t sums[4] = {0, 0, 0, 0};
        for (int k = 0; k < kept; ++k) {
            const int weight = c.weight[k];
            if (take_out != ((weight & TAKEN_OUT) != 0)) continue;
            const Row& row = c.row[k];
            const int laid = column - msa.margin - row.shift;
            if (laid < 0 || laid >= row.length) continue;
            const int base = laid_base(row, laid);
            const int code =
                quality_code(row.qualities, int(reads.quality_bits), row.position(laid));
            const int64_t share = share_of(weights, code, weight & ~TAKEN_OUT);
#pragma unroll
            for (int b = 0; b < 4; ++b) sums[b] += base == b ? share : 0;
        }
        for (int b = 0; b < 4; ++b) msa.sums[4 * column + b] += take_out ? -sums[b] : sums[b];
    }
}

// Fill the columns with the anchor and its kept candidates, and set the consensus.
__device__ __forceinline__ void build_msa(const Reads& reads, const int32_t* weights,
                                          int64_t anchor, const Candidates& c, const Msa& msa,
                                          int thread, int threads) {
    const uint64_t* planes = reads.planes + plane_start(reads, anchor);
    const uint8_t* qualities = reads.qualities + quality_start(reads, anchor);
    const int words = (msa.length + 63) >> 6;
    for (int column = thread; column < msa.columns; column += threads) {
        const int position = column - msa.margin;
        int64_t share = 0;
        int own = 0;
        if (position >= 0 && position < msa.length) {
            own = base_at(planes, words, position);
            msa.anchor[position] = uint8_t(own);
            share = share_of(weights, quality_code(qualities, int(reads.quality_bits), position),
                             1 << WEIGHT_BITS);
        }
        for (int b = 0; b < 4; ++b) msa.sums[4 * column + b] = b == own ? share : 0;
    }
    // Each thread goes on with its own columns, so nothing has to be waited for.
    add_candidates(reads, weights, c, msa, false, thread, threads);
    find_consensus(msa, thread, threads);
}

// Take out candidates from other copies of a repeat; return how many. The block calls it together.
__device__ __forceinline__ int refine_msa(const Reads& reads, const int32_t* weights,
                                          const Rules& rules, const Candidates& c, const Msa& msa,
                                          int thread, int threads) {
    const int kept = *c.kept_count;
    int removed = 0;
    for (int round = 0; round < rules.refine_rounds; ++round) {
        __syncthreads();
        if (thread == 0) *msa.repeat = 0x7FFFFFFF;
        bool agrees = true;
        for (int position = thread; position < msa.length; position += threads)
            agrees = agrees && msa.anchor[position] == msa.consensus[position + msa.margin];
        if (__syncthreads_and(agrees)) break;
        for (int position = thread; position < msa.length; position += threads) {
            const int column = position + msa.margin;
            for (int base = 3; base >= 0; --base) {
                if (base == msa.consensus[column]) continue;
                if (sure_reads(msa, column, base) >= rules.refine_reads) {
                    atomicMin(msa.repeat, position * 4 + 3 - base);
                    break;
                }
            }
        }
        __syncthreads();
        const int repeat = *msa.repeat;
        if (repeat == 0x7FFFFFFF) break;
        const int position = repeat >> 2, base = 3 - (repeat & 3);
        const bool own = msa.anchor[position] == base;
        bool trusted = false;
        int leaving = 0;
        for (int k = thread; k < kept; k += threads) {
            const int weight = c.weight[k];
            if (weight == 0) continue;
            const Row& row = c.row[k];
            const int laid = position - row.shift;
            if (laid < 0 || laid >= row.length) continue;
            const int under = laid_base(row, laid);
            if ((under == base) == own) continue;
            trusted = trusted || weight >= rules.refine_keep_weight;
            c.weight[k] = uint16_t(weight | TAKEN_OUT);
            ++leaving;
        }
        if (__syncthreads_or(trusted)) break;
        add_candidates(reads, weights, c, msa, true, thread, threads);
        find_consensus(msa, thread, threads);
        __syncthreads();
        for (int k = thread; k < kept; k += threads)
            if (c.weight[k] & TAKEN_OUT) c.weight[k] = 0;
        removed += leaving;
    }
    __syncthreads();
    // Marks of a round in which nobody was taken out after all.
    for (int k = thread; k < kept; k += threads) c.weight[k] &= uint16_t(~TAKEN_OUT);
    return removed;
}

// Sum of the supports, smallest support and coverage over the anchor's columns; zeroed before.
__device__ __forceinline__ void summarise_msa(const Msa& msa, int thread, int threads) {
    int64_t sum = 0;
    int smallest = 0x7FFFFFFF, coverage = 0x7FFFFFFF;
    for (int position = thread; position < msa.length; position += threads) {
        const int column = position + msa.margin;
        const int support = support_of(msa, column, msa.consensus[column]);
        int reads = 0;
        for (int base = 0; base < 4; ++base) reads += read_count(msa, column, base);
        sum += support;
        smallest = support < smallest ? support : smallest;
        coverage = reads < coverage ? reads : coverage;
    }
    for (int step = 16; step; step >>= 1) sum += __shfl_down_sync(~0u, sum, step);
    smallest = __reduce_min_sync(~0u, smallest);
    coverage = __reduce_min_sync(~0u, coverage);
    if ((thread & 31) == 0) {
        atomicAdd((unsigned long long*)msa.support_sum, (unsigned long long)sum);
        atomicMin(msa.smallest, smallest);
        atomicMin(msa.coverage, coverage);
    }
}
