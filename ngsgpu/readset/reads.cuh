// The read set on the device: ReadArrays of ngsgpu/readset/readset.py, and locating a read's data.
#pragma once
#include "ngsgpu/readset/gpu.structs"

// Kernels that look at reads all the time are compiled again for the most frequent ones: all of one
// length, a byte or two bits for each quality.
#ifdef EQUAL_READS
constexpr bool ALWAYS_EQUAL = true;
constexpr int EQUAL_BITS = EQUAL_READS;
#else
constexpr bool ALWAYS_EQUAL = false;
constexpr int EQUAL_BITS = 8;
#endif

__device__ __forceinline__ bool are_equal(const Reads& reads) {
    return ALWAYS_EQUAL || reads.uniform_length >= 0;
}

__device__ __forceinline__ int read_length(const Reads& reads, int64_t read) {
    return are_equal(reads) ? int(reads.uniform_length) : reads.lengths[read];
}

__device__ __forceinline__ int64_t plane_start(const Reads& reads, int64_t read) {
    if (are_equal(reads)) return read * (2 * ((reads.uniform_length + 63) >> 6));
    return reads.plane_start[read];
}

__device__ __forceinline__ int64_t quality_start(const Reads& reads, int64_t read) {
    const int64_t bits = ALWAYS_EQUAL ? EQUAL_BITS : reads.quality_bits;
    if (are_equal(reads)) return read * ((reads.uniform_length * bits + 7) >> 3);
    return reads.quality_start[read];
}

__device__ __forceinline__ int quality_code(const uint8_t* qualities, int bits, int position) {
    if (ALWAYS_EQUAL) bits = EQUAL_BITS;
    if (bits == 8) return qualities[position];
    if (bits == 0) return 0;
    const int bit = position * bits;
    return (qualities[bit >> 3] >> (bit & 7)) & ((1 << bits) - 1);
}

__device__ __forceinline__ int base_at(const uint64_t* planes, int words, int position) {
    const int word = position >> 6, bit = position & 63;
    return int((planes[word] >> bit) & 1) | (int((planes[words + word] >> bit) & 1) << 1);
}

// Word ``index`` of one plane of the reverse complement of a read of ``length`` bases.
__device__ __forceinline__ uint64_t reverse_complement_word(const uint64_t* plane, int length,
                                                            int index) {
    const int words = (length + 63) >> 6;
    const int surplus = words * 64 - length;
    uint64_t bits = ~__brevll(plane[words - 1 - index]);
    if (surplus) {
        bits >>= surplus;
        if (index + 1 < words) bits |= ~__brevll(plane[words - 2 - index]) << (64 - surplus);
    }
    return bits;
}

// 64 bases as bit planes, the first one in the lowest bits.
struct Bases {
    uint64_t low, high;
};

// The 64 bases from ``offset`` on of a read, or of its reverse complement, ``offset`` being less
// than its length; bits past the end are undefined.
__device__ __forceinline__ Bases bases_from(const uint64_t* planes, int words, int length,
                                            int reverse_complemented, int offset) {
    // Reverse complement: the bases before position ``length - offset``, reversed and inverted.
    const int first = reverse_complemented ? length - offset - 64 : offset;
    Bases bases = {0, 0};
    if (first >= 0) {
        const int word = first >> 6, bit = first & 63;
        bases.low = planes[word] >> bit;
        bases.high = planes[words + word] >> bit;
        if (bit && word + 1 < words) {
            bases.low |= planes[word + 1] << (64 - bit);
            bases.high |= planes[words + word + 1] << (64 - bit);
        }
    } else if (first > -64) {
        bases.low = planes[0] << -first;
        bases.high = planes[words] << -first;
    }
    if (reverse_complemented) {
        bases.low = ~__brevll(bases.low);
        bases.high = ~__brevll(bases.high);
    }
    return bases;
}
