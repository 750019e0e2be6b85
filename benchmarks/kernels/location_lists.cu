// Location lists alone: sorted, and sorted and ranked, for the micro-benchmark of both.
#include "ngsgpu/classify/query/query.cu"

namespace {

// One list of at most 32 * kPer locations, read from device memory, sorted and written back.
template <int kPer>
__device__ void sort_list(const uint32_t* list, int size, uint32_t* sorted, uint32_t lane) {
    uint32_t values[kPer];
    for (int i = 0; i < kPer; ++i) {
        const int at = i * 32 + int(lane);
        values[i] = at < size ? list[at] : kNone;
    }
    sort_registers(values, lane);
    for (int i = 0; i < kPer; ++i) {
        const int at = int(lane) * kPer + i;
        if (at < size) sorted[at] = values[i];
    }
}

}  // namespace

// Sort lists of equal sizes. Grid: any; block: kThreads, one warp a list. Bytes: 8 a location.
extern "C" __global__ void __launch_bounds__(kThreads)
    sort_lists(const uint32_t* lists, int64_t count, int size, uint32_t* sorted) {
    const uint32_t lane = threadIdx.x & 31;
    const int64_t warps = int64_t(gridDim.x) * (kThreads / 32);
    for (int64_t i = (int64_t(blockIdx.x) * kThreads + threadIdx.x) / 32; i < count; i += warps) {
        const uint32_t* list = lists + i * size;
        uint32_t* sink = sorted + i * size;
        if (size > 128) sort_list<8>(list, size, sink, lane);
        else if (size > 64) sort_list<4>(list, size, sink, lane);
        else if (size > 32) sort_list<2>(list, size, sink, lane);
        else sort_list<1>(list, size, sink, lane);
    }
}

// Sort lists of equal sizes and pick their candidates, as find_candidates does.
//
// Grid: any; block: 32 * kQueryWarps, one warp a list. Bytes: 4 a location, 16 a candidate.
extern "C" __global__ void __launch_bounds__(32 * kQueryWarps)
    rank_lists(const uint32_t* lists, int64_t count, int size, uint32_t span, int most,
               const Partition* partition_in, Candidate* candidates) {
    __shared__ uint32_t locations[kQueryWarps][kMost];
    const Partition partition = *partition_in;
    const uint32_t lane = threadIdx.x & 31;
    uint32_t* found = locations[threadIdx.x / 32];
    const int64_t warps = int64_t(gridDim.x) * kQueryWarps;
    for (int64_t i = int64_t(blockIdx.x) * kQueryWarps + threadIdx.x / 32; i < count; i += warps) {
        for (int j = lane; j < size; j += 32) found[j] = lists[i * size + j];
        __syncwarp();
        Candidate* row = candidates + i * most;
        if (size > 128) rank_locations<8>(found, size, span, most, partition, true, row, lane);
        else if (size > 64) rank_locations<4>(found, size, span, most, partition, true, row, lane);
        else if (size > 32) rank_locations<2>(found, size, span, most, partition, true, row, lane);
        else rank_locations<1>(found, size, span, most, partition, true, row, lane);
    }
}
