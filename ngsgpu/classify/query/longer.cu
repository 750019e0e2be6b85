// Queries with more locations than a warp holds, as databases with many strains have them.
//
// A block takes a query as a warp takes one with fewer locations (query.cu): lists of locations are
// copied to shared memory, sorted in registers, and ranked. The few with more locations than that
// are sorted together in device memory, between two kernels.
#include "ngsgpu/classify/query/locations.cuh"
#include "ngsgpu/classify/query/longer.cuh"
#include "ngsgpu/device/cuda/block.cuh"
#include "ngsgpu/device/cuda/reduce.cuh"
#include "ngsgpu/sequence/search.cuh"

namespace {

constexpr uint32_t kBlock = 256;
constexpr uint32_t kBlockWarps = kBlock / 32;
constexpr int kMostCandidates = 64;  // of a query, QueryParameters.candidates

// What a block shares.
struct Shared {
    uint32_t found[kMostOfBlock];  // locations
    int32_t group[kMostOfBlock];   // their targets or taxa
    uint16_t hits[kMostOfBlock];   // of the ranges that end there
    uint2 list[kBlock];            // first location and how many, of the features of a round
    uint32_t place[kBlock];        // where they go
    uint32_t best[2][kBlockWarps];  // hits and place of the best range of each warp, by turns
    uint32_t chosen[kMostCandidates];
    Candidate own[kMostCandidates];
    Candidate row[kMostCandidates];
    uint32_t taken;
};

// A mate of a query.
struct Text {
    const u8* text;
    int length;
    int windows;
};

__device__ __forceinline__ Text text_of(const Mate& mate, uint32_t record, int kmer, int window,
                                        int stride) {
    const int length = mate.length[record];
    return {mate.raw + mate.start[record], length, windows_of(length, kmer, window, stride)};
}

// Copy the locations of a query's features to shared memory. In each round a warp sketches one of
// the windows of both mates, then all copy the lists that these have.
__device__ void gather_in_block(Shared& shared, const Mate& one, const Mate& two, uint32_t query,
                                int kmer, int sketch, int window, int stride, int kept,
                                const Partition& partition) {
    const uint32_t lane = threadIdx.x & 31, warp = threadIdx.x / 32, record = query * one.step;
    const Text first = text_of(one, one.first + record, kmer, window, stride);
    Text second = {nullptr, 0, 0};
    if (two.step) second = text_of(two, two.first + record, kmer, window, stride);
    const int windows = first.windows + second.windows;
    uint32_t done = 0;
    for (int round = 0; round < windows; round += int(kBlockWarps)) {
        const int all = round + int(warp);
        const Text own = all < first.windows ? first : second;
        const int number = all < first.windows ? all : all - first.windows;
        uint2 list = {0, 0};
        int features;
        if (number < own.windows)
            list = list_of_feature(own.text, own.length, number, kmer, sketch, window, stride, kept,
                                   partition, lane, &features);
        uint32_t total;
        shared.place[threadIdx.x] = done + block_exclusive_sum<kBlock>(list.y, &total);
        shared.list[threadIdx.x] = list;
        __syncthreads();
        const uint32_t lists = 32 * min(kBlockWarps, uint32_t(windows - round));
        for (uint32_t i = warp; i < lists; i += kBlockWarps) {
            const uint2 copied = shared.list[i];
            const uint32_t place = shared.place[i];
            for (uint32_t j = lane; j < copied.y && place + j < kMostOfBlock; j += 32)
                shared.found[place + j] = partition.locations[copied.x + j];
        }
        done += total;
        __syncthreads();
    }
}

// One step of a bitonic merge: value i of a thread and value ``i ^ flipped`` of the thread that
// differs in the bits ``across``; who is first there gets the smaller one.
template <int kPer>
__device__ __forceinline__ void exchange(uint32_t (&values)[kPer], uint32_t* shared,
                                         uint32_t across, uint32_t flipped) {
    const uint32_t other = threadIdx.x ^ across;
    __syncthreads();
#pragma unroll
    for (uint32_t i = 0; i < kPer; ++i) shared[i * kBlock + threadIdx.x] = values[i];
    __syncthreads();
#pragma unroll
    for (uint32_t i = 0; i < kPer; ++i) {
        const uint32_t theirs = shared[(i ^ flipped) * kBlock + other];
        values[i] = threadIdx.x < other ? min(values[i], theirs) : max(values[i], theirs);
    }
}

// Sort kPer * kBlock values of a block, ascending; value ``threadIdx.x * kPer + i`` is value i of
// the thread. Runs of warps are merged: a run and the next one reversed are bitonic.
template <int kPer>
__device__ __forceinline__ void sort_in_block(uint32_t (&values)[kPer], uint32_t* shared) {
    const uint32_t lane = threadIdx.x & 31;
    sort_registers(values, lane);
#pragma unroll
    for (uint32_t run = 2; run <= kBlockWarps; run *= 2) {
        exchange(values, shared, 32 * run - 1, kPer - 1);
#pragma unroll
        for (uint32_t across = 8 * run; across >= 32; across /= 2)
            exchange(values, shared, across, 0);
        sort_registers<kPer>(values, lane, 32 * kPer);
    }
    __syncthreads();
}

// Sort the locations of a query, at most kPer * kBlock.
template <int kPer>
__device__ __forceinline__ void sort_locations(uint32_t* found, uint32_t count, uint32_t last) {
    uint32_t values[kPer];
#pragma unroll
    for (uint32_t i = 0; i < kPer; ++i) {
        const uint32_t at = i * kBlock + threadIdx.x;
        values[i] = at < count ? min(found[at], last) : kNone;
    }
    sort_in_block(values, found);
#pragma unroll
    for (uint32_t i = 0; i < kPer; ++i) found[threadIdx.x * kPer + i] = values[i];
    __syncthreads();
}

// Find the best ranges of a query's sorted locations, as rank_locations does; ``chosen`` gets hits
// and complements of the places of their ends. Returns their number.
__device__ int choose_in_block(Shared& shared, uint32_t count, uint32_t span, int most,
                               const Partition& partition) {
    const uint32_t lane = threadIdx.x & 31, warp = threadIdx.x / 32;
    const auto sorted = [&shared](uint32_t i) { return shared.found[i]; };
    for (uint32_t at = threadIdx.x; at < count; at += kBlock) {
        int32_t group;
        const uint32_t hits = hits_up_to(sorted, at, span, partition, &group);
        shared.group[at] = group;
        shared.hits[at] = group < 0 ? 0 : hits;
    }
    int number = 0;
    for (; number < most; ++number) {
        uint32_t best = 0;
        for (uint32_t at = threadIdx.x; at < count; at += kBlock)
            if (const uint32_t hits = shared.hits[at]) best = max(best, hits << 16 | (0xFFFF - at));
        best = __reduce_max_sync(WARP, best);
        uint32_t* all = shared.best[number & 1];
        if (lane == 0) all[warp] = best;
        __syncthreads();
        for (uint32_t i = 0; i < kBlockWarps; ++i) best = max(best, all[i]);
        if (best == 0) break;
        if (threadIdx.x == 0) shared.chosen[number] = best;
        const int32_t group = shared.group[0xFFFF - (best & 0xFFFF)];
        for (uint32_t at = threadIdx.x; at < count; at += kBlock)
            if (shared.group[at] == group) shared.hits[at] = 0;
    }
    __syncthreads();
    return number;
}

// Insert the candidates of chosen ranges into the query's row, by the first warp.
__device__ void insert_chosen(Shared& shared, int number, int most, const Partition& partition,
                              Candidate* row) {
    const int lane = int(threadIdx.x);
    const auto sorted = [&shared](uint32_t i) { return shared.found[i]; };
    for (int i = lane; i < most; i += 32) {
        shared.row[i] = row[i];
        if (i >= number) continue;
        const uint32_t place = 0xFFFF - (shared.chosen[i] & 0xFFFF);
        shared.own[i] = candidate_at(sorted, place, shared.chosen[i] >> 16, partition);
    }
    __syncwarp();
    if (lane == 0)
        for (int i = 0; i < number; ++i)
            insert_candidate(shared.row, most, shared.own[i], partition.taxon_of_target);
    __syncwarp();
    for (int i = lane; i < most; i += 32) row[i] = shared.row[i];
}

}  // namespace

