// Correction of anchors; the reference is ngsgpu/correct/cpu.py, which this must equal to the bit.
#include "ngsgpu/align/alleles.cuh"
#include "ngsgpu/align/candidates.cuh"
#include "ngsgpu/align/gap.cuh"
#include "ngsgpu/align/msa.cuh"
#include "ngsgpu/align/rules.cuh"
#include "ngsgpu/correct/rules/decide.cuh"
#include "ngsgpu/correct/rules/votes.cuh"
#include "ngsgpu/correct/workspace.cuh"
#include "ngsgpu/device/cuda/reduce.cuh"
#include "ngsgpu/readset/unknown.cuh"

constexpr int MIN_BLOCKS = 4;  // a multiprocessor; 5 leave too few registers, measured
constexpr uint8_t HIGH_QUALITY = 1, LOW_QUALITY = 2;
constexpr int RARE_BITS = 2;

// Mark which of the anchor's bases are not known: bit position of ``ambiguous``.
__device__ void mark_ambiguous(const AmbiguousBases& all, int64_t anchor, int length,
                               uint32_t* ambiguous,
                             Block& block, int thread) {
    for (int i = thread; i < (length + 31) / 32; i += blockDim.x) ambiguous[i] = 0;
    if (all.count == 0) return;
    if (thread == 0) {
        const UnknownBases found = unknown_of(all, anchor);
        block.ambiguous_begin = found.begin;
        block.ambiguous_end = found.end;
    }
    __syncthreads();
    for (int64_t i = block.ambiguous_begin + thread; i < block.ambiguous_end; i += blockDim.x)
        atomicOr(&ambiguous[all.positions[i] >> 5], 1u << (all.positions[i] & 31));
}

// Select the candidates to keep. Called by the whole block.
__device__ void filter_candidates(const Reads& reads, const Rules& rules, int64_t anchor,
                                  const Candidates& c, const Candidates* mates, Block& block,
                                  int thread) {
    const int length = read_length(reads, anchor);
    int permille = rules.pair_mismatch_permille, aligned = 0;
    if (!rules.paired) {
        int inside[3] = {0, 0, 0};
        for (int i = thread; i < *c.count; i += blockDim.x) {
            if (!is_best(reads, c, i, length)) continue;
            const int mismatches = int(c.fit[i] >> 16), overlap = int(c.fit[i] & 0xFFFF);
            for (int bin = 0; bin < 3; ++bin)
                inside[bin] += mismatches * 1000 < rules.bin_permille[bin] * overlap;
        }
        if (thread < 3) block.inside[thread] = 0;
        __syncthreads();
        for (int bin = 0; bin < 3; ++bin)
            if (inside[bin]) atomicAdd(&block.inside[bin], inside[bin]);
        __syncthreads();
        permille = 0;
        for (int bin = 2; bin >= 0; --bin)
            if (block.inside[bin] >= rules.bin_reads) permille = rules.bin_permille[bin];
    }
    for (int i = thread; i < *c.count; i += blockDim.x) {
        if (!is_best(reads, c, i, length)) continue;
        ++aligned;
        const int mismatches = int(c.fit[i] >> 16), overlap = int(c.fit[i] & 0xFFFF);
        bool keep = mismatches * 1000 < permille * overlap;
        if (!keep && mates) {
            const uint32_t mate = uint32_t(entry_read(c.entry[i])) ^ 1;
            keep = mates->set_reads[read_cell(*mates, mate)] == mate;
        }
        if (!keep) continue;
        const int k = atomicAdd(c.kept_count, 1);
        c.kept[k] = uint16_t(i);
        c.weight[k] = uint16_t(alignment_weight(mismatches, overlap, rules.max_mismatch_permille));
    }
    aligned = __reduce_add_sync(~0u, aligned);
    if ((thread & 31) == 0 && aligned)
        atomicAdd(&block.counters[ALIGNED], (unsigned long long)aligned);
}

