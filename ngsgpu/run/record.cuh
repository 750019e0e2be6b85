// For ngsgpu/run/record_gpu.py: outputs of units (pairs, or reads without mates) by tiles of them, a
// block each.
#pragma once
#include "ngsgpu/device/cuda/reduce.cuh"
#include "ngsgpu/io/gpu/lines.cuh"

namespace {

constexpr u32 kTileUnits = 64;
constexpr u32 kWarps = kThreads / 32;

// Records of one mate in a parsed chunk, whose bytes a stage may change.
template <typename Byte>
struct Records {
    Byte* raw;
    const u32* line_end;
    const u32* seq_start;
    const u32* qual_start;
    const int* lengths;
    u32 begin;
    u32 record;
    u32 step;

    __device__ __forceinline__ u32 number(u32 unit) const { return record + unit * step; }
};

// The first parameters of kernels, which ``record_arguments`` gives: the records of both mates, and how
// far those of one unit and the next are apart; and what Records are made of.
#define MATES(Byte)                                                                        \
    Byte *raw1, const u32 *line_end1, const u32 *seq_start1, const u32 *qual_start1,       \
        const int *lengths1, u32 begin1, u32 record1, Byte *raw2, const u32 *line_end2,    \
        const u32 *seq_start2, const u32 *qual_start2, const int *lengths2, u32 begin2,    \
        u32 record2, u32 step
#define FIRST_MATES {raw1, line_end1, seq_start1, qual_start1, lengths1, begin1, record1, step}
#define SECOND_MATES {raw2, line_end2, seq_start2, qual_start2, lengths2, begin2, record2, step}

// Copy a table of 256 bytes to shared memory; for a whole block.
__device__ __forceinline__ void load_table(const u8* table, u8* shared) {
    for (u32 i = threadIdx.x; i < 256; i += kThreads) shared[i] = table[i];
}

// Where the bytes of a warp go.
struct WarpOutput {
    u8* bytes;
    u32 lane;

    __device__ __forceinline__ void put(u8 byte) {
        if (lane == 0) *bytes = byte;
        ++bytes;
    }

    __device__ __forceinline__ void copy(const u8* raw, u32 start, u32 end) {
        for (u32 i = lane; i < end - start; i += 32) bytes[i] = raw[start + i];
        bytes += end - start;
    }
};

// Bytes of each unit of a tile in each output.
template <u32 kOutputs>
using Sizes = u32[kOutputs][kTileUnits];

// Begin with units that write nothing; for a whole block, which has to be synchronised after it.
template <u32 kOutputs>
__device__ __forceinline__ void clear_sizes(Sizes<kOutputs>& sizes) {
    for (u32 i = threadIdx.x; i < kOutputs * kTileUnits; i += kThreads)
        sizes[i / kTileUnits][i % kTileUnits] = 0;
}

// From the sizes of a tile's units: where the bytes of each begin within the tile's in each output
// (``offsets``: u32[outputs][units]), and how many these are (``tile_bytes``: u32[outputs][tiles]);
// for a whole block, of which any thread may have set any size.
template <u32 kOutputs>
__device__ __forceinline__ void place_records(Sizes<kOutputs>& sizes, u32 units, u32* offsets,
                                              u32* tile_bytes) {
    __syncthreads();
    if (threadIdx.x < kOutputs) {
        u32 before = 0;
        for (u32 entry = 0; entry < kTileUnits; ++entry) {
            const u32 own = sizes[threadIdx.x][entry];
            sizes[threadIdx.x][entry] = before;
            before += own;
        }
        tile_bytes[threadIdx.x * gridDim.x + blockIdx.x] = before;
    }
    __syncthreads();
    for (u32 i = threadIdx.x; i < kOutputs * kTileUnits; i += kThreads) {
        const u32 unit = blockIdx.x * kTileUnits + i % kTileUnits;
        if (unit < units)
            offsets[i / kTileUnits * units + unit] = sizes[i / kTileUnits][i % kTileUnits];
    }
}

// Bytes of each output before the tile's, and in the last block the bytes of all to ``totals``; for
// a whole block.
template <u32 kOutputs>
__device__ __forceinline__ void sum_before(const u32* tile_bytes, u32 (&before)[kOutputs],
                                           u32* totals) {
    if (threadIdx.x < kOutputs) before[threadIdx.x] = 0;
    __syncthreads();
    for (u32 output = 0; output < kOutputs; ++output) {
        u32 sum = 0;
        for (u32 tile = threadIdx.x; tile < blockIdx.x; tile += kThreads)
            sum += tile_bytes[output * gridDim.x + tile];
        sum = __reduce_add_sync(kAll, sum);
        if ((threadIdx.x & 31) == 0 && sum) atomicAdd(before + output, sum);
    }
    __syncthreads();
    if (blockIdx.x == gridDim.x - 1 && threadIdx.x < kOutputs)
        totals[threadIdx.x] =
            before[threadIdx.x] + tile_bytes[threadIdx.x * gridDim.x + blockIdx.x];
}

// Add what a block has counted; for a whole block, after ``place_records``.
template <u32 kCounters>
__device__ __forceinline__ void add_counts(const u32 (&counted)[kCounters], u64* counters) {
    if (threadIdx.x < kCounters && counted[threadIdx.x])
        atomicAdd(counters + threadIdx.x, u64(counted[threadIdx.x]));
}

}  // namespace