// Add the candidates of the queries that have many locations, but not too many for a block.
//
// Rows may have candidates of other partitions by then.
//
// Grid: any (as many as run at once); block: kBlock, one a query. Bytes: as find_candidates.
// Operations: n log^2 n for n locations.
extern "C" __global__ void __launch_bounds__(kBlock, 4)
    rank_longer(const u8* raw1, const uint32_t* start1, const int32_t* length1, uint32_t first1,
                const u8* raw2, const uint32_t* start2, const int32_t* length2, uint32_t first2,
                uint32_t step, uint32_t queries, int kmer, int sketch, int window, int stride,
                int kept, int insert_size, const Partition* partition_in, int most,
                const int32_t* sizes, uint32_t* counters, const uint2* longer,
                Candidate* candidates) {
    __shared__ Shared shared;
    const Partition partition = *partition_in;
    const Mate one = {raw1, start1, length1, first1, step};
    const Mate two = {raw2, start2, length2, first2, raw2 ? step : 0};
    const uint32_t wanted = counters[kLonger];
    for (;;) {
        if (threadIdx.x == 0) shared.taken = atomicAdd(counters + kTakenLonger, 1u);
        __syncthreads();
        const uint32_t taken = shared.taken;
        if (taken >= wanted) return;
        const uint32_t query = longer[taken].x;
        const uint32_t count = min(longer[taken].y, kMostOfBlock);
        Candidate* row = candidates + int64_t(query) * most;
        const int64_t bases = int64_t(sizes[queries + query]) + sizes[2 * queries + query];
        const uint32_t span = span_of(bases, insert_size, stride);
        gather_in_block(shared, one, two, query, kmer, sketch, window, stride, kept, partition);
        const uint32_t last = uint32_t(partition.last_window);
        if (count > 8 * kBlock) sort_locations<16>(shared.found, count, last);
        else if (count > 4 * kBlock) sort_locations<8>(shared.found, count, last);
        else if (count > 2 * kBlock) sort_locations<4>(shared.found, count, last);
        else sort_locations<2>(shared.found, count, last);
        const int number = choose_in_block(shared, count, span, most, partition);
        if (threadIdx.x < 32) insert_chosen(shared, number, most, partition, row);
        __syncthreads();  // all have read what the next query overwrites
    }
}

