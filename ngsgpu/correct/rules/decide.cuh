// Which of an anchor's bases its MSA changes; see ngsgpu/correct/rules/decide.py.
#pragma once
#include "ngsgpu/align/alleles.cuh"
#include "ngsgpu/align/gap.cuh"
#include "ngsgpu/align/msa.cuh"
#include "ngsgpu/align/rules.cuh"
#include "ngsgpu/correct/workspace.cuh"
#include "ngsgpu/readset/reads.cuh"

constexpr int RARE = 50;  // of ngsgpu/correct/rules/decide.py
constexpr uint32_t DOUBTFUL = 1u << 31, ASKED = 1u << 30, GOOD = 1u << 29;  // of workspace.py

// Count the anchor's Q20 and Q30 bases, and those that differ from the consensus and are rare.
__device__ __forceinline__ void count_errors(const Reads& reads, const Weight* weights,
                                             const Msa& msa, const uint8_t* qualities,
                                             Block& block, int thread) {
    int counts[4] = {0, 0, 0, 0};  // of a warp
    for (int first = 0; first < msa.length; first += blockDim.x) {
        const int position = first + thread, column = position + msa.margin;
        int weight = 0;
        if (position < msa.length)
            weight = weights[quality_code(qualities, int(reads.quality_bits), position)];
        bool error = weight >= Q20_WEIGHT && msa.anchor[position] != msa.consensus[column];
        if (error)
            error = q20_reads(msa, column, msa.anchor[position]) <=
                    max(1, q20_depth(msa, column) / RARE);
        counts[0] += __popc(__ballot_sync(~0u, weight >= Q20_WEIGHT));
        counts[1] += __popc(__ballot_sync(~0u, error));
        counts[2] += __popc(__ballot_sync(~0u, weight >= Q30_WEIGHT));
        counts[3] += __popc(__ballot_sync(~0u, error && weight >= Q30_WEIGHT));
    }
    if ((thread & 31) == 0 && counts[0])
        for (int i = 0; i < 4; ++i)
            atomicAdd(&block.counters[Q20_BASES + i], (unsigned long long)counts[i]);
}

// Whether the reads with the consensus outweigh the others, without the anchor; where there are no
// others, any number does.
__device__ __forceinline__ bool outweighs(const Reads& reads, const Weight* weights,
                                          const Rules& rules, const Msa& msa,
                                          const uint8_t* qualities, int position) {
    const int column = position + msa.margin, base = msa.consensus[column];
    if (!((msa.mixed[column >> 5] >> (column & 31)) & 1)) return true;
    int64_t others = 0;
    for (int other = 0; other < 4; ++other)
        if (other != base) others += msa.sums[column].weight[other];
    if (others == 0) return true;
    if (msa.anchor[position] != base)
        others -= base_weight(weights[quality_code(qualities, int(reads.quality_bits), position)],
                              1 << WEIGHT_BITS);
    return msa.sums[column].weight[base] >=
           rules.evidence_weight + rules.evidence_ratio * others;
}

// Whether a position of the anchor is changed to the consensus of its column; ``chosen``, if there
// is a forest, has the positions that it changes, beside the rules or in their place.
__device__ __forceinline__ bool changes(const Reads& reads, const Weight* weights,
                                        const Rules& rules, const Msa& msa, const uint8_t* qualities,
                                        bool replace, bool crowded, bool high,
                                        const Gap& gap, const uint32_t* ambiguous,
                                        const uint32_t* chosen, bool with_rules, int position) {
    if (gap.has(position)) return false;
    const int column = position + msa.margin;
    const int base = msa.consensus[column], own = msa.anchor[position];
    const bool known = !((ambiguous[position >> 5] >> (position & 31)) & 1);
    if (base == own && known) return false;
    const bool q20 =
        weights[quality_code(qualities, int(reads.quality_bits), position)] >= Q20_WEIGHT;
    const bool guarded = known && crowded && q20;
    if (known && ((msa.alleles[column] >> own) & 1)) return false;
    if (known && chosen && (guarded || !high)) {
        const bool by_forest = (chosen[position >> 5] >> (position & 31)) & 1;
        if (by_forest || !with_rules) return by_forest;
    }
    if (guarded) return false;
    // Without qualities, the placeholder of an ambiguous base counts as Q20.
    if (!known && q20_reads(msa, column, base) == int(q20 && base == own)) return false;
    if (rules.variant_reads)
        return replace || outweighs(reads, weights, rules, msa, qualities, position);
    if (replace) return true;
    if (known && q20_reads(msa, column, own) > rules.position_max_reads) return false;
    return support_of(msa, column, base) >= rules.position_support;
}

