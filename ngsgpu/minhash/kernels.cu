// Minhash signatures and tables; the reference is ngsgpu/minhash/cpu.py.
#include "ngsgpu/minhash/gpu.structs"
#include "ngsgpu/minhash/slots.cuh"
#include "ngsgpu/readset/reads.cuh"
#include "ngsgpu/sequence/search.cuh"

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

// Write the canonical k-mers of a read, and if ``forward`` is not null the forward ones, by
// ``threads`` threads; return their number.
__device__ __forceinline__ int write_kmers(const Reads& reads, int64_t read, int k, int thread,
                                           int threads, uint64_t* canonical, uint64_t* forward) {
    const uint32_t all = ~0u >> (32 - k);
    const int length = read_length(reads, read);
    const int words = (length + 63) >> 6;
    const uint64_t* planes = reads.planes + plane_start(reads, read);
    const int count = length >= k ? length - k + 1 : 0;
    for (int i = thread; i < count; i += threads) {
        const Bases bases = bases_from(planes, words, length, 0, i);
        const uint32_t low = uint32_t(bases.low) & all, high = uint32_t(bases.high) & all;
        const uint64_t kmer = joined(__brev(low) >> (32 - k), __brev(high) >> (32 - k));
        const uint64_t complement = joined(~low & all, ~high & all);
        if (forward) forward[i] = kmer;
        canonical[i] = kmer < complement ? kmer : complement;
    }
    return count;
}

__device__ __forceinline__ uint64_t smallest_hash(const uint64_t* canonical, int count,
                                                  uint64_t function) {
    uint64_t smallest = ~0ull;
    for (int i = 0; i < count; ++i) {
        const uint64_t hash = mix64(canonical[i] + function);
        smallest = hash < smallest ? hash : smallest;
    }
    return smallest;
}

// The cell of a key; ``below``: bits of a key below those that choose it, up to 64.
__device__ __forceinline__ uint64_t cell_of(uint64_t key, int below) {
    return below < 64 ? key >> below : 0;
}

// Signatures of reads under blockDim.x consecutive functions; ``keys`` and ``positions`` point
// to one array per function, ``positions`` of two bytes if ``wide``, otherwise of one.
//
// Grid: any; block: (functions, reads). A block keeps the canonical k-mers of its blockDim.y reads
// in shared memory (max_kmers x 8 bytes per read, twice) and each thread takes the smallest hash of
// one read under one function; the threads of a read read the same word at a time.
// Bytes: planes once, 10 out per read and function. Operations: about 20 per k-mer and function,
// which is the bound.
extern "C" __global__ void sign_reads(const Reads* reads_in, int64_t first, int64_t last, int k,
                                      uint64_t first_function, int max_kmers, int wide,
                                      uint64_t* const* keys, void* const* positions) {
    extern __shared__ uint64_t kmers[];
    const Reads reads = *reads_in;
    uint64_t* canonical = kmers + threadIdx.y * 2 * max_kmers;
    uint64_t* forward = canonical + max_kmers;
    const uint64_t mask = ~0ull >> (64 - 2 * k);
    for (int64_t base = first + int64_t(blockIdx.x) * blockDim.y; base < last;
         base += int64_t(gridDim.x) * blockDim.y) {
        const int64_t read = base + threadIdx.y;
        int count = 0;
        __syncthreads();
        if (read < last)
            count = write_kmers(reads, read, k, threadIdx.x, blockDim.x, canonical, forward);
        __syncthreads();
        if (count == 0) continue;
        const uint64_t function = first_function + threadIdx.x;
        const uint64_t smallest = smallest_hash(canonical, count, function);
        const uint64_t kmer = unmix64(smallest) - function;
        int position = 0;
        while (canonical[position] != kmer) ++position;
        keys[threadIdx.x][read] = smallest & mask;
        const int place = 2 * position + (forward[position] != kmer);
        if (wide) ((uint16_t*)positions[threadIdx.x])[read] = uint16_t(place);
        else ((uint8_t*)positions[threadIdx.x])[read] = uint8_t(place);
    }
}

