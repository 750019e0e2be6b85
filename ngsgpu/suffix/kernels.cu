// Suffix arrays by prefix doubling on the GPU, and the FM index made of them. The reference are the
// arrays of ngsgpu/suffix/array.py, which are unique, and ngsgpu/suffix/fm.py.
#include "ngsgpu/device/cuda/warp.cuh"

namespace {

constexpr int kThreads = 256;
constexpr int kBlock = 128;      // bases for which the counts before them are kept
constexpr int kBlockWords = 16;  // words of such a block, with its counts
constexpr int kCountWords = 8;

__device__ __forceinline__ int64_t first_unit() {
    return int64_t(blockIdx.x) * kThreads + threadIdx.x;
}

__device__ __forceinline__ int64_t unit_step() { return int64_t(gridDim.x) * kThreads; }

// Row of the transform before the one with the end mark in front is taken out.
__device__ __forceinline__ uint32_t base_before(const uint8_t* text, const uint32_t* places,
                                                int64_t size, int64_t primary, int64_t position) {
    const int64_t row = position < primary ? position : position + 1;
    return row == 0 ? text[size - 1] : text[places[row - 1] - 1];
}

}  // namespace

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

// Packs the bases of the transform, a thread for each block of 128, and counts them.
extern "C" __global__ void __launch_bounds__(kThreads)
    pack_transform(const uint8_t* text, const uint32_t* places, int64_t size, int64_t primary,
                   uint32_t* words, uint32_t* counts) {
    const int64_t blocks = (size + kBlock - 1) / kBlock;
    for (int64_t block = first_unit(); block < blocks; block += unit_step()) {
        uint32_t own[4] = {0, 0, 0, 0};
        const int64_t end = min(size, kBlock * (block + 1));
        int64_t at = kBlockWords * block + kCountWords;
        for (int64_t first = kBlock * block; first < end; first += 16) {
            uint32_t word = 0;
            for (int j = 0; j < 16; ++j) {
                uint32_t base = 0;
                if (first + j < end) {
                    base = base_before(text, places, size, primary, first + j);
                    for (uint32_t b = 0; b < 4; ++b) own[b] += base == b;
                }
                word = word << 2 | base;
            }
            words[at++] = word;
        }
        for (int b = 0; b < 4; ++b) counts[4 * block + b] = own[b];
    }
}

// Writes how often each base occurs before each block, and behind the last one; ``before`` has the
// sums of the counts up to and with each block.
extern "C" __global__ void __launch_bounds__(kThreads)
    write_counts(const int64_t* before, int64_t size, uint32_t* words) {
    const int64_t blocks = (size + kBlock - 1) / kBlock;
    for (int64_t i = first_unit(); i < 4 * (blocks + 1); i += unit_step()) {
        const int64_t block = i >> 2;
        const int64_t count = block == 0 ? 0 : before[4 * (block - 1) + (i & 3)];
        // The last block is not filled.
        const int64_t at = block < blocks ? kBlockWords * block
                                          : (size + 15) / 16 + kCountWords * blocks;
        words[at + 2 * (i & 3)] = uint32_t(count);
        words[at + 2 * (i & 3) + 1] = uint32_t(count >> 32);
    }
}
