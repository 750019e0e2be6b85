// Counting k-mers on the GPU; the reference is ngsgpu/kmers/cpu.py.
//
// K-mers are in columns: word j of k-mer i is ``kmers[j * stride + i]``. Bytes and times of a data
// set are in docs/gpu.md.
#include "ngsgpu/device/cuda/block.cuh"
#include "ngsgpu/device/cuda/warp.cuh"
#include "ngsgpu/sequence/kmer.cuh"

namespace {

constexpr int kThreads = 256;
constexpr int kRows = 2048;  // sorted k-mers for each block; ROWS of gpu.py
constexpr int kBases = 32;   // of a word
constexpr uint64_t kLastCount = 65535;  // of a histogram: of this count and higher ones
constexpr int kFew = 1024;   // lowest counts

// A word of a packed text: 32 letters of a record that begins ``before`` letters behind its start.
struct Letters {
    const uint8_t* bases;
    const uint8_t* quals;
    const uint8_t* codes;
    int length, least, lane;

    // The word of their codes, and which of them end a k-mer.
    __device__ __forceinline__ void load(int first, uint64_t* word, uint32_t* bad) const {
        const int at = first + lane;
        bool good = at >= 0 && at < length;
        uint64_t code = 0;
        if (good) {
            code = codes[bases[at]];
            good = code < 4 && (least == 0 || quals[at] >= least);
        }
        *bad = __ballot_sync(WARP, !good);
        *word = any_lane(good ? code << (62 - 2 * lane) : 0);
    }
};

// Whether none of the k letters from this lane's on is bad.
template <int W>
__device__ __forceinline__ bool all_good(const uint32_t* bad, int k, int lane) {
    uint32_t found = 0;
#pragma unroll
    for (int j = 0; j <= W; ++j) {
        const int low = max(0, lane - kBases * j), high = min(kBases, lane + k - kBases * j);
        if (low < high)
            found |= bad[j] & uint32_t(((uint64_t(1) << high) - 1) & ~((uint64_t(1) << low) - 1));
    }
    return found == 0;
}

// K-mers that a warp has found, until there are enough to be written together.
template <int W>
struct Held {
    uint64_t (*rows)[2 * LANES];
    uint64_t* kmers;
    int64_t stride;
    unsigned long long* found;
    int lane, count;

