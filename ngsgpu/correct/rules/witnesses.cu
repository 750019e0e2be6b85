// Other reads with a base in the same surroundings; the reference is cpu_witnesses.py beside it.
#include "ngsgpu/align/weights.cuh"
#include "ngsgpu/readset/look_up.cuh"

constexpr int PLACES = 3, SEEN = 6, OWN = 4;  // of ngsgpu/correct/rules/witnesses.py

// Write the k-mers that hold some bases, or others (``bases``) in their places, and qualities;
// ``scores`` has the score of each quality code.
//
// Grid: any; block: any, one thread per base. Bytes: 40 out per base.
extern "C" __global__ void find_asked(const Reads* reads_in, int64_t count, const uint32_t* owner,
                                      const int32_t* positions, const uint8_t* bases, int k,
                                      const uint8_t* scores, uint64_t* kmers, uint8_t* places, uint32_t* ends,
                                      uint8_t* qualities) {
    const Reads reads = *reads_in;
    const int64_t step = int64_t(gridDim.x) * blockDim.x;
    for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) {
        const int64_t read = owner[i];
        const int position = positions[i];
        const int length = read_length(reads, read), words = (length + 63) >> 6;
        const uint64_t* planes = reads.planes + plane_start(reads, read);
        const uint8_t* own = reads.qualities + quality_start(reads, read);
        qualities[i] = scores[quality_code(own, int(reads.quality_bits), position)];
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
        const uint8_t* qualities = reads.qualities + quality_start(reads, read);
        const uint32_t fragment = uint32_t(read >> paired);
        const auto add = [&](const FoundKmer& kmer, const uint64_t*, int) {
            for (int place = 0; place < PLACES; ++place) {
                const int base = kmer.last - (k - 1) * place / 2;
                const int weight =
                    weights[quality_code(qualities, int(reads.quality_bits), base)];
                if (weight < Q20_WEIGHT) continue;
                const int in_canonical = kmer.reverse ? place : PLACES - 1 - place;
                uint32_t* show = seen + SEEN * (PLACES * int64_t(ranks[kmer.slot]) + in_canonical);
                const uint32_t end = 2 * base + kmer.reverse;
                atomicAdd(show, 1u);
                if (weight >= Q30_WEIGHT) atomicAdd(show + 1, 1u);
                atomicMin(show + 2, fragment);
                atomicMax(show + 3, fragment);
                atomicMin(show + 4, end);
                atomicMax(show + 5, end);
            }
        };
        look_up(reads, read, unknown, k, table, last_slot, add);
    }
}
