// Suffixes of a packed text of bases, sorted bucket by bucket, and the FM index made of them. The
// reference are the arrays of ngsgpu/suffix/array.py, which are unique, and ngsgpu/suffix/fm.py.
//
// All kernels have blocks of kThreads and grids of any size; no shared memory.
#include "ngsgpu/sequence/search.cuh"
#include "ngsgpu/suffix/bucket/packed.cuh"

namespace {

constexpr int kPart = 128;       // places that a thread looks at when a bucket is taken
constexpr int kBlock = 128;      // bases for which the counts before them are kept
constexpr int kBlockWords = 16;  // words of such a block, with its counts
constexpr int kCountWords = 8;
constexpr int kSampled = 32;     // one in this many rows has its place
constexpr int kDepthStep = 16;   // letters in the marks of groups

// A bucket: suffixes from one to before another; -1 for no end.
struct Range {
    int64_t low, high;
    uint64_t low_key, high_key;

    __device__ Range(const Text& text, int64_t from, int64_t to)
        : low(from), high(to), low_key(from < 0 ? 0 : text.letters(from)),
          high_key(to < 0 ? 0 : text.letters(to)) {}

    __device__ bool has(const Text& text, const Cover& cover, int64_t place, uint64_t key) const {
        if (low >= 0) {
            if (key < low_key) return false;
            if (key == low_key && order(text, cover, place, low, 0) < 0) return false;
        }
        if (high < 0 || key < high_key) return true;
        return key == high_key && order(text, cover, place, high, 0) < 0;
    }
};

// Calls ``work(place, key)`` for the suffixes of a bucket in a part of the text, in their order in
// the text.
template <class Work>
__device__ __forceinline__ void visit(const Text& text, const Cover& cover, const Range& range,
                                      int64_t part, Work work) {
    const int64_t end = min(text.size, kPart * (part + 1));
    for (int64_t first = kPart * part; first < end; first += 32) {
        const uint64_t own = text.words[first >> 5], next = text.words[(first >> 5) + 1];
        for (int j = 0; j < 32 && first + j < end; ++j) {
            const uint64_t key = j ? own << 2 * j | next >> (64 - 2 * j) : own;
            if (range.has(text, cover, first + j, key)) work(first + j, key);
        }
    }
}

}  // namespace

// Packs ``count`` bases, from one at the beginning of a word on.
extern "C" __global__ void __launch_bounds__(kThreads)
    pack_letters(const uint8_t* codes, int64_t count, uint64_t* words) {
    const int64_t all = (count + 31) / 32;
    for (int64_t i = first_unit(); i < all; i += unit_step()) {
        uint64_t word = 0;
        for (int64_t j = 32 * i; j < 32 * i + 32; ++j) word = word << 2 | (j < count ? codes[j] : 0);
        words[i] = word;
    }
}

// Writes the reverse complement of the first half of a text into the second one.
extern "C" __global__ void __launch_bounds__(kThreads) turn_text(uint64_t* words, int64_t half) {
    const Text text{words, 2 * half};
    const int64_t first = half / 32, all = (2 * half + 31) / 32 - first;
    for (int64_t i = first_unit(); i < all; i += unit_step()) {
        uint64_t word = 0;
        for (int64_t j = 32 * (first + i); j < 32 * (first + i) + 32; ++j) {
            uint32_t base = 0;
            if (j < half) base = text.letter(j);
            else if (j < 2 * half) base = 3 - text.letter(2 * half - 1 - j);
            word = word << 2 | base;
        }
        // The word in the middle keeps its forward bases, which other threads may be reading.
        words[first + i] = word;
    }
}

// Counts the suffixes of a bucket in each part of the text.
extern "C" __global__ void __launch_bounds__(kThreads)
    count_bucket(const uint64_t* words, int64_t size, const uint32_t* ranks, const int32_t* tables,
                 int64_t period, int64_t stride, int64_t low, int64_t high, uint32_t* counts) {
    const Text text{words, size};
    const Cover cover{ranks, tables, period, stride};
    const Range range(text, low, high);
    const int64_t parts = (size + kPart - 1) / kPart;
    for (int64_t part = first_unit(); part < parts; part += unit_step()) {
        uint32_t count = 0;
        visit(text, cover, range, part, [&](int64_t, uint64_t) { ++count; });
        counts[part] = count;
    }
}

// Lists the suffixes of a bucket with their first 32 letters; ``ends`` has the sums of the counts
// up to and with each part.
extern "C" __global__ void __launch_bounds__(kThreads)
    take_bucket(const uint64_t* words, int64_t size, const uint32_t* ranks, const int32_t* tables,
                int64_t period, int64_t stride, int64_t low, int64_t high, const int64_t* ends,
                int64_t* places, uint64_t* keys) {
    const Text text{words, size};
    const Cover cover{ranks, tables, period, stride};
    const Range range(text, low, high);
    const int64_t parts = (size + kPart - 1) / kPart;
    for (int64_t part = first_unit(); part < parts; part += unit_step()) {
        int64_t at = part ? ends[part - 1] : 0;
        if (at == ends[part]) continue;
        visit(text, cover, range, part, [&](int64_t place, uint64_t key) {
            places[at] = place;
            keys[at++] = key;
        });
    }
}