// Correct one anchor from its kept candidates. The block calls it together.
__device__ void correct_anchor(const Reads& reads, const AmbiguousBases& all_ambiguous,
                               const Weight* weights, const Rules& rules, int64_t anchor,
                               const Candidates& c, bool crowded, Msa& msa, Planes& planes, const Results& results, Block& block, int thread) {
    const int kept = *c.kept_count;
    if (kept == 0) {
        if (thread == 0) ++block.counters[ALONE];
        return;
    }
    if (thread == 0) {
        msa.length = read_length(reads, anchor);
        msa.columns = msa.length + 2 * msa.margin;
        planes.words = (msa.columns + 63) >> 6;
    }
    __syncthreads();
    mark_ambiguous(all_ambiguous, anchor, msa.length, msa.ambiguous, block, thread);
    const int removed = refined_msa(reads, weights, rules, anchor, c, msa, thread, blockDim.x);
    if (thread == 0) {
        block.inside[0] = 0;
        block.support_sum = 0;
        block.smallest = 0x7FFFFFFF;
    }
    __syncthreads();
    if (removed) atomicAdd(&block.inside[0], removed);
    summarise_msa(msa, thread, blockDim.x);
    __syncthreads();
    const int gone = block.inside[0];
    if (thread == 0) {
        block.counters[KEPT] += kept;
        block.counters[REFINED_AWAY] += gone;
    }
    if (gone == kept) {
        if (thread == 0) ++block.counters[ALONE];
        return;
    }
    const int64_t length = msa.length;
    const bool replace = block.support_sum >= rules.mean_support * length &&
                         block.smallest >= rules.min_support &&
                         block.coverage >= rules.min_coverage;
    const bool high = replace && block.support_sum >= rules.high_mean_support * length &&
                      block.smallest >= rules.high_min_support;
    const uint8_t* qualities = reads.qualities + quality_start(reads, anchor);
    count_errors(reads, weights, msa, qualities, block, thread);
    const bool alleles = find_alleles(reads, weights, rules, anchor, c, msa, thread, blockDim.x);
    const int carried =
        alleles ? rare_alleles_of(reads, weights, msa, qualities, thread, blockDim.x) : 0;
    const bool rare = carried & CARRIES_RARE;
    const Gap gap = find_gap(rules, msa, &block.gap, thread, blockDim.x);
    const bool by_forest = (!high || crowded) && block.forests[0].threshold != NO_FOREST;
    const bool vote_by_forest = high && block.forests[1].threshold != NO_FOREST;
    // The masks are not needed any more.
    uint32_t* chosen = by_forest ? msa.masks : nullptr;
    uint32_t* sure = by_forest ? msa.masks + msa.words() : nullptr;
    uint32_t* changed = msa.masks + 2 * msa.words();
    if (by_forest || vote_by_forest)
        describe_msa(msa, block.forests[0].coverage, block.shared_features, thread, blockDim.x);
    if (by_forest)
        choose_positions(reads, weights, anchor, c, crowded, msa, block.forests[0],
                         block.shared_features, block.features[thread >> 5], chosen, sure,
                         thread, blockDim.x);
    // The edits, and for anchors that are not of high quality those of which others can be sure.
#pragma unroll 1
    for (int complete = 0; complete < (high ? 1 : 2); ++complete) {
        const int edits = decide(reads, weights, rules, c, msa, qualities,
                                 replace || (complete && !by_forest), crowded, high, rare, gap,
                                 msa.ambiguous, complete ? sure : chosen,
                                 rules.variant_reads && !complete, changed, planes, results,
                                 block, thread);
        if (thread == 0) {
            const uint64_t hash = high ? 0 : hash_bits(planes, 0, msa.length, 0);
            if (complete) {
                results.complete_start[anchor] = block.edit_at;
                results.complete_count[anchor] = uint16_t(edits);
                results.complete_hash[anchor] = hash;
            } else {
                results.classes[anchor] = (high || gap.shift ? HIGH_QUALITY : LOW_QUALITY) |
                                          uint8_t(carried << RARE_BITS);
                results.edit_start[anchor] = block.edit_at;
                results.edit_count[anchor] = uint16_t(edits);
                if (!high) results.edit_hash[anchor] = hash;
                ++block.counters[high ? HIGH : LOW];
            }
        }
        __syncthreads();
    }
    if (high)
        vote_for_candidates(reads, weights, c, msa, alleles, planes, results, vote_by_forest, block,
                            thread);
}

