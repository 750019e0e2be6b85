// Queries: features, locations, candidates, names; the reference is ngsgpu/classify/query/cpu.py.
//
// A warp takes a query from its letters to its candidates: features in registers, locations
// gathered in shared memory, sorted in registers. Queries with more locations than a warp holds are
// left to the kernels of longer.cu.
#include "ngsgpu/classify/query/locations.cuh"
#include "ngsgpu/classify/query/longer.cuh"
#include "ngsgpu/device/cuda/block.cuh"

namespace {

constexpr int kMost = 256;          // locations of a query that a warp sorts
constexpr int kQueryWarps = 8;      // of a block
constexpr uint32_t kTaken = 4;      // queries that a warp takes at a time
constexpr uint32_t kNameTile = 256;  // names that a block copies together

}  // namespace

// Find the candidates of queries in a partition.
//
// Queries with more than kMost locations, or with features that repeat within a range, get an empty
// row and are listed in ``longer`` with their numbers of locations, in any order; those with more
// than kMostOfBlock in ``longest``.
// ``counters``: initially 0. ``sizes`` receives features, then lengths of first, then of second
// mates, with the first partition.
//
// Grid: any (as many as run at once); block: 32 * kQueryWarps, one warp per query. Bytes: the
// letters (from L2); per feature a sector of directory, entries and locations at random; 16 per
// candidate. Operations: about 60 warp instructions per 32 k-mers, n log^2 n for n locations.
extern "C" __global__ void __launch_bounds__(32 * kQueryWarps)
    find_candidates(const u8* raw1, const uint32_t* start1, const int32_t* length1, uint32_t first1,
                    const u8* raw2, const uint32_t* start2, const int32_t* length2, uint32_t first2,
                    uint32_t step, uint32_t queries, int kmer, int sketch, int window, int stride,
                    int kept, int smer, int insert_size, const Partition* partition_in, int most,
                    int is_first, int32_t* sizes, uint32_t* counters, uint2* longer,
                    uint2* longest, Candidate* candidates) {
    __shared__ uint32_t locations[kQueryWarps][kMost], all_keys[kQueryWarps][kMostKeys];
    const Partition partition = *partition_in;
    const Mate one = {raw1, start1, length1, first1, step};
    const Mate two = {raw2, start2, length2, first2, raw2 ? step : 0};
    const SketchRules rules = {kmer, sketch, window, stride, kept, smer};
    const uint32_t lane = threadIdx.x & 31;
    uint32_t* keys = all_keys[threadIdx.x / 32];
    uint32_t* found = locations[threadIdx.x / 32];
    for (;;) {
        uint32_t begin = lane == 0 ? atomicAdd(counters + kTakenQueries, kTaken) : 0;
        begin = __shfl_sync(WARP, begin, 0);
        if (begin >= queries) return;
        const uint32_t end = min(begin + kTaken, queries);
        for (uint32_t query = begin; query < end; ++query) {
            Candidate* row = candidates + int64_t(query) * most;
            const Query own(one, two, query);
            const uint32_t span = span_of(own.bases(), insert_size, rules);
            int features;
            bool repeats = false;
            const uint32_t count = collect_locations(
                own, rules, span, partition, lane, keys, &features,
                [&](uint32_t at, const Locations& locations, uint32_t i) {
                    if (at < kMost) found[at] = locations.window(i, partition);
                    repeats |= at < kMost && locations.joined(i, partition);
                });
            repeats = __any_sync(WARP, repeats);
            __syncwarp();
            int written = 0;
            if (count > kMostOfBlock) {
                if (lane == 0) longest[atomicAdd(counters + kLongest, 1u)] = {query, count};
            } else if (count > kMost || repeats) {
                if (lane == 0) longer[atomicAdd(counters + kLonger, 1u)] = {query, count};
            } else if (count > 128) {
                written = rank_locations<8>(found, count, span, most, partition, is_first, row, lane);
            } else if (count > 64) {
                written = rank_locations<4>(found, count, span, most, partition, is_first, row, lane);
            } else if (count > 32) {
                written = rank_locations<2>(found, count, span, most, partition, is_first, row, lane);
            } else if (count > 0) {
                written = rank_locations<1>(found, count, span, most, partition, is_first, row, lane);
            }
            if (is_first) {
                for (int i = written + int(lane); i < most; i += 32) row[i] = {-1, 0, 0, 0};
                if (lane == 0) {
                    sizes[query] = features;
                    sizes[queries + query] = own.length[0];
                    sizes[2 * queries + query] = own.length[1];
                }
            }
            __syncwarp();
        }
    }
}

// Merge the candidates from other partitions into the lists of queries.
//
// ``taxon_of_target``: null if calls may be sequences.
//
// Grid: any; block: kThreads, one thread per query. Bytes: 16 per candidate of both, and of the
// result.
extern "C" __global__ void __launch_bounds__(kThreads)
    merge_candidates(const Candidate* other, uint32_t queries, int most,
                     const int32_t* taxon_of_target, Candidate* candidates) {
    const uint32_t step = gridDim.x * kThreads;
    for (uint32_t i = blockIdx.x * kThreads + threadIdx.x; i < queries; i += step) {
        const int64_t row = int64_t(i) * most;
        for (int j = 0; j < most && other[row + j].x >= 0; ++j)
            insert_candidate(candidates + row, most, other[row + j], taxon_of_target);
    }
}

// Copy the first words of the headers of FASTQ records, without a mate number if ``strip``.
//
// The header of record r is between line ends 4 r - 1 and 4 r of the chunk, which begins at
// ``begin``; query i is record ``first + i * step``. Names of a block are contiguous, blocks in any
// order; ``used``, initially 0, becomes the total number of bytes.
//
// Grid: one block per kNameTile queries; block: kThreads. Bytes: the headers (from L2), the names
// in and out, 8 out per query.
extern "C" __global__ void __launch_bounds__(kThreads)
    copy_names(const u8* raw, const uint32_t* line_end, uint32_t begin, uint32_t first,
               uint32_t step, uint32_t queries, int strip, uint32_t* used, uint32_t* start,
               uint32_t* length, u8* names) {
    __shared__ uint32_t source[kNameTile], size[kNameTile], sink[kNameTile];
    __shared__ uint32_t origin;
    const uint32_t lane = threadIdx.x & 31, warp = threadIdx.x / 32;
    const uint32_t query = blockIdx.x * kNameTile + threadIdx.x;
    uint32_t from = 0, at = 0;
    if (query < queries) {
        const uint32_t record = first + query * step;
        from = (record ? line_end[4 * record - 1] + 1 : begin) + 1;
        at = from;
        uint32_t last = line_end[4 * record];
        if (last > from && raw[last - 1] == '\r') --last;
        while (at < last && raw[at] != ' ' && raw[at] != '\t') ++at;
        if (strip && at - from > 2 && raw[at - 2] == '/' &&
            (raw[at - 1] == '1' || raw[at - 1] == '2'))
            at -= 2;
    }
    uint32_t total;
    const uint32_t before = block_exclusive_sum<kThreads>(at - from, &total);
    if (threadIdx.x == 0) origin = atomicAdd(used, total);
    __syncthreads();
    source[threadIdx.x] = from;
    size[threadIdx.x] = at - from;
    sink[threadIdx.x] = origin + before;
    if (query < queries) {
        start[query] = sink[threadIdx.x];
        length[query] = at - from;
    }
    __syncwarp();
    for (uint32_t i = warp * 32; i < warp * 32 + 32; ++i)
        for (uint32_t j = lane; j < size[i]; j += 32) names[sink[i] + j] = raw[source[i] + j];
}
