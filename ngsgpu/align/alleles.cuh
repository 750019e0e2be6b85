// Bases that more reads carry than errors explain; see ngsgpu/align/alleles.py.
#pragma once
#include "ngsgpu/align/msa.cuh"

constexpr int MAX_AGREEING = 16;  // of ngsgpu/align/msa.py
constexpr int RARE_READS = 8;     // of ngsgpu/align/alleles.py
constexpr int CARRIES_RARE = 1, SHOWS_RARE = 2, LACKS_RARE = 4;  // of the same

// Distinct values, of which a limit suffices; one per lane.
struct Distinct {
    int own = 0, count = 0;
    __device__ void add(int value, int limit, int lane) {
        const bool seen = __any_sync(~0u, lane < count && own == value);
        if (seen || count >= limit) return;
        if (lane == count) own = value;
        ++count;
    }
};

__device__ __forceinline__ int reads_needed(const Rules& rules, int depth) {
    int needed = rules.variant_reads;
    for (int step = 0; step < 8; ++step) needed += depth >= rules.variant_depths[step];
    const int last = rules.variant_depths[7], between = last - rules.variant_depths[6];
    return depth < last ? needed : needed + (depth - last) / max(1, between);
}

// Fragments with different ends that carry a base with at least a weight, counted up to ``needed``,
// at most 32; a warp together.
__device__ int independent_reads(const Reads& reads, const Weight* weights, const Rules& rules,
                                 int64_t anchor, const Candidates& c, const Msa& msa, int column,
                                 int base, int needed, int least_weight, int lane) {
    const int position = column - msa.margin, bits = int(reads.quality_bits);
    Distinct ends, fragments;
    if (position >= 0 && position < msa.length && msa.anchor[position] == base) {
        const uint8_t* qualities = reads.qualities + quality_start(reads, anchor);
        if (weights[quality_code(qualities, bits, position)] >= least_weight) {
            ends.add(0, needed, lane);
            fragments.add(int(anchor >> rules.paired), needed, lane);
        }
    }
    const int kept = *c.kept_count;
#pragma unroll 1
    for (int first = 0; first < kept; first += 32) {
        const int k = first + lane;
        bool carries = k < kept && c.weight[k] != 0;
        int end = 0, fragment = 0;
        if (carries) {
            const Row row = row_of(reads, c, k);
            const int offset = position - row.shift;
            carries = offset >= 0 && offset < row.length && base_at_offset(row, offset) == base &&
                      weights[quality_code(row.qualities, bits, row.position(offset))] >=
                          least_weight;
            end = row.reverse_complemented ? 2 * (row.shift + row.length) + 1 : 2 * row.shift;
            fragment = int(entry_read(c.entry[c.kept[k]]) >> rules.paired);
        }
        for (unsigned left = __ballot_sync(~0u, carries); left; left &= left - 1) {
            const int source = __ffs(left) - 1;
            ends.add(__shfl_sync(~0u, end, source), needed, lane);
            fragments.add(__shfl_sync(~0u, fragment, source), needed, lane);
        }
    }
    return min(ends.count, fragments.count);
}

// Set ``msa.alleles``; return whether there are any. The block calls it together.
__device__ bool find_alleles(const Reads& reads, const Weight* weights, const Rules& rules,
                             int64_t anchor, const Candidates& c, const Msa& msa, int thread,
                             int threads) {
    for (int column = thread; column < msa.columns; column += threads) msa.alleles[column] = 0;
    __syncthreads();
    const int listed = rules.variant_reads ? *msa.listed : 0, lane = thread & 31;
    bool any = false;
    // Each lane looks at a column; where independent reads decide, the warp counts them together,
    // base by base.
#pragma unroll 1
    for (int first = thread - lane; first < listed; first += threads) {
        const int column = msa.list[min(first + lane, listed - 1)];
        int alleles = 0, open = 0, pairs = 0;
        const int depth = q20_depth(msa, column);
        const int needed = reads_needed(rules, depth);
        for (int base = 0; base < 4 && first + lane < listed; ++base) {
            const int carried = q20_reads(msa, column, base);
            if (base == msa.consensus[column]) continue;
            if (carried < needed) {
                // Two reads of Q30 do as well where two such errors hardly ever meet.
                if (carried < 2 || depth > rules.pair_depth) continue;
                pairs |= 1 << base;
            }
            if (carried >= needed + 2) alleles |= 1 << base;
            else open |= 1 << base;
        }
#pragma unroll 1
        for (unsigned left; (left = __ballot_sync(~0u, open)) != 0;) {
            const int source = __ffs(left) - 1;
            const int base = __ffs(__shfl_sync(~0u, open, source)) - 1;
            const bool by_pair = (__shfl_sync(~0u, pairs, source) >> base) & 1;
            const int all = __shfl_sync(~0u, needed, source), wanted = by_pair ? 2 : all;
            const int found = independent_reads(reads, weights, rules, anchor, c, msa,
                                                __shfl_sync(~0u, column, source), base,
                                                min(wanted, MAX_AGREEING),
                                                by_pair ? Q30_WEIGHT : Q20_WEIGHT, lane);
            if (lane != source) continue;
            open &= ~(1 << base);
            if (found >= min(wanted, MAX_AGREEING + 1)) alleles |= 1 << base;
        }
        any = any || alleles;
        if (alleles) msa.alleles[column] = uint8_t(alleles);
    }
    return __syncthreads_or(any);
}

