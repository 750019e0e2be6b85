// Queries with more locations than a warp holds, as databases with many strains have them, and
// those with features that repeat within a range.
//
// Many of these locations are in the same windows: a block counts, in a hash table in shared memory,
// how many runs begin and end in each window (see cpu.py), and sorts and ranks the windows. The few
// queries with more windows than that takes have their locations sorted together in device memory,
// between two kernels.
#include "ngsgpu/classify/query/locations.cuh"
#include "ngsgpu/classify/query/longer.cuh"
#include "ngsgpu/device/cuda/block.cuh"
#include "ngsgpu/device/cuda/reduce.cuh"
#include "ngsgpu/sequence/search.cuh"

namespace {

constexpr uint32_t kBlock = 256;
constexpr uint32_t kBlockWarps = kBlock / 32;
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ == 750
constexpr int kBlocks = 4;  // of a multiprocessor: all that it takes
#else
constexpr int kBlocks = 6;  // as many as have room in shared memory of 228 KiB
#endif
constexpr uint32_t kWindows = 1024;  // of a query
constexpr uint32_t kSlotBits = 11;
constexpr uint32_t kSlots = 1u << kSlotBits;  // more than kWindows + kBlock
constexpr int kMostCandidates = 64;           // of a query, QueryParameters.candidates

constexpr int kEnds = 16;  // bits above which a word counts ends of runs; below, starts
constexpr uint32_t kStarts = (1u << kEnds) - 1;

// What a block shares.
struct Shared {
    uint32_t key[kSlots];           // of the hash table: windows
    uint32_t count[kSlots];         // their starts and ends of runs
    uint32_t window[kWindows];      // as they were found, then sorted
    int32_t group[kWindows];        // targets or taxa
    uint32_t before[kWindows + 1];  // starts and ends in windows before this one
    union {
        struct {                      // while windows are counted
            uint32_t keys[kMostKeys];
            uint2 list[kMostKeys];    // first location and how many
        };
        struct {                      // while they are ranked
            uint16_t first[kWindows]; // of the ranges that end there: the first window
            uint16_t hits[kWindows];  // and the hits
        };
    };
    uint32_t best[2][kBlockWarps];     // hits and place of the best range of each warp, by turns
    uint32_t chosen[kMostCandidates];  // of the best ranges
    Candidate own[kMostCandidates];
    Candidate row[kMostCandidates];
    uint32_t windows;  // found; beyond kWindows they are not all there
    uint32_t taken;
    int features;  // of a batch
};

static_assert(kMostKeys <= kBlock, "a thread looks up a key");

// The slot of a window in the hash table, which it gets if it has none; or kSlots if there are too
// many windows.
__device__ __forceinline__ uint32_t slot_of(Shared& shared, uint32_t window) {
    uint32_t slot = (window * 0x9E3779B1u) >> (32 - kSlotBits);
    for (;; slot = (slot + 1) % kSlots) {
        uint32_t key = *static_cast<volatile uint32_t*>(shared.key + slot);
        if (key == kNone) {
            if (*static_cast<volatile uint32_t*>(&shared.windows) >= kWindows) return kSlots;
            key = atomicCAS(shared.key + slot, kNone, window);
            if (key == kNone) {
                const uint32_t number = atomicAdd(&shared.windows, 1u);
                if (number < kWindows) shared.window[number] = window;
                return slot;
            }
        }
        if (key == window) return slot;
    }
}

// Count the runs of a query's features by windows. The first warp finds a batch of keys, then all go
// through the lists that these have.
__device__ void count_in_block(Shared& shared, const Query& query, const SketchRules& rules,
                               uint32_t span, const Partition& partition) {
    const uint32_t lane = threadIdx.x & 31, warp = threadIdx.x / 32;
    const uint32_t gap = rules.smer > 0 ? span : 0;
    Taken taken = {0, 0};
    for (;;) {
        if (warp == 0) {
            const int found = next_keys(query, rules, lane, &taken, shared.keys);
            if (lane == 0) shared.features = found;
        }
        __syncthreads();
        const int count = shared.features;
        if (count == 0) break;
        if (int(threadIdx.x) < count)
            shared.list[threadIdx.x] = find_key(partition, shared.keys[threadIdx.x]);
        __syncthreads();
        for (int i = int(warp); i < count; i += int(kBlockWarps)) {
            const uint2 list = shared.list[i];
            const Locations own = {partition.locations + list.x, list.y, gap};
            for (uint32_t j = lane; j < list.y; j += 32) {
                const uint32_t starts = !own.joined(j, partition);
                const uint32_t ends = !own.joined(j + 1, partition);
                if (starts + ends == 0) continue;
                const uint32_t slot = slot_of(shared, own.window(j, partition));
                if (slot < kSlots) atomicAdd(shared.count + slot, starts + (ends << kEnds));
            }
        }
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

// Sort the windows of a query, at most kPer * kBlock, and sum their starts and ends of runs.
template <int kPer>
__device__ __forceinline__ void sort_windows(Shared& shared, uint32_t windows) {
    uint32_t values[kPer], counts[kPer], sum = 0, total;
#pragma unroll
    for (uint32_t i = 0; i < kPer; ++i) {
        const uint32_t at = i * kBlock + threadIdx.x;
        values[i] = at < windows ? shared.window[at] : kNone;
    }
    sort_in_block(values, shared.window);
#pragma unroll
    for (uint32_t i = 0; i < kPer; ++i) {
        const uint32_t at = threadIdx.x * kPer + i;
        shared.window[at] = values[i];
        counts[i] = at < windows ? shared.count[slot_of(shared, values[i])] : 0;
        sum += counts[i];
    }
    uint32_t before = block_exclusive_sum<kBlock>(sum, &total);
#pragma unroll
    for (uint32_t i = 0; i < kPer; ++i) {
        shared.before[threadIdx.x * kPer + i] = before;
        before += counts[i];
    }
    if (threadIdx.x == kBlock - 1) shared.before[kPer * kBlock] = before;
    __syncthreads();
}

// Find the best ranges of a query's windows, as rank_locations does; ``chosen`` gets their hits and
// the complements of the windows that they end with. Returns their number.
__device__ int choose_in_block(Shared& shared, uint32_t windows, uint32_t span, int most,
                               const Partition& partition) {
    const uint32_t lane = threadIdx.x & 31, warp = threadIdx.x / 32;
    const auto sorted = [&shared](uint32_t i) { return shared.window[i]; };
    for (uint32_t at = threadIdx.x; at < windows; at += kBlock) {
        int32_t group;
        const uint32_t first = range_to(sorted(at), sorted, at, span, partition, &group);
        shared.first[at] = first;
        shared.group[at] = group;
        const uint32_t starts = shared.before[at + 1] & kStarts;
        shared.hits[at] = group < 0 ? 0 : starts - (shared.before[first] >> kEnds);
    }
    int number = 0;
    for (; number < most; ++number) {
        uint32_t best = 0;
        for (uint32_t at = threadIdx.x; at < windows; at += kBlock)
            if (const uint32_t hits = shared.hits[at]) best = max(best, hits << 16 | (0xFFFF - at));
        best = __reduce_max_sync(WARP, best);
        uint32_t* all = shared.best[number & 1];
        if (lane == 0) all[warp] = best;
        __syncthreads();
        for (uint32_t i = 0; i < kBlockWarps; ++i) best = max(best, all[i]);
        if (best == 0) break;
        if (threadIdx.x == 0) shared.chosen[number] = best;
        const int32_t group = shared.group[0xFFFF - (best & 0xFFFF)];
        for (uint32_t at = threadIdx.x; at < windows; at += kBlock)
            if (shared.group[at] == group) shared.hits[at] = 0;
    }
    __syncthreads();
    return number;
}

// Insert the candidates of chosen ranges into the query's row, by the first warp.
__device__ void insert_chosen(Shared& shared, int number, int most, const Partition& partition,
                              Candidate* row) {
    const int lane = int(threadIdx.x);
    for (int i = lane; i < most; i += 32) {
        shared.row[i] = row[i];
        if (i >= number) continue;
        const uint32_t at = 0xFFFF - (shared.chosen[i] & 0xFFFF);
        shared.own[i] = candidate_of(shared.window[shared.first[at]], shared.window[at],
                                     shared.chosen[i] >> 16, partition);
    }
    __syncwarp();
    if (lane == 0)
        for (int i = 0; i < number; ++i)
            insert_candidate(shared.row, most, shared.own[i], partition.taxon_of_target);
    __syncwarp();
    for (int i = lane; i < most; i += 32) row[i] = shared.row[i];
}

}  // namespace

// Add the candidates of the queries in ``longer``, whose rows may have candidates of other
// partitions by then; queries with too many windows for a block are moved to ``longest``.
//
// Grid: any (as many as run at once); block: kBlock, one a query. Bytes: as find_candidates.
// Operations: some 20 a location, n log^2 n for n windows.
extern "C" __global__ void __launch_bounds__(kBlock, kBlocks)
    rank_longer(const u8* raw1, const uint32_t* start1, const int32_t* length1, uint32_t first1,
                const u8* raw2, const uint32_t* start2, const int32_t* length2, uint32_t first2,
                uint32_t step, uint32_t queries, int kmer, int sketch, int window, int stride,
                int kept, int smer, int insert_size, const Partition* partition_in, int most,
                uint32_t* counters, const uint2* longer, uint2* longest, Candidate* candidates) {
    __shared__ Shared shared;
    const Partition partition = *partition_in;
    const Mate one = {raw1, start1, length1, first1, step};
    const Mate two = {raw2, start2, length2, first2, raw2 ? step : 0};
    const SketchRules rules = {kmer, sketch, window, stride, kept, smer};
    const uint32_t wanted = counters[kLonger];
    for (;;) {
        if (threadIdx.x == 0) {
            shared.taken = atomicAdd(counters + kTakenLonger, 1u);
            shared.windows = 0;
        }
        for (uint32_t i = threadIdx.x; i < kSlots; i += kBlock) {
            shared.key[i] = kNone;
            shared.count[i] = 0;
        }
        __syncthreads();
        const uint32_t taken = shared.taken;
        if (taken >= wanted) return;
        const uint32_t query = longer[taken].x;
        const Query own(one, two, query);
        const uint32_t span = span_of(own.bases(), insert_size, rules);
        count_in_block(shared, own, rules, span, partition);
        const uint32_t windows = shared.windows;
        if (windows >= kWindows) {
            if (threadIdx.x == 0) longest[atomicAdd(counters + kLongest, 1u)] = longer[taken];
        } else {
            if (windows > 2 * kBlock) sort_windows<4>(shared, windows);
            else if (windows > kBlock) sort_windows<2>(shared, windows);
            else sort_windows<1>(shared, windows);
            const int number = choose_in_block(shared, windows, span, most, partition);
            Candidate* row = candidates + int64_t(query) * most;
            if (threadIdx.x < 32) insert_chosen(shared, number, most, partition, row);
        }
        __syncthreads();  // all have read what the next query overwrites
    }
}

// Gather the starts of runs of the queries that have most locations, as list << 32 | window, and
// their ends, to be sorted; kNone stands for locations that are none.
//
// ``end``: inclusive sums of the queries' locations; ``words`` and ``ends``: initially 0; ``ends``
// null if each location is a run.
//
// Grid: any; block: kThreads, one warp per query. Bytes: 4 in, 16 out per location.
extern "C" __global__ void __launch_bounds__(kThreads)
    gather_longest(const u8* raw1, const uint32_t* start1, const int32_t* length1, uint32_t first1,
                  const u8* raw2, const uint32_t* start2, const int32_t* length2, uint32_t first2,
                  uint32_t step, int kmer, int sketch, int window, int stride, int kept, int smer,
                  int insert_size, const Partition* partition_in, const uint2* longest,
                  uint32_t count, const int64_t* end, uint64_t* words, uint64_t* ends) {
    __shared__ uint32_t all_keys[kThreads / 32][kMostKeys];
    const Partition partition = *partition_in;
    const Mate one = {raw1, start1, length1, first1, step};
    const Mate two = {raw2, start2, length2, first2, raw2 ? step : 0};
    const SketchRules rules = {kmer, sketch, window, stride, kept, smer};
    const uint32_t lane = threadIdx.x & 31;
    const uint32_t warps = gridDim.x * (kThreads / 32);
    for (uint32_t i = (blockIdx.x * kThreads + threadIdx.x) / 32; i < count; i += warps) {
        const int64_t first = i ? end[i - 1] : 0;
        const uint64_t list = uint64_t(i) << 32;
        const uint32_t room = longest[i].y;
        const Query own(one, two, longest[i].x);
        const uint32_t span = span_of(own.bases(), insert_size, rules);
        int features;
        collect_locations(own, rules, span, partition, lane, all_keys[threadIdx.x / 32], &features,
                          [&](uint32_t at, const Locations& locations, uint32_t j) {
                              if (at >= room) return;
                              const uint64_t word = list | locations.window(j, partition);
                              const bool starts = !locations.joined(j, partition);
                              words[first + at] = starts ? word : list | kNone;
                              if (ends == nullptr) return;
                              const bool is_end = !locations.joined(j + 1, partition);
                              ends[first + at] = is_end ? word : list | kNone;
                          });
    }
}

// The largest value of a block, for all its threads; ``all`` has one for each warp.
__device__ __forceinline__ uint64_t block_max(uint64_t value, uint64_t* all) {
    for (uint32_t distance = 16; distance > 0; distance /= 2)
        value = max(value, uint64_t(__shfl_xor_sync(WARP, value, distance)));
    __syncthreads();  // all have read what it had
    if ((threadIdx.x & 31) == 0) all[threadIdx.x / 32] = value;
    __syncthreads();
    for (uint32_t i = 0; i < kBlockWarps; ++i) value = max(value, all[i]);
    return value;
}

// Pick the candidates of queries whose locations are sorted in device memory.
//
// Rows may have candidates of other partitions by then, of later ones, too.
//
// ``words`` and ``ends``: as gather_longest made them, sorted; ``hits`` and ``group``: scratch, one
// a location.
//
// Grid: any; block: kBlock, one a query. Bytes: 28 a location, 8 more for each candidate.
extern "C" __global__ void __launch_bounds__(kBlock)
    pick_longest(const int32_t* sizes, uint32_t queries, int kmer, int sketch, int window,
                 int stride, int kept, int smer, int insert_size, const Partition* partition_in,
                 const uint2* longest, uint32_t count, const int64_t* end, const uint64_t* words,
                 const uint64_t* ends, uint32_t* hits, int32_t* group, int most,
                 Candidate* candidates) {
    __shared__ uint64_t all[kBlockWarps];
    const Partition partition = *partition_in;
    const SketchRules rules = {kmer, sketch, window, stride, kept, smer};
    for (uint32_t i = blockIdx.x; i < count; i += gridDim.x) {
        const uint32_t query = longest[i].x;
        const int64_t first = i ? end[i - 1] : 0;
        const uint32_t size = uint32_t(end[i] - first);
        uint32_t* own_hits = hits + first;
        int32_t* own_group = group + first;
        Candidate* row = candidates + int64_t(query) * most;
        const int64_t bases = int64_t(sizes[queries + query]) + sizes[2 * queries + query];
        const uint32_t span = span_of(bases, insert_size, rules);
        const uint64_t *found = words + first, *found_ends = ends + first;
        const auto sorted = [found](uint32_t j) { return uint32_t(found[j]); };
        const auto last = [found_ends](uint32_t j) { return uint32_t(found_ends[j]); };
        for (uint32_t j = threadIdx.x; j < size; j += kBlock) {
            own_hits[j] = 0;
            own_group[j] = -1;
            if (sorted(j) == kNone) continue;
            const uint32_t own = range_to(sorted(j), last, j, span, partition, &own_group[j]);
            if (own_group[j] >= 0) own_hits[j] = j + 1 - own;
        }
        for (int number = 0; number < most; ++number) {
            uint64_t best = 0;
            for (uint32_t j = threadIdx.x; j < size; j += kBlock)
                if (own_hits[j]) best = max(best, uint64_t(own_hits[j]) << 32 | uint32_t(~j));
            best = block_max(best, all);
            if (best == 0) break;
            const uint32_t top = uint32_t(best >> 32), place = ~uint32_t(best);
            const int32_t chosen = own_group[place];
            if (threadIdx.x == 0) {
                const uint32_t window = sorted(place);
                const uint32_t least =
                    range_begin(window, target_of(partition, window), span, partition);
                const uint32_t start = first_not_before(
                    0u, place, [&](uint32_t j) { return sorted(j) < least; });
                const uint32_t begin = min(sorted(start), last(place + 1 - top));
                insert_candidate(row, most, candidate_of(begin, window, top, partition),
                                 partition.taxon_of_target);
            }
            for (uint32_t j = threadIdx.x; j < size; j += kBlock)
                if (own_group[j] == chosen) own_hits[j] = 0;
        }
    }
}
