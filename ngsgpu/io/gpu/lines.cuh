// Parts of the FASTQ kernels: line feeds, words of a header.
#pragma once

namespace {

using u8 = unsigned char;
using u32 = unsigned int;
using u64 = unsigned long long;
using i64 = long long;

constexpr u32 kThreads = 256;
constexpr u32 kBytes = 64;                 // of a chunk, for each thread
constexpr u32 kTile = kThreads * kBytes;   // for each block
constexpr u32 kAll = 0xFFFFFFFFu;          // lanes of a warp
constexpr u32 kNone = 0xFFFFFFFFu;
constexpr u8 kAmbiguous = 4;                 // class of a letter that is not ACGT
constexpr u8 kNoBase = 255;                // class of a byte that no sequence may have

// Bit i is set where byte ``at + i`` is a line feed and in [begin, end), for 64 bytes.
//
// ``raw + at`` must be aligned to 16 bytes, and readable for 64.
__device__ __forceinline__ u64 line_feeds(const u8* raw, u32 at, u32 begin, u32 end) {
    if (at >= end) return 0;
    u64 feeds = 0;
    for (u32 i = 0; i < 4; ++i) {
        const uint4 bytes = reinterpret_cast<const uint4*>(raw + at)[i];
        const u32 words[4] = {bytes.x, bytes.y, bytes.z, bytes.w};
        for (u32 j = 0; j < 4; ++j) {
            // One bit of each byte that is equal, then their sum in the highest byte.
            const u32 equal = __vcmpeq4(words[j], 0x0A0A0A0Au) & 0x08040201u;
            feeds |= u64((equal * 0x01010101u) >> 24) << (16 * i + 4 * j);
        }
    }
    if (at < begin) feeds &= ~0ull << (begin - at);
    if (end - at < 64) feeds &= (1ull << (end - at)) - 1;
    return feeds;
}

// First byte of a record whose lines end at ``line_end``.
__device__ __forceinline__ u32 record_start(const u32* line_end, u32 begin, u32 record) {
    return record == 0 ? begin : line_end[4 * record - 1] + 1;
}

// End of the text of a line without the carriage return before its line feed, if it has one.
__device__ __forceinline__ u32 without_return(const u8* raw, u32 start, u32 feed) {
    return feed > start && raw[feed - 1] == '\r' ? feed - 1 : feed;
}

// Whether no byte in [start, end) is 0; for a whole warp.
__device__ __forceinline__ bool no_zero(const u8* raw, u32 start, u32 end, u32 lane) {
    bool zero = false;
    for (u32 at = start + lane; at < end; at += 32) zero |= raw[at] == 0;
    return !__any_sync(kAll, zero);
}

// Length of the text in [start, end) up to its first space or tab; for a whole warp.
__device__ __forceinline__ u32 word_length(const u8* raw, u32 start, u32 end, u32 lane) {
    for (u32 base = start;; base += 32) {
        const u32 at = base + lane;
        const u32 stops = __ballot_sync(kAll, at >= end || raw[at] == ' ' || raw[at] == '\t');
        if (stops) return base + __ffs(stops) - 1 - start;
    }
}

// How many bytes are the same, at most ``length``, before the first that differ; for a whole warp.
__device__ __forceinline__ u32 same_bytes(const u8* raw1, u32 a, const u8* raw2, u32 b, u32 length,
                                          u32 lane) {
    for (u32 base = 0; base < length; base += 32) {
        const u32 i = base + lane;
        const u32 differ = __ballot_sync(kAll, i < length && raw1[a + i] != raw2[b + i]);
        if (differ) return base + __ffs(differ) - 1;
    }
    return length;
}

__device__ __forceinline__ bool same_first_word(const u8* raw, u32 a, u32 a_end, u32 b, u32 b_end,
                                                u32 lane) {
    const u32 length = word_length(raw, a, a_end, lane);
    return length == word_length(raw, b, b_end, lane) &&
           same_bytes(raw, a, raw, b, length, lane) == length;
}

// Append the keys of the lanes in ``chosen``; for a whole warp.
__device__ __forceinline__ void append(u64* keys, u64* count, u32 chosen, u32 lane, u64 key) {
    u64 slot = 0;
    if (lane == 0) slot = atomicAdd(count, u64(__popc(chosen)));
    slot = __shfl_sync(kAll, slot, 0);
    if (chosen >> lane & 1) keys[slot + __popc(chosen & ((1u << lane) - 1))] = key;
}

// Write the quality codes of up to 32 bases from ``base`` on; for a whole warp.
__device__ __forceinline__ void write_codes(u8* target, u32 code, int base, int length, int bits,
                                            u32 lane) {
    const int left = length - base;
    if (bits == 8) {
        if (int(lane) < left) target[base + lane] = code;
        return;
    }
    const u32 low = __ballot_sync(kAll, code & 1);
    const u32 high = __ballot_sync(kAll, code & 2);
    const int bytes = (min(32, left) * bits + 7) >> 3;
    if (int(lane) >= bytes) return;
    u32 packed = 0;
    if (bits == 1) {
        packed = low >> (8 * lane);
    } else {
        for (u32 i = 0; i < 4; ++i)
            packed |= (low >> (4 * lane + i) & 1) << (2 * i) |
                      (high >> (4 * lane + i) & 1) << (2 * i + 1);
    }
    target[((base * bits) >> 3) + lane] = packed;
}

}  // namespace
