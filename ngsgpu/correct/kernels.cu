// Correction of anchors; the reference is ngsgpu/correct/cpu.py, which this must equal to the bit.
#include "ngsgpu/align/alleles.cuh"
#include "ngsgpu/align/candidates.cuh"
#include "ngsgpu/align/gap.cuh"
#include "ngsgpu/align/msa.cuh"
#include "ngsgpu/align/rules.cuh"
#include "ngsgpu/correct/forest.cuh"
#include "ngsgpu/correct/gpu.structs"
#include "ngsgpu/correct/planes.cuh"
#include "ngsgpu/readset/reads.cuh"

constexpr int MAX_THREADS = 256;
constexpr int MIN_BLOCKS = 4;  // a multiprocessor; 5 leave too few registers, measured
constexpr int RARE = 50;  // of ngsgpu/correct/cpu.py
constexpr uint8_t HIGH_QUALITY = 1, LOW_QUALITY = 2;
constexpr uint32_t VOTE_CONFLICT = 0x80000000u;

// One block's variables in addition to the dynamic shared memory.
struct Block {
    int count[2], kept[2], crowded[2], inside[3];
    int64_t support_sum;
    int item, smallest, coverage, repeat, listed;
    int warp_sum[MAX_THREADS / 32];
    int64_t edit_at;
    int64_t ambiguous_begin, ambiguous_end;
    unsigned long long gap;
    unsigned long long counters[COUNTERS];
    Forest forests[2];  // of anchors, of candidates
    MsaFeatures shared_features;
    int features[MAX_THREADS / 32][MOST_FEATURES];
};

// Bytes of dynamic memory for one mate's candidates, and for the MSA.
__host__ __device__ constexpr int64_t candidate_bytes(int cells, int limit, int max_length) {
    return int64_t(cells) * 12 + int64_t(limit) * 16 + (max_length + 63) / 64 * 8;
}

__device__ Candidates candidates_at(char* memory, const Sizes& sizes, int* count, int* kept) {
    Candidates c;
    c.set = (uint64_t*)memory;
    c.entry = c.set + sizes.cells;
    c.compared = c.entry + sizes.limit;
    c.set_reads = (uint32_t*)(c.compared + (sizes.max_length + 63) / 64);
    c.fit = c.set_reads + sizes.cells;
    c.kept = (uint16_t*)(c.fit + sizes.limit);
    c.weight = c.kept + sizes.limit;
    c.cells = sizes.cells;
    c.limit = sizes.limit;
    c.count = count;
    c.kept_count = kept;
    return c;
}

// Lay out the MSA for the longest reads.
__device__ void place_msa(char* memory, const Sizes& sizes, Block& block, Msa& msa,
                          Planes& planes) {
    const int columns = sizes.max_length + 2 * sizes.margin;
    const int words = (columns + 31) / 32;
    msa.sums = (Sums*)memory;
    msa.rows = (Row*)(msa.sums + columns);
    msa.masks = (uint32_t*)(msa.rows + ROWS);
    msa.mixed = msa.masks + MASKS * words;
    msa.ambiguous = msa.mixed + words;
    msa.begins = (int32_t*)(msa.ambiguous + (sizes.max_length + 31) / 32);
    planes.half = (uint32_t*)(msa.begins + columns + 1);
    msa.list = (uint16_t*)(planes.half + 4 * ((columns + 63) / 64));
    msa.consensus = (uint8_t*)(msa.list + columns);
    msa.alleles = msa.consensus + columns;
    msa.anchor = msa.alleles + columns;
    msa.listed = &block.listed;
    msa.margin = sizes.margin;
    msa.support_sum = &block.support_sum;
    msa.smallest = &block.smallest;
    msa.coverage = &block.coverage;
    msa.repeat = &block.repeat;
}

