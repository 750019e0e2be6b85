// What the kernels compare with: Rules of ngsgpu/align/rules.py, in the same order.
#pragma once
#include "ngsgpu/align/weights.cuh"

struct Rules {
    int32_t kmer, max_bucket_size, window, paired;
    int32_t min_overlap, min_overlap_permille, max_mismatch_permille, pair_mismatch_permille;
    int32_t bin_permille[3], bin_reads;
    int32_t refine_rounds, refine_reads, refine_keep_weight;
    int32_t min_coverage, mean_support, min_support, high_mean_support, high_min_support;
    int32_t position_support, position_max_reads, margin;
};

constexpr int SUPPORT_BITS = 20;

// Counters of a run, in the order of ngsgpu/correct/cpu.py.
enum Counter { ANCHORS, ALONE, CROWDED, HIGH, LOW, FOUND, ALIGNED, KEPT, REFINED_AWAY, COUNTERS };
