// Locations of a query's features, and the candidates among them, by a warp.
#pragma once

#include "ngsgpu/classify/query/batch.cuh"
#include "ngsgpu/device/cuda/reduce.cuh"
#include "ngsgpu/sequence/search.cuh"

namespace {

// First location of a key, and their number, all within ``locations``.
__device__ __forceinline__ uint2 find_key(const Partition& partition, uint32_t key) {
    const int bits = int(partition.bits);
    const uint32_t bucket = key >> (32 - bits);
    const uint32_t wanted = key & uint32_t((1ull << (32 - bits)) - 1);
    const uint2 line = partition.directory[bucket];
    const uint32_t end = min(partition.directory[bucket + 1].x, uint32_t(partition.entry_count));
    uint2 found = {line.y, 0};
    for (uint32_t i = line.x; i < end; ++i) {
        const uint32_t entry = partition.entries[i];
        const uint32_t rest = entry >> kCountBits, count = entry & ((1u << kCountBits) - 1);
        if (rest > wanted) break;
        if (rest == wanted) found.y += count;
        else found.x += count;
    }
    const uint32_t room = uint32_t(partition.location_count);
    found.x = min(found.x, room);
    found.y = min(found.y, room - found.x);
    return found;
}

__device__ __forceinline__ int target_of(const Partition& partition, uint32_t window) {
    int target = partition.block_target[window >> kBlockBits];
    while (partition.first_window[target + 1] <= window) ++target;
    return target;
}

// Maximum windows in a range of a query with this many bases; ``_spans`` of engine.py.
__device__ __forceinline__ uint32_t span_of(int64_t bases, int insert_size, const SketchRules& rules) {
    bases = max(bases, int64_t(insert_size));
    if (rules.smer == 0) return uint32_t(2 + bases / rules.stride);
    const int64_t kmers = max(bases - (rules.kmer - 1), int64_t(1));
    return uint32_t(1 + (kmers + (rules.stride - 2)) / rules.stride);
}

// The first window of the range of ``span`` windows that ends with a window of a target.
__device__ __forceinline__ uint32_t range_begin(uint32_t window, int target, uint32_t span,
                                                const Partition& partition) {
    const uint32_t back = window >= span - 1 ? window - (span - 1) : 0;
    return max(partition.first_window[target], back);
}

// The range of a query's windows that ends with ``window``: the first of those that ``last(i)``, i
// up to ``at``, gives in ascending order in the last ``span`` windows and in its target.
//
// ``group`` receives its target or, if calls are taxa, its taxon: negative if it counts for none.
template <class Last>
__device__ __forceinline__ uint32_t range_to(uint32_t window, const Last& last, uint32_t at,
                                             uint32_t span, const Partition& partition,
                                             int32_t* group) {
    const int target = target_of(partition, window);
    const uint32_t least = range_begin(window, target, span, partition);
    *group = partition.taxon ? partition.taxon[target] : target;
    return first_not_before(0u, at, [&](uint32_t i) { return last(i) < least; });
}

// The candidate of a range of windows.
__device__ __forceinline__ Candidate candidate_of(uint32_t first, uint32_t last, uint32_t hits,
                                                  const Partition& partition) {
    const int target = target_of(partition, last);
    const uint32_t origin = partition.first_window[target];
    return {partition.target[target], int(hits), int(first - origin), int(last - origin)};
}

// insert_candidate of cpu.py into a query's row, by one thread.
__device__ void insert_candidate(Candidate* row, int most, Candidate own,
                                 const int32_t* taxon_of_target) {
    int count = 0;
    while (count < most && row[count].x >= 0) ++count;
    const int taxon = taxon_of_target ? taxon_of_target[own.x] : -1;
    for (int i = 0; taxon_of_target && i < count; ++i) {
        const Candidate had = row[i];
        if (taxon_of_target[had.x] != taxon) continue;
        if (own.y < had.y || (own.y == had.y && own.x > had.x)) return;
        for (int j = i + 1; j < count; ++j) row[j - 1] = row[j];
        --count;
        break;
    }
    int place = count;
    while (place > 0) {
        const Candidate other = row[place - 1];
        if (own.y < other.y || (own.y == other.y && own.x > other.x)) break;
        --place;
    }
    if (place == most) return;
    for (int j = min(count, most - 1); j > place; --j) row[j] = row[j - 1];
    row[place] = own;
}

// Put candidate ``number`` of a partition into the query's row. Those of the first partition come
// from the best down, and are all that there are.
__device__ __forceinline__ void put_candidate(Candidate* row, int most, int number, bool is_first,
                                              Candidate own, const int32_t* taxon_of_target) {
    if (is_first) row[number] = own;
    else insert_candidate(row, most, own, taxon_of_target);
}

// A query: its mates' letters.
struct Query {
    const u8* text[2];
    int length[2];  // 0 for the second mate of single reads

