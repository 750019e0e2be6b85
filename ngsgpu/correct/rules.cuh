// What the kernels compare with: Rules of ngsgpu/correct/params.py, in the same order.
#pragma once
#include "ngsgpu/sequence/hashing.cuh"

struct Rules {
    int32_t kmer, crowd, window, paired;
    int32_t min_overlap, min_overlap_permille, max_mismatch_permille, pair_mismatch_permille;
    int32_t bin_permille[3], bin_reads;
    int32_t refine_rounds, refine_reads, refine_keep_weight;
    int32_t min_coverage, mean_support, min_support, high_mean_support, high_min_support;
    int32_t position_support, position_max_reads, margin;
};

constexpr int WEIGHT_BITS = 14;
using Weight = uint16_t;  // of a quality code; at most 1 << WEIGHT_BITS
constexpr int SUPPORT_BITS = 20;
constexpr int SURE_WEIGHT = (99 << WEIGHT_BITS) / 100;

// Quotient of numbers below 2^53, rounded down: at a fraction of what 64-bit division takes.
__device__ __forceinline__ int64_t divide(int64_t number, int64_t by) {
    const int64_t quotient = int64_t(double(number) / double(by));
    return quotient * by > number ? quotient - 1 : quotient;
}

// Counters of a run, in the order of ngsgpu/correct/cpu.py.
enum Counter { ANCHORS, ALONE, CROWDED, HIGH, LOW, FOUND, ALIGNED, KEPT, REFINED_AWAY, COUNTERS };
