// What kernels know of queries, their candidates and the partitions that these lie in.
//
// directory, entries and locations are those of a file: whatever they hold, kernels stay within
// the bounds that follow ``bits``. The other arrays were counted by the host.
#pragma once

#include "ngsgpu/classify/query/gpu.structs"
#include "ngsgpu/classify/sketch/kmers.cuh"

namespace {

constexpr int kBlockBits = 6;  // windows whose target is kept: every 64th

// A candidate: target (-1: there is none, nor any after it), hits, first and last window.
using Candidate = int4;

// Where the sequences of a mate lie: record ``first + i * step`` is that of query i.
struct Mate {
    const u8* raw;
    const uint32_t* start;
    const int32_t* length;
    uint32_t first;
    uint32_t step;  // 0: there are none
};

}  // namespace
