// Structures for queries, their candidates and the partitions searched.
//
// directory, entries and locations come from a file: whatever they hold, kernels stay within the
// bounds given by ``bits``. The other arrays were computed by the host.
#pragma once

#include "ngsgpu/classify/query/gpu.structs"
#include "ngsgpu/classify/sketch/kmers.cuh"

namespace {

constexpr int kBlockBits = 6;  // windows whose target is kept: every 64th

// A candidate: target (-1: there is none, nor any after it), hits, first and last window.
using Candidate = int4;

// Positions of the sequences of a mate: record ``first + i * step`` is that of query i.
struct Mate {
    const u8* raw;
    const uint32_t* start;
    const int32_t* length;
    uint32_t first;
    uint32_t step;  // 0: there are none
};

}  // namespace