// Gather the locations of the queries that have most, as list << 32 | window, to be sorted.
//
// ``end``: inclusive sums of the queries' locations; ``words``: initially 0.
//
// Grid: any; block: kThreads, one warp per query. Bytes: 4 in, 8 out per location.
extern "C" __global__ void __launch_bounds__(kThreads)
    gather_longest(const u8* raw1, const uint32_t* start1, const int32_t* length1, uint32_t first1,
                  const u8* raw2, const uint32_t* start2, const int32_t* length2, uint32_t first2,
                  uint32_t step, int kmer, int sketch, int window, int stride, int kept,
                  const Partition* partition_in, const uint2* longest, uint32_t count,
                  const int64_t* end, uint64_t* words) {
    const Partition partition = *partition_in;
    const Mate one = {raw1, start1, length1, first1, step};
    const Mate two = {raw2, start2, length2, first2, raw2 ? step : 0};
    const uint32_t lane = threadIdx.x & 31;
    const uint32_t warps = gridDim.x * (kThreads / 32);
    for (uint32_t i = (blockIdx.x * kThreads + threadIdx.x) / 32; i < count; i += warps) {
        uint64_t* sink = words + (i ? end[i - 1] : 0);
        const uint64_t list = uint64_t(i) << 32;
        const uint32_t room = longest[i].y, last = uint32_t(partition.last_window);
        int3 size;
        collect_locations(one, two, longest[i].x, kmer, sketch, window, stride, kept, partition,
                          lane, &size,
                          [sink, list, room, last](uint32_t at, const uint32_t* location) {
                              if (at < room) sink[at] = list | min(*location, last);
                          });
    }
}

// Pick the candidates of queries whose locations are sorted in device memory.
//
// Rows may have candidates of other partitions by then, of later ones, too.
//
// ``words``: as gather_longest made them, sorted; ``hits`` and ``group``: scratch, one a location.
//
// Grid: any; block: kThreads, one warp a query. Bytes: 20 a location, 8 more for each candidate.
extern "C" __global__ void __launch_bounds__(kThreads)
    pick_longest(const int32_t* sizes, uint32_t queries, int insert_size, int stride,
                const Partition* partition_in, const uint2* longest, uint32_t count,
                const int64_t* end, const uint64_t* words, uint32_t* hits, int32_t* group, int most,
                Candidate* candidates) {
    const Partition partition = *partition_in;
    const uint32_t lane = threadIdx.x & 31;
    const uint32_t warps = gridDim.x * (kThreads / 32);
    for (uint32_t i = (blockIdx.x * kThreads + threadIdx.x) / 32; i < count; i += warps) {
        const uint32_t query = longest[i].x;
        const int64_t first = i ? end[i - 1] : 0;
        const uint32_t size = uint32_t(end[i] - first);
        const uint64_t* found = words + first;
        uint32_t* own_hits = hits + first;
        int32_t* own_group = group + first;
        Candidate* row = candidates + int64_t(query) * most;
        const int64_t bases = int64_t(sizes[queries + query]) + sizes[2 * queries + query];
        const uint32_t span = span_of(bases, insert_size, stride);
        const auto sorted = [found](uint32_t j) { return uint32_t(found[j]); };
        for (uint32_t j = lane; j < size; j += 32) {
            const uint32_t own = hits_up_to(sorted, j, span, partition, &own_group[j]);
            own_hits[j] = own_group[j] < 0 ? 0 : own;
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
            if (lane == 0)
                insert_candidate(row, most, candidate_at(sorted, place, top, partition),
                                 partition.taxon_of_target);
            __syncwarp();
            for (uint32_t j = lane; j < size; j += 32)
                if (own_group[j] == chosen) own_hits[j] = 0;
            __syncwarp();
        }
    }
}
