// Bases in place of unknown ones; the reference is ngsgpu/readset/fill.py.
#include "ngsgpu/readset/look_up.cuh"

// Write the neighbours of the unknown bases of each read that has any.
//
// Grid: any; block: any, one thread per read. Bytes: 18 out per unknown base.
extern "C" __global__ void find_neighbours(const Reads* reads_in, const AmbiguousBases* unknown_in,
                                           int k, uint64_t* kmers, uint8_t* ways) {
    const Reads reads = *reads_in;
    const AmbiguousBases unknown = *unknown_in;
    const int64_t step = int64_t(gridDim.x) * blockDim.x;
    for (int64_t entry = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; entry < unknown.count;
         entry += step) {
        const int64_t read = unknown.reads[entry];
        const int length = read_length(reads, read), words = (length + 63) >> 6;
        const uint64_t* planes = reads.planes + plane_start(reads, read);
        const int64_t begin = unknown.start[entry], end = unknown.start[entry + 1];
        for (int64_t i = begin; i < end; ++i) {
            const int position = unknown.positions[i];
            const int before = i > begin ? unknown.positions[i - 1] : -1;
            const int behind = i + 1 < end ? unknown.positions[i + 1] : length;
            for (int precedes = 0; precedes < 2; ++precedes) {
                kmers[2 * i + precedes] = NONE;
                ways[2 * i + precedes] = 0;
                if ((precedes ? behind - position : position - before) <= k) continue;
                const int first = precedes ? position + 1 : position - k;
                Kmer kmer(k);
                for (int j = 0; j < k; ++j) kmer.add(uint64_t(base_at(planes, words, first + j)));
                kmers[2 * i + precedes] = kmer.canonical();
                ways[2 * i + precedes] =
                    uint8_t(kmer.forward < kmer.backward ? precedes : (precedes ^ 1) | 2);
            }
        }
    }
}

// Count the known bases next to k-mers of a table: counts[slot][precedes the canonical one][base];
// of the reads that are ``looked_at`` (kLookedAt), which gets kFound where they have such k-mers.
//
// Grid: any; block: any, one thread per read. Bytes: the planes once, a slot of the table per base.
// Operations: about 35 per base.
constexpr uint8_t kLookedAt = 1, kFound = 2;

extern "C" __global__ void count_neighbours(const Reads* reads_in, int64_t count,
                                            const AmbiguousBases* unknown_in, int k,
                                            const uint64_t* table, uint64_t last_slot,
                                            uint8_t* looked_at, unsigned long long* counts) {
    const Reads reads = *reads_in;
    const AmbiguousBases unknown = *unknown_in;
    const int64_t step = int64_t(gridDim.x) * blockDim.x;
    for (int64_t read = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; read < count;
         read += step) {
        if (!(looked_at[read] & kLookedAt)) continue;
        bool found = false;
        const auto add = [&](const FoundKmer& kmer, const uint64_t* planes, int words) {
            found = true;
            unsigned long long* here = counts + 8 * kmer.slot;
            if (kmer.follows) {
                const int base = base_at(planes, words, kmer.last - k);
                atomicAdd(here + (kmer.reverse ? 3 - base : 4 + base), 1ull);
            }
            if (kmer.is_followed) {
                const int base = base_at(planes, words, kmer.last + 1);
                atomicAdd(here + (kmer.reverse ? 4 + 3 - base : base), 1ull);
            }
        };
        look_up(reads, read, unknown, k, table, last_slot, add);
        if (found) looked_at[read] |= kFound;
    }
}

// Replace one base of each of some reads.
//
// Grid: any; block: any, one thread per base. Bytes: two words of the planes per base.
extern "C" __global__ void put_bases(const Reads* reads_in, int64_t count, const uint32_t* ids,
                                     const int32_t* positions, const uint8_t* bases) {
    const Reads reads = *reads_in;
    const int64_t step = int64_t(gridDim.x) * blockDim.x;
    for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) {
        const int words = (read_length(reads, ids[i]) + 63) >> 6;
        auto* word = (unsigned long long*)reads.planes + plane_start(reads, ids[i]) +
                     (positions[i] >> 6);
        const unsigned long long bit = 1ull << (positions[i] & 63);
        for (int plane = 0; plane < 2; ++plane, word += words) {
            if ((bases[i] >> plane) & 1) atomicOr(word, bit);
            else atomicAnd(word, ~bit);
        }
    }
}
