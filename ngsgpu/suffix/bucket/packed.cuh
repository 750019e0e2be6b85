// A text of bases, 32 in a word of 64 bits, the first in the highest bits, and the order of its
// suffixes. Behind the text there are A up to the end of its word, and one more word.
#pragma once
#include "ngsgpu/sequence/hashing.cuh"
#include "ngsgpu/suffix/units.cuh"

namespace {

// Ranks of the suffixes that begin at places of a difference cover.
struct Cover {
    const uint32_t* ranks;  // null: they are not known yet
    const int32_t* tables;  // [period] classes of the residues, or -1; [period] residues, by which
                            // two places have to be moved to be both in the cover
    int64_t period;         // a power of two, at least 32; depth to which letters are compared
    int64_t stride;         // ranks of a class

    __device__ int64_t index(int64_t place) const {
        return tables[place & (period - 1)] * stride + place / period;
    }
    // How far to go from two places to those that both have a rank.
    __device__ int64_t distance(int64_t one, int64_t other) const {
        const int32_t residue = tables[period + ((other - one) & (period - 1))];
        return (residue - one) & (period - 1);
    }
};

struct Text {
    const uint64_t* words;
    int64_t size;

    // 32 letters from a place on.
    __device__ uint64_t letters(int64_t place) const {
        if (place >= size) return 0;
        const int64_t word = place >> 5;
        const int shift = 2 * int(place & 31);
        const uint64_t first = words[word];
        return shift ? first << shift | words[word + 1] >> (64 - shift) : first;
    }
    __device__ uint32_t letter(int64_t place) const {
        return uint32_t(words[place >> 5] >> (62 - 2 * int(place & 31))) & 3;
    }
};

// Order of two suffixes by at most ``depth`` letters, of which ``known`` agree: -1, 1, or 0 if they
// agree and go on behind these. One that is the start of the other comes first.
__device__ __forceinline__ int compare(const Text& text, int64_t one, int64_t other, int64_t known,
                                       int64_t depth) {
    const int64_t rest = text.size - (one > other ? one : other);
    const int64_t common = rest < depth ? rest : depth;
    for (int64_t at = known; at < common; at += 32) {
        const uint64_t own = text.letters(one + at), its = text.letters(other + at);
        if (own == its) continue;
        if (at + (__clzll((long long)(own ^ its)) >> 1) < common) return own < its ? -1 : 1;
        break;
    }
    if (rest > depth || one == other) return 0;
    return one > other ? -1 : 1;
}

// Order of two suffixes; without ranks, 0 if they agree in a whole period.
__device__ __forceinline__ int order(const Text& text, const Cover& cover, int64_t one,
                                     int64_t other, int64_t known) {
    const int found = compare(text, one, other, known, cover.period);
    if (found != 0 || cover.ranks == nullptr || one == other) return found;
    const int64_t distance = cover.distance(one, other);
    const uint32_t own = cover.ranks[cover.index(one + distance)];
    const uint32_t its = cover.ranks[cover.index(other + distance)];
    return own < its ? -1 : 1;
}

}  // namespace
