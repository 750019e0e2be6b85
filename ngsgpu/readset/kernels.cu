// k-mers of reads; the reference is ngsgpu/readset/kmers.py.
#include "ngsgpu/readset/reads.cuh"
#include "ngsgpu/sequence/kmer.cuh"

// Collect the canonical k-mers whose hash has zeros where ``mask`` has ones, in any order.
// ``found`` counts them, including those for which ``sample`` has no room.
//
// Grid: any; block: any, one thread per read. Bytes: the planes once, 8 out per k-mer sampled.
// Operations: about 25 per base.
extern "C" __global__ void sample_kmers(const Reads* reads_in, int64_t count, int k, uint64_t mask,
                                        int64_t room, uint64_t* sample,
                                        unsigned long long* found) {
    const Reads reads = *reads_in;
    const int64_t step = int64_t(gridDim.x) * blockDim.x;
    for (int64_t read = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; read < count; read += step) {
        const int length = read_length(reads, read);
        const int words = (length + 63) >> 6;
        const uint64_t* planes = reads.planes + plane_start(reads, read);
        Kmer kmer(k);
        uint64_t low = 0, high = 0;
        for (int position = 0; position < length; ++position) {
            if ((position & 63) == 0) {
                low = planes[position >> 6];
                high = planes[words + (position >> 6)];
            }
            kmer.add((low & 1) | ((high & 1) << 1));
            low >>= 1;
            high >>= 1;
            if (position < k - 1) continue;
            const uint64_t canonical = kmer.canonical();
            if (mix64(canonical) & mask) continue;
            const int64_t at = int64_t(atomicAdd(found, 1ull));
            if (at < room) sample[at] = canonical;
        }
    }
}