// Mark the reads of a part: those whose keys have the bits ``part`` from ``shift`` on, among those
// that have a k-mer.
//
// Grid: any; block: any, one thread per read. Bytes: 8 in and 1 out per read.
extern "C" __global__ void mark_part(const Reads* reads_in, const uint64_t* keys, int64_t first,
                                     int64_t count, int k, int shift, uint64_t part,
                                     bool* is_of_part) {
    const Reads reads = *reads_in;
    const int64_t step = int64_t(gridDim.x) * blockDim.x;
    for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step)
        is_of_part[i] = read_length(reads, first + i) >= k && cell_of(keys[first + i], shift) == part;
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

// Write the kept entries of a part to their table, from entry ``base`` on; ``entry`` is the
// inclusive sum of ``stays``. List the long buckets: first entry << 32 | end, in any order.
//
// Grid: any; block: any, one thread per entry. Bytes: 28 in (keys before it from the cache), 6 out
// per entry, positions as random accesses.
extern "C" __global__ void fill_table(const uint64_t* keys, const int64_t* ids, int64_t count,
                                      const int32_t* stays, const int32_t* entry,
                                      const void* positions, int wide, int64_t base,
                                      uint32_t* table_ids, void* table_positions,
                                      uint64_t* long_buckets, uint64_t* long_count) {
    const int64_t step = int64_t(gridDim.x) * blockDim.x;
    for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) {
        // Walks end behind the last entry.
        if (i == count - 1) table_ids[base + entry[i]] = BUCKET_START;
        if (!stays[i]) continue;
        const uint32_t read = uint32_t(ids[i]);
        const int64_t target = base + entry[i] - 1;
        const uint64_t key = keys[i];
        const bool begins = i == 0 || keys[i - 1] != key;
        table_ids[target] = begins ? read | BUCKET_START : read;
        if (wide) ((uint16_t*)table_positions)[target] = ((const uint16_t*)positions)[read];
        else ((uint8_t*)table_positions)[target] = ((const uint8_t*)positions)[read];
        if (!begins || i + NEAR_ENTRIES >= count || keys[i + NEAR_ENTRIES] != key) continue;
        const auto is_same = [&](int64_t at) { return keys[at] == key; };
        const uint64_t end = uint64_t(target + (first_not_before(i, count, is_same) - i));
        long_buckets[atomicAdd((unsigned long long*)long_count, 1ull)] =
            uint64_t(target) << 32 | end;
    }
}

// First entries of the cells of a part, of which ``entry`` is the inclusive sum of those kept.
//
// Grid: any; block: any, one thread per cell. Bytes: neighbours search nearly the same way, in L2,
// so about 8 in per key and 4 out per cell.
extern "C" __global__ void find_cells(const uint64_t* keys, int64_t count, const int32_t* entry,
                                      int below, int64_t base, int64_t first_cell, int64_t cells,
                                      uint32_t* first) {
    const int64_t step = int64_t(gridDim.x) * blockDim.x;
    for (int64_t cell = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; cell < cells;
         cell += step) {
        const auto is_before = [&](int64_t at) {
            return cell_of(keys[at], below) < uint64_t(first_cell + cell);
        };
        const int64_t at = first_not_before(int64_t(0), count, is_before);
        first[cell] = uint32_t(base + (at ? entry[at - 1] : 0));
    }
}

