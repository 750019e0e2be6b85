// Which bases of a read are not known.
#pragma once
#include "ngsgpu/readset/reads.cuh"
#include "ngsgpu/sequence/search.cuh"

// Entries [begin, end) of ``AmbiguousBases.positions``.
struct UnknownBases {
    int64_t begin, end;
};

__device__ __forceinline__ UnknownBases unknown_of(const AmbiguousBases& all, int64_t read) {
    const auto is_before = [&](int64_t i) { return all.reads[i] < read; };
    const int64_t low = first_not_before(int64_t(0), int64_t(all.count), is_before);
    if (low == all.count || all.reads[low] != read) return {0, 0};
    return {int64_t(all.start[low]), int64_t(all.start[low + 1])};
}
