// Indexes of partitions, from the text of FASTA files on; the references are
// ngsgpu/io/scan.py (records) and ngsgpu/classify/{sketch,index}.py.
#include "ngsgpu/classify/kmers.cuh"
#include "ngsgpu/classify/words.cuh"

namespace {

constexpr int kTextTile = 4096;             // bytes of text for a block
constexpr int kBytes = kTextTile / kThreads;  // of these for each thread
constexpr int kMostPartBits = 10;
constexpr int kMostInEntry = (1 << kCountBits) - 1;

// Classes of bytes of sequences.
constexpr u8 kBase = 0;
constexpr u8 kReturn = 2;  // 1 is the line feed

// Sum of the values of the threads before this one, and of all, in a block of kThreads.
__device__ __forceinline__ uint32_t block_exclusive_sum(uint32_t value, uint32_t* total) {
    __shared__ uint32_t sums[kThreads / 32];
    const uint32_t lane = threadIdx.x & 31, warp = threadIdx.x / 32;
    uint32_t sum = value;
    for (uint32_t distance = 1; distance < 32; distance *= 2) {
        const uint32_t other = __shfl_up_sync(kAll, sum, distance);
        if (lane >= distance) sum += other;
    }
    if (lane == 31) sums[warp] = sum;
    __syncthreads();
    uint32_t before = 0, all = 0;
    for (uint32_t i = 0; i < kThreads / 32; ++i) {
        if (i < warp) before += sums[i];
        all += sums[i];
    }
    *total = all;
    __syncthreads();  // the sums may be written again
    return before + sum - value;
}

// Index of the last element of ``starts`` (ascending, count of them) that is at most ``value``.
template <class T>
__device__ __forceinline__ int64_t last_not_above(const T* starts, int64_t count, T value) {
    int64_t low = 0, high = count;
    while (high - low > 1) {
        const int64_t middle = (low + high) / 2;
        if (starts[middle] <= value) low = middle;
        else high = middle;
    }
    return low;
}

// Sorted words of an index, and which of their locations stay.
struct Words : SortedWords {
    int64_t limit;            // locations of a key
    int remove;               // whether keys with more lose all
    const uint64_t* removed;  // ascending: keys (in the upper halves) that lose all whatever happens
    int64_t removed_count;

    // The first word with the key of word i.
    __device__ int64_t first_of(int64_t i) const {
        int64_t step = 1;
        while (same_key(i, i - step)) step *= 2;
        int64_t low = max(int64_t(-1), i - step), high = i;  // low has another key
        while (high - low > 1) {
            const int64_t middle = (low + high) / 2;
            if (same_key(i, middle)) high = middle;
            else low = middle;
        }
        return high;
    }

    __device__ bool is_removed(uint64_t word) const {
        if (removed_count == 0) return false;
        const uint64_t key = word >> 32 << 32;
        const uint64_t there = removed[last_not_above(removed, removed_count, key)];
        return there == key;
    }

    // Whether word i's location stays; ``rank``: words of its key before it, as far as that matters.
    __device__ bool stays(int64_t i) const {
        if (same_key(i, i - limit) || is_removed(words[i])) return false;
        return !remove || !same_key(i, first_of(i) + limit);
    }

    // Locations of an entry that begins with word i, of which there are more with the same key
    // before it; or 0 if this word begins none.
    __device__ bool begins_entry(int64_t i, bool stays, uint32_t* count_of) const {
        int64_t rank = 0;
        if (same_key(i, i - 1)) {
            if (!stays || !same_key(i, i - kMostInEntry)) return false;
            rank = i - first_of(i);
            if (rank % kMostInEntry != 0) return false;
        }
        *count_of = stays ? uint32_t(run_from(i, min(int64_t(kMostInEntry), limit - rank))) : 0;
        return true;
    }
};

}  // namespace

// Overwrite the headers of records, from the ``>`` to their line feed, by line feeds.
//
// Grid: any; block: kThreads, one warp a header. Bytes: 1 out for each of the headers.
extern "C" __global__ void __launch_bounds__(kThreads)
    blank_headers(u8* text, const uint32_t* begin, const uint32_t* end, int headers) {
    const int warps = gridDim.x * (kThreads / 32);
    for (int i = (blockIdx.x * kThreads + threadIdx.x) / 32; i < headers; i += warps)
        for (uint32_t at = begin[i] + (threadIdx.x & 31); at < end[i]; at += 32) text[at] = '\n';
}