// The first 32 letters of suffixes.
extern "C" __global__ void __launch_bounds__(kThreads)
    first_keys(const uint64_t* words, int64_t size, const int64_t* places, int64_t count,
               uint64_t* keys) {
    const Text text{words, size};
    for (int64_t i = first_unit(); i < count; i += unit_step()) keys[i] = text.letters(places[i]);
}

// Takes elements in an order.
extern "C" __global__ void __launch_bounds__(kThreads)
    take_in_order(const int64_t* values, const int64_t* order, int64_t count, int64_t* out) {
    for (int64_t i = first_unit(); i < count; i += unit_step()) out[i] = values[order[i]];
}

// Marks where other keys begin, among sorted ones, with the letters that a group agrees in.
extern "C" __global__ void __launch_bounds__(kThreads)
    mark_groups(const uint64_t* keys, int64_t count, int64_t depth, uint8_t* marks) {
    const uint8_t mark = uint8_t(depth / kDepthStep);
    for (int64_t i = first_unit(); i < count; i += unit_step())
        marks[i] = i == 0 || keys[i] != keys[i - 1] ? mark : 0;
}

// Says which of a list are in groups of more than ``most``. ``groups`` numbers the groups from 1,
// ``starts`` says where each begins in the list, and where the last one ends.
extern "C" __global__ void __launch_bounds__(kThreads)
    find_large(const uint32_t* groups, const uint32_t* starts, int64_t count, int64_t most,
               uint8_t* large) {
    for (int64_t i = first_unit(); i < count; i += unit_step()) {
        const uint32_t group = groups[i];
        large[i] = starts[group] - starts[group - 1] > most;
    }
}

// Lists the chosen ones with their slots in the bucket and those of the first of their groups;
// ``slots``, if there are any, are those of the list.
extern "C" __global__ void __launch_bounds__(kThreads)
    take_large(const uint32_t* groups, const uint32_t* starts, const uint32_t* slots,
               const int64_t* chosen, int64_t count, uint32_t* out, uint32_t* heads) {
    for (int64_t i = first_unit(); i < count; i += unit_step()) {
        const int64_t at = chosen[i];
        const uint32_t start = starts[groups[at] - 1];
        out[i] = slots ? slots[at] : uint32_t(at);
        heads[i] = slots ? slots[start] : start;
    }
}

// Keys of suffixes that agree in ``depth`` letters: their group, then 16 letters more.
extern "C" __global__ void __launch_bounds__(kThreads)
    round_keys(const uint64_t* words, int64_t size, const int64_t* places, const uint32_t* slots,
               const uint32_t* heads, int64_t count, int64_t depth, uint64_t* keys) {
    const Text text{words, size};
    for (int64_t i = first_unit(); i < count; i += unit_step())
        keys[i] = uint64_t(heads[i]) << 32 | text.letters(places[slots[i]] + depth) >> 32;
}

// Suffixes of a list, in an order of it.
extern "C" __global__ void __launch_bounds__(kThreads)
    take_slots(const int64_t* places, const uint32_t* slots, const int64_t* order, int64_t count,
               int64_t* out) {
    for (int64_t i = first_unit(); i < count; i += unit_step()) out[i] = places[slots[order[i]]];
}

// Puts suffixes, which a round has sorted, into their slots, and marks where their groups begin.
extern "C" __global__ void __launch_bounds__(kThreads)
    put_slots(const int64_t* sorted, const uint32_t* slots, const uint8_t* heads, int64_t count,
              int64_t* places, uint8_t* marks) {
    for (int64_t i = first_unit(); i < count; i += unit_step()) {
        places[slots[i]] = sorted[i];
        if (heads[i]) marks[slots[i]] = heads[i];
    }
}

// Merges sorted runs of ``width`` suffixes in each group, two and two: each suffix finds how many
// of the other run are before it. Those that cannot be told apart keep their order.
extern "C" __global__ void __launch_bounds__(kThreads)
    merge_runs(const uint64_t* words, int64_t size, const uint32_t* ranks, const int32_t* tables,
               int64_t period, int64_t stride, const int64_t* places, const uint32_t* groups,
               const uint32_t* starts, const uint8_t* marks, int64_t count, int64_t width,
               int64_t* out) {
    const Text text{words, size};
    const Cover cover{ranks, tables, period, stride};
    for (int64_t i = first_unit(); i < count; i += unit_step()) {
        const int64_t place = places[i], group = groups[i];
        const int64_t start = starts[group - 1], end = starts[group];
        const int64_t run = (i - start) / width;
        const bool right = run & 1;
        const int64_t first = start + (right ? run - 1 : run + 1) * width;
        if (first >= end) {
            out[i] = place;
            continue;
        }
        const int64_t known = min(int64_t(marks[start]) * kDepthStep, period);
        const auto is_before = [&](int64_t other) {
            const int found = order(text, cover, places[other], place, known);
            return found < 0 || (found == 0 && right);
        };
        const int64_t low = first_not_before(first, min(first + width, end), is_before);
        out[(right ? i - width : i) + low - first] = place;
    }
}

