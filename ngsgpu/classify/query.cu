// Queries: features, locations, candidates; the reference is ngsgpu/classify/query.py.
#include "ngsgpu/classify/sketch.cuh"

namespace {

constexpr int kShort = 512;     // locations of a query that are sorted in shared memory
constexpr int kShortWarps = 8;  // warps of a block that does so
constexpr int kBlockBits = 6;   // windows whose target is kept: every 64th

// Index of the first of ``values[0..count)`` (ascending) that is at least ``value``.
__device__ __forceinline__ int first_not_below(const uint32_t* values, int count, uint32_t value) {
    int low = 0, high = count;
    while (low < high) {
        const int middle = (low + high) / 2;
        if (values[middle] < value) low = middle + 1;
        else high = middle;
    }
    return low;
}

// What kernels take of a partition; ngsgpu.classify.gpu_query fills it.
struct Partition {
    const uint2* directory;
    const uint32_t* entries;
    const uint32_t* locations;
    const uint32_t* first_window;
    const int32_t* block_target;
    const int32_t* target;
    const int32_t* taxon;  // null where calls may be sequences
    int64_t bits;
};

// The lists of candidates; as CandidateArrays of query.py.
struct Best {
    int32_t* target;
    int32_t* hits;
    int32_t* begin;
    int32_t* end;
    int32_t* taxon;
    int64_t most;
};

// Where the sequences of reads, or of a mate of pairs, lie.
struct Mates {
    const u8* raw;
    const uint32_t* start;
    const int32_t* length;
    int64_t first;  // record of query 0
    int64_t step;   // records from query to query; 0: there are none
};

__device__ __forceinline__ uint2 find_key(const Partition& partition, uint32_t key) {
    const int bits = int(partition.bits);
    const uint32_t bucket = key >> (32 - bits);
    const uint32_t wanted = key & uint32_t((1ull << (32 - bits)) - 1);
    const uint2 line = partition.directory[bucket];
    const uint32_t end = partition.directory[bucket + 1].x;
    uint2 found = {line.y, 0};
    for (uint32_t i = line.x; i < end; ++i) {
        const uint32_t entry = partition.entries[i];
        const uint32_t rest = entry >> kCountBits, count = entry & ((1u << kCountBits) - 1);
        if (rest > wanted) break;
        if (rest == wanted) found.y += count;
        else found.x += count;
    }
    return found;
}

__device__ __forceinline__ int target_of(const Partition& partition, uint32_t window) {
    int target = partition.block_target[window >> kBlockBits];
    while (partition.first_window[target + 1] <= window) ++target;
    return target;
}

__device__ void move_candidate(const Best& best, int64_t source, int64_t sink) {
    best.target[sink] = best.target[source];
    best.hits[sink] = best.hits[source];
    best.begin[sink] = best.begin[source];
    best.end[sink] = best.end[source];
    best.taxon[sink] = best.taxon[source];
}

// insert_candidate of query.py, by one thread.
__device__ void insert_candidate(const Best& best, int64_t query, int target, int hits, int begin,
                                 int end, int taxon) {
    const int most = int(best.most);
    const int64_t row = query * most;
    int count = 0;
    while (count < most && best.target[row + count] >= 0) ++count;
    if (taxon >= 0) {
        for (int i = 0; i < count; ++i) {
            if (best.taxon[row + i] != taxon) continue;
            const int had = best.hits[row + i];
            if (hits < had || (hits == had && target > best.target[row + i])) return;
            for (int j = i + 1; j < count; ++j) move_candidate(best, row + j, row + j - 1);
            --count;
            break;
        }
    }
    int place = count;
    while (place > 0) {
        const int other = best.hits[row + place - 1];
        if (hits < other || (hits == other && target > best.target[row + place - 1])) break;
        --place;
    }
    if (place == most) return;
    for (int j = min(count, most - 1); j > place; --j) move_candidate(best, row + j - 1, row + j);
    best.target[row + place] = target;
    best.hits[row + place] = hits;
    best.begin[row + place] = begin;
    best.end[row + place] = end;
    best.taxon[row + place] = taxon;
}

// Find the best ranges among sorted locations and put them into the query's list; for a warp.
//
// Each location is the right end of a range, whose hits two searches tell. The best of all is
// taken, the locations of its target (or taxon) are struck out, and so on: the first of equal ones
// is of the earlier target.
__device__ void pick_candidates(const uint32_t* found, int count, uint32_t span, uint32_t* hits,
                                int32_t* group, const Partition& partition, const Best& best,
                                int64_t query, uint32_t lane) {
    for (int i = lane; i < count; i += 32) {
        const uint32_t window = found[i];
        const int target = target_of(partition, window);
        const uint32_t low = max(partition.first_window[target],
                                 window >= span - 1 ? window - (span - 1) : 0u);
        const int own = partition.taxon ? partition.taxon[target] : target;
        hits[i] = own < 0 ? 0 : i - first_not_below(found, i, low) + 1;
        group[i] = own;
    }
    __syncwarp();
    for (int round = 0; round < int(best.most); ++round) {
        uint32_t most = 0;
        int place = count;
        for (int i = lane; i < count; i += 32) {
            if (hits[i] > most) {
                most = hits[i];
                place = i;
            }
        }
        const uint32_t top = __reduce_max_sync(kAll, most);
        if (top == 0) return;
        const int first = int(__reduce_min_sync(kAll, most == top ? uint32_t(place) : kNone));
        const int chosen = group[first];
        if (lane == 0) {
            const int target = target_of(partition, found[first]);
            const uint32_t origin = partition.first_window[target];
            insert_candidate(best, query, partition.target[target], int(top),
                             int(found[first - int(top) + 1] - origin),
                             int(found[first] - origin), partition.taxon ? chosen : -1);
        }
        __syncwarp();
        for (int i = lane; i < count; i += 32)
            if (group[i] == chosen) hits[i] = 0;
        __syncwarp();
    }
}

// Copy the locations of a query's features to ``sink``, by a warp, by what ``put`` makes of them.
template <class Put>
__device__ void gather_locations(const uint32_t* location, const uint32_t* counts, int64_t first,
                                 int64_t last, const uint32_t* locations, uint32_t lane, Put put) {
    int64_t done = 0;
    for (int64_t base = first; base < last; base += 32) {
        const int64_t slot = base + lane;
        const uint32_t count = slot < last ? counts[slot] : 0;
        const uint32_t start = count ? location[slot] : 0;
        uint32_t sum = count;
        for (uint32_t distance = 1; distance < 32; distance *= 2) {
            const uint32_t other = __shfl_up_sync(kAll, sum, distance);
            if (lane >= distance) sum += other;
        }
        const int64_t own = done + sum - count;
        if (count <= 8)
            for (uint32_t i = 0; i < count; ++i) put(own + i, locations[start + i]);
        // Long lists are copied by all lanes together.
        for (uint32_t rest = __ballot_sync(kAll, count > 8); rest; rest &= rest - 1) {
            const int source = __ffs(rest) - 1;
            const uint32_t many = __shfl_sync(kAll, count, source);
            const uint32_t from = __shfl_sync(kAll, start, source);
            const int64_t to = __shfl_sync(kAll, own, source);
            for (uint32_t i = lane; i < many; i += 32) put(to + i, locations[from + i]);
        }
        done += __shfl_sync(kAll, sum, 31);
    }
}

// Sort ``size`` values, a power of two from 32 up, in shared memory, by a warp (bitonic).
__device__ void sort_shared(uint32_t* values, int size, uint32_t lane) {
    for (int run = 2; run <= size; run *= 2) {
        for (int distance = run / 2; distance > 0; distance /= 2) {
            for (int pair = lane; pair < size / 2; pair += 32) {
                const int i = 2 * pair - (pair & (distance - 1));
                const uint32_t a = values[i], b = values[i + distance];
                if ((a > b) == ((i & run) == 0)) {
                    values[i] = b;
                    values[i + distance] = a;
                }
            }
            __syncwarp();
        }
    }
}

}  // namespace