// Count the letters of each tile of text, and look whether every byte is in its place.
//
// ``classes``: uint8[256], see kBase and the following; others are not allowed. A carriage return
// must be before a line feed, or be the last byte.
//
// Grid: any; block: kThreads, one a tile. Bytes: 1 in a byte of text. Operations: about 8 a byte.
extern "C" __global__ void __launch_bounds__(kThreads)
    count_letters(const u8* text, uint32_t size, const u8* classes, uint32_t* counts, int* wrong) {
    __shared__ u8 class_of[256];
    load_codes(class_of, classes);
    const uint32_t tiles = (size + kTextTile - 1) / kTextTile;
    for (uint32_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        const uint32_t at = tile * kTextTile + threadIdx.x * kBytes;
        uint32_t count = 0, total;
        bool strange = false;
        if (at < size) {
            const uint4 bytes = *reinterpret_cast<const uint4*>(text + at);
            const uint32_t words[4] = {bytes.x, bytes.y, bytes.z, bytes.w};
            const uint32_t here = min(uint32_t(kBytes), size - at);
#pragma unroll
            for (uint32_t i = 0; i < kBytes; ++i) {
                if (i >= here) break;
                const u8 own = class_of[words[i / 4] >> (8 * (i % 4)) & 0xFF];
                count += own == kBase;
                strange |= own > kReturn;
                if (own == kReturn) strange |= at + i + 1 < size && text[at + i + 1] != '\n';
            }
        }
        block_exclusive_sum(count, &total);
        if (threadIdx.x == 0) counts[tile] = total;
        if (strange) *wrong = 1;
    }
}

// Turn numbers into the sums of those before each, and write the sum of all behind them.
//
// Grid: 1; block: kThreads. Bytes: 4 in and 4 out a number.
extern "C" __global__ void __launch_bounds__(kThreads) sum_up(uint32_t* values, uint32_t count) {
    uint32_t before = 0;
    for (uint32_t base = 0; base < count; base += kThreads * 16) {
        uint32_t own[16], sum = 0, total;
        const uint32_t first = base + threadIdx.x * 16;
        for (uint32_t i = 0; i < 16; ++i) {
            own[i] = first + i < count ? values[first + i] : 0;
            sum += own[i];
        }
        uint32_t at = before + block_exclusive_sum(sum, &total);
        for (uint32_t i = 0; i < 16; ++i) {
            if (first + i < count) values[first + i] = at;
            at += own[i];
        }
        before += total;
    }
    if (threadIdx.x == 0) values[count] = before;
}

// Count the letters before each header.
//
// ``letters_before``: of each tile. The last number that is written is that of all letters, and
// behind it comes ``wrong``.
//
// Grid: any; block: kThreads, one warp a header. Bytes: half a tile in a header.
extern "C" __global__ void __launch_bounds__(kThreads)
    place_headers(const u8* text, uint32_t size, const u8* classes, const uint32_t* letters_before,
                  const uint32_t* begin, int headers, const int* wrong, uint32_t* places) {
    __shared__ u8 class_of[256];
    load_codes(class_of, classes);
    const uint32_t lane = threadIdx.x & 31;
    const int warps = gridDim.x * (kThreads / 32);
    for (int i = (blockIdx.x * kThreads + threadIdx.x) / 32; i < headers; i += warps) {
        const uint32_t tile = begin[i] / kTextTile;
        uint32_t count = 0;
        for (uint32_t base = tile * kTextTile; base < begin[i]; base += 32) {
            const uint32_t at = base + lane;
            count += __popc(__ballot_sync(kAll, at < begin[i] && class_of[text[at]] == kBase));
        }
        if (lane == 0) places[i] = letters_before[tile] + count;
    }
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        places[headers] = letters_before[(size + kTextTile - 1) / kTextTile];
        places[headers + 1] = *wrong;
    }
}

