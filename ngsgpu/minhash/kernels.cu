// Minhash signatures and tables; the reference is ngsgpu/minhash/cpu.py.
#include "ngsgpu/minhash/slots.cuh"
#include "ngsgpu/readset/reads.cuh"

// 32 bits to every second of 64.
__device__ __forceinline__ uint64_t spread_bits(uint32_t bits) {
    uint64_t word = bits;
    word = (word | (word << 16)) & 0x0000FFFF0000FFFFull;
    word = (word | (word << 8)) & 0x00FF00FF00FF00FFull;
    word = (word | (word << 4)) & 0x0F0F0F0F0F0F0F0Full;
    word = (word | (word << 2)) & 0x3333333333333333ull;
    return (word | (word << 1)) & 0x5555555555555555ull;
}

// Two bits a base from two planes; the base of the lowest bits is in the lowest.
__device__ __forceinline__ uint64_t joined(uint32_t low, uint32_t high) {
    return spread_bits(low) | (spread_bits(high) << 1);
}

// Signatures of reads under blockDim.x consecutive functions; ``keys`` and ``positions`` point
// to one array per function.
//
// Grid: any; block: (functions, reads). A block keeps the canonical k-mers of its blockDim.y reads
// in shared memory (max_kmers x 8 bytes per read, twice) and each thread takes the smallest hash of
// one read under one function; the threads of a read read the same word at a time.
// Bytes: planes once, 10 out per read and function. Operations: about 20 per k-mer and function,
// which is the bound.
extern "C" __global__ void sign_reads(const Reads* reads_in, int64_t first, int64_t last, int k,
                                      uint64_t first_function, int max_kmers,
                                      uint64_t* const* keys, uint16_t* const* positions) {
    extern __shared__ uint64_t kmers[];
    const Reads reads = *reads_in;
    uint64_t* canonical = kmers + threadIdx.y * 2 * max_kmers;
    uint64_t* forward = canonical + max_kmers;
    const uint64_t mask = ~0ull >> (64 - 2 * k);
    const uint32_t all = ~0u >> (32 - k);
    for (int64_t base = first + int64_t(blockIdx.x) * blockDim.y; base < last;
         base += int64_t(gridDim.x) * blockDim.y) {
        const int64_t read = base + threadIdx.y;
        int count = 0;
        __syncthreads();
        if (read < last) {
            const int length = read_length(reads, read);
            const int words = (length + 63) >> 6;
            const uint64_t* planes = reads.planes + plane_start(reads, read);
            count = length >= k ? length - k + 1 : 0;
            for (int i = threadIdx.x; i < count; i += blockDim.x) {
                const Bases bases = bases_from(planes, words, length, 0, i);
                const uint32_t low = uint32_t(bases.low) & all, high = uint32_t(bases.high) & all;
                const uint64_t kmer = joined(__brev(low) >> (32 - k), __brev(high) >> (32 - k));
                const uint64_t complement = joined(~low & all, ~high & all);
                forward[i] = kmer;
                canonical[i] = kmer < complement ? kmer : complement;
            }
        }
        __syncthreads();
        if (count == 0) continue;
        const uint64_t function = first_function + threadIdx.x;
        uint64_t smallest = ~0ull;
        for (int i = 0; i < count; ++i) {
            const uint64_t hash = mix64(canonical[i] + function);
            smallest = hash < smallest ? hash : smallest;
        }
        const uint64_t kmer = unmix64(smallest) - function;
        int position = 0;
        while (canonical[position] != kmer) ++position;
        keys[threadIdx.x][read] = smallest & mask;
        positions[threadIdx.x][read] = 2 * position + (forward[position] != kmer);
    }
}

// Mark the sorted entries to keep: those that share their bucket with others.
//
// Grid: any; block: any, one thread per entry. Bytes: 8 in and 4 out per entry.
extern "C" __global__ void mark_shared(const uint64_t* keys, int64_t count, int32_t* stays) {
    const int64_t step = int64_t(gridDim.x) * blockDim.x;
    for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) {
        const uint64_t key = keys[i];
        stays[i] = (i > 0 && keys[i - 1] == key) || (i + 1 < count && keys[i + 1] == key);
    }
}

// A read's slot: where its bucket begins, ``before`` entries before its own, if that is near.
__device__ __forceinline__ uint32_t slot_of(int64_t entry, int before, bool begins) {
    return begins ? uint32_t(entry - before) | NEAR_START : uint32_t(entry);
}

// Write the kept entries to their table, and the slots of their reads; ``entry`` is the inclusive
// sum of ``stays``. A read's slot is in column ``column`` of its ``columns`` columns.
//
// Grid: any; block: any, one thread per entry. Bytes: 28 in (keys before it from the cache), 10 out
// per entry, positions and slots as random accesses.
extern "C" __global__ void fill_table(const uint64_t* keys, const int64_t* ids, int64_t count,
                                      const int32_t* stays, const int32_t* entry,
                                      const uint16_t* positions, int column, int columns,
                                      uint32_t* table_ids, uint16_t* table_positions,
                                      uint32_t* slots) {
    const int64_t step = int64_t(gridDim.x) * blockDim.x;
    for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) {
        if (i == count - 1) table_ids[entry[i]] = BUCKET_START;
        if (!stays[i]) continue;
        const uint32_t read = uint32_t(ids[i]);
        const uint32_t target = entry[i] - 1;
        const uint64_t key = keys[i];
        int before = 0;
        bool begins = i == 0 || keys[i - 1] != key;
        table_ids[target] = begins ? read | BUCKET_START : read;
        table_positions[target] = positions[read];
        while (!begins && before < NEAR_ENTRIES - 1) {
            ++before;
            begins = i == before || keys[i - before - 1] != key;
        }
        slots[int64_t(read) * columns + column] = slot_of(target, before, begins);
    }
}

// Write the slots of a table that another GPU has built, as ``fill_table`` does.
//
// Grid: any; block: any, one thread per entry. Bytes: 4 in (those before it from the cache), 4 out
// per entry as random accesses.
extern "C" __global__ void fill_slots(const uint32_t* table_ids, int64_t entries, int column,
                                      int columns, uint32_t* slots) {
    const int64_t step = int64_t(gridDim.x) * blockDim.x;
    for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < entries; i += step) {
        const uint32_t id = table_ids[i];
        int before = 0;
        // The first entry of a table begins a bucket.
        bool begins = id >= BUCKET_START;
        while (!begins && before < NEAR_ENTRIES - 1) {
            ++before;
            begins = table_ids[i - before] >= BUCKET_START;
        }
        slots[int64_t(id & ~BUCKET_START) * columns + column] = slot_of(i, before, begins);
    }
}