    __device__ __forceinline__ Query(const Mate& one, const Mate& two, uint32_t query) {
        const uint32_t record = one.first + query * one.step;
        text[0] = one.raw + one.start[record];
        length[0] = one.length[record];
        text[1] = nullptr;
        length[1] = 0;
        if (two.step == 0) return;
        const uint32_t other = two.first + query * one.step;
        text[1] = two.raw + two.start[other];
        length[1] = two.length[other];
    }

    __device__ __forceinline__ int64_t bases() const { return int64_t(length[0]) + length[1]; }
};

// How far the features of a query have been taken.
struct Taken {
    int mate;
    int at;  // window or k-mer
};

// Write the next batch of keys of a query, for a whole warp: at most kMostKeys, of a window or of
// as many k-mers as find_syncmers of cpu.py takes. Returns their number, 0 if there are no more.
__device__ int next_keys(const Query& query, const SketchRules& rules, uint32_t lane, Taken* taken,
                         uint32_t* keys) {
    int found = 0;
    while (taken->mate < 2) {
        const u8* text = taken->mate ? query.text[1] : query.text[0];
        const int length = taken->mate ? query.length[1] : query.length[0];
        if (rules.smer > 0) {
            const int kmers = length - rules.kmer + 1;
            found = add_syncmers(text, kmers, rules, lane, &taken->at, keys, found);
            if (taken->at < kmers) break;
        } else if (taken->at < windows_of(length, rules)) {
            const int begin = taken->at++ * rules.stride;
            found = sketch_keys(text + begin, min(rules.window, length - begin), rules, lane, keys);
            if (found > 0) return found;
            continue;
        }
        ++taken->mate;
        taken->at = 0;
    }
    return unique_keys(keys, found, lane);
}

// Locations of a feature, ascending, and how they form runs with gaps below ``gap`` windows (0:
// each is one); see cpu.py.
struct Locations {
    const uint32_t* list;
    uint32_t count;
    uint32_t gap;

    __device__ __forceinline__ uint32_t window(uint32_t i, const Partition& partition) const {
        return min(list[i], uint32_t(partition.last_window));
    }

