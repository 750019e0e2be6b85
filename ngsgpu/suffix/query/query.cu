// Exact matches of reads in an FM index of both strands, and the proof of an index. The reference
// are ngsgpu/suffix/query/cpu.py and ngsgpu/suffix/check.py.
//
// A thread does a read, a row, or a block. A step of a search reads two blocks of 64 bytes; a read
// of 100 bases without mismatches takes about 200 steps, so that a million reads move 26 GB.
#include "ngsgpu/suffix/bucket/packed.cuh"

namespace {

constexpr int kBlock = 128;      // bases for which the counts before them are kept
constexpr int kBlockWords = 16;  // words of such a block, with its counts
constexpr int kCountWords = 8;
constexpr int kSampled = 32;     // one in this many rows has its place
constexpr int kKept = 6;         // matches of a read that are kept when they are counted

struct Index {
    const uint32_t* words;
    const int64_t* totals;  // bases of the text that are less than 0, 1, 2, 3, 4
    int64_t primary;

    __device__ int64_t counted(int64_t block, int base) const {
        const int64_t at = kBlockWords * block + 2 * base;
        return int64_t(uint64_t(words[at + 1]) << 32 | words[at]);
    }
    __device__ int base_of(int64_t position) const {
        const int64_t at = kBlockWords * (position / kBlock) + kCountWords + position % kBlock / 16;
        return words[at] >> (30 - 2 * int(position % 16)) & 3;
    }
    // How often a base is among the first ``rest`` of a block.
    __device__ int64_t in_block(int64_t block, int rest, int base) const {
        int64_t total = 0;
        const uint32_t pattern = 0xFFFFFFFFu - 0x55555555u * base;
        for (int64_t at = kBlockWords * block + kCountWords; rest > 0; ++at, rest -= 16) {
            uint32_t word = words[at] ^ pattern;
            word = word & word >> 1 & 0x55555555u;
            if (rest < 16) word >>= 2 * (16 - rest);
            total += __popc(word);
        }
        return total;
    }
    // Row that has the base in front of a row's suffix, too, if that is this one.
    __device__ int64_t row_before(int64_t row, int base) const {
        const int64_t position = row - (row > primary);
        const int64_t block = position / kBlock;
        const int64_t found = totals[base] + counted(block, base) +
                              in_block(block, int(position % kBlock), base) + 1;
        // One of the index, whatever it holds.
        return found < 0 ? 0 : found > totals[4] + 1 ? totals[4] + 1 : found;
    }
    __device__ int base_before(int64_t row) const { return base_of(row - (row > primary)); }
    // Row of the suffix one base longer.
    __device__ int64_t step_back(int64_t row) const {
        const int64_t found = row_before(row, base_before(row));
        return found > totals[4] ? totals[4] : found;
    }
};

// Adds bases of a read, as search_back does; returns how many.
__device__ __forceinline__ int64_t search_back(const Index& index, const uint8_t* codes,
                                               int64_t begin, int64_t end, bool turned,
                                               int64_t* low, int64_t* high) {
    int64_t first = 0, last = index.totals[4] + 1, added = 0;
    while (added < end - begin) {
        const int code = turned ? codes[begin + added] : codes[end - 1 - added];
        if (code > 3) break;
        const int base = turned ? 3 - code : code;
        const int64_t own = index.row_before(first, base), next = index.row_before(last, base);
        if (own >= next) break;
        first = own;
        last = next;
        ++added;
    }
    *low = first;
    *high = last;
    return added;
}

// Calls ``found(begin, end, low, high)`` for the maximal matches of a read. False: the index is
// damaged.
template <class Found>
__device__ __forceinline__ bool search_read(const Index& index, const uint8_t* codes, int64_t size,
                                            int64_t shortest, bool whole, Found found) {
    int64_t begin = 0, low, high;
    while (begin < size) {
        const int64_t stop =
            begin + search_back(index, codes, begin, size, true, &low, &high);
        if (stop - begin >= shortest && (!whole || (begin == 0 && stop == size)))
            found(begin, stop, low, high);
        if (whole || stop == size) break;
        const int64_t next = stop + 1 - search_back(index, codes, 0, stop + 1, false, &low, &high);
        if (next <= begin) return false;
        begin = next;
    }
    return true;
}

__device__ __forceinline__ void write_match(int64_t* out, int64_t begin, int64_t end, int64_t low,
                                            int64_t high) {
    out[0] = begin;
    out[1] = end;
    out[2] = low;
    out[3] = high;
}

}  // namespace

