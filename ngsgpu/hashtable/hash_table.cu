// A multi-bucket hash table of (key, value) words: each slot has a key and a bucket with room for a
// few values; a key with more values occupies several slots (R. Kobus, dissertation, Mainz 2023,
// 8.4). Slots form groups of eight, whose keys fill one memory sector. Groups are probed by double
// hashing, a group by eight lanes.
//
// Words are inserted in sorted batches, so that a key's words in a batch are one run, handled by
// eight lanes. No two runs insert the same key at a time, and slots are never freed. Therefore all
// slots of a key but the last in probing order are full, and the values kept for a key do not
// depend on other keys. Values beyond the limit of a key are dropped.
#include "ngsgpu/device/cuda/reduce.cuh"
#include "ngsgpu/hashtable/pairs.cuh"

namespace {

constexpr int kGroup = 8;                    // slots of a group, and lanes that look at it
constexpr uint32_t kNoKey = 0xFFFFFFFFu;     // of a slot that is free
constexpr uint32_t kNoValue = 0xFFFFFFFFu;  // of a place that is free
constexpr uint32_t kMaxSteps = 1024;        // groups to visit

// Counters of a table.
enum { kUsedSlots, kSpilled, kCounters };

// ``spill`` holds the words for which there was no slot, and those of the key kNoKey.
struct Table {
    uint32_t* keys;     // of each slot
    uint32_t* values;  // kBucket for each slot
    uint32_t groups;    // a prime number
    uint64_t* spill;
    unsigned long long room;  // words that fit there
    unsigned long long* counters;
};

// The order in which a key's groups are visited: all of them, as their number is prime.
struct Visit {
    uint32_t group, stride, groups;

    __device__ Visit(uint32_t key, uint32_t groups) : groups(groups) {
        group = __umulhi(key * 0x9E3779B1u, groups);
        stride = 1 + __umulhi((key ^ key >> 15) * 0x85EBCA77u, groups - 1);
    }

    __device__ void next() {
        group = group >= groups - stride ? group - (groups - stride) : group + stride;
    }
};

// Insert a run of words with one key, by eight lanes: ``own`` is this lane, ``base`` the number of
// the first one in the warp. Returns the number of slots taken.
template <int kBucket>
__device__ uint32_t insert_run(const Table& table, const uint64_t* run, uint32_t length,
                               uint32_t most, uint32_t own, uint32_t base) {
    const uint32_t lanes = 0xFFu << base;
    const uint32_t key = key_of(run[0]);
    uint32_t there = 0, done = 0, taken = 0;  // values of the key; words of the run; slots
    Visit visit(key, table.groups);
    const uint32_t steps = key == kNoKey ? 0 : min(kMaxSteps, table.groups);
    for (uint32_t step = 0; step < steps; ++step, visit.next()) {
        const uint64_t slot = uint64_t(visit.group) * kGroup + own;
        const uint32_t found = __ldcg(table.keys + slot);
        const uint32_t same = __ballot_sync(lanes, found == key) >> base & 0xFF;
        if (same != 0) {
            const uint32_t last = 31 - __clz(same);
            uint32_t* places = table.values + (slot - own + last) * kBucket;
            uint32_t used = 1;
            if (kBucket > 1) {
                const bool is_used = own < kBucket && places[own] != kNoValue;
                used = __popc(__ballot_sync(lanes, is_used));
            }
            there += (__popc(same) - 1) * kBucket + used;
            if (there >= most) return taken;
            const uint32_t more = min(min(kBucket - used, length - done), most - there);
            if (own < more) places[used + own] = uint32_t(run[done + own]);
            done += more;
            there += more;
        }
        if (done == length || there >= most) return taken;
        uint32_t free = __ballot_sync(lanes, found == kNoKey) >> base & 0xFF;
        while (free != 0) {
            const uint32_t wanted = min(length - done, most - there);
            const bool tries = (free >> own & 1) &&
                               count_before(free, own) * kBucket < wanted;
            const bool has = tries && atomicCAS(table.keys + slot, kNoKey, key) == kNoKey;
            const uint32_t tried = __ballot_sync(lanes, tries) >> base & 0xFF;
            const uint32_t winners = __ballot_sync(lanes, has) >> base & 0xFF;
            if (has) {
                const uint32_t from = count_before(winners, own) * kBucket;
#pragma unroll
                for (uint32_t i = 0; i < kBucket; ++i)
                    if (from + i < wanted)
                        table.values[slot * kBucket + i] = uint32_t(run[done + from + i]);
            }
            const uint32_t placed = min(wanted, uint32_t(__popc(winners)) * kBucket);
            taken += __popc(winners);
            done += placed;
            there += placed;
            if (done == length || there >= most) return taken;
            free &= ~tried;
        }
    }
    const uint32_t left = min(length - done, most - there);
    unsigned long long to = 0;
    if (own == 0) to = atomicAdd(table.counters + kSpilled, (unsigned long long)(left));
    to = __shfl_sync(lanes, to, base);
    for (uint32_t i = own; i < left && to + i < table.room; i += kGroup)
        table.spill[to + i] = run[done + i];
    return taken;
}

template <int kBucket>
__device__ void insert_all(const Table& table, const SortedWords& all, uint32_t most) {
    const uint32_t lane = threadIdx.x & 31, own = lane % kGroup, base = lane - own;
    const int64_t step = int64_t(gridDim.x) * kThreads;
    uint32_t taken = 0;
    int64_t first = (int64_t(blockIdx.x) * kThreads + threadIdx.x) / 32 * 32;
    for (; first < all.count; first += step) {
        // A table that is full is of no use any more.
        if (__any_sync(WARP, __ldcg(table.counters + kSpilled) > table.room)) break;
        const int64_t i = first + lane;
        const bool begins = i < all.count && !all.same_key(i, i - 1);
        uint32_t begin = __ballot_sync(WARP, begins), nth = 0;
        while (begin != 0) {
            const uint32_t at = __ffs(begin) - 1;
            begin &= begin - 1;
            if (nth++ % (32 / kGroup) != base / kGroup) continue;
            const int64_t length = begin != 0 ? __ffs(begin) - 1 - at
                                              : all.run_from(first + at, int64_t(most));
            taken += insert_run<kBucket>(table, all.words + first + at, uint32_t(length), most, own,
                                         base);
        }
        __syncwarp();
    }
    taken = __reduce_add_sync(WARP, own == 0 ? taken : 0);
    if (lane == 0 && taken > 0)
        atomicAdd(table.counters + kUsedSlots, (unsigned long long)(taken));
}

template <int kBucket>
__device__ void choose_all(const Table& table, int bits, uint32_t part, uint64_t* words,
                           unsigned long long* count) {
    const int64_t places = int64_t(table.groups) * kGroup * kBucket;
    const int64_t all = places + int64_t(min(table.counters[kSpilled], table.room));
    collect_words(all, words, count, [=](int64_t place, uint64_t* word) {
        if (place >= places) {
            *word = table.spill[place - places];
            return is_of_part(key_of(*word), bits, part);
        }
        const uint32_t key = table.keys[place / kBucket];
        if (key == kNoKey || !is_of_part(key, bits, part)) return false;
        const uint32_t value = table.values[place];
        *word = uint64_t(key) << 32 | value;
        return value != kNoValue;
    });
}

}  // namespace