    __device__ __forceinline__ void add(bool taken, const uint64_t* kmer) {
        const uint32_t mask = __ballot_sync(WARP, taken);
        if (mask == 0) return;
        if (taken)
#pragma unroll
            for (int j = 0; j < W; ++j) rows[j][count + count_before(mask, lane)] = kmer[j];
        count += __popc(mask);
        if (count >= LANES) write();
    }
    // Write up to LANES of them, as far as there is room; all are counted.
    __device__ __forceinline__ void write() {
        __syncwarp();
        const int size = min(count, LANES);
        unsigned long long place = 0;
        if (lane == 0 && size > 0) place = atomicAdd(found, (unsigned long long)(size));
        place = __shfl_sync(WARP, place, 0) + lane;
        count -= size;
#pragma unroll
        for (int j = 0; j < W; ++j) {
            if (lane < size && int64_t(place) < stride) kmers[j * stride + place] = rows[j][lane];
            const uint64_t next = rows[j][LANES + lane];
            __syncwarp();
            rows[j][lane] = next;
        }
        __syncwarp();
    }
};

template <int W>
__device__ __forceinline__ void find(const uint64_t* codes, const uint32_t* marks, uint64_t first,
                                     uint64_t words, int k, uint64_t low, uint64_t high,
                                     uint64_t* kmers, int64_t stride, unsigned long long* found) {
    __shared__ uint64_t rows[kThreads / LANES][W][2 * LANES];
    const int lane = threadIdx.x & 31;
    const uint64_t warps = uint64_t(gridDim.x) * (kThreads / LANES);
    const int unused = unused_bits<W>(k);
    Held<W> held = {rows[threadIdx.x / LANES], kmers, stride, found, lane, 0};
    for (uint64_t i = (uint64_t(blockIdx.x) * kThreads + threadIdx.x) / LANES; i < words;
         i += warps) {
        uint64_t word[W + 1];
        uint32_t bad[W + 1];
#pragma unroll
        for (int j = 0; j <= W; ++j) {
            word[j] = codes[first + i + j];
            bad[j] = marks[first + i + j];
        }
        const bool good = all_good<W>(bad, k, lane);
        if (__ballot_sync(WARP, good) == 0) continue;
        uint64_t forward[W], backward[W];
#pragma unroll
        for (int j = 0; j < W; ++j) {
            forward[j] = word[j] << (2 * lane);
            if (lane > 0) forward[j] |= word[j + 1] >> (64 - 2 * lane);
        }
        forward[W - 1] &= ~uint64_t(0) << unused;
        turn<W>(forward, k, backward);
        const bool turned = is_less<W>(backward, forward);
        const uint64_t begin = turned ? backward[0] : forward[0];
        held.add(good && begin >= low && begin <= high, turned ? backward : forward);
    }
    if (held.count > 0) held.write();
}

// Whether a sorted k-mer differs from the one before.
template <int W>
__device__ __forceinline__ bool is_first(const uint64_t* kmers, int64_t stride, int64_t i) {
    if (i == 0) return true;
    bool differs = false;
#pragma unroll
    for (int j = 0; j < W; ++j)
        differs |= kmers[j * stride + i] != kmers[j * stride + i - 1];
    return differs;
}

template <int W>
__device__ __forceinline__ void count_firsts(const uint64_t* kmers, int64_t stride, int64_t count,
                                             uint32_t* firsts) {
    const int64_t begin = int64_t(blockIdx.x) * kRows;
    unsigned own = 0, total;
    for (int row = threadIdx.x; row < kRows; row += kThreads)
        own += begin + row < count && is_first<W>(kmers, stride, begin + row);
    block_exclusive_sum<kThreads>(own, &total);
    if (threadIdx.x == 0) firsts[blockIdx.x] = total;
}

template <int W>
__device__ __forceinline__ void list_firsts(const uint64_t* kmers, int64_t stride, int64_t count,
                                            const int64_t* up_to, int64_t distinct,
                                            uint64_t* out, uint32_t* starts) {
    const int64_t begin = int64_t(blockIdx.x) * kRows;
    int64_t place = blockIdx.x == 0 ? 0 : up_to[blockIdx.x - 1];
    for (int row = threadIdx.x; row < kRows; row += kThreads) {
        const int64_t i = begin + row;
        const bool first = i < count && is_first<W>(kmers, stride, i);
        unsigned total;
        const int64_t to = place + block_exclusive_sum<kThreads>(first, &total);
        if (first) {
#pragma unroll
            for (int j = 0; j < W; ++j) out[j * distinct + to] = kmers[j * stride + i];
            starts[to] = uint32_t(i);
        }
        place += total;
    }
}

// The sums of equal rows, at most the highest count of type C.
template <typename C>
__device__ __forceinline__ void count_equal(const uint32_t* starts, int64_t distinct, int64_t count,
                                            const C* counts, C* out) {
    constexpr uint64_t kMost = C(~C(0));
    const int64_t step = int64_t(gridDim.x) * kThreads;
    for (int64_t i = int64_t(blockIdx.x) * kThreads + threadIdx.x; i < distinct; i += step) {
        const int64_t begin = starts[i], end = i + 1 < distinct ? starts[i + 1] : count;
        uint64_t sum = end - begin;
        if (counts != nullptr) {
            sum = 0;
            for (int64_t row = begin; row < end; ++row) sum += counts[row];
        }
        out[i] = C(sum < kMost ? sum : kMost);
    }
}

// Add to a histogram; blocks count for themselves the low counts that most k-mers have.
template <typename C>
__device__ __forceinline__ void add_to(const C* counts, int64_t distinct,
                                       unsigned long long* histogram) {
    __shared__ uint32_t few[kFew];
    for (int i = threadIdx.x; i < kFew; i += kThreads) few[i] = 0;
    __syncthreads();
    const int64_t step = int64_t(gridDim.x) * kThreads;
    for (int64_t i = int64_t(blockIdx.x) * kThreads + threadIdx.x; i < distinct; i += step) {
        const uint32_t count = counts[i];
        if (count < kFew) atomicAdd(few + count, 1u);
        else atomicAdd(histogram + (count < kLastCount ? count : kLastCount), 1ull);
    }
    __syncthreads();
    for (int i = threadIdx.x; i < kFew; i += kThreads)
        if (few[i]) atomicAdd(histogram + i, (unsigned long long)(few[i]));
}

}  // namespace