// Count the windows of queries, both mates together.
//
// Grid: any; block: kThreads, one thread a query.
extern "C" __global__ void __launch_bounds__(kThreads)
    count_windows(const Mates* mates, int64_t queries, int kmer, int window, int stride,
                  int64_t* windows) {
    const int64_t step = int64_t(gridDim.x) * kThreads;
    for (int64_t i = int64_t(blockIdx.x) * kThreads + threadIdx.x; i < queries; i += step) {
        int64_t count = 0;
        for (int mate = 0; mate < 2; ++mate)
            if (mates[mate].step)
                count += windows_of(mates[mate].length[mates[mate].first + i * mates[mate].step],
                                    kmer, window, stride);
        windows[i] = count;
    }
}

// Sketch queries and look their features up.
//
// ``window_end``: inclusive sums of ``count_windows``; window j has the slots from ``j * sketch``
// on, which take the first location of each feature and how many it has. ``total`` takes the
// locations of each query, ``features`` its features.
//
// Grid: any; block: kThreads, one warp a query. Bytes: the reads (from L1, several times); a line
// of directory and of entries at random, and 8 out, a feature.
extern "C" __global__ void __launch_bounds__(kThreads)
    look_up_queries(const Mates* mates_in, int64_t queries, const u8* codes_of, int kmer,
                    int sketch, int window, int stride, const int64_t* window_end,
                    const Partition* partition_in, uint32_t* location, uint32_t* counts,
                    int64_t* total, int64_t* features) {
    __shared__ u8 codes[256];
    load_codes(codes, codes_of);
    const Partition partition = *partition_in;
    const uint32_t lane = threadIdx.x & 31;
    const int64_t warps = int64_t(gridDim.x) * (kThreads / 32);
    for (int64_t query = (int64_t(blockIdx.x) * kThreads + threadIdx.x) / 32; query < queries;
         query += warps) {
        int64_t slot = (query ? window_end[query - 1] : 0) * sketch;
        int64_t found = 0, all = 0;
        for (int mate = 0; mate < 2; ++mate) {
            const Mates own = mates_in[mate];
            if (!own.step) continue;
            const int64_t record = own.first + query * own.step;
            const u8* text = own.raw + own.start[record];
            const int length = own.length[record];
            const int count_of_windows = windows_of(length, kmer, window, stride);
            for (int j = 0; j < count_of_windows; ++j, slot += sketch) {
                uint32_t feature;
                const int count = sketch_window(text + int64_t(j) * stride,
                                                min(window, length - j * stride), kmer, sketch,
                                                codes, lane, &feature);
                uint2 place = {0, 0};
                if (int(lane) < count) place = find_key(partition, mix32(feature));
                if (int(lane) < sketch) {
                    location[slot + lane] = place.x;
                    counts[slot + lane] = place.y;
                }
                found += __reduce_add_sync(kAll, place.y);
                all += count;
            }
        }
        if (lane == 0) {
            total[query] = found;
            features[query] = all;
        }
    }
}

