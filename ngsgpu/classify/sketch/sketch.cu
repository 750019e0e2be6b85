// Features of reference sequences, from the text of FASTA files on; the references are
// ngsgpu/io/text/scan.py (records) and ngsgpu/classify/sketch/cpu.py.
#include "ngsgpu/classify/sketch/kmers.cuh"
#include "ngsgpu/device/cuda/block.cuh"

namespace {

constexpr int kTextTile = 4096;               // bytes of text for a block
constexpr int kBytes = kTextTile / kThreads;  // of these for each thread

// Classes of bytes of sequences.
constexpr u8 kBase = 0;
constexpr u8 kReturn = 2;  // 1 is the line feed

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
        block_exclusive_sum<kThreads>(count, &total);
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
        uint32_t at = before + block_exclusive_sum<kThreads>(sum, &total);
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
            count += __popc(__ballot_sync(WARP, at < begin[i] && class_of[text[at]] == kBase));
        }
        if (lane == 0) places[i] = letters_before[tile] + count;
    }
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        places[headers] = letters_before[(size + kTextTile - 1) / kTextTile];
        places[headers + 1] = *wrong;
    }
}

// Compact the letters of a text.
//
// Grid: any; block: kThreads, one per tile. Bytes: 1 in and 1 out per byte.
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
        uint32_t to = block_exclusive_sum<kThreads>(count, &total);
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

// Count the features of windows of pieces of reference sequences, or write their keys.
//
// Piece i is ``letters[start[i]..start[i] + length[i])`` and has the windows from
// ``first_window[i]`` up to ``first_window[i + 1]``, ``windows`` in total. With ``key_start``
// null, ``counts`` receives each window's number of features and ``piece`` its piece; otherwise
// the keys of window j are written from ``keys[key_start[j]]`` on.
//
// Grid: resident blocks; block: kThreads, one warp per window. Bytes: window / stride in per base,
// 4 out per feature. Operations: about 300 warp instructions for a window of 127.
extern "C" __global__ void __launch_bounds__(kThreads)
    sketch_sequences(const u8* letters, const int64_t* start, const int64_t* length,
                     const int64_t* first_window, int64_t pieces, int64_t windows, int kmer,
                     int sketch, int window, int stride, int kept, int smer,
                     const uint32_t* key_start, uint32_t* keys, uint32_t* counts,
                     uint32_t* piece) {
    __shared__ uint32_t gathered[kThreads / 32][kMostKeys];
    const SketchRules rules = {kmer, sketch, window, stride, kept, smer};
    const uint32_t lane = threadIdx.x & 31;
    uint32_t* own = gathered[threadIdx.x / 32];
    const int64_t warps = int64_t(gridDim.x) * (kThreads / 32);
    for (int64_t j = (int64_t(blockIdx.x) * kThreads + threadIdx.x) / 32; j < windows; j += warps) {
        const int64_t i = last_not_above(first_window, pieces, j);
        const int64_t begin = (j - first_window[i]) * stride;
        const int bases = int(min(int64_t(window), length[i] - begin));
        const u8* text = letters + start[i] + begin;
        uint32_t total = 0;
        for (int at = 0; at < bases - kmer + 1;) {
            int count;
            if (smer > 0) {
                count = add_syncmers(text, bases - kmer + 1, rules, lane, &at, own, 0);
                count = unique_keys(own, count, lane);
            } else {
                count = sketch_keys(text, bases, rules, lane, own);
                at = bases;
            }
            if (key_start != nullptr)
                for (int k = int(lane); k < count; k += 32)
                    keys[key_start[j] + total + k] = own[k];
            total += count;
            __syncwarp();
        }
        if (key_start == nullptr && lane == 0) {
            counts[j] = total;
            piece[j] = uint32_t(i);
        }
    }
}
