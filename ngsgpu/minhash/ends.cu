// The tables of the ends of reads; the reference is ngsgpu/minhash/ends.py.
#include "ngsgpu/readset/reads.cuh"
#include "ngsgpu/sequence/kmer.cuh"
#include "ngsgpu/sequence/search.cuh"

constexpr int kMarkBits = 24;

// Bits of a key below those that choose the cell; up to 64.
__device__ __forceinline__ uint64_t cell_of_key(uint64_t key, int below) {
    return below < 64 ? key >> below : 0;
}

// Signatures of both ends of all reads under one function: the low 2k bits of the smallest hash of
// the k-mers among the first ``window`` bases, and the (first) position of its k-mer. Reads that are
// shorter than the window get a key of ones.
//
// Grid: any; block: any, one thread an end. Bytes: the planes once, 9 out an end. Operations: about
// 30 for each k-mer, which bounds it.
extern "C" __global__ void sign_ends(const Reads* reads_in, int64_t ends, int k, int window,
                                     uint64_t function, uint64_t* keys, uint8_t* positions) {
    const Reads reads = *reads_in;
    const int64_t step = int64_t(gridDim.x) * blockDim.x;
    for (int64_t end = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; end < ends; end += step) {
        const int64_t read = end >> 1;
        const int length = read_length(reads, read);
        if (length < window) {
            keys[end] = ~0ull;
            positions[end] = 0;
            continue;
        }
        const int words = (length + 63) >> 6;
        const uint64_t* low_plane = reads.planes + plane_start(reads, read);
        const uint64_t* high_plane = low_plane + words;
        Kmer kmer(k);
        uint64_t low = 0, high = 0, smallest = ~0ull;
        int place = 0;
        for (int position = 0; position < window; ++position) {
            if ((position & 63) == 0) {
                const int word = position >> 6;
                low = end & 1 ? reverse_complement_word(low_plane, length, word) : low_plane[word];
                high = end & 1 ? reverse_complement_word(high_plane, length, word)
                               : high_plane[word];
            }
            kmer.add((low & 1) | ((high & 1) << 1));
            low >>= 1;
            high >>= 1;
            if (position < k - 1) continue;
            const uint64_t hash = mix64(kmer.forward + function);
            if (hash < smallest) {
                smallest = hash;
                place = position - (k - 1);
            }
        }
        keys[end] = smallest & kmer.mask;
        positions[end] = uint8_t(place);
    }
}

// Mark the ends of a part: those whose keys have the bits ``part`` from ``shift`` on, among those of
// reads that are long enough. ``shift`` is up to 64.
//
// Grid: any; block: any, one thread an end. Bytes: 8 in and 1 out an end.
extern "C" __global__ void mark_ends(const uint64_t* keys, int64_t first, int64_t count, int shift,
                                     uint64_t part, bool* is_of_part) {
    const int64_t step = int64_t(gridDim.x) * blockDim.x;
    for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) {
        const uint64_t key = keys[first + i];
        is_of_part[i] = key != ~0ull && cell_of_key(key, shift) == part;
    }
}

// Entries of a part of a table from the sorted keys; ``members`` are the ends in their order. ``below``: bits
// of a key below those that choose the cell.
//
// Grid: any; block: any, one thread an entry. Bytes: 17 in, 8 out an entry, the places at random.
extern "C" __global__ void fill_ends(const uint64_t* keys, const int64_t* members, int64_t count,
                                     const uint8_t* positions, int below, uint64_t* entries) {
    const int shift = below > kMarkBits ? below - kMarkBits : 0;
    const uint64_t mask = (1ull << kMarkBits) - 1;
    const int64_t step = int64_t(gridDim.x) * blockDim.x;
    for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) {
        const uint64_t end = uint64_t(members[i]);
        const uint64_t mark = (keys[i] >> shift) & mask;
        entries[i] = (mark << 40) | (uint64_t(positions[end]) << 32) | end;
    }
}

// First entries of the cells of a part, whose entries begin at ``base``: a binary search in the sorted
// keys.
//
// Grid: any; block: any, one thread per cell. Bytes: neighbours search nearly the same way, in L2,
// so about 8 in per key and 4 out per cell.
extern "C" __global__ void find_cells(const uint64_t* keys, int64_t count, int below, int64_t base,
                                      int64_t first_cell, int64_t cells, uint32_t* first) {
    const int64_t step = int64_t(gridDim.x) * blockDim.x;
    for (int64_t cell = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; cell < cells;
         cell += step) {
        const auto is_before = [&](int64_t entry) {
            return cell_of_key(keys[entry], below) < uint64_t(first_cell + cell);
        };
        first[cell] = uint32_t(base + first_not_before(int64_t(0), count, is_before));
    }
}
