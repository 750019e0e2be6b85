// Indexes of partitions, from features on; the reference is ngsgpu/classify/index/index.py.
#include "ngsgpu/classify/sketch/sketch.cuh"
#include "ngsgpu/hashtable/pairs.cuh"

namespace {

constexpr int kMaxPartBits = 10;
constexpr int kMaxInEntry = (1 << kCountBits) - 1;

// Sorted words of an index, and the rule for keeping their locations.
struct Words : SortedWords {
    int64_t limit;            // locations of a key
    int remove;               // whether keys with more lose all
    const uint64_t* removed;  // ascending: keys (in the upper halves) that lose all whatever happens
    int64_t removed_count;

    // The first word with the key of word i.
    __device__ int64_t first_of(int64_t i) const {
        int64_t step = 1;
        while (same_key(i, i - step)) step *= 2;
        const auto differs = [&](int64_t j) { return !same_key(i, j); };
        return last_that(max(int64_t(-1), i - step), i, differs) + 1;
    }

    __device__ bool is_removed(uint64_t word) const {
        if (removed_count == 0) return false;
        const uint64_t key = word >> 32 << 32;
        const uint64_t there = removed[last_not_above(removed, removed_count, key)];
        return there == key;
    }

    // Whether word i's location is kept; ``rank``: words of its key before it, as far as needed.
    __device__ bool stays(int64_t i) const {
        if (same_key(i, i - limit) || is_removed(words[i])) return false;
        return !remove || !same_key(i, first_of(i) + limit);
    }

    // Locations of an entry that begins with word i, of which there are more with the same key
    // before it; or 0 if this word begins none.
    __device__ bool begins_entry(int64_t i, bool stays, uint32_t* count_of) const {
        int64_t rank = 0;
        if (same_key(i, i - 1)) {
            if (!stays || !same_key(i, i - kMaxInEntry)) return false;
            rank = i - first_of(i);
            if (rank % kMaxInEntry != 0) return false;
        }
        *count_of = stays ? uint32_t(run_from(i, min(int64_t(kMaxInEntry), limit - rank))) : 0;
        return true;
    }
};

}  // namespace

// Count the keys of each part, that is with the same top ``bits`` bits (at most kMaxPartBits).
//
// ``key_start``, ``taken``: as in ``make_words``. Grid: any; block: kThreads. Bytes: 4 in per key.
extern "C" __global__ void __launch_bounds__(kThreads)
    count_parts(const uint32_t* keys, int64_t count, const uint32_t* key_start,
                const uint32_t* piece, int64_t windows, const u8* taken, int bits,
                uint32_t* parts) {
    __shared__ uint32_t own[1 << kMaxPartBits];
    for (uint32_t i = threadIdx.x; i < 1u << bits; i += kThreads) own[i] = 0;
    __syncthreads();
    const int64_t step = int64_t(gridDim.x) * kThreads;
    for (int64_t i = int64_t(blockIdx.x) * kThreads + threadIdx.x; i < count; i += step)
        if (taken[piece[last_not_above(key_start, windows, uint32_t(i))]])
            atomicAdd(own + (uint64_t(keys[i]) >> (32 - bits)), 1u);
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < 1u << bits; i += kThreads)
        if (own[i] > 0) atomicAdd(parts + i, own[i]);
}

// Make (key, window) words, key << 32 | window, of the keys with the top ``bits`` bits ``part``.
//
// ``key_start``: where the keys of each window begin. ``shift[i]`` is added to a window number to
// get that in the partition; -1 for pieces outside the partition (``taken[i]`` is 0). The words
// come in any order.
//
// Grid: any; block: kThreads, one warp per kTile keys. Bytes: 4 in per key, 8 out per word.
extern "C" __global__ void __launch_bounds__(kThreads)
    make_words(const uint32_t* keys, int64_t key_count, const uint32_t* key_start,
               const uint32_t* piece, int64_t windows, const int64_t* shift, const u8* taken,
               int bits, uint32_t part, uint64_t* words, unsigned long long* count) {
    collect_words(key_count, words, count, [=](int64_t i, uint64_t* word) {
        const uint32_t key = keys[i];
        if (!is_of_part(key, bits, part)) return false;
        const int64_t window = last_not_above(key_start, windows, uint32_t(i));
        const uint32_t of = piece[window];
        *word = (uint64_t(key) << 32) | uint32_t(window + shift[of]);
        return taken[of] != 0;
    });
}

// Count the entries and locations of sorted words, one count of each per kTile words.
//
// Grid: any; block: kThreads, one warp per kTile words. Bytes: 8 in per word.
extern "C" __global__ void __launch_bounds__(kThreads)
    count_entries(const uint64_t* words, int64_t count, int64_t limit, int remove,
                  const uint64_t* removed, int64_t removed_count, uint32_t* entries,
                  uint32_t* locations) {
    const Words all = {{words, count}, limit, remove, removed, removed_count};
    const uint32_t lane = threadIdx.x & 31;
    const int64_t step = int64_t(gridDim.x) * (kThreads / 32);
    int64_t tile = (int64_t(blockIdx.x) * kThreads + threadIdx.x) / 32;
    for (; tile * kTile < count; tile += step) {
        uint32_t own_entries = 0, own_locations = 0;
        for (int round = 0; round < kRounds; ++round) {
            const int64_t i = tile * kTile + round * 32 + lane;
            const bool stays = i < count && all.stays(i);
            uint32_t unused;
            const bool begins = i < count && all.begins_entry(i, stays, &unused);
            own_entries += __popc(__ballot_sync(WARP, begins));
            own_locations += __popc(__ballot_sync(WARP, stays));
        }
        if (lane == 0) {
            entries[tile] = own_entries;
            locations[tile] = own_locations;
        }
    }
}