// Correct anchors, paired ones together with their mates (the read after each).
//
// Grid: as many blocks as fit the device, each takes the next anchor until there are no more;
// block: a multiple of 32.
// Memory: candidate_bytes for each mate and the MSA's columns; in shared memory for nearly all
// anchors, in ``workspace`` for those that the first launch lists, by their places in the batch
// (``places``, null for all of it), because they have more than ``sizes.limit`` candidates.
// ``slots``: a row for each read of the batch (find_slots in ngsgpu/minhash/kernels.cu). Bytes: about 48 buckets of 6 bytes per entry and, for each of some
// 45 candidates, planes and qualities, mostly from the L2 cache, since neighbours in ``anchors``
// share them. Operations: some 1,500 look-ups of table entries per anchor, and about 45 candidates
// under each column where reads differ; bound by barriers and memory latency (docs/gpu.md).
extern "C" __global__ void __launch_bounds__(MAX_THREADS, MIN_BLOCKS)
    correct_anchors(const Reads* reads_in, const AmbiguousBases* ambiguous_in,
                    const Tables* tables_in,
                    const int32_t* weights_in, const Rules* rules_in, const Forest* forests_in,
                    const Results* results_in, const Sizes* sizes_in, const uint32_t* anchors,
                    const uint32_t* slots, const uint32_t* places, int64_t count, char* workspace,
                    int64_t workspace_bytes) {
    extern __shared__ __align__(16) char shared[];
    // Values common to all threads are in shared memory, since registers are scarce.
    __shared__ Block block;
    __shared__ Reads reads;
    __shared__ Tables tables;
    __shared__ Rules rules;
    __shared__ Results results;
    __shared__ Sizes sizes;
    __shared__ Candidates c[2];
    __shared__ Msa msa;
    __shared__ Planes planes;
    __shared__ Weight weights[256];
    const int thread = threadIdx.x;
    if (thread == 0) {
        reads = *reads_in;
        tables = *tables_in;
        rules = *rules_in;
        results = *results_in;
        sizes = *sizes_in;
        block.forests[0] = forests_in[0];
        block.forests[1] = forests_in[1];
    }
    for (int code = thread; code < 1 << reads_in->quality_bits; code += blockDim.x)
        weights[code] = Weight(weights_in[code]);
    __syncthreads();
    const int mates = rules.paired ? 2 : 1;
    char* memory = workspace ? workspace + blockIdx.x * workspace_bytes : shared;
    const int64_t own_bytes = candidate_bytes(sizes.cells, sizes.limit, sizes.max_length);
    if (thread < mates)
        c[thread] = candidates_at(memory + thread * own_bytes, sizes, &block.count[thread],
                                  &block.kept[thread]);
    if (thread == 0) place_msa(memory + mates * own_bytes, sizes, block, msa, planes);
    if (thread < COUNTERS) block.counters[thread] = 0;
    while (true) {
        // Neighbours, which share candidates, are worked on at the same time, and no block waits
        // for another one at the end.
        if (thread == 0) block.item = atomicAdd(results.crowded_count + 1, 1);
        __syncthreads();
        if (block.item >= count) break;
        const uint32_t place = places ? places[block.item] : block.item;
        const int64_t anchor = anchors[place];
        if (thread < 2) block.count[thread] = block.kept[thread] = block.crowded[thread] = 0;
        for (int mate = 0; mate < mates; ++mate) free_cells(c[mate], true, thread, blockDim.x);
        __syncthreads();
        for (int mate = 0; mate < mates; ++mate)
            find_candidates(reads, tables, rules,
                            slots + (int64_t(place) * mates + mate) * tables.hashes, anchor + mate,
                            c[mate], &block.crowded[mate], thread >> 5, blockDim.x / 32,
                            thread & 31);
        __syncthreads();
        if (block.count[0] > sizes.limit || block.count[1] > sizes.limit) {
            if (thread == 0)
                results.crowded[atomicAdd(results.crowded_count, 1)] = place;
            continue;
        }
        for (int mate = 0; mate < mates; ++mate) free_cells(c[mate], false, thread, blockDim.x);
        for (int mate = 0; mate < mates; ++mate)
            mark_compared(reads, weights, rules, anchor + mate, c[mate], thread, blockDim.x);
        __syncthreads();
        // Warps that had none of the first mate's last candidates begin with the second mate's.
        for (int mate = 0; mate < mates; ++mate)
            align_entries(reads, rules, anchor + mate, c[mate], block.count[mate],
                          mate ? blockDim.x - 1 - thread : thread, blockDim.x);
        __syncthreads();
        for (int mate = 0; mate < mates; ++mate) {
            filter_candidates(reads, rules, anchor + mate, c[mate],
                              mates == 2 ? &c[1 - mate] : nullptr, block,
                              mate ? blockDim.x - 1 - thread : thread);
            if (thread == 0) {
                ++block.counters[ANCHORS];
                block.counters[FOUND] += block.count[mate];
                block.counters[CROWDED] += block.crowded[mate];
            }
        }
        __syncthreads();
        for (int mate = 0; mate < mates; ++mate) {
            correct_anchor(reads, *ambiguous_in, weights, rules, anchor + mate, c[mate],
                           block.crowded[mate] != 0, msa, planes, results, block, thread);
            __syncthreads();
        }
    }
    __syncthreads();
    if (thread < COUNTERS && block.counters[thread])
        atomicAdd((unsigned long long*)&results.counters[thread], block.counters[thread]);
}