// Gather the locations of each query in shared memory, sort them and pick its candidates.
//
// Queries with more than kShort locations are listed in ``longer`` instead, in any order.
//
// Grid: any; block: 32 * kShortWarps, one warp a query; shared: 12 bytes * kShort a warp. Bytes:
// the locations at random, 8 a feature. Operations: n log^2 n / 2 exchanges for n locations.
extern "C" __global__ void __launch_bounds__(32 * kShortWarps)
    find_candidates(int64_t queries, int sketch, const int64_t* window_end,
                    const uint32_t* location, const uint32_t* counts, const int64_t* total,
                    const uint32_t* span, const Partition* partition_in, const Best* best_in,
                    int64_t* longer, unsigned long long* longer_count) {
    __shared__ uint32_t values[kShortWarps][kShort];
    __shared__ uint32_t hits[kShortWarps][kShort];
    __shared__ int32_t group[kShortWarps][kShort];
    const Partition partition = *partition_in;
    const Best best = *best_in;
    const uint32_t lane = threadIdx.x & 31, warp = threadIdx.x / 32;
    uint32_t* own = values[warp];
    const int64_t warps = int64_t(gridDim.x) * kShortWarps;
    for (int64_t query = int64_t(blockIdx.x) * kShortWarps + warp; query < queries;
         query += warps) {
        const int64_t count = total[query];
        if (count == 0) continue;
        if (count > kShort) {
            if (lane == 0) longer[atomicAdd(longer_count, 1ull)] = query;
            continue;
        }
        const int64_t first = (query ? window_end[query - 1] : 0) * sketch;
        gather_locations(location, counts, first, window_end[query] * sketch, partition.locations,
                         lane, [own](int64_t at, uint32_t window) { own[at] = window; });
        int size = 32;
        while (size < count) size *= 2;
        for (int i = int(count) + lane; i < size; i += 32) own[i] = kNone;
        __syncwarp();
        sort_shared(own, size, lane);
        pick_candidates(own, int(count), span[query], hits[warp], group[warp], partition, best,
                        query, lane);
        __syncwarp();
    }
}

