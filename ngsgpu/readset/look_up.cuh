// K-mers of reads, looked up in a table as make_table of ngsgpu/readset/fill.py makes it.
#pragma once
#include "ngsgpu/readset/unknown.cuh"
#include "ngsgpu/sequence/kmer.cuh"

constexpr uint64_t NONE = ~0ull;  // a free slot

// A k-mer of a read that is in the table.
struct FoundKmer {
    uint64_t slot;
    int last;                  // position of its last base in the read
    bool reverse;              // the canonical k-mer is on the other strand
    bool follows, is_followed;  // a known base stands before it, and behind it
};

// Calls ``found(k-mer, planes, words)`` for each k-mer of known bases of a read that is in a table.
template <class Found>
__device__ __forceinline__ void look_up(const Reads& reads, int64_t read,
                                        const AmbiguousBases& unknown, int k, const uint64_t* table,
                                        uint64_t last_slot, Found found) {
    const UnknownBases own = unknown_of(unknown, read);
    int64_t at = own.begin;
    const int length = read_length(reads, read), words = (length + 63) >> 6;
    const uint64_t* planes = reads.planes + plane_start(reads, read);
    Kmer kmer(k);
    uint64_t low = 0, high = 0;
    int known = 0;
    for (int position = 0; position < length; ++position) {
        if ((position & 63) == 0) {
            low = planes[position >> 6];
            high = planes[words + (position >> 6)];
        }
        ++known;
        if (at < own.end && unknown.positions[at] == position) {
            ++at;
            known = 0;
        }
        kmer.add((low & 1) | ((high & 1) << 1));
        low >>= 1;
        high >>= 1;
        if (known < k) continue;
        const uint64_t canonical = kmer.canonical();
        uint64_t slot = (mix64(canonical) >> 32) & last_slot;
        uint64_t there = table[slot];
        while (there != canonical && there != NONE) {
            slot = (slot + 1) & last_slot;
            there = table[slot];
        }
        if (there == NONE) continue;
        const int next = position + 1;
        const bool is_followed =
            next < length && !(at < own.end && unknown.positions[at] == next);
        found(FoundKmer{slot, position, kmer.forward != canonical, known > k, is_followed}, planes,
              words);
    }
}