// Whether the anchor's base at a position is known, and an allele that few reads carry.
__device__ __forceinline__ bool is_rare_allele(const Msa& msa, int position) {
    const int column = position + msa.margin, own = msa.anchor[position];
    return ((msa.alleles[column] >> own) & 1) &&
           !((msa.ambiguous[position >> 5] >> (position & 31)) & 1) &&
           q20_reads(msa, column, own) <= RARE_READS;
}

// CARRIES_RARE, SHOWS_RARE and LACKS_RARE, those that are true of the anchor. The block calls it
// together.
__device__ int rare_alleles_of(const Reads& reads, const Weight* weights, const Msa& msa,
                               const uint8_t* qualities, int thread, int threads) {
    int found = 0;
    for (int position = thread; position < msa.length; position += threads) {
        const int column = position + msa.margin, alleles = msa.alleles[column];
        if (alleles == 0 || ((msa.ambiguous[position >> 5] >> (position & 31)) & 1)) continue;
        const int own = msa.anchor[position];
        const bool good =
            weights[quality_code(qualities, int(reads.quality_bits), position)] >= Q20_WEIGHT;
        for (int base = 0; base < 4; ++base) {
            if (!((alleles >> base) & 1) || q20_reads(msa, column, base) > RARE_READS) continue;
            if (base == own) found |= CARRIES_RARE | (good ? SHOWS_RARE : 0);
            else if (good && own == msa.consensus[column]) found |= LACKS_RARE;
        }
    }
    return (__syncthreads_or(found & CARRIES_RARE) ? CARRIES_RARE : 0) |
           (__syncthreads_or(found & SHOWS_RARE) ? SHOWS_RARE : 0) |
           (__syncthreads_or(found & LACKS_RARE) ? LACKS_RARE : 0);
}

// What the reads that share a rare allele with the anchor say of its base at a position: -1 if one
// of them has the consensus there, otherwise 1 if one has the anchor's base, 0 if none has either.
// Each thread by itself.
__device__ __noinline__ int verdict_of_strain(const Reads& reads, const Candidates& c,
                                              const Msa& msa, int position) {
    const int kept = *c.kept_count;
    const int consensus = msa.consensus[position + msa.margin];
    int verdict = 0;
#pragma unroll 1
    for (int place = 0; place < msa.length; ++place) {
        if (!is_rare_allele(msa, place)) continue;
#pragma unroll 1
        for (int k = 0; k < kept; ++k) {
            if (c.weight[k] == 0) continue;
            const Row row = row_of(reads, c, k);
            const int shared = place - row.shift, offset = position - row.shift;
            if (shared < 0 || shared >= row.length || offset < 0 || offset >= row.length) continue;
            if (base_at_offset(row, shared) != msa.anchor[place]) continue;
            const int base = base_at_offset(row, offset);
            if (base == consensus) return -1;
            if (base == msa.anchor[position]) verdict = 1;
        }
    }
    return verdict;
}

// Whether a candidate within the columns has a base that is an allele.
__device__ bool carries_allele(const Msa& msa, const Row& row) {
    const int listed = *msa.listed;
    for (int at = 0; at < listed; ++at) {
        const int column = msa.list[at], offset = column - msa.margin - row.shift;
        if (msa.alleles[column] == 0 || offset < 0 || offset >= row.length) continue;
        if ((msa.alleles[column] >> base_at_offset(row, offset)) & 1) return true;
    }
    return false;
}
