// Forests that decide whether a base becomes the consensus; the references are
// ngsgpu/correct/forests/forest.py and features.py, in whose order the features are.
//
// A warp decides on one position, its lanes walk different trees. The functions are not inlined,
// since few anchors need them and the registers of all others are scarce.
#pragma once
#include "ngsgpu/align/msa.cuh"
#include "ngsgpu/correct/forests/gpu.structs"
#include "ngsgpu/correct/rules/planes.cuh"
#include "ngsgpu/device/cuda/reduce.cuh"

constexpr int64_t NO_FOREST = int64_t(1) << 40;
constexpr int LEAF = 0xFFFF;
constexpr int RATIO_BITS = 12, COVERAGE_BITS = 4, NEAR = 10;
constexpr int MOST_FEATURES = 24;
constexpr int KEPT_WORDS = 8;  // of a candidate, whose decisions are kept for the second plane

// What all positions of an anchor share.
struct MsaFeatures {
    int mean_support, min_support, min_coverage, max_coverage, differing;
};

__device__ __forceinline__ int ratio(int64_t part, int64_t whole) {
    return int(divide(part << RATIO_BITS, whole));
}

__device__ __forceinline__ int to_coverage(int64_t reads, int64_t coverage) {
    return int(divide(reads << (8 + COVERAGE_BITS), coverage));
}

__device__ __forceinline__ int64_t weight_in(const Sums& sums) {
    return int64_t(sums.weight[0]) + sums.weight[1] + sums.weight[2] + sums.weight[3];
}

// The trees' sum. Called by a warp with the same features.
__device__ __forceinline__ int sum_of_trees(const Forest& forest, const int* features, int lane) {
    int total = 0;
    for (int tree = lane; tree < int(forest.trees); tree += 32) {
        const int64_t root = forest.roots[tree];
        int64_t node = forest.nodes[root];
        while (int(node & 0xFFFF) != LEAF) {
            const int right = features[node & 0xFFFF] > int(node >> 32);
            node = forest.nodes[root + ((node >> 16) & 0xFFFF) + right];
        }
        total += int(node >> 32);
    }
    return __reduce_add_sync(~0u, total);
}

// Set what the features of all positions share. The block calls it together, after summarise_msa.
__device__ __noinline__ void describe_msa(const Msa& msa, int64_t coverage, MsaFeatures& shared,
                                          int thread, int threads) {
    if (thread == 0) shared.differing = 0;
    __syncthreads();
    for (int at = thread; at < *msa.listed; at += threads) {
        const int column = msa.list[at], position = column - msa.margin;
        if (position >= 0 && position < msa.length &&
            msa.anchor[position] != msa.consensus[column])
            atomicAdd(&shared.differing, 1);
    }
    if (thread < 32) {
        int fewest = 0x7FFFFFFF, most = 0;
        for (int position = thread; position < msa.length; position += 32) {
            const int reads = msa.begins[position + msa.margin];
            fewest = min(fewest, reads);
            most = max(most, reads);
        }
        fewest = __reduce_min_sync(~0u, fewest);
        most = __reduce_max_sync(~0u, most);
        if (thread == 0) {
            shared.mean_support =
                int(divide(*msa.support_sum, msa.length)) >> (SUPPORT_BITS - RATIO_BITS);
            shared.min_support =
                min(*msa.smallest, 1 << SUPPORT_BITS) >> (SUPPORT_BITS - RATIO_BITS);
            shared.min_coverage = to_coverage(fewest, coverage);
            shared.max_coverage = to_coverage(most, coverage);
        }
    }
    __syncthreads();
}

