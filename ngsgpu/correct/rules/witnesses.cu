// Other reads with a base in the same surroundings; the reference is cpu_witnesses.py beside it.
#include "ngsgpu/align/weights.cuh"
#include "ngsgpu/readset/unknown.cuh"
#include "ngsgpu/sequence/kmer.cuh"

constexpr uint64_t NONE = ~0ull;
constexpr int PLACES = 3, SEEN = 6, OWN = 4;  // of ngsgpu/correct/rules/witnesses.py

// Write the k-mers that hold some bases, or others (``bases``) in their places, and qualities.
//
// Grid: any; block: any, one thread per base. Bytes: 40 out per base.
extern "C" __global__ void find_asked(const Reads* reads_in, int64_t count, const uint32_t* owner,
                                      const int32_t* positions, const uint8_t* bases, int k,
                                      uint64_t* kmers, uint8_t* places, uint32_t* ends,
                                      uint8_t* qualities) {
    const Reads reads = *reads_in;
    const int64_t step = int64_t(gridDim.x) * blockDim.x;
    for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) {
        const int64_t read = owner[i];
        const int position = positions[i];
        const int length = read_length(reads, read), words = (length + 63) >> 6;
        const uint64_t* planes = reads.planes + plane_start(reads, read);
        const uint8_t* own = reads.qualities + quality_start(reads, read);
        qualities[i] = reads.quality_bits == 8 ? quality_code(own, 8, position) : 0;
        for (int place = 0; place < PLACES; ++place) {
            const int64_t at = PLACES * i + place;
            const int first = position - (k - 1) * place / 2;
            kmers[at] = NONE;
            places[at] = 0;
            ends[at] = 0;
            if (first < 0 || first + k > length) continue;
            Kmer kmer(k);
            for (int j = 0; j < k; ++j) {
                const bool other = first + j == position && bases[i] != OWN;
                kmer.add(uint64_t(other ? bases[i] : base_at(planes, words, first + j)));
            }
            const bool reverse = kmer.forward > kmer.backward;
            kmers[at] = kmer.canonical();
            places[at] = uint8_t(reverse ? PLACES - 1 - place : place);
            ends[at] = 2 * position + reverse;
        }
    }
}

// Add what reads show of the k-mers of a table to seen[rank][place]: all, or those ``among`` them.
//
// Grid: any; block: any, one thread per read. Bytes: the planes once, a slot of the table per base.
// Operations: about 35 per base.
extern "C" __global__ void count_witnesses(const Reads* reads_in, int64_t count, int paired,
                                           const AmbiguousBases* unknown_in,
                                           const int32_t* weights, int k, const uint64_t* table,
                                           uint64_t last_slot, const uint32_t* ranks,
                                           const uint8_t* among, uint32_t* seen) {
    const Reads reads = *reads_in;
    const AmbiguousBases unknown = *unknown_in;
    const int64_t step = int64_t(gridDim.x) * blockDim.x;
    for (int64_t read = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; read < count;
         read += step) {
        if (among && !among[read]) continue;
        const UnknownBases own = unknown_of(unknown, read);
        int64_t at = own.begin;
        const int length = read_length(reads, read), words = (length + 63) >> 6;
        const uint64_t* planes = reads.planes + plane_start(reads, read);
        const uint8_t* qualities = reads.qualities + quality_start(reads, read);
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
            uint64_t met = table[slot];
            while (met != canonical && met != NONE) {
                slot = (slot + 1) & last_slot;
                met = table[slot];
            }
            if (met == NONE) continue;
            const bool reverse = kmer.forward > kmer.backward;
            for (int place = 0; place < PLACES; ++place) {
                const int base = position - (k - 1) * place / 2;
                const int weight =
                    weights[quality_code(qualities, int(reads.quality_bits), base)];
                if (weight < Q20_WEIGHT) continue;
                const int in_canonical = reverse ? place : PLACES - 1 - place;
                uint32_t* show = seen + SEEN * (PLACES * int64_t(ranks[slot]) + in_canonical);
                const uint32_t fragment = uint32_t(read >> paired), end = 2 * base + reverse;
                atomicAdd(show, 1u);
                if (weight >= Q30_WEIGHT) atomicAdd(show + 1, 1u);
                atomicMin(show + 2, fragment);
                atomicMax(show + 3, fragment);
                atomicMin(show + 4, end);
                atomicMax(show + 5, end);
            }
        }
    }
}
