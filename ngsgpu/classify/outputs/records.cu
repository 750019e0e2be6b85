// Records of queries, as they are in their files, to those of classified and of other reads; the
// reference is ngsgpu/io/text/copy.py. Outputs: those of classified reads or first mates, of their
// second mates, and both of the others; interleaved mates go to one.
#include "ngsgpu/run/record.cuh"

namespace {

constexpr u32 kOutputs = 4;

// Text of a chunk from its byte ``begin`` on, and the records of a mate of each query in it.
struct Text {
    const u8* text;
    const u32* line_end;
    u32 begin;
    u32 first;
    u32 step;

    __device__ __forceinline__ u32 start(u32 unit) const {
        return record_start(line_end, begin, first + unit * step) - begin;
    }

    // Bytes with a line feed, which the last of a file gets if it has none.
    __device__ __forceinline__ u32 bytes(u32 unit) const {
        return line_end[4 * (first + unit * step) + 3] - begin + 1 - start(unit);
    }
};

__device__ __forceinline__ u8* put(u8* out, const Text& text, u32 unit, u32 lane) {
    const u32 size = text.bytes(unit) - 1;
    const u8* source = text.text + text.start(unit);
    for (u32 i = lane; i < size; i += 32) out[i] = source[i];
    if (lane == 0) out[size] = '\n';
    return out + size + 1;
}

}  // namespace

// Compute the size of each query's records in its outputs.
//
// ``mates``: 1 or 2; ``files``: in which these are. ``calls``: below 0 for none. ``offsets``:
// u32[kOutputs][queries], within the tile's bytes; ``tile_bytes``: u32[kOutputs][tiles].
//
// Grid: one block per kTileUnits queries; block: kThreads. Bytes: 12 in a mate, 16 out a query.
extern "C" __global__ void __launch_bounds__(kThreads)
    place_called(const u8* text1, const u32* line_end1, u32 begin1, u32 first1, const u8* text2,
                 const u32* line_end2, u32 begin2, u32 first2, u32 step, u32 mates, u32 files,
                 u32 queries, const int* calls, u32* offsets, u32* tile_bytes) {
    __shared__ Sizes<kOutputs> bytes;
    clear_sizes<kOutputs>(bytes);
    __syncthreads();
    const Text first = {text1, line_end1, begin1, first1, step};
    const Text second = {text2, line_end2, begin2, first2, step};
    const u32 query = blockIdx.x * kTileUnits + threadIdx.x;
    if (threadIdx.x < kTileUnits && query < queries) {
        const u32 output = calls[query] >= 0 ? 0 : 2;
        bytes[output][threadIdx.x] = first.bytes(query);
        if (mates == 2) bytes[output + files - 1][threadIdx.x] += second.bytes(query);
    }
    place_records<kOutputs>(bytes, queries, offsets, tile_bytes);
}

// Write the records to the outputs, of which those that are null are left out, and the bytes of
// each to ``totals``.
//
// Grid and block as for place_called, a warp a query. Bytes: the records in and out.
extern "C" __global__ void __launch_bounds__(kThreads)
    write_called(const u8* text1, const u32* line_end1, u32 begin1, u32 first1, const u8* text2,
                 const u32* line_end2, u32 begin2, u32 first2, u32 step, u32 mates, u32 files,
                 u32 queries, const int* calls, const u32* offsets, const u32* tile_bytes,
                 u8* out0, u8* out1, u8* out2, u8* out3, u32* totals) {
    __shared__ u32 before[kOutputs];
    sum_before(tile_bytes, before, totals);
    const Text first = {text1, line_end1, begin1, first1, step};
    const Text second = {text2, line_end2, begin2, first2, step};
    u8* const outputs[kOutputs] = {out0, out1, out2, out3};
    const u32 lane = threadIdx.x & 31;
    for (u32 entry = threadIdx.x / 32; entry < kTileUnits; entry += kWarps) {
        const u32 query = blockIdx.x * kTileUnits + entry;
        if (query >= queries) break;
        const u32 output = calls[query] >= 0 ? 0 : 2;
        if (!outputs[output]) continue;
        u8* const next =
            put(outputs[output] + before[output] + offsets[output * queries + query], first, query,
                lane);
        if (mates == 1) continue;
        const u32 other = output + 1;
        put(files == 1 ? next : outputs[other] + before[other] + offsets[other * queries + query],
            second, query, lane);
    }
}