// Set bits per position of the anchor: ``chosen`` where the forest changes a base that differs from
// the consensus, ``sure`` where it does so unless others confirm it. The block calls
// it together; ``features`` is of a warp.
__device__ __noinline__ void choose_positions(const Reads& reads, const Weight* weights,
                                              int64_t anchor, const Candidates& c, bool crowded,
                                              const Msa& msa, const Forest& forest,
                                              const MsaFeatures& shared, int* features,
                                              uint32_t* chosen, uint32_t* sure, int thread,
                                              int threads) {
    const int lane = thread & 31, length = msa.length;
    const uint8_t* qualities = reads.qualities + quality_start(reads, anchor);
    for (int i = thread; i < (length + 31) / 32; i += threads) chosen[i] = sure[i] = 0;
    __syncthreads();
    for (int at = thread >> 5; at < *msa.listed; at += threads / 32) {
        const int column = msa.list[at], position = column - msa.margin;
        if (position < 0 || position >= length) continue;
        const int own = msa.anchor[position], other = msa.consensus[column];
        if (own == other) continue;
        int counts[3] = {0, 0, 0}, best[2] = {0, 0};
        for (int k = lane; k < *c.kept_count; k += 32) {
            if (c.weight[k] == 0) continue;
            const Row row = row_of(reads, c, k);
            const int offset = position - row.shift;
            if (offset < 0 || offset >= row.length) continue;
            const int base = base_at_offset(row, offset);
            ++counts[2];
            if (base == own) {
                ++counts[0];
                best[0] = max(best[0], row.weight);
            } else if (base == other) {
                ++counts[1];
                best[1] = max(best[1], row.weight);
            }
        }
        // The anchor has its own base.
        const int own_reads = __reduce_add_sync(~0u, counts[0]) + 1;
        const int other_reads = __reduce_add_sync(~0u, counts[1]);
        const int all_reads = __reduce_add_sync(~0u, counts[2]) + 1;
        const int best_own = __reduce_max_sync(~0u, best[0]);
        const int best_other = __reduce_max_sync(~0u, best[1]);
        const int next = position - NEAR + lane;
        const bool differs = lane <= 2 * NEAR && lane != NEAR && next >= 0 && next < length &&
                             msa.anchor[next] != msa.consensus[next + msa.margin];
        const int near = __popc(__ballot_sync(~0u, differs));
        if (lane == 0) {
            const Sums& sums = msa.sums[column];
            const int64_t weight = weight_in(sums);
            features[0] = shared.mean_support;
            features[1] = shared.min_support;
            features[2] = shared.min_coverage;
            features[3] = shared.max_coverage;
            features[4] = shared.differing;
            features[5] = own_reads;
            features[6] = other_reads;
            features[7] = q20_reads(msa, column, own);
            features[8] = q20_reads(msa, column, other);
            features[9] = ratio(own_reads, all_reads);
            features[10] = ratio(other_reads, all_reads);
            features[11] = ratio(sums.weight[own], weight);
            features[12] = ratio(sums.weight[other], weight);
            features[13] = int(divide(sums.weight[own], own_reads));
            features[14] = int(divide(sums.weight[other], other_reads));
            features[15] = int(divide(weight, all_reads));
            features[16] = to_coverage(all_reads, forest.coverage);
            features[17] = int(divide(weight, 4 * forest.coverage));
            features[18] = weights[quality_code(qualities, int(reads.quality_bits), position)];
            features[19] = best_own;
            features[20] = best_other;
            features[21] = near;
            features[22] = min(position, length - 1 - position);
            features[23] = crowded;
        }
        __syncwarp();
        const int64_t sum = sum_of_trees(forest, features, lane);
        if (lane == 0 && sum >= forest.threshold)
            atomicOr(&chosen[position >> 5], 1u << (position & 31));
        if (lane == 0 && sum >= forest.sure)
            atomicOr(&sure[position >> 5], 1u << (position & 31));
        __syncwarp();
    }
    __syncthreads();
}

// A candidate's consensus and own bases, in its own direction, one lane each.
struct Vote {
    const uint64_t* own;
    int shift, length, reverse_complemented, weight, words, differing;
    int64_t qualities;
};