// Mark which of the anchor's bases are not known: bit position of ``ambiguous``.
__device__ void mark_ambiguous(const AmbiguousBases& all, int64_t anchor, int length,
                               uint32_t* ambiguous,
                             Block& block, int thread) {
    for (int i = thread; i < (length + 31) / 32; i += blockDim.x) ambiguous[i] = 0;
    if (all.count == 0) return;
    if (thread == 0) {
        int64_t low = 0, high = all.count;
        while (low < high) {
            const int64_t middle = (low + high) >> 1;
            if (all.reads[middle] < anchor) low = middle + 1;
            else high = middle;
        }
        const bool found = low < all.count && all.reads[low] == anchor;
        block.ambiguous_begin = found ? all.start[low] : 0;
        block.ambiguous_end = found ? all.start[low + 1] : 0;
    }
    __syncthreads();
    for (int64_t i = block.ambiguous_begin + thread; i < block.ambiguous_end; i += blockDim.x)
        atomicOr(&ambiguous[all.positions[i] >> 5], 1u << (all.positions[i] & 31));
}

// Count the anchor's Q20 bases, and those that differ from the consensus and are rare.
__device__ __forceinline__ void count_errors(const Reads& reads, const Weight* weights,
                                             const Msa& msa, const uint8_t* qualities,
                                             Block& block, int thread) {
    int bases = 0, errors = 0;
    for (int first = 0; first < msa.length; first += blockDim.x) {
        const int position = first + thread, column = position + msa.margin;
        const bool q20 =
            position < msa.length &&
            weights[quality_code(qualities, int(reads.quality_bits), position)] >= Q20_WEIGHT;
        bool error = q20 && msa.anchor[position] != msa.consensus[column];
        if (error) {
            int depth = 0;
            for (int base = 0; base < 4; ++base) depth += q20_reads(msa, column, base);
            error = q20_reads(msa, column, msa.anchor[position]) <= max(1, depth / RARE);
        }
        bases += __syncthreads_count(q20);
        errors += __syncthreads_count(error);
    }
    if (thread == 0) {
        block.counters[Q20_BASES] += bases;
        block.counters[Q20_ERRORS] += errors;
    }
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

// Whether a position of the anchor is changed to the consensus of its column; ``chosen``, if a
// forest decides, has the positions that it changes.
__device__ __forceinline__ bool changes(const Reads& reads, const Weight* weights,
                                        const Rules& rules, const Msa& msa, const uint8_t* qualities,
                                        bool replace, bool crowded, bool high,
                                        const Gap& gap, const uint32_t* ambiguous,
                                        const uint32_t* chosen, int position) {
    if (gap.has(position)) return false;
    const int column = position + msa.margin;
    const int base = msa.consensus[column], own = msa.anchor[position];
    const bool known = !((ambiguous[position >> 5] >> (position & 31)) & 1);
    if (base == own && known) return false;
    const bool q20 =
        weights[quality_code(qualities, int(reads.quality_bits), position)] >= Q20_WEIGHT;
    const bool guarded = known && crowded && q20;
    if (known && ((msa.alleles[column] >> own) & 1)) return false;
    if (known && chosen && (guarded || !high))
        return (chosen[position >> 5] >> (position & 31)) & 1;
    if (guarded) return false;
    // Without qualities, the placeholder of an ambiguous base counts as Q20.
    if (!known && q20_reads(msa, column, base) == int(q20 && base == own)) return false;
    if (rules.variant_reads)
        return replace || outweighs(reads, weights, rules, msa, qualities, position);
    if (replace) return true;
    if (known && q20_reads(msa, column, own) > rules.position_max_reads) return false;
    return support_of(msa, column, base) >= rules.position_support;
}

// Write an anchor's edits, in order of position, and its edited planes; return their number.
// ``block.edit_at`` is where they begin. The block calls it together.
__device__ __forceinline__ int decide(const Reads& reads, const Weight* weights, const Rules& rules,
                      const Msa& msa, const uint8_t* qualities, bool replace, bool crowded,
                      bool high, const Gap& gap, const uint32_t* ambiguous, const uint32_t* chosen,
                      const Planes& edited, const Results& results, Block& block, int thread) {
    int total = 0;
    const int step = blockDim.x;
    const int rounded = (msa.length + step - 1) / step * step;
    for (int position = thread; position < rounded; position += blockDim.x) {
        const bool inside = position < msa.length;
        const bool change = inside && changes(reads, weights, rules, msa, qualities, replace,
                                              crowded, high, gap, ambiguous, chosen, position);
        total += __syncthreads_count(change);
        int code = 0;
        if (inside) code = change ? msa.consensus[position + msa.margin] : msa.anchor[position];
        const uint32_t low = __ballot_sync(~0u, code & 1), high = __ballot_sync(~0u, code & 2);
        if ((thread & 31) == 0 && (position >> 5) < 2 * edited.words) {
            edited.half[position >> 5] = low;
            edited.half[2 * edited.words + (position >> 5)] = high;
        }
    }
    if (thread == 0)
        block.edit_at = int64_t(atomicAdd((unsigned long long*)results.edit_total,
                                          (unsigned long long)total));
    __syncthreads();
    int64_t at = block.edit_at;
    for (int position = thread; total && position < rounded; position += blockDim.x) {
        const bool change = position < msa.length &&
                            changes(reads, weights, rules, msa, qualities, replace, crowded, high,
                                    gap, ambiguous, chosen, position);
        const uint32_t mask = __ballot_sync(~0u, change);
        if ((thread & 31) == 0) block.warp_sum[thread >> 5] = __popc(mask);
        __syncthreads();
        int before = __popc(mask & ((1u << (thread & 31)) - 1)), chunk = 0;
        for (int warp = 0; warp < step / 32; ++warp) {
            if (warp < thread >> 5) before += block.warp_sum[warp];
            chunk += block.warp_sum[warp];
        }
        if (change)
            results.edits[at + before] =
                (uint32_t(position) << 2) | msa.consensus[position + msa.margin];
        at += chunk;
        __syncthreads();
    }
    return total;
}

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

// Select the candidates to keep. Called by the whole block.
__device__ void filter_candidates(const Reads& reads, const Rules& rules, int64_t anchor,
                                  const Candidates& c, const Candidates* mates, Block& block,
                                  int thread) {
    const int length = read_length(reads, anchor);
    int permille = rules.pair_mismatch_permille, aligned = 0;
    int inside[3] = {0, 0, 0};
    for (int i = thread; i < *c.count; i += blockDim.x) {
        if (!is_best(reads, c, i, length)) continue;
        ++aligned;
        const int mismatches = int(c.fit[i] >> 16), overlap = int(c.fit[i] & 0xFFFF);
        for (int bin = 0; bin < 3; ++bin)
            inside[bin] += mismatches * 1000 < rules.bin_permille[bin] * overlap;
    }
    if (aligned) atomicAdd(&block.counters[ALIGNED], (unsigned long long)aligned);
    if (!rules.paired) {
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
    build_msa(reads, weights, anchor, c, msa, thread, blockDim.x);
    const int removed = refine_msa(reads, weights, rules, anchor, c, msa, thread, blockDim.x);
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
    const Gap gap = find_gap(rules, msa, &block.gap, thread, blockDim.x);
    const bool by_forest = (!high || crowded) && block.forests[0].threshold != NO_FOREST;
    const bool vote_by_forest = high && block.forests[1].threshold != NO_FOREST;
    // The masks are not needed any more.
    uint32_t* chosen = by_forest ? msa.masks : nullptr;
    uint32_t* sure = by_forest ? msa.masks + msa.words() : nullptr;
    if (by_forest || vote_by_forest)
        describe_msa(msa, block.forests[0].coverage, block.shared_features, thread, blockDim.x);
    if (by_forest)
        choose_positions(reads, weights, anchor, c, crowded, msa, block.forests[0],
                         block.shared_features, block.features[thread >> 5], chosen, sure,
                         thread, blockDim.x);
    const int edits = decide(reads, weights, rules, msa, qualities, replace, crowded, high,
                             gap, msa.ambiguous, chosen, planes,
                             results, block, thread);
    if (thread == 0) {
        results.classes[anchor] = high || gap.shift ? HIGH_QUALITY : LOW_QUALITY;
        results.edit_start[anchor] = block.edit_at;
        results.edit_count[anchor] = uint16_t(edits);
        ++block.counters[high ? HIGH : LOW];
    }
    __syncthreads();
    if (high) {
        vote_for_candidates(reads, weights, c, msa, alleles, planes, results, vote_by_forest, block,
                            thread);
        return;
    }
    if (thread == 0) results.edit_hash[anchor] = hash_bits(planes, 0, msa.length, 0);
    __syncthreads();
    const int complete = decide(reads, weights, rules, msa, qualities, by_forest ? replace : true,
                                crowded, high, gap, msa.ambiguous, sure, planes,
                                results, block, thread);
    __syncthreads();
    if (thread == 0) {
        results.complete_start[anchor] = block.edit_at;
        results.complete_count[anchor] = uint16_t(complete);
        results.complete_hash[anchor] = hash_bits(planes, 0, msa.length, 0);
    }
}

// Correct anchors, paired ones together with their mates (the read after each).
//
// Grid: as many blocks as fit the device, each takes the next anchor until there are no more;
// block: a multiple of 32.
// Memory: candidate_bytes for each mate and the MSA's columns; in shared memory for nearly all
// anchors, in ``workspace`` for those that the first launch lists because they have more than
// ``sizes.limit`` candidates. Bytes: about 48 buckets of 6 bytes per entry and, for each of some
// 45 candidates, planes and qualities, mostly from the L2 cache, since neighbours in ``anchors``
// share them. Operations: some 1,500 look-ups of table entries per anchor, and about 45 candidates
// under each column where reads differ; bound by barriers and memory latency (docs/gpu.md).
extern "C" __global__ void __launch_bounds__(MAX_THREADS, MIN_BLOCKS)
    correct_anchors(const Reads* reads_in, const AmbiguousBases* ambiguous_in,
                    const Tables* tables_in,
                    const int32_t* weights_in, const Rules* rules_in, const Forest* forests_in,
                    const Results* results_in, const Sizes* sizes_in, const uint32_t* anchors, int64_t count, char* workspace,
                    int64_t workspace_bytes) {
    extern __shared__ char shared[];
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
        const int64_t anchor = anchors[block.item];
        if (thread < 2) block.count[thread] = block.kept[thread] = block.crowded[thread] = 0;
        for (int mate = 0; mate < mates; ++mate)
            for (int cell = thread; cell < sizes.cells; cell += blockDim.x) {
                c[mate].set[cell] = FREE_ENTRY;
                c[mate].set_reads[cell] = FREE_READ;
            }
        __syncthreads();
        for (int mate = 0; mate < mates; ++mate)
            find_candidates(reads, tables, rules, anchor + mate, c[mate], &block.crowded[mate],
                            thread >> 5, blockDim.x / 32, thread & 31);
        __syncthreads();
        if (block.count[0] > sizes.limit || block.count[1] > sizes.limit) {
            if (thread == 0)
                results.crowded[atomicAdd(results.crowded_count, 1)] = uint32_t(anchor);
            continue;
        }
        for (int mate = 0; mate < mates; ++mate)
            for (int cell = thread; cell < sizes.cells; cell += blockDim.x)
                c[mate].set[cell] = FREE_ENTRY;
        for (int mate = 0; mate < mates; ++mate)
            mark_compared(reads, weights, rules, anchor + mate, c[mate], thread, blockDim.x);
        __syncthreads();
        for (int mate = 0; mate < mates; ++mate)
            align_entries(reads, rules, anchor + mate, c[mate], block.count[mate], thread, blockDim.x);
        __syncthreads();
        for (int mate = 0; mate < mates; ++mate) {
            filter_candidates(reads, rules, anchor + mate, c[mate],
                              mates == 2 ? &c[1 - mate] : nullptr, block, thread);
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