// The slot of a read among the entries ``first`` to ``last``, exclusive, of a table; see find_slot
// in cpu.py. A warp together.
__device__ __forceinline__ uint32_t find_slot(const Table& table, uint32_t first, uint32_t last,
                                              uint32_t read, int lane) {
    int64_t begin = first;
    for (int64_t at = first; at < last;) {
        const bool inside = at + lane < last;
        const uint32_t id = table.ids[at + lane];
        const unsigned starts = __ballot_sync(~0u, inside && id >= BUCKET_START);
        if (at - begin >= NEAR_ENTRIES && !(starts & 1)) {
            // In a long bucket, whose reads ascend.
            const auto is_listed_before = [&](int64_t i) {
                return int64_t(table.long_buckets[i] >> 32) < begin;
            };
            const int64_t listed = first_not_before(int64_t(0), table.long_count, is_listed_before);
            const int64_t end = int64_t(uint32_t(table.long_buckets[listed]));
            const auto is_before = [&](int64_t i) { return table.ids[i] < read; };
            const int64_t own = first_not_before(at, end, is_before);
            if (own < end && table.ids[own] == read) return uint32_t(own);
            at = end;
            continue;
        }
        const unsigned own = __ballot_sync(~0u, inside && (id & ~BUCKET_START) == read);
        if (own) {
            const int place = __ffs(own) - 1;
            const unsigned before = starts & (~0u >> (31 - place));
            if (before) begin = at + 31 - __clz(before);
            const bool near = at + place - begin < NEAR_ENTRIES;
            return near ? uint32_t(begin) | NEAR_START : uint32_t(at + place);
        }
        if (starts) begin = at + 31 - __clz(starts);
        at += 32;
    }
    return NO_SLOT;
}

// Slots of reads in all tables: where the read's bucket begins if that is near, otherwise its own
// entry, or NO_SLOT. Row ``mates`` x i is of read ``anchors[i]``, the next one of the read after it.
//
// Grid: any; block: (16, an even number of reads). A block keeps the canonical k-mers of its
// blockDim.y reads in shared memory (max_kmers x 8 bytes per read); each thread takes the smallest
// hash of one read in one table, and the warp looks for one read in one cell after the other.
// Bytes: a cell's ends and its entries, some 130, as random accesses, and 4 out per read and table.
// Operations: about 20 per k-mer and table.
extern "C" __global__ void find_slots(const Reads* reads_in, const Tables* tables_in, int k,
                                      int max_kmers, const uint32_t* anchors, int64_t count,
                                      int mates, uint32_t* slots) {
    extern __shared__ uint64_t kmers[];
    const Reads reads = *reads_in;
    const Tables tables = *tables_in;
    uint64_t* canonical = kmers + threadIdx.y * max_kmers;
    const uint64_t mask = ~0ull >> (64 - 2 * k);
    const int lane = (threadIdx.y * blockDim.x + threadIdx.x) & 31;
    for (int64_t base = int64_t(blockIdx.x) * blockDim.y; base < count * mates;
         base += int64_t(gridDim.x) * blockDim.y) {
        const int64_t row = base + threadIdx.y;
        const bool inside = row < count * mates;
        const int64_t read = inside ? int64_t(anchors[row / mates]) + row % mates : 0;
        int own_kmers = 0;
        __syncthreads();
        if (inside)
            own_kmers = write_kmers(reads, read, k, threadIdx.x, blockDim.x, canonical, nullptr);
        __syncthreads();
        for (int from = 0; from < tables.hashes; from += blockDim.x) {
            const int own_table = from + threadIdx.x;
            uint32_t first = 0, last = 0, slot = NO_SLOT;
            if (own_kmers && own_table < tables.hashes) {
                const uint64_t function = uint64_t(tables.first_function + own_table);
                const uint64_t key = smallest_hash(canonical, own_kmers, function) & mask;
                const uint32_t* cell =
                    tables.table[own_table].cells + cell_of(key, tables.below);
                first = cell[0];
                last = cell[1];
            }
            unsigned left = __ballot_sync(~0u, first < last);
            while (left) {
                const int which = __ffs(left) - 1;
                left &= left - 1;
                const Table& table = tables.table[__shfl_sync(~0u, own_table, which)];
                const uint32_t found =
                    find_slot(table, __shfl_sync(~0u, first, which),
                              __shfl_sync(~0u, last, which),
                              __shfl_sync(~0u, uint32_t(read), which), lane);
                if (lane == which) slot = found;
            }
            if (inside && own_table < tables.hashes)
                slots[row * tables.hashes + own_table] = slot;
        }
    }
}