// Write the letters of a text one after the other.
//
// Grid: any; block: kThreads, one a tile. Bytes: 1 in and 1 out a byte.
extern "C" __global__ void __launch_bounds__(kThreads)
    gather_letters(const u8* text, uint32_t size, const u8* classes, const uint32_t* letters_before,
                   u8* letters) {
    __shared__ u8 class_of[256];
    __shared__ u8 gathered[kTextTile];
    load_codes(class_of, classes);
    const uint32_t tiles = (size + kTextTile - 1) / kTextTile;
    for (uint32_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        const uint32_t at = tile * kTextTile + threadIdx.x * kBytes;
        u8 own[kBytes];
        uint32_t count = 0, total;
        if (at < size) {
            const uint4 bytes = *reinterpret_cast<const uint4*>(text + at);
            const uint32_t words[4] = {bytes.x, bytes.y, bytes.z, bytes.w};
            const uint32_t here = min(uint32_t(kBytes), size - at);
#pragma unroll
            for (uint32_t i = 0; i < kBytes; ++i) {
                own[i] = u8(words[i / 4] >> (8 * (i % 4)));
                if (i >= here) own[i] = '\n';
                count += class_of[own[i]] == kBase;
            }
        }
        uint32_t to = block_exclusive_sum(count, &total);
        if (at < size) {
#pragma unroll
            for (uint32_t i = 0; i < kBytes; ++i)
                if (class_of[own[i]] == kBase) gathered[to++] = own[i];
        }
        __syncthreads();
        u8* out = letters + letters_before[tile];
        for (uint32_t i = threadIdx.x; i < total; i += kThreads) out[i] = gathered[i];
        __syncthreads();
    }
}

// Sketch windows of pieces of reference sequences.
//
// Piece i is ``letters[start[i]..start[i] + length[i])`` and has the windows from
// ``first_window[i]`` up to ``first_window[i + 1]``, of which there are ``windows`` in all. Takes
// the keys of window j from ``keys[j * sketch]`` on, their number, and the window's piece.
//
// Grid: resident blocks; block: kThreads, one warp a window. Bytes: window / stride for each base
// in, 4 out a feature. Operations: about 600 instructions of a warp for a window of 127.
extern "C" __global__ void __launch_bounds__(kThreads)
    sketch_sequences(const u8* letters, const int64_t* start, const int64_t* length,
                     const int64_t* first_window, int64_t pieces, int64_t windows, int kmer,
                     int sketch, int window, int stride, uint32_t* keys, u8* counts,
                     uint32_t* piece) {
    const uint32_t lane = threadIdx.x & 31;
    const int64_t warps = int64_t(gridDim.x) * (kThreads / 32);
    for (int64_t j = (int64_t(blockIdx.x) * kThreads + threadIdx.x) / 32; j < windows; j += warps) {
        const int64_t i = last_not_above(first_window, pieces, j);
        const int64_t begin = (j - first_window[i]) * stride;
        const int bases = int(min(int64_t(window), length[i] - begin));
        uint32_t own;
        const int count =
            sketch_letters(letters + start[i] + begin, bases, kmer, sketch, lane, &own);
        if (int(lane) < count) keys[j * sketch + lane] = mix32(own);
        if (lane == 0) {
            counts[j] = count;
            piece[j] = uint32_t(i);
        }
    }
}

// Count the keys of each part, that is with the same top ``bits`` bits (at most kMostPartBits).
//
// ``taken``: as in ``make_words``. Grid: any; block: kThreads. Bytes: 4 in a slot.
extern "C" __global__ void __launch_bounds__(kThreads)
    count_parts(const uint32_t* keys, const u8* counts, const uint32_t* piece, int64_t windows,
                int sketch, const u8* taken, int bits, uint32_t* parts) {
    __shared__ uint32_t own[1 << kMostPartBits];
    for (uint32_t i = threadIdx.x; i < 1u << bits; i += kThreads) own[i] = 0;
    __syncthreads();
    const int64_t step = int64_t(gridDim.x) * kThreads;
    const int64_t slots = windows * sketch;
    for (int64_t i = int64_t(blockIdx.x) * kThreads + threadIdx.x; i < slots; i += step) {
        const int64_t window = i / sketch;
        if (i - window * sketch < counts[window] && taken[piece[window]])
            atomicAdd(own + (uint64_t(keys[i]) >> (32 - bits)), 1u);
    }
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < 1u << bits; i += kThreads)
        if (own[i] > 0) atomicAdd(parts + i, own[i]);
}

