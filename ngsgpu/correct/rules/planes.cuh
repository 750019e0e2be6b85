// Corrected sequences as planes, and their hashes; hash_sequence of ngsgpu/correct/rules/votes.py.
#pragma once
#include "ngsgpu/sequence/hashing.cuh"

// The planes (64-bit words, low and high) that the block makes of columns or edited anchors.
struct Planes {
    uint32_t* half;  // [2][2 x words]
    int words;
    __device__ uint64_t word(int plane, int index) const {
        const uint32_t* at = half + plane * 2 * words + 2 * index;
        return at[0] | (uint64_t(at[1]) << 32);
    }
    // 64 bits from bit ``first`` on; outside the array they are zero.
    __device__ uint64_t bits(int plane, int first) const {
        const int index = first >> 6, bit = first & 63;
        uint64_t value = index < words ? word(plane, index) >> bit : 0;
        if (bit && index + 1 < words) value |= word(plane, index + 1) << (64 - bit);
        return value;
    }
};

// A word of the ``length`` bases from ``first`` on, or of their reverse complement.
__device__ __forceinline__ uint64_t oriented_word(const Planes& planes, int first, int length,
                                                  int reverse_complemented, int plane, int i) {
    const int words = (length + 63) >> 6, surplus = words * 64 - length;
    uint64_t word;
    if (reverse_complemented) {
        word = ~__brevll(planes.bits(plane, first + 64 * (words - 1 - i)));
        if (surplus) {
            word >>= surplus;
            if (i + 1 < words)
                word |= ~__brevll(planes.bits(plane, first + 64 * (words - 2 - i)))
                        << (64 - surplus);
        }
    } else {
        word = planes.bits(plane, first + 64 * i);
        if (i == words - 1 && surplus) word &= ~0ull >> surplus;
    }
    return word;
}

// Hash of the ``length`` bases from ``first`` on; never 0.
__device__ __noinline__ uint64_t hash_bits(const Planes& planes, int first, int length,
                                             int reverse_complemented) {
    const int words = (length + 63) >> 6;
    uint64_t value = uint64_t(length);
    for (int plane = 0; plane < 2; ++plane)
        for (int i = 0; i < words; ++i)
            value = mix64(value ^ oriented_word(planes, first, length, reverse_complemented,
                                                plane, i));
    return value ? value : 1;
}
