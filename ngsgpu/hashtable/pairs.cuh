// (key, value) words, key << 32 | value, and runs of equal keys among sorted ones.
#pragma once

#include "ngsgpu/device/cuda/tiles.cuh"

namespace {

__device__ __forceinline__ uint32_t key_of(uint64_t word) { return uint32_t(word >> 32); }

// Whether a key's top ``bits`` bits are ``part``.
__device__ __forceinline__ bool is_of_part(uint32_t key, int bits, uint32_t part) {
    return uint64_t(key) >> (32 - bits) == part;
}

// Sorted words.
struct SortedWords {
    const uint64_t* words;
    int64_t count;

    // Whether there is a word j and it has the key of word i.
    __device__ bool same_key(int64_t i, int64_t j) const {
        return j >= 0 && j < count && key_of(words[i]) == key_of(words[j]);
    }

    // How many of the ``most`` words from word i on have its key.
    __device__ int64_t run_from(int64_t i, int64_t most) const {
        int64_t step = 1;
        while (step < most && same_key(i, i + step)) step *= 2;
        const auto is_same = [&](int64_t j) { return same_key(i, j); };
        return last_that(i + step / 2, i + min(step, most), is_same) - i + 1;
    }
};

}  // namespace