    // Whether locations i - 1 and i are of one run.
    __device__ __forceinline__ bool joined(uint32_t i, const Partition& partition) const {
        if (gap == 0 || i == 0 || i >= count) return false;
        const uint32_t before = window(i - 1, partition), own = window(i, partition);
        return own - before < gap && target_of(partition, before) == target_of(partition, own);
    }
};

// Pass the locations of a query's features to ``put(place, locations, i)``, by a warp.
//
// ``keys``: kMostKeys, in shared memory. Returns their number; ``features`` receives that of the
// query's.
template <class Put>
__device__ uint32_t collect_locations(const Query& query, const SketchRules& rules, uint32_t span,
                                      const Partition& partition, uint32_t lane, uint32_t* keys,
                                      int* features, Put put) {
    Taken taken = {0, 0};
    uint32_t done = 0;
    const uint32_t gap = rules.smer > 0 ? span : 0;
    *features = 0;
    while (const int count = next_keys(query, rules, lane, &taken, keys)) {
        *features += count;
        for (int base = 0; base < count; base += 32) {
            uint2 list = {0, 0};
            if (base + int(lane) < count) list = find_key(partition, keys[base + lane]);
            const uint32_t sum = sum_up_to(list.y, lane);
            const uint32_t own = done + sum - list.y;
            if (list.y <= 8)
                for (uint32_t i = 0; i < list.y; ++i)
                    put(own + i, Locations{partition.locations + list.x, list.y, gap}, i);
            // Long lists are copied by all lanes together.
            for (uint32_t rest = __ballot_sync(WARP, list.y > 8); rest; rest &= rest - 1) {
                const int source = __ffs(rest) - 1;
                const uint32_t many = __shfl_sync(WARP, list.y, source);
                const uint32_t from = __shfl_sync(WARP, list.x, source);
                const uint32_t to = __shfl_sync(WARP, own, source);
                for (uint32_t i = lane; i < many; i += 32)
                    put(to + i, Locations{partition.locations + from, many, gap}, i);
            }
            done += __shfl_sync(WARP, sum, 31);
        }
        __syncwarp();  // all have read their keys
    }
    return done;
}

// One step of a bitonic sort of 32 * kPer values of a warp, of which ``lane * kPer + i`` is value i
// of the lane: compares at a distance, within sequences of ``size`` values, every other one of
// which is to descend.
template <int kPer>
__device__ __forceinline__ void compare_registers(uint32_t (&values)[kPer], uint32_t lane,
                                                  uint32_t size, uint32_t distance) {
#pragma unroll
    for (uint32_t i = 0; i < kPer; ++i) {
        const bool ascends = ((lane * kPer + i) & size) == 0;
        if (distance >= kPer) {
            const uint32_t across = distance / kPer;
            const uint32_t other = __shfl_xor_sync(WARP, values[i], across);
            values[i] = ((lane & across) == 0) == ascends ? min(values[i], other)
                                                          : max(values[i], other);
        } else if ((i & distance) == 0) {
            const uint32_t a = values[i], b = values[i | distance];
            values[i] = ascends ? min(a, b) : max(a, b);
            values[i | distance] = ascends ? max(a, b) : min(a, b);
        }
    }
}

// Sort 32 * kPer values of a warp, ascending, if those in sequences of ``size`` values ascend and
// descend in turn; 2 for any values.
template <int kPer>
__device__ __forceinline__ void sort_registers(uint32_t (&values)[kPer], uint32_t lane,
                                               uint32_t first = 2) {
#pragma unroll
    for (uint32_t size = first; size <= 32 * kPer; size *= 2) {
#pragma unroll
        for (uint32_t distance = size / 2; distance > 0; distance /= 2)
            compare_registers(values, lane, size, distance);
    }
}

// Sort the locations of a query in registers and write its best ranges to its row, by a warp.
//
// Each location is the right end of a range, whose hits follow from a search for its first one. The
// best of all is taken, the locations of its target (or taxon) are removed, and so on: on ties the
// earlier target wins. ``found`` has the locations, in shared memory; no run has several.
template <int kPer>
__device__ __forceinline__ int rank_locations(uint32_t* found, int count, uint32_t span, int most,
                                              const Partition& partition, bool is_first,
                                              Candidate* row, uint32_t lane) {
    uint32_t values[kPer], keys[kPer];
    int32_t group[kPer];
#pragma unroll
    for (int i = 0; i < kPer; ++i) {
        const int at = int(lane) * kPer + i;
        values[i] = at < count ? found[at] : kNone;
    }
    sort_registers(values, lane);
#pragma unroll
    for (int i = 0; i < kPer; ++i) found[lane * kPer + i] = values[i];
    __syncwarp();
    const auto sorted = [found](uint32_t i) { return found[i]; };
#pragma unroll
    for (int i = 0; i < kPer; ++i) {
        const int at = int(lane) * kPer + i;
        keys[i] = 0;
        group[i] = -1;
        if (at < count) {
            const uint32_t first = range_to(values[i], sorted, at, span, partition, &group[i]);
            const uint32_t hits = at + 1 - first;
            if (group[i] >= 0) keys[i] = hits << 16 | (0xFFFF - at);
        }
    }
    int number = 0;
    for (; number < most; ++number) {
        uint32_t best = 0;
#pragma unroll
        for (int i = 0; i < kPer; ++i) best = max(best, keys[i]);
        best = __reduce_max_sync(WARP, best);
        if (best == 0) break;
        const int top = best >> 16, place = 0xFFFF - int(best & 0xFFFF);
        int32_t chosen = 0;
#pragma unroll
        for (int i = 0; i < kPer; ++i)
            if (place % kPer == i) chosen = group[i];
        chosen = __shfl_sync(WARP, chosen, place / kPer);
        if (lane == 0)
            put_candidate(row, most, number, is_first,
                          candidate_of(found[place - top + 1], found[place], top, partition),
                          partition.taxon_of_target);
#pragma unroll
        for (int i = 0; i < kPer; ++i)
            if (group[i] == chosen) keys[i] = 0;
    }
    __syncwarp();
    return number;
}

}  // namespace