// Of the positions in ``differing``, a word of each lane's candidate, those that the forest leaves
// as they are. Called by a warp.
__device__ __noinline__ uint64_t left_by_forest(const Reads& reads, const Weight* weights,
                                                const Msa& msa, const Forest& forest,
                                                const MsaFeatures& shared, const Vote& vote,
                                                uint64_t differing, int word, int* features,
                                                int lane) {
    uint64_t left = 0;
    for (uint32_t busy = __ballot_sync(~0u, differing != 0); busy; busy &= busy - 1) {
        const int from = __ffs(busy) - 1;
        uint64_t todo = __shfl_sync(~0u, differing, from), stays = 0;
        while (todo) {
            const int bit = __ffsll((long long)todo) - 1;
            todo &= todo - 1;
            if (lane == from) {
                const int length = vote.length, position = 64 * word + bit;
                const int offset =
                    vote.reverse_complemented ? length - 1 - position : position;
                const int column = offset + vote.shift + msa.margin;
                int own = int((vote.own[word] >> bit) & 1) |
                          int((vote.own[vote.words + word] >> bit) & 1) << 1;
                if (vote.reverse_complemented) own = 3 - own;
                const int other = msa.consensus[column];
                const Sums& sums = msa.sums[column];
                const int64_t weight = weight_in(sums);
                const int all_reads = msa.begins[column];
                const int64_t both =
                    min(msa.length, vote.shift + length) - max(0, vote.shift);
                features[0] = shared.mean_support;
                features[1] = shared.min_support;
                features[2] = shared.min_coverage;
                features[3] = shared.max_coverage;
                features[4] = vote.differing;
                features[5] = ratio(both, msa.length + length - both);
                features[6] = q20_reads(msa, column, own);
                features[7] = q20_reads(msa, column, other);
                features[8] = ratio(sums.weight[own], weight);
                features[9] = ratio(sums.weight[other], weight);
                features[10] = int(divide(weight, all_reads));
                features[11] = to_coverage(all_reads, forest.coverage);
                features[12] = int(divide(weight, 4 * forest.coverage));
                features[13] = weights[quality_code(reads.qualities + vote.qualities,
                                                    int(reads.quality_bits), position)];
                features[14] = vote.weight;
                features[15] = min(position, length - 1 - position);
                features[16] = max(max(msa.margin - column,
                                       column - msa.margin - (msa.length - 1)), 0);
            }
            __syncwarp();
            if (sum_of_trees(forest, features, lane) < forest.threshold) stays |= 1ull << bit;
            __syncwarp();
        }
        if (lane == from) left = stays;
    }
    return left;
}

// Hash of each lane's candidate as its forest corrects it; of lanes with no candidate of nothing.
// Called by a warp.
__device__ __noinline__ uint64_t hash_by_forest(const Reads& reads, const Weight* weights,
                                                const Msa& msa, const Planes& planes,
                                                const Forest& forest, const MsaFeatures& shared,
                                                Vote& vote, int* features, int lane) {
    const int most = __reduce_max_sync(~0u, vote.words);
    uint64_t kept[KEPT_WORDS], value = uint64_t(vote.length);
    vote.differing = 0;
    // Counts what differs, then adds the low plane to the hash, then the high one.
#pragma unroll 1
    for (int pass = 0; pass < 3; ++pass)
#pragma unroll 1
        for (int word = 0; word < most; ++word) {
            uint64_t whole = 0, own = 0, differing = 0, left = 0;
            const bool decides = pass == 1 || word >= KEPT_WORDS;
#pragma unroll 1
            for (int plane = 0; plane < 2 && word < vote.words; ++plane) {
                const uint64_t bases = oriented_word(planes, vote.shift + msa.margin, vote.length,
                                                     vote.reverse_complemented, plane, word);
                const uint64_t before = vote.own[plane * vote.words + word];
                differing |= bases ^ before;
                if (plane + 1 == pass) {
                    whole = bases;
                    own = before;
                }
            }
            if (pass == 0) {
                vote.differing += __popcll(differing);
                continue;
            }
            if (decides)
                left = left_by_forest(reads, weights, msa, forest, shared, vote, differing, word,
                                      features, lane);
            else
                left = kept[word];
            if (word < KEPT_WORDS) kept[word] = left;
            if (word < vote.words) value = mix64(value ^ ((whole & ~left) | (own & left)));
        }
    return value ? value : 1;
}
