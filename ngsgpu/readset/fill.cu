// Bases in place of unknown ones; the reference is ngsgpu/readset/fill.py.
#include "ngsgpu/readset/unknown.cuh"
#include "ngsgpu/sequence/kmer.cuh"

constexpr uint64_t NONE = ~0ull;

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

// Count the known bases next to k-mers of a table: counts[slot][precedes the canonical one][base].
//
// Grid: any; block: any, one thread per read. Bytes: the planes once, a slot of the table per base.
// Operations: about 35 per base.
extern "C" __global__ void count_neighbours(const Reads* reads_in, int64_t count,
                                            const AmbiguousBases* unknown_in, int k,
                                            const uint64_t* table, uint64_t last_slot,
                                            unsigned long long* counts) {
    const Reads reads = *reads_in;
    const AmbiguousBases unknown = *unknown_in;
    const int64_t step = int64_t(gridDim.x) * blockDim.x;
    for (int64_t read = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; read < count;
         read += step) {
        const UnknownBases own = unknown_of(unknown, read);
        int64_t at = own.begin;
        const int64_t end = own.end;
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
            if (at < end && unknown.positions[at] == position) {
                ++at;
                known = 0;
            }
            kmer.add((low & 1) | ((high & 1) << 1));
            low >>= 1;
            high >>= 1;
            if (known < k) continue;
            const uint64_t canonical = kmer.canonical();
            uint64_t slot = (mix64(canonical) >> 32) & last_slot;
            uint64_t seen = table[slot];
            while (seen != canonical && seen != NONE) {
                slot = (slot + 1) & last_slot;
                seen = table[slot];
            }
            if (seen == NONE) continue;
            const bool reverse = kmer.forward != canonical;
            unsigned long long* here = counts + 8 * slot;
            if (known > k) {
                const int base = base_at(planes, words, position - k);
                atomicAdd(here + (reverse ? 3 - base : 4 + base), 1ull);
            }
            const int following = position + 1;
            if (following < length && !(at < end && unknown.positions[at] == following)) {
                const int base = base_at(planes, words, following);
                atomicAdd(here + (reverse ? 4 + 3 - base : base), 1ull);
            }
        }
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
