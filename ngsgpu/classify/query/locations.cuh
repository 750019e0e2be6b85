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

// Maximum windows in a range of a query with this many bases.
__device__ __forceinline__ uint32_t span_of(int64_t bases, int insert_size, int stride) {
    return uint32_t(2 + max(bases, int64_t(insert_size)) / stride);
}

// The range of a query's windows that ends with number ``at`` of them: the first of those that
// ``found(i)`` gives in ascending order in the last ``span`` windows and in its target.
//
// ``group`` receives its target or, if calls are taxa, its taxon: negative if it counts for none.
template <class Found>
__device__ __forceinline__ uint32_t range_to(const Found& found, uint32_t at, uint32_t span,
                                             const Partition& partition, int32_t* group) {
    const uint32_t place = found(at);
    const int target = target_of(partition, place);
    const uint32_t back = place >= span - 1 ? place - (span - 1) : 0;
    const uint32_t least = max(partition.first_window[target], back);
    *group = partition.taxon ? partition.taxon[target] : target;
    return first_not_before(0u, at, [&](uint32_t i) { return found(i) < least; });
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

// The list of locations of a lane's feature of window ``number`` of a read, for a whole warp: first
// location, and how many; ``features`` receives the number of the window's features.
__device__ uint2 list_of_feature(const u8* text, int length, int number, int kmer, int sketch,
                                 int window, int stride, int kept, const Partition& partition,
                                 uint32_t lane, int* features) {
    const int begin = number * stride;
    uint32_t feature;
    const int count = sketch_letters(text + begin, min(window, length - begin), kmer, sketch, lane,
                                     &feature);
    const uint32_t key = mix32(feature);
    const bool is_own = int(lane) < count && is_kept(key, kept);
    *features = __popc(__ballot_sync(WARP, is_own));
    return is_own ? find_key(partition, key) : uint2{0, 0};
}

// Pass the locations of a query's features to ``put(place, window)``, by a warp.
//
// Returns their number; ``size`` receives features and lengths.
template <class Put>
__device__ uint32_t collect_locations(const Mate& one, const Mate& two, uint32_t query, int kmer,
                                      int sketch, int window, int stride, int kept,
                                      const Partition& partition, uint32_t lane, int3* size,
                                      Put put) {
    uint32_t done = 0;
    *size = {0, 0, 0};
    for (int number = 0; number < 2; ++number) {
        if (number && !two.step) break;
        const Mate& mate = number ? two : one;
        const uint32_t record = mate.first + query * one.step;
        const u8* text = mate.raw + mate.start[record];
        const int length = mate.length[record];
        if (number) size->z = length;
        else size->y = length;
        const int windows = windows_of(length, kmer, window, stride);
        for (int j = 0; j < windows; ++j) {
            int features;
            const uint2 list = list_of_feature(text, length, j, kmer, sketch, window, stride, kept,
                                               partition, lane, &features);
            size->x += features;
            const uint32_t sum = sum_up_to(list.y, lane);
            const uint32_t own = done + sum - list.y;
            if (list.y <= 8)
                for (uint32_t i = 0; i < list.y; ++i)
                    put(own + i, partition.locations + list.x + i);
            // Long lists are copied by all lanes together.
            for (uint32_t rest = __ballot_sync(WARP, list.y > 8); rest; rest &= rest - 1) {
                const int source = __ffs(rest) - 1;
                const uint32_t many = __shfl_sync(WARP, list.y, source);
                const uint32_t from = __shfl_sync(WARP, list.x, source);
                const uint32_t to = __shfl_sync(WARP, own, source);
                for (uint32_t i = lane; i < many; i += 32)
                    put(to + i, partition.locations + from + i);
            }
            done += __shfl_sync(WARP, sum, 31);
        }
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
// earlier target wins. ``found`` has the locations, in shared memory; any numbers.
template <int kPer>
__device__ __forceinline__ int rank_locations(uint32_t* found, int count, uint32_t span, int most,
                                              const Partition& partition, bool is_first,
                                              Candidate* row, uint32_t lane) {
    uint32_t values[kPer], keys[kPer];
    int32_t group[kPer];
#pragma unroll
    for (int i = 0; i < kPer; ++i) {
        const int at = int(lane) * kPer + i;
        values[i] = at < count ? min(found[at], uint32_t(partition.last_window)) : kNone;
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
            const uint32_t hits = at + 1 - range_to(sorted, at, span, partition, &group[i]);
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