// Make (key, window) words, key << 32 | window, of the keys with the top ``bits`` bits ``part``.
//
// ``shift[i]`` is what to add to the number of a window here, to make it one of the partition; -1
// for pieces that are not of the partition (``taken[i]`` is 0). The words come in any order.
//
// Grid: any; block: kThreads, one warp for kWordTile slots. Bytes: 4 in a slot, 8 out a word.
extern "C" __global__ void __launch_bounds__(kThreads)
    make_words(const uint32_t* keys, const u8* counts, const uint32_t* piece, int64_t windows,
               int sketch, const int64_t* shift, const u8* taken, int bits, uint32_t part,
               uint64_t* words, unsigned long long* count) {
    const uint32_t lane = threadIdx.x & 31;
    const int64_t step = int64_t(gridDim.x) * (kThreads / 32) * kWordTile;
    const int64_t slots = windows * sketch;
    int64_t tile = (int64_t(blockIdx.x) * kThreads + threadIdx.x) / 32 * kWordTile;
    for (; tile < slots; tile += step) {
        uint64_t own[kRounds];
        uint32_t chosen[kRounds];
#pragma unroll
        for (int round = 0; round < kRounds; ++round) {
            const int64_t slot = tile + round * 32 + lane;
            bool is_one = false;
            if (slot < slots) {
                const int64_t window = slot / sketch;
                const uint32_t of = piece[window];
                if (slot - window * sketch < counts[window] && taken[of]) {
                    const uint32_t key = keys[slot];
                    is_one = is_of_part(key, bits, part);
                    own[round] = (uint64_t(key) << 32) | uint32_t(window + shift[of]);
                }
            }
            chosen[round] = __ballot_sync(kAll, is_one);
        }
        append_chosen(own, chosen, lane, words, count);
    }
}

// Count the entries and locations that sorted words make, a number of each for kWordTile words.
//
// Grid: any; block: kThreads, one warp for kWordTile words. Bytes: 8 in a word.
extern "C" __global__ void __launch_bounds__(kThreads)
    count_entries(const uint64_t* words, int64_t count, int64_t limit, int remove,
                  const uint64_t* removed, int64_t removed_count, uint32_t* entries,
                  uint32_t* locations) {
    const Words all = {{words, count}, limit, remove, removed, removed_count};
    const uint32_t lane = threadIdx.x & 31;
    const int64_t step = int64_t(gridDim.x) * (kThreads / 32);
    int64_t tile = (int64_t(blockIdx.x) * kThreads + threadIdx.x) / 32;
    for (; tile * kWordTile < count; tile += step) {
        uint32_t own_entries = 0, own_locations = 0;
        for (int round = 0; round < kRounds; ++round) {
            const int64_t i = tile * kWordTile + round * 32 + lane;
            const bool stays = i < count && all.stays(i);
            uint32_t unused;
            const bool begins = i < count && all.begins_entry(i, stays, &unused);
            own_entries += __popc(__ballot_sync(kAll, begins));
            own_locations += __popc(__ballot_sync(kAll, stays));
        }
        if (lane == 0) {
            entries[tile] = own_entries;
            locations[tile] = own_locations;
        }
    }
}