// Insert a batch of sorted words into a table; ``most``: maximum values per key.
//
// Words of these keys inserted earlier come first. More than ``room`` words in
// ``counters[kSpilled]`` mean that some were lost. There is one kernel per bucket size.
//
// Grid: resident blocks; block: kThreads, eight lanes per run. Bytes: 8 in per word, per run a
// sector (32) in for a group of keys and one out for a bucket, about two in and two out in total.
#define INSERT_WORDS(bucket)                                                                     \
    extern "C" __global__ void __launch_bounds__(kThreads) insert_words_##bucket(                \
        const uint64_t* words, int64_t count, uint32_t most, uint32_t* keys, uint32_t* values,  \
        uint32_t groups, uint64_t* spill, int64_t room, unsigned long long* counters) {          \
        insert_all<bucket>({keys, values, groups, spill, (unsigned long long)(room), counters}, \
                           {words, count}, most);                                                \
    }

// Select the words of a table whose keys' top ``bits`` bits are ``part``, in no order.
//
// Without ``words`` they are only counted. Grid: any; block: kThreads, one warp per kTile values.
// Bytes: 4 in per slot, 4 per value, 8 out per word.
#define CHOOSE_SLOTS(bucket)                                                                       \
    extern "C" __global__ void __launch_bounds__(kThreads)                                         \
        choose_slots_##bucket(uint32_t* keys, uint32_t* values, uint32_t groups, uint64_t* spill, \
                              int64_t room, unsigned long long* counters, int bits, uint32_t part, \
                              uint64_t* words, unsigned long long* count) {                        \
        choose_all<bucket>({keys, values, groups, spill, (unsigned long long)(room), counters},   \
                           bits, part, words, count);                                              \
    }

INSERT_WORDS(1)
INSERT_WORDS(2)
INSERT_WORDS(4)
INSERT_WORDS(8)
CHOOSE_SLOTS(1)
CHOOSE_SLOTS(2)
CHOOSE_SLOTS(4)
CHOOSE_SLOTS(8)

// Count the slots needed by sorted words: ``slots[i]`` in a table with buckets of 1 << i.
//
// Grid: any; block: kThreads, one thread per word. Bytes: 8 in per word.
extern "C" __global__ void __launch_bounds__(kThreads)
    count_slots(const uint64_t* words, int64_t count, uint32_t most, unsigned long long* slots) {
    const SortedWords all = {words, count};
    const int64_t step = int64_t(gridDim.x) * kThreads;
    uint32_t sums[4] = {0, 0, 0, 0};
    for (int64_t i = int64_t(blockIdx.x) * kThreads + threadIdx.x; i < count; i += step) {
        if (all.same_key(i, i - 1)) continue;
        const uint32_t length = uint32_t(all.run_from(i, int64_t(most)));
#pragma unroll
        for (int bits = 0; bits < 4; ++bits) sums[bits] += (length + (1u << bits) - 1) >> bits;
    }
#pragma unroll
    for (int bits = 0; bits < 4; ++bits) {
        const uint32_t sum = __reduce_add_sync(WARP, sums[bits]);
        if ((threadIdx.x & 31) == 0) atomicAdd(slots + bits, (unsigned long long)(sum));
    }
}
