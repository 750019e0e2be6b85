// Indexes of partitions; the references are ngsgpu/classify/{sketch,index}.py.
#include "ngsgpu/classify/sketch.cuh"

namespace {

// Index of the last element of ``starts`` (ascending, count of them) that is at most ``value``.
__device__ __forceinline__ int64_t last_not_above(const int64_t* starts, int64_t count,
                                                  int64_t value) {
    int64_t low = 0, high = count;
    while (high - low > 1) {
        const int64_t middle = (low + high) / 2;
        if (starts[middle] <= value) low = middle;
        else high = middle;
    }
    return low;
}

}  // namespace

// Sketch windows of reference sequences.
//
// ``codes_of``: uint8[256], code of each byte of ``text``, above 3 for unknown bases. Sequence i
// is ``text[start[i]..start[i + 1])`` and has the windows from ``first_window[i]`` up to
// ``first_window[i + 1]``, of which there are ``windows`` in all. Takes the keys of window j from
// ``keys[j * sketch]`` on, and their number.
//
// Grid: any; block: kThreads, one warp a window. Bytes: about 4 for each base read (from L1), 4
// out a feature. Operations: about 1000 instructions of a warp for a window of 127.
extern "C" __global__ void __launch_bounds__(kThreads)
    sketch_sequences(const u8* text, const int64_t* start, const int64_t* first_window,
                     int64_t sequences, int64_t windows, const u8* codes_of, int kmer, int sketch,
                     int window, int stride, uint32_t* keys, u8* counts) {
    __shared__ u8 codes[256];
    load_codes(codes, codes_of);
    const uint32_t lane = threadIdx.x & 31;
    const int64_t warps = int64_t(gridDim.x) * (kThreads / 32);
    for (int64_t j = (int64_t(blockIdx.x) * kThreads + threadIdx.x) / 32; j < windows; j += warps) {
        const int64_t sequence = last_not_above(first_window, sequences, j);
        const int64_t begin = start[sequence] + (j - first_window[sequence]) * stride;
        const int length = int(min(int64_t(window), start[sequence + 1] - begin));
        uint32_t own;
        const int count = sketch_window(text + begin, length, kmer, sketch, codes, lane, &own);
        if (int(lane) < count) keys[j * sketch + lane] = mix32(own);
        if (lane == 0) counts[j] = count;
    }
}

// Make (key, window) words of a partition: key << 32 | window, all ones for what it does not have.
//
// ``shift[i]`` is added to the number of a window of target i, counted from its
// ``first_window[i]``; -1: not of this partition.
//
// Grid: any; block: kThreads, one thread a slot. Bytes: 5 in, 8 out a slot.
extern "C" __global__ void __launch_bounds__(kThreads)
    make_words(const uint32_t* keys, const u8* counts, int64_t windows, int sketch,
               const int64_t* first_window, int64_t targets, const int64_t* shift,
               uint64_t* words) {
    const int64_t step = int64_t(gridDim.x) * kThreads;
    for (int64_t slot = int64_t(blockIdx.x) * kThreads + threadIdx.x; slot < windows * sketch;
         slot += step) {
        const int64_t window = slot / sketch;
        uint64_t word = ~0ull;
        if (slot - window * sketch < counts[window]) {
            const int64_t target = last_not_above(first_window, targets, window);
            if (shift[target] >= 0)
                word = (uint64_t(keys[slot]) << 32) |
                       uint64_t(window - first_window[target] + shift[target]);
        }
        words[slot] = word;
    }
}

// Mark the words with which a key begins.
//
// Grid: any; block: kThreads, one thread a word. Bytes: 8 in, 1 out a word.
extern "C" __global__ void __launch_bounds__(kThreads)
    mark_keys(const uint64_t* words, int64_t count, u8* begins) {
    const int64_t step = int64_t(gridDim.x) * kThreads;
    for (int64_t i = int64_t(blockIdx.x) * kThreads + threadIdx.x; i < count; i += step)
        begins[i] = i == 0 || words[i - 1] >> 32 != words[i] >> 32;
}

// How many locations each key keeps, and how many entries it needs.
//
// ``first``: the word with which each key begins, and the number of words.
//
// Grid: any; block: kThreads, one thread a key. Bytes: 8 in, 16 out a key.
extern "C" __global__ void __launch_bounds__(kThreads)
    limit_keys(const int64_t* first, int64_t keys, int64_t limit, int remove, int64_t* kept,
               int64_t* entries) {
    const int64_t step = int64_t(gridDim.x) * kThreads;
    const int64_t most = (1 << kCountBits) - 1;
    for (int64_t i = int64_t(blockIdx.x) * kThreads + threadIdx.x; i < keys; i += step) {
        int64_t count = first[i + 1] - first[i];
        if (count > limit) count = remove ? 0 : limit;
        kept[i] = count;
        entries[i] = max(int64_t(1), (count + most - 1) / most);
    }
}

// Write the entries and locations of keys.
//
// ``entry_end``, ``location_end``: inclusive sums of what ``limit_keys`` gave.
//
// Grid: any; block: kThreads, one warp a key. Bytes: 8 a location and 32 a key in, 4 a location
// and entry out.
extern "C" __global__ void __launch_bounds__(kThreads)
    write_keys(const uint64_t* words, const int64_t* first, int64_t keys, const int64_t* kept,
               const int64_t* entry_end, const int64_t* location_end, int bits, uint32_t* entries,
               uint32_t* locations) {
    const uint32_t lane = threadIdx.x & 31;
    const int64_t warps = int64_t(gridDim.x) * (kThreads / 32);
    const int64_t most = (1 << kCountBits) - 1;
    const uint64_t low = (1ull << (32 - bits)) - 1;
    for (int64_t i = (int64_t(blockIdx.x) * kThreads + threadIdx.x) / 32; i < keys; i += warps) {
        const int64_t count = kept[i], to = location_end[i] - count;
        for (int64_t j = lane; j < count; j += 32) locations[to + j] = uint32_t(words[first[i] + j]);
        const int64_t own = max(int64_t(1), (count + most - 1) / most);
        const uint32_t rest = uint32_t((words[first[i]] >> 32) & low) << kCountBits;
        for (int64_t j = lane; j < own; j += 32)
            entries[entry_end[i] - own + j] = rest | uint32_t(min(most, count - j * most));
    }
}

// Write the directory: for each bucket the first entry and location of its keys.
//
// Grid: any; block: kThreads, one thread a bucket. Bytes: 8 out a bucket; a search in the keys.
extern "C" __global__ void __launch_bounds__(kThreads)
    write_directory(const uint64_t* words, const int64_t* first, int64_t keys,
                    const int64_t* entry_end, const int64_t* location_end, int bits,
                    uint2* directory) {
    const int64_t step = int64_t(gridDim.x) * kThreads;
    const int64_t buckets = int64_t(1) << bits;
    for (int64_t bucket = int64_t(blockIdx.x) * kThreads + threadIdx.x; bucket <= buckets;
         bucket += step) {
        int64_t below = 0, high = keys;
        while (below < high) {
            const int64_t middle = (below + high) / 2;
            if (int64_t(words[first[middle]] >> (64 - bits)) < bucket) below = middle + 1;
            else high = middle;
        }
        const bool none = below == 0;
        directory[bucket] = {none ? 0u : uint32_t(entry_end[below - 1]),
                             none ? 0u : uint32_t(location_end[below - 1])};
    }
}
