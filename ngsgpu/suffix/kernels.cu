// Suffix arrays by prefix doubling on the GPU. The reference are the arrays of
// ngsgpu/suffix/array.py, which are unique.
#include "ngsgpu/sequence/hashing.cuh"
#include "ngsgpu/suffix/units.cuh"

// The first 32 bases of each suffix, the first in the highest bits; behind the end there is A.
extern "C" __global__ void __launch_bounds__(kThreads)
    pack_bases(const uint8_t* text, int64_t size, uint64_t* keys) {
    for (int64_t i = first_unit(); i < size; i += unit_step()) {
        uint64_t key = 0;
        for (int j = 0; j < 32; ++j) key = key << 2 | (i + j < size ? text[i + j] : 0);
        keys[i] = key;
    }
}

// The first 8 bytes of each suffix; behind the end there is 0.
extern "C" __global__ void __launch_bounds__(kThreads)
    pack_bytes(const uint8_t* text, int64_t size, uint64_t* keys) {
    for (int64_t i = first_unit(); i < size; i += unit_step()) {
        uint64_t key = 0;
        for (int j = 0; j < 8; ++j) key = key << 8 | (i + j < size ? text[i + j] : 0);
        keys[i] = key;
    }
}

// Where other keys begin, among sorted ones.
extern "C" __global__ void __launch_bounds__(kThreads)
    mark_heads(const uint64_t* keys, int64_t size, uint8_t* heads) {
    for (int64_t i = first_unit(); i < size; i += unit_step())
        heads[i] = i == 0 || keys[i] != keys[i - 1];
}

// Gives each suffix its rank: the place of the first one of equal keys. ``groups`` numbers those
// from 1, ``starts`` says where they begin in the list, and ``slots``, if there are any, where the
// list is in the array.
extern "C" __global__ void __launch_bounds__(kThreads)
    write_ranks(const uint32_t* groups, const int64_t* starts, const uint32_t* slots,
                const uint32_t* suffixes, int64_t size, uint32_t* ranks, uint32_t* heads) {
    for (int64_t i = first_unit(); i < size; i += unit_step()) {
        const int64_t start = starts[groups[i] - 1];
        const uint32_t rank = slots ? slots[start] : uint32_t(start);
        ranks[suffixes[i]] = rank;
        heads[i] = rank;
    }
}

// Keys of suffixes that are not told apart by their first ``known`` letters: their rank, then that
// of the rest. A suffix that has no rest comes before the others, shorter ones first.
extern "C" __global__ void __launch_bounds__(kThreads)
    next_keys(const uint32_t* suffixes, const uint32_t* heads, int64_t count, int64_t known,
              const uint32_t* ranks, int64_t size, uint64_t* keys) {
    for (int64_t i = first_unit(); i < count; i += unit_step()) {
        const int64_t rest = suffixes[i] + known;
        // What is known of two such suffixes may be but what stands for letters behind the end.
        const uint32_t low = uint32_t(rest < size ? ranks[rest] + known : size - 1 - suffixes[i]);
        keys[i] = uint64_t(heads[i]) << 32 | low;
    }
}

// Takes elements in an order.
extern "C" __global__ void __launch_bounds__(kThreads)
    reorder(const uint32_t* values, const int64_t* order, int64_t count, uint32_t* out) {
    for (int64_t i = first_unit(); i < count; i += unit_step()) out[i] = values[order[i]];
}

// Puts suffixes into their slots of the array.
extern "C" __global__ void __launch_bounds__(kThreads)
    put_back(const uint32_t* suffixes, const uint32_t* slots, int64_t count, uint32_t* places) {
    for (int64_t i = first_unit(); i < count; i += unit_step()) places[slots[i]] = suffixes[i];
}

// Writes the ranks of suffixes; sets ``wrong`` for a place that is none.
extern "C" __global__ void __launch_bounds__(kThreads)
    rank_places(const uint32_t* places, int64_t size, uint32_t* ranks, uint32_t* wrong) {
    for (int64_t i = first_unit(); i < size; i += unit_step()) {
        if (places[i] < size) ranks[places[i]] = uint32_t(i);
        else *wrong = 1;
    }
}

// Sets ``wrong`` unless the array is a permutation, and each suffix is greater than the one before
// by its first byte, or else by the rank of the rest.
extern "C" __global__ void __launch_bounds__(kThreads)
    check_places(const uint8_t* text, const uint32_t* places, int64_t size, const uint32_t* ranks,
                 uint32_t* wrong) {
    for (int64_t i = first_unit(); i < size; i += unit_step()) {
        const int64_t own = places[i];
        if (ranks[own] != uint32_t(i)) *wrong = 1;
        if (i == 0) continue;
        const int64_t before = places[i - 1];
        if (text[before] > text[own]) *wrong = 1;
        if (text[before] != text[own]) continue;
        // The empty suffix is less than any.
        if (own + 1 == size || (before + 1 < size && ranks[before + 1] > ranks[own + 1]))
            *wrong = 1;
    }
}