// Gather the locations of the queries that have many, as list << 32 | window, to be sorted.
//
// ``end``: inclusive sums of the queries' locations.
//
// Grid: any; block: kThreads, one warp a query. Bytes: 4 in, 8 out a location.
extern "C" __global__ void __launch_bounds__(kThreads)
    gather_longer(const int64_t* longer, int64_t count, const int64_t* end, int sketch,
                  const int64_t* window_end, const uint32_t* location, const uint32_t* counts,
                  const Partition* partition, uint64_t* words) {
    const uint32_t lane = threadIdx.x & 31;
    const int64_t warps = int64_t(gridDim.x) * (kThreads / 32);
    for (int64_t i = (int64_t(blockIdx.x) * kThreads + threadIdx.x) / 32; i < count; i += warps) {
        const int64_t query = longer[i];
        const int64_t first = (query ? window_end[query - 1] : 0) * sketch;
        uint64_t* sink = words + (i ? end[i - 1] : 0);
        const uint64_t list = uint64_t(i) << 32;
        gather_locations(location, counts, first, window_end[query] * sketch,
                         partition->locations, lane,
                         [sink, list](int64_t at, uint32_t window) { sink[at] = list | window; });
    }
}

// Pick the candidates of queries with many locations, which are sorted in device memory.
//
// Grid: any; block: kThreads, one warp a query. Bytes: 12 a location, a few times.
extern "C" __global__ void __launch_bounds__(kThreads)
    pick_longer(const int64_t* longer, int64_t count, const int64_t* end, const uint32_t* windows,
                uint32_t* hits, int32_t* group, const uint32_t* span,
                const Partition* partition_in, const Best* best_in) {
    const Partition partition = *partition_in;
    const Best best = *best_in;
    const uint32_t lane = threadIdx.x & 31;
    const int64_t warps = int64_t(gridDim.x) * (kThreads / 32);
    for (int64_t i = (int64_t(blockIdx.x) * kThreads + threadIdx.x) / 32; i < count; i += warps) {
        const int64_t first = i ? end[i - 1] : 0;
        pick_candidates(windows + first, int(end[i] - first), span[longer[i]], hits + first,
                        group + first, partition, best, longer[i], lane);
    }
}

// Find the first words of the headers of FASTQ records, without a mate number if ``strip``.
//
// The header of record r lies between line ends 4 r - 1 and 4 r of the chunk, which begins at
// ``begin``; query i is record ``first + i * step``.
//
// Grid: any; block: kThreads, one thread a query. Bytes: the names (from L2), 12 out a query.
extern "C" __global__ void __launch_bounds__(kThreads)
    find_names(const u8* raw, const uint32_t* line_end, uint32_t begin, int64_t first, int64_t step,
               int64_t queries, int strip, uint32_t* start, int64_t* length) {
    const int64_t threads = int64_t(gridDim.x) * kThreads;
    for (int64_t i = int64_t(blockIdx.x) * kThreads + threadIdx.x; i < queries; i += threads) {
        const int64_t record = first + i * step;
        const uint32_t from = (record ? line_end[4 * record - 1] + 1 : begin) + 1;
        uint32_t last = line_end[4 * record], at = from;
        if (last > from && raw[last - 1] == '\r') --last;
        while (at < last && raw[at] != ' ' && raw[at] != '\t') ++at;
        if (strip && at - from > 2 && raw[at - 2] == '/' && (raw[at - 1] == '1' || raw[at - 1] == '2'))
            at -= 2;
        start[i] = from;
        length[i] = at - from;
    }
}

// Copy names one after the other; ``end``: inclusive sums of their lengths.
//
// Grid: any; block: kThreads, one warp a name. Bytes: the names in and out.
extern "C" __global__ void __launch_bounds__(kThreads)
    copy_names(const u8* raw, const uint32_t* start, const int64_t* end, int64_t queries,
               u8* names) {
    const uint32_t lane = threadIdx.x & 31;
    const int64_t warps = int64_t(gridDim.x) * (kThreads / 32);
    for (int64_t i = (int64_t(blockIdx.x) * kThreads + threadIdx.x) / 32; i < queries; i += warps) {
        const int64_t to = i ? end[i - 1] : 0;
        for (int64_t j = lane; j < end[i] - to; j += 32) names[to + j] = raw[start[i] + j];
    }
}
