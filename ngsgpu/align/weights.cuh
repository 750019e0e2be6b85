// Weights of qualities and alignments, in 2^-WEIGHT_BITS; see ngsgpu/align/alignment.py.
#pragma once
#include "ngsgpu/sequence/hashing.cuh"

constexpr int WEIGHT_BITS = 14;
using Weight = uint16_t;  // of a quality code; at most 1 << WEIGHT_BITS
constexpr int Q20_WEIGHT = (99 << WEIGHT_BITS) / 100;
constexpr int Q30_WEIGHT = (999 << WEIGHT_BITS) / 1000;

// Quotient of numbers below 2^53, rounded down; much cheaper than 64-bit integer division.
__device__ __forceinline__ int64_t divide(int64_t number, int64_t by) {
    const int64_t quotient = int64_t(double(number) / double(by));
    return quotient * by > number ? quotient - 1 : quotient;
}

// 1 - sqrt(mismatches / (overlap x largest ratio)), rounded up; see ngsgpu/align/alignment.py.
__device__ __forceinline__ int alignment_weight(int mismatches, int overlap, int permille) {
    const int64_t square =
        divide(int64_t(mismatches) * 1000 << (2 * WEIGHT_BITS), int64_t(overlap) * permille);
    return (1 << WEIGHT_BITS) - int(floor(sqrt(double(square))));
}