// Marks sorted suffixes that differ from the one before in the first ``period`` letters.
extern "C" __global__ void __launch_bounds__(kThreads)
    mark_names(const uint64_t* words, int64_t size, int64_t period, const int64_t* places,
               int64_t count, uint8_t* marks) {
    const Text text{words, size};
    for (int64_t i = first_unit(); i < count; i += unit_step())
        marks[i] = i == 0 || compare(text, places[i - 1], places[i], 0, period) != 0;
}

// Where the ranks of places of the cover are.
extern "C" __global__ void __launch_bounds__(kThreads)
    cover_indices(const int32_t* tables, int64_t period, int64_t stride, const int64_t* places,
                  int64_t count, uint32_t* out) {
    const Cover cover{nullptr, tables, period, stride};
    for (int64_t i = first_unit(); i < count; i += unit_step())
        out[i] = uint32_t(cover.index(places[i]));
}

// Packs the bases in front of the suffixes of a bucket, whose first row is given, 16 in a word,
// words beginning at multiples of 16 rows; and the places of one in 32 rows. ``primary`` gets the
// row of the whole text, which has no base in front (A is written).
extern "C" __global__ void __launch_bounds__(kThreads)
    pack_rows(const uint64_t* words, int64_t size, const int64_t* places, int64_t count,
              int64_t first_row, uint32_t* rows, int64_t* sample, int64_t* primary) {
    const Text text{words, size};
    const int64_t first = first_row / 16, all = (first_row + count + 15) / 16 - first;
    const int64_t first_sample = (first_row + kSampled - 1) / kSampled;
    for (int64_t i = first_unit(); i < all; i += unit_step()) {
        uint32_t word = 0;
        for (int64_t row = 16 * (first + i); row < 16 * (first + i) + 16; ++row) {
            const int64_t slot = row - first_row;
            uint32_t base = 0;
            if (slot >= 0 && slot < count) {
                const int64_t place = places[slot];
                if (place > 0) base = text.letter(place - 1);
                else *primary = row;
                if (row % kSampled == 0) sample[row / kSampled - first_sample] = place;
            }
            word = word << 2 | base;
        }
        rows[i] = word;
    }
}

// Writes the bases of the rows without that of ``primary`` into blocks of 128, and counts them, by
// base and block.
extern "C" __global__ void __launch_bounds__(kThreads)
    fill_blocks(const uint32_t* rows, int64_t size, int64_t primary, uint32_t* words,
                uint32_t* counts) {
    const int64_t blocks = (size + kBlock - 1) / kBlock;
    for (int64_t block = first_unit(); block < blocks; block += unit_step()) {
        uint32_t own[4] = {0, 0, 0, 0};
        const int64_t end = min(size, kBlock * (block + 1));
        int64_t at = kBlockWords * block + kCountWords;
        for (int64_t first = kBlock * block; first < end; first += 16) {
            uint32_t word = 0;
            for (int64_t position = first; position < first + 16; ++position) {
                uint32_t base = 0;
                if (position < end) {
                    const int64_t row = position + (position >= primary);
                    base = rows[row >> 4] >> (30 - 2 * int(row & 15)) & 3;
                    for (uint32_t b = 0; b < 4; ++b) own[b] += base == b;
                }
                word = word << 2 | base;
            }
            words[at++] = word;
        }
        for (int b = 0; b < 4; ++b) counts[blocks * b + block] = own[b];
    }
}

// Writes how often each base occurs before each block, and behind the last one; ``before`` has the
// sums of the counts up to and with each block, by base and block.
extern "C" __global__ void __launch_bounds__(kThreads)
    write_counts(const int64_t* before, int64_t size, uint32_t* words) {
    const int64_t blocks = (size + kBlock - 1) / kBlock;
    for (int64_t i = first_unit(); i < 4 * (blocks + 1); i += unit_step()) {
        const int64_t block = i >> 2;
        const int64_t count = block == 0 ? 0 : before[blocks * (i & 3) + block - 1];
        // The last block is not filled.
        const int64_t at = block < blocks ? kBlockWords * block
                                          : (size + 15) / 16 + kCountWords * blocks;
        words[at + 2 * (i & 3)] = uint32_t(count);
        words[at + 2 * (i & 3) + 1] = uint32_t(count >> 32);
    }
}