// Write the entries, locations and directory lines of sorted words.
//
// ``entries_before``, ``locations_before``: prefix sums of the counts of ``count_entries``. The
// words are those of ``lines`` directory lines, the first being ``first_line``; a line holds the
// number of entries and locations before its own, where ``entry_base`` and ``location_base`` are
// those of the lines before.
//
// Grid: any; block: kThreads, one warp per kTile words. Bytes: 8 in per word, 4 out per location
// and entry, 8 out per line.
extern "C" __global__ void __launch_bounds__(kThreads)
    write_entries(const uint64_t* words, int64_t count, int64_t limit, int remove,
                  const uint64_t* removed, int64_t removed_count, const uint32_t* entries_before,
                  const uint32_t* locations_before, int bits, uint32_t first_line, uint32_t lines,
                  uint32_t entry_base, uint32_t location_base, uint32_t* entries,
                  uint32_t* locations, uint2* directory) {
    const Words all = {{words, count}, limit, remove, removed, removed_count};
    const uint32_t lane = threadIdx.x & 31;
    const uint32_t low = uint32_t((1ull << (32 - bits)) - 1);
    const int64_t step = int64_t(gridDim.x) * (kThreads / 32);
    int64_t tile = (int64_t(blockIdx.x) * kThreads + threadIdx.x) / 32;
    for (; tile * kTile < count; tile += step) {
        uint32_t entry = entries_before[tile], location = locations_before[tile];
        for (int round = 0; round < kRounds; ++round) {
            const int64_t i = tile * kTile + round * 32 + lane;
            const bool stays = i < count && all.stays(i);
            uint32_t size = 0;
            const bool begins = i < count && all.begins_entry(i, stays, &size);
            const uint32_t entry_lanes = __ballot_sync(WARP, begins);
            const uint32_t location_lanes = __ballot_sync(WARP, stays);
            const uint32_t own_entry = entry + count_before(entry_lanes, lane);
            const uint32_t own_location = location + count_before(location_lanes, lane);
            if (stays) locations[own_location] = uint32_t(words[i]);
            if (begins) {
                const uint32_t key = key_of(words[i]);
                entries[own_entry] = (key & low) << kCountBits | size;
                if (i == 0 || key_of(words[i - 1]) != key) {
                    const int64_t line = int64_t(key >> (32 - bits)) - first_line;
                    int64_t from = 0;
                    if (i > 0) from = int64_t(key_of(words[i - 1]) >> (32 - bits)) - first_line + 1;
                    for (; from <= line; ++from)
                        directory[from] = {entry_base + own_entry, location_base + own_location};
                }
            }
            entry += __popc(entry_lanes);
            location += __popc(location_lanes);
            if (i == count - 1) {
                int64_t from = int64_t(key_of(words[i]) >> (32 - bits)) - first_line + 1;
                for (; from < lines; ++from)
                    directory[from] = {entry_base + entry, location_base + location};
            }
        }
    }
}

// Turn (key, window) words into (key, taxon) words; all ones if the window's target has no taxon.
//
// ``first_window``: of each target. Grid: any; block: kThreads, one thread per word. Bytes: 8 in
// and 8 out per word.
extern "C" __global__ void __launch_bounds__(kThreads)
    mark_taxa(const uint64_t* words, int64_t count, const uint32_t* first_window, int64_t targets,
              const int* taxon, uint64_t* marked) {
    const int64_t step = int64_t(gridDim.x) * kThreads;
    for (int64_t i = int64_t(blockIdx.x) * kThreads + threadIdx.x; i < count; i += step) {
        const int own = taxon[last_not_above(first_window, targets, uint32_t(words[i]))];
        marked[i] = own < 0 ? ~0ull : words[i] >> 32 << 32 | uint32_t(own);
    }
}

// Select from sorted words: without ``most`` the first one of each value but all ones; otherwise,
// once per key, its upper half if the key has more than ``most`` words.
//
// ``before``: null to count, one count per kTile words; otherwise their prefix sums, to write.
//
// Grid: any; block: kThreads, one warp per kTile words. Bytes: 8 in per word, 8 out per selected
// one.
extern "C" __global__ void __launch_bounds__(kThreads)
    choose_words(const uint64_t* words, int64_t count, int64_t most, const uint32_t* before,
                 uint32_t* counts, uint64_t* chosen) {
    const uint32_t lane = threadIdx.x & 31;
    const int64_t step = int64_t(gridDim.x) * (kThreads / 32);
    int64_t tile = (int64_t(blockIdx.x) * kThreads + threadIdx.x) / 32;
    for (; tile * kTile < count; tile += step) {
        uint32_t at = before == nullptr ? 0 : before[tile];
        for (int round = 0; round < kRounds; ++round) {
            const int64_t i = tile * kTile + round * 32 + lane;
            bool is_one = false;
            uint64_t word = 0;
            if (i < count) {
                word = words[i];
                if (most == 0) {
                    is_one = word != ~0ull && (i == 0 || words[i - 1] != word);
                } else {
                    is_one = (i == 0 || key_of(words[i - 1]) != key_of(word)) &&
                             i + most < count && key_of(words[i + most]) == key_of(word);
                    word = word >> 32 << 32;
                }
            }
            const uint32_t lanes = __ballot_sync(WARP, is_one);
            if (is_one && chosen != nullptr) chosen[at + count_before(lanes, lane)] = word;
            at += __popc(lanes);
        }
        if (lane == 0 && counts != nullptr) counts[tile] = at;
    }
}