// Counts the matches of each read, and keeps the first ones; -1 in a damaged index.
extern "C" __global__ void __launch_bounds__(kThreads)
    count_matches(const uint32_t* words, const int64_t* totals, int64_t primary,
                  const uint8_t* codes, const int64_t* starts, int64_t reads, int64_t shortest,
                  int32_t whole, int64_t* kept, int32_t* counts) {
    const Index index{words, totals, primary};
    for (int64_t read = first_unit(); read < reads; read += unit_step()) {
        int32_t count = 0;
        const int64_t size = starts[read + 1] - starts[read];
        const bool whole_index = search_read(
            index, codes + starts[read], size, shortest, whole != 0,
            [&](int64_t begin, int64_t end, int64_t low, int64_t high) {
                if (count < kKept)
                    write_match(kept + 4 * (kKept * read + count), begin, end, low, high);
                ++count;
            });
        counts[read] = whole_index ? count : -1;
    }
}

// Writes the matches of each read behind those of the reads before; ``ends`` has the sums of the
// counts. Reads with more matches than were kept are searched again.
extern "C" __global__ void __launch_bounds__(kThreads)
    write_matches(const uint32_t* words, const int64_t* totals, int64_t primary,
                  const uint8_t* codes, const int64_t* starts, int64_t reads, int64_t shortest,
                  int32_t whole, const int64_t* kept, const int64_t* ends, int64_t* found) {
    const Index index{words, totals, primary};
    for (int64_t read = first_unit(); read < reads; read += unit_step()) {
        int64_t at = read ? ends[read - 1] : 0;
        const int64_t count = ends[read] - at;
        const auto write = [&](int64_t begin, int64_t end, int64_t low, int64_t high) {
            found[5 * at] = read;
            write_match(found + 5 * at + 1, begin, end, low, high);
            ++at;
        };
        if (count > kKept) {
            const int64_t size = starts[read + 1] - starts[read];
            search_read(index, codes + starts[read], size, shortest, whole != 0, write);
            continue;
        }
        for (int64_t i = 0; i < count; ++i) {
            const int64_t* own = kept + 4 * (kKept * read + i);
            write(own[0], own[1], own[2], own[3]);
        }
    }
}

// Places of rows' suffixes; -1 in a damaged index.
extern "C" __global__ void __launch_bounds__(kThreads)
    find_row_places(const uint32_t* words, const int64_t* totals, int64_t primary,
                    const int64_t* sample, const int64_t* rows, int64_t count, int64_t* places) {
    const Index index{words, totals, primary};
    for (int64_t i = first_unit(); i < count; i += unit_step()) {
        int64_t row = rows[i], steps = 0, seen = -1;
        bool circles = false;
        for (; row % kSampled; ++steps) {
            circles = row == seen;
            if (circles) break;
            if ((steps & (steps - 1)) == 0) seen = row;
            row = row == primary ? 0 : index.step_back(row);
        }
        const int64_t place = circles ? -1 : steps + sample[row / kSampled];
        places[i] = place < totals[4] ? place : -1;
    }
}

// Sets ``wrong`` if the counts of a block are not those of the bases before it.
extern "C" __global__ void __launch_bounds__(kThreads)
    check_counts(const uint32_t* words, const int64_t* totals, int64_t primary, uint32_t* wrong) {
    const Index index{words, totals, primary};
    const int64_t size = totals[4], blocks = (size + kBlock - 1) / kBlock;
    const int64_t last = (size + 15) / 16 + kCountWords * blocks;
    for (int64_t block = first_unit(); block < blocks; block += unit_step()) {
        const int own = int(size - kBlock * block < kBlock ? size - kBlock * block : kBlock);
        for (int base = 0; base < 4; ++base) {
            const int64_t before = index.counted(block, base);
            const int64_t at = last + 2 * base;
            const int64_t after = block + 1 < blocks
                                      ? index.counted(block + 1, base)
                                      : int64_t(uint64_t(words[at + 1]) << 32 | words[at]);
            if (block == 0 && before != 0) *wrong = 1;
            if (before + index.in_block(block, own, base) != after) *wrong = 1;
        }
    }
}

// Sets ``wrong`` if the walk from a sampled row to the next one does not spell the text, from its
// place backwards, or comes to another place. ``sample`` has the size of the text for row 0.
extern "C" __global__ void __launch_bounds__(kThreads)
    check_walks(const uint32_t* words, const int64_t* totals, int64_t primary,
                const int64_t* sample, int64_t count, const uint64_t* bases, uint32_t* wrong) {
    const Index index{words, totals, primary};
    const Text text{bases, totals[4]};
    for (int64_t i = first_unit(); i < count; i += unit_step()) {
        int64_t row = kSampled * i, place = sample[i];
        if (place < 0 || place > text.size) {
            *wrong = 1;
            continue;
        }
        while (row != primary) {
            const int base = index.base_before(row);
            if (place == 0 || base != int(text.letter(place - 1))) {
                *wrong = 1;
                break;
            }
            row = index.step_back(row);
            --place;
            if (row % kSampled == 0) {
                if (sample[row / kSampled] != place) *wrong = 1;
                break;
            }
        }
        if (row == primary && place != 0) *wrong = 1;
    }
}
