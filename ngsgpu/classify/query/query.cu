// Queries: features, locations, candidates, names; the reference is ngsgpu/classify/query/cpu.py.
//
// A warp takes a query from its letters to its candidates: features in registers, locations
// gathered in shared memory, sorted in registers. The few queries with more locations than a warp
// holds are left to kernels that sort in device memory.
#include "ngsgpu/classify/query/locations.cuh"
#include "ngsgpu/device/cuda/block.cuh"
#include "ngsgpu/device/cuda/reduce.cuh"
#include "ngsgpu/sequence/search.cuh"

namespace {

constexpr int kMost = 256;          // locations of a query that a warp sorts
constexpr int kQueryWarps = 8;      // of a block
constexpr uint32_t kTaken = 4;      // queries that a warp takes at a time
constexpr uint32_t kNameTile = 256;  // names that a block copies together

}  // namespace

// Find the candidates of queries in a partition.
//
// Queries with more than kMost locations are listed in ``longer`` with their numbers of locations,
// in any order, and get an empty row. ``counters``: the queries taken so far and the length of that
// list, initially 0. ``sizes`` receives features, then lengths of first, then of second mates, with
// the first partition.
//
// Grid: any (as many as run at once); block: 32 * kQueryWarps, one warp per query. Bytes: the
// letters (from L2); per feature a sector of directory, entries and locations at random; 16 per
// candidate. Operations: about 10 per k-mer, 150 to sort 32 of them, n log^2 n for n locations.
extern "C" __global__ void __launch_bounds__(32 * kQueryWarps)
    find_candidates(const u8* raw1, const uint32_t* start1, const int32_t* length1, uint32_t first1,
                    const u8* raw2, const uint32_t* start2, const int32_t* length2, uint32_t first2,
                    uint32_t step, uint32_t queries, int kmer, int sketch, int window, int stride,
                    int kept, int insert_size, const Partition* partition_in, int most,
                    int is_first, Candidate* candidates, int32_t* sizes, uint32_t* counters,
                    uint2* longer) {
    __shared__ uint32_t locations[kQueryWarps][kMost];
    const Partition partition = *partition_in;
    const Mate one = {raw1, start1, length1, first1, step};
    const Mate two = {raw2, start2, length2, first2, raw2 ? step : 0};
    const uint32_t lane = threadIdx.x & 31;
    uint32_t* found = locations[threadIdx.x / 32];
    for (;;) {
        uint32_t begin = lane == 0 ? atomicAdd(counters, kTaken) : 0;
        begin = __shfl_sync(WARP, begin, 0);
        if (begin >= queries) return;
        const uint32_t end = min(begin + kTaken, queries);
        for (uint32_t query = begin; query < end; ++query) {
            Candidate* row = candidates + int64_t(query) * most;
            int3 size;
            const uint32_t count = collect_locations(
                one, two, query, kmer, sketch, window, stride, kept, partition, lane, &size,
                [found](uint32_t at, const uint32_t* location) {
                    if (at < kMost) found[at] = *location;
                });
            __syncwarp();
            int written = 0;
            const uint32_t span = span_of(int64_t(size.y) + size.z, insert_size, stride);
            if (count > kMost) {
                if (lane == 0) longer[atomicAdd(counters + 1, 1u)] = {query, count};
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
                    sizes[query] = size.x;
                    sizes[queries + query] = size.y;
                    sizes[2 * queries + query] = size.z;
                }
            }
            __syncwarp();
        }
    }
}