// Write the entries, locations and lines of the directory that sorted words make.
//
// ``entries_before``, ``locations_before``: sums of what ``count_entries`` found. The words are
// those of some lines of the directory, of which the first is ``first_line`` and ``lines`` there
// are; a line says how many entries and locations come before its own, where ``entry_base`` and
// ``location_base`` are of the lines before.
//
// Grid: any; block: kThreads, one warp for kWordTile words. Bytes: 8 in a word, 4 out a location
// and an entry, 8 out a line.
extern "C" __global__ void __launch_bounds__(kThreads)
    write_entries(const uint64_t* words, int64_t count, int64_t limit, int remove,
                  const uint64_t* removed, int64_t removed_count, const uint32_t* entries_before,
                  const uint32_t* locations_before, int bits, uint32_t first_line, uint32_t lines,
                  uint32_t entry_base, uint32_t location_base, uint32_t* entries,
                  uint32_t* locations, uint2* directory) {
    const Words all = {{words, count}, limit, remove, removed, removed_count};
    const uint32_t lane = threadIdx.x & 31;
    const uint32_t low = uint32_t((1ull << (32 - bits)) - 1);
    const int64_t step = int64_t(gridDim.x) * (kThreads / 32);
    int64_t tile = (int64_t(blockIdx.x) * kThreads + threadIdx.x) / 32;
    for (; tile * kWordTile < count; tile += step) {
        uint32_t entry = entries_before[tile], location = locations_before[tile];
        for (int round = 0; round < kRounds; ++round) {
            const int64_t i = tile * kWordTile + round * 32 + lane;
            const bool stays = i < count && all.stays(i);
            uint32_t size = 0;
            const bool begins = i < count && all.begins_entry(i, stays, &size);
            const uint32_t entry_lanes = __ballot_sync(kAll, begins);
            const uint32_t location_lanes = __ballot_sync(kAll, stays);
            const uint32_t own_entry = entry + __popc(entry_lanes & lanes_below(lane));
            const uint32_t own_location = location + __popc(location_lanes & lanes_below(lane));
            if (stays) locations[own_location] = uint32_t(words[i]);
            if (begins) {
                const uint32_t key = key_of(words[i]);
                entries[own_entry] = (key & low) << kCountBits | size;
                if (i == 0 || key_of(words[i - 1]) != key) {
                    const int64_t line = int64_t(key >> (32 - bits)) - first_line;
                    int64_t from = 0;
                    if (i > 0) from = int64_t(key_of(words[i - 1]) >> (32 - bits)) - first_line + 1;
                    for (; from <= line; ++from)
                        directory[from] = {entry_base + own_entry, location_base + own_location};
                }
            }
            entry += __popc(entry_lanes);
            location += __popc(location_lanes);
            if (i == count - 1) {
                int64_t from = int64_t(key_of(words[i]) >> (32 - bits)) - first_line + 1;
                for (; from < lines; ++from)
                    directory[from] = {entry_base + entry, location_base + location};
            }
        }
    }
}

// Make of (key, window) words (key, taxon) words; all ones where the window's target has no taxon.
//
// ``first_window``: of each target. Grid: any; block: kThreads, one thread a word. Bytes: 8 in and
// 8 out a word.
extern "C" __global__ void __launch_bounds__(kThreads)
    mark_taxa(const uint64_t* words, int64_t count, const uint32_t* first_window, int64_t targets,
              const int* taxon, uint64_t* marked) {
    const int64_t step = int64_t(gridDim.x) * kThreads;
    for (int64_t i = int64_t(blockIdx.x) * kThreads + threadIdx.x; i < count; i += step) {
        const int own = taxon[last_not_above(first_window, targets, uint32_t(words[i]))];
        marked[i] = own < 0 ? ~0ull : words[i] >> 32 << 32 | uint32_t(own);
    }
}

// Choose of sorted words: without ``most`` the first one of each value but all ones; else, once a
// key, its upper half where the key has more than ``most`` words.
//
// ``before``: null to count, a number for kWordTile words; else their sums, to write.
//
// Grid: any; block: kThreads, one warp for kWordTile words. Bytes: 8 in a word, 8 out a chosen one.
extern "C" __global__ void __launch_bounds__(kThreads)
    choose_words(const uint64_t* words, int64_t count, int64_t most, const uint32_t* before,
                 uint32_t* counts, uint64_t* chosen) {
    const uint32_t lane = threadIdx.x & 31;
    const int64_t step = int64_t(gridDim.x) * (kThreads / 32);
    int64_t tile = (int64_t(blockIdx.x) * kThreads + threadIdx.x) / 32;
    for (; tile * kWordTile < count; tile += step) {
        uint32_t at = before == nullptr ? 0 : before[tile];
        for (int round = 0; round < kRounds; ++round) {
            const int64_t i = tile * kWordTile + round * 32 + lane;
            bool is_one = false;
            uint64_t word = 0;
            if (i < count) {
                word = words[i];
                if (most == 0) {
                    is_one = word != ~0ull && (i == 0 || words[i - 1] != word);
                } else {
                    is_one = (i == 0 || key_of(words[i - 1]) != key_of(word)) &&
                             i + most < count && key_of(words[i + most]) == key_of(word);
                    word = word >> 32 << 32;
                }
            }
            const uint32_t lanes = __ballot_sync(kAll, is_one);
            if (is_one && chosen != nullptr) chosen[at + __popc(lanes & lanes_below(lane))] = word;
            at += __popc(lanes);
        }
        if (lane == 0 && counts != nullptr) counts[tile] = at;
    }
}