// Bits of an edit of a known base that so few reads cover that one may be all of a strain's: whether
// it may be a variant of the strain, by its quality. Where the anchor itself has an allele of the
// strain (``rare``), others that share it decide.
__device__ __forceinline__ uint32_t doubts(const Reads& reads, const Weight* weights,
                                           const Rules& rules, const Candidates& c,
                                           const Msa& msa, const uint8_t* qualities,
                                           const uint32_t* ambiguous, bool rare, int position) {
    if ((ambiguous[position >> 5] >> (position & 31)) & 1) return 0;
    if (q20_depth(msa, position + msa.margin) > rules.pair_depth) return 0;
    const int weight = weights[quality_code(qualities, int(reads.quality_bits), position)];
    const int verdict = rare ? verdict_of_strain(reads, c, msa, position) : 0;
    const bool may_be_variant =
        verdict != 0 ? verdict > 0 : weight >= (rare ? Q20_WEIGHT : Q30_WEIGHT);
    return ASKED | (weight >= Q20_WEIGHT ? GOOD : 0) | (may_be_variant ? DOUBTFUL : 0);
}

// Write an anchor's edits, in order of position, and its edited planes; return their number.
// ``block.edit_at`` is where they begin, ``changed`` gets a bit per position. The block calls it
// together, and synchronises before it calls it again.
__device__ __forceinline__ int decide(const Reads& reads, const Weight* weights, const Rules& rules,
                      const Candidates& c, const Msa& msa, const uint8_t* qualities, bool replace,
                      bool crowded, bool high, bool rare, const Gap& gap, const uint32_t* ambiguous,
                      const uint32_t* chosen, bool with_rules, uint32_t* changed,
                      const Planes& edited, const Results& results, Block& block, int thread) {
    // A multiple of 64, as the edited planes: a warp is together.
    const int rounded = (msa.length + 63) / 64 * 64;
#pragma unroll 1
    for (int position = thread; position < rounded; position += blockDim.x) {
        const bool inside = position < msa.length;
        const bool change = inside && changes(reads, weights, rules, msa, qualities, replace,
                                              crowded, high, gap, ambiguous, chosen, with_rules,
                                              position);
        int code = 0;
        if (inside) code = change ? msa.consensus[position + msa.margin] : msa.anchor[position];
        const uint32_t all = __ballot_sync(~0u, change);
        const uint32_t low = __ballot_sync(~0u, code & 1), high = __ballot_sync(~0u, code & 2);
        if ((thread & 31) == 0) {
            changed[position >> 5] = all;
            edited.half[position >> 5] = low;
            edited.half[2 * edited.words + (position >> 5)] = high;
        }
    }
    __syncthreads();
    int total = 0;
#pragma unroll 1
    for (int word = 0; word < rounded / 32; ++word) total += __popc(changed[word]);
    if (total == 0) {
        if (thread == 0) block.edit_at = 0;
        return 0;
    }
    if (thread == 0)
        block.edit_at = int64_t(atomicAdd((unsigned long long*)results.edit_total,
                                          (unsigned long long)total));
    __syncthreads();
#pragma unroll 1
    for (int position = thread; position < msa.length; position += blockDim.x) {
        const uint32_t own = changed[position >> 5], bit = 1u << (position & 31);
        if (!(own & bit)) continue;
        int before = __popc(own & (bit - 1));
        for (int word = 0; word < position >> 5; ++word) before += __popc(changed[word]);
        results.edits[block.edit_at + before] = (uint32_t(position) << 2) |
                                                msa.consensus[position + msa.margin] |
                                                doubts(reads, weights, rules, c, msa, qualities,
                                                       ambiguous, rare, position);
    }
    return total;
}