// Append the letters of records of a chunk to a text: a word has the codes of 32 letters, the first
// one in its highest bits, and a mark for each that is in no k-mer.
//
// ``places``: int64[records], the letters of all records up to each one, its own included; from
// ``at`` on they follow each other, a separator behind each. The text is all 0, its marks all 1, where nothing was packed. Letters that ``classes``
// (uint8[256]) has no code for are in no k-mer, nor are those of a quality below ``least``; 0 takes
// all. ``found``: the k-mers that all records had if all their letters were good, and their bases.
//
// Grid: any; block: kThreads, one warp per record. Bytes: bases (and qualities) in, 3 bits for each
// out. Operations: about 20 a letter.
extern "C" __global__ void __launch_bounds__(kThreads)
    pack_letters(const uint8_t* raw, const uint32_t* seq_start, const uint32_t* qual_start,
                 const int* lengths, uint32_t first, uint32_t records, const uint8_t* classes,
                 int least, int k, const int64_t* places, int64_t at, unsigned long long* text,
                 uint32_t* marks, unsigned long long* found) {
    __shared__ uint8_t codes[256];
    for (int i = threadIdx.x; i < 256; i += kThreads) codes[i] = classes[i];
    __syncthreads();
    const int lane = threadIdx.x & 31;
    const uint32_t warps = gridDim.x * (kThreads / LANES);
    unsigned long long kmers = 0, bases = 0;
    for (uint32_t i = (blockIdx.x * kThreads + threadIdx.x) / LANES; i < records; i += warps) {
        const uint32_t record = first + i;
        const int length = lengths[record];
        bases += length;
        kmers += max(0, length - k + 1);
        const int64_t begin = at + places[i] - length + i;
        const Letters letters = {raw + seq_start[record], raw + qual_start[record], codes,
                                 length, least, lane};
        for (int64_t word = begin / LANES; word * LANES < begin + length; ++word) {
            uint64_t own;
            uint32_t bad;
            letters.load(int(word * LANES - begin), &own, &bad);
            if (lane == 0) {
                // Words at both ends are shared with other records.
                atomicOr(text + word, (unsigned long long)(own));
                atomicAnd(marks + word, bad);
            }
        }
    }
    if (lane == 0 && bases) {
        atomicAdd(found, kmers);
        atomicAdd(found + 1, bases);
    }
}

// Append the canonical k-mers that begin in some words of a text, and whose first word is within
// bounds, to a buffer, in any order.
//
// Readable must be one word behind the last for each word of a k-mer. ``found``: k-mers in the
// buffer; beyond ``stride`` they are only counted.
//
// Grid: any; block: kThreads, one warp per word. Bytes: 12 a word in, 8 per word of a k-mer out.
// Operations: about 60 a letter and word.
#define FIND(W)                                                                                   \
    extern "C" __global__ void __launch_bounds__(kThreads) find_kmers_##W(                        \
        const uint64_t* codes, const uint32_t* marks, uint64_t first, uint64_t words, int k,      \
        uint64_t low, uint64_t high, uint64_t* kmers, int64_t stride, unsigned long long* found) { \
        find<W>(codes, marks, first, words, k, low, high, kmers, stride, found);                  \
    }

// Count the distinct ones of each block's sorted k-mers.
//
// Grid: one block for kRows k-mers; block: kThreads. Bytes: the k-mers in.
#define COUNT_FIRSTS(W)                                                                    \
    extern "C" __global__ void __launch_bounds__(kThreads) count_firsts_##W(               \
        const uint64_t* kmers, int64_t stride, int64_t count, uint32_t* firsts) {          \
        count_firsts<W>(kmers, stride, count, firsts);                                     \
    }

// Write distinct k-mers, and where each begins; ``up_to`` is the inclusive sum of ``firsts``.
//
// Grid and block as for count_firsts. Bytes: the k-mers in, the distinct ones and 4 for each out.
#define LIST_FIRSTS(W)                                                                     \
    extern "C" __global__ void __launch_bounds__(kThreads) list_firsts_##W(                \
        const uint64_t* kmers, int64_t stride, int64_t count, const int64_t* up_to,        \
        int64_t distinct, uint64_t* out, uint32_t* starts) {                               \
        list_firsts<W>(kmers, stride, count, up_to, distinct, out, starts);                \
    }

FIND(1)
FIND(2)
FIND(3)
FIND(4)
COUNT_FIRSTS(1)
COUNT_FIRSTS(2)
COUNT_FIRSTS(3)
COUNT_FIRSTS(4)
LIST_FIRSTS(1)
LIST_FIRSTS(2)
LIST_FIRSTS(3)
LIST_FIRSTS(4)

// How often each k-mer occurs: how many rows it has, or the sum of their counts, at most 65,535, or
// 2^32 - 1 of the wide ones.
//
// Grid: any; block: kThreads, one thread per k-mer. Bytes: 4 in and 2 or 4 out for each.
#define COUNT_ROWS(NAME, C)                                                                 \
    extern "C" __global__ void __launch_bounds__(kThreads) NAME(                            \
        const uint32_t* starts, int64_t distinct, int64_t count, const C* counts, C* out) { \
        count_equal<C>(starts, distinct, count, counts, out);                               \
    }

// How many k-mers have each count, uint64[65536]; the last one is of higher counts, too.
//
// Grid: any; block: kThreads, one thread per k-mer. Bytes: 2 or 4 in for each.
#define TALLY(NAME, C)                                                          \
    extern "C" __global__ void __launch_bounds__(kThreads) NAME(                \
        const C* counts, int64_t distinct, unsigned long long* histogram) {     \
        add_to<C>(counts, distinct, histogram);                                 \
    }

COUNT_ROWS(count_rows, uint16_t)
COUNT_ROWS(count_rows_wide, uint32_t)
TALLY(tally, uint16_t)
TALLY(tally_wide, uint32_t)