// Gather the locations of the queries that have many, as list << 32 | window, to be sorted.
//
// ``end``: inclusive sums of the queries' locations; ``words``: initially 0.
//
// Grid: any; block: kThreads, one warp per query. Bytes: 4 in, 8 out per location.
extern "C" __global__ void __launch_bounds__(kThreads)
    gather_longer(const u8* raw1, const uint32_t* start1, const int32_t* length1, uint32_t first1,
                  const u8* raw2, const uint32_t* start2, const int32_t* length2, uint32_t first2,
                  uint32_t step, int kmer, int sketch, int window, int stride, int kept,
                  const Partition* partition_in, const uint2* longer, uint32_t count,
                  const int64_t* end, uint64_t* words) {
    const Partition partition = *partition_in;
    const Mate one = {raw1, start1, length1, first1, step};
    const Mate two = {raw2, start2, length2, first2, raw2 ? step : 0};
    const uint32_t lane = threadIdx.x & 31;
    const uint32_t warps = gridDim.x * (kThreads / 32);
    for (uint32_t i = (blockIdx.x * kThreads + threadIdx.x) / 32; i < count; i += warps) {
        uint64_t* sink = words + (i ? end[i - 1] : 0);
        const uint64_t list = uint64_t(i) << 32;
        const uint32_t room = longer[i].y, last = uint32_t(partition.last_window);
        int3 size;
        collect_locations(one, two, longer[i].x, kmer, sketch, window, stride, kept, partition,
                          lane, &size,
                          [sink, list, room, last](uint32_t at, const uint32_t* location) {
                              if (at < room) sink[at] = list | min(*location, last);
                          });
    }
}

// Pick the candidates of queries with many locations, which are sorted in device memory.
//
// Rows may have candidates of other partitions by then, of later ones, too.
//
// ``words``: as gather_longer made them, sorted; ``hits`` and ``group``: scratch, one a location.
//
// Grid: any; block: kThreads, one warp a query. Bytes: 20 a location, 8 more for each candidate.
extern "C" __global__ void __launch_bounds__(kThreads)
    pick_longer(const int32_t* sizes, uint32_t queries, int insert_size, int stride,
                const Partition* partition_in, const uint2* longer, uint32_t count,
                const int64_t* end, const uint64_t* words, uint32_t* hits, int32_t* group, int most,
                Candidate* candidates) {
    const Partition partition = *partition_in;
    const uint32_t lane = threadIdx.x & 31;
    const uint32_t warps = gridDim.x * (kThreads / 32);
    for (uint32_t i = (blockIdx.x * kThreads + threadIdx.x) / 32; i < count; i += warps) {
        const uint32_t query = longer[i].x;
        const int64_t first = i ? end[i - 1] : 0;
        const uint32_t size = uint32_t(end[i] - first);
        const uint64_t* found = words + first;
        uint32_t* own_hits = hits + first;
        int32_t* own_group = group + first;
        Candidate* row = candidates + int64_t(query) * most;
        const int64_t bases = int64_t(sizes[queries + query]) + sizes[2 * queries + query];
        const uint32_t span = span_of(bases, insert_size, stride);
        for (uint32_t j = lane; j < size; j += 32) {
            const uint32_t place = uint32_t(found[j]);
            const int target = target_of(partition, place);
            const uint32_t back = place >= span - 1 ? place - (span - 1) : 0;
            const uint32_t least = max(partition.first_window[target], back);
            const auto is_before = [&](uint32_t i) { return uint32_t(found[i]) < least; };
            const uint32_t low = first_not_before(0u, j, is_before);
            own_group[j] = partition.taxon ? partition.taxon[target] : target;
            own_hits[j] = own_group[j] < 0 ? 0 : j - low + 1;
        }
        __syncwarp();
        for (int number = 0; number < most; ++number) {
            uint32_t best = 0, place = size;
            for (uint32_t j = lane; j < size; j += 32) {
                if (own_hits[j] > best) {
                    best = own_hits[j];
                    place = j;
                }
            }
            const uint32_t top = __reduce_max_sync(WARP, best);
            if (top == 0) break;
            place = __reduce_min_sync(WARP, best == top ? place : kNone);
            const int32_t chosen = own_group[place];
            if (lane == 0) {
                const uint32_t last = uint32_t(found[place]);
                const int target = target_of(partition, last);
                const uint32_t origin = partition.first_window[target];
                const Candidate own = {partition.target[target], int(top),
                                       int(uint32_t(found[place - top + 1]) - origin),
                                       int(last - origin)};
                insert_candidate(row, most, own, partition.taxon_of_target);
            }
            __syncwarp();
            for (uint32_t j = lane; j < size; j += 32)
                if (own_group[j] == chosen) own_hits[j] = 0;
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
