// Votes of an anchor's MSA on its candidates; see ngsgpu/correct/rules/votes.py.
#pragma once
#include "ngsgpu/align/alleles.cuh"
#include "ngsgpu/align/candidates.cuh"
#include "ngsgpu/align/msa.cuh"
#include "ngsgpu/correct/forests/forest.cuh"
#include "ngsgpu/correct/workspace.cuh"

constexpr uint32_t VOTE_CONFLICT = 0x80000000u;

// Vote for the consensus of each kept candidate that hardly reaches beyond the anchor and carries
// no allele.
__device__ void vote_for_candidates(const Reads& reads, const Weight* weights,
                                    const Candidates& c, const Msa& msa, bool alleles,
                                    const Planes& planes, const Results& results, bool by_forest,
                                    Block& block,
                                    int thread) {
    const int rounded = planes.words * 64;
    for (int column = thread; column < rounded; column += blockDim.x) {
        const int code = column < msa.columns ? msa.consensus[column] : 0;
        const uint32_t low = __ballot_sync(~0u, code & 1), high = __ballot_sync(~0u, code & 2);
        if ((thread & 31) == 0) {
            planes.half[column >> 5] = low;
            planes.half[2 * planes.words + (column >> 5)] = high;
        }
    }
    __syncthreads();
    const int lane = thread & 31;
    for (int base = thread - lane; base < *c.kept_count; base += blockDim.x) {
        const int k = base + lane;
        Vote vote = {};
        int64_t read = 0;
        if (k < *c.kept_count && c.weight[k] != 0) {
            const Row row = row_of(reads, c, k);
            if (row.shift >= -msa.margin && row.shift + row.length <= msa.length + msa.margin &&
                !(alleles && carries_allele(msa, row))) {
                read = entry_read(c.entry[c.kept[k]]);
                vote.own = (const uint64_t*)row.planes;
                vote.shift = row.shift;
                vote.length = row.length;
                vote.reverse_complemented = row.reverse_complemented;
                vote.weight = row.weight;
                vote.words = (row.length + 63) >> 6;
                vote.qualities = quality_start(reads, read);
            }
        }
        unsigned long long hash = 0;
        if (by_forest)
            hash = hash_by_forest(reads, weights, msa, planes, block.forests[1],
                                  block.shared_features, vote, block.features[thread >> 5], lane);
        if (vote.length == 0) continue;
        if (!by_forest)
            hash = hash_bits(planes, vote.shift + msa.margin, vote.length,
                             vote.reverse_complemented);
        const unsigned long long seen =
            atomicCAS((unsigned long long*)&results.vote_hash[read], 0ull, hash);
        if (seen != 0 && seen != hash) atomicOr(&results.vote_state[read], VOTE_CONFLICT);
        atomicAdd(&results.vote_state[read], 1u);
    }
}
