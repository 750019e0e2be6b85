// Data between GPUs, and items by the GPU that they are for.
#include "ngsgpu/device/cuda/block.cuh"
#include "ngsgpu/device/cuda/warp.cuh"
#include "ngsgpu/sequence/search.cuh"

namespace {

constexpr int kThreads = 256;
constexpr int kSources = 8;   // SOURCES of peers.py
constexpr int kItems = 2048;  // of a block; ITEMS of rows.py
constexpr int kRows = kItems / LANES;
constexpr int kParts = 64;    // MOST_PARTS of rows.py

// Copy words by all threads of the grid's first dimension.
template <class Word>
__device__ __forceinline__ void copy_words(const uint8_t* from, uint8_t* to, int64_t words) {
    const int64_t step = int64_t(gridDim.x) * kThreads;
    const Word* source = reinterpret_cast<const Word*>(from);
    Word* target = reinterpret_cast<Word*>(to);
    for (int64_t i = int64_t(blockIdx.x) * kThreads + threadIdx.x; i < words; i += step)
        target[i] = source[i];
}

// Copy bytes in words of 16, or of fewer where the two places are not aligned alike.
__device__ __forceinline__ void copy_bytes(const uint8_t* from, uint8_t* to, int64_t bytes) {
    const uint64_t differ = uint64_t(from) ^ uint64_t(to);
    const int width = differ % 16 == 0 ? 16 : differ % 8 == 0 ? 8 : differ % 4 == 0 ? 4 : 1;
    const int64_t head = min(bytes, int64_t((width - uint64_t(to) % width) % width));
    const int64_t words = (bytes - head) / width;
    const int64_t tail = head + words * width;
    copy_words<uint8_t>(from, to, head);
    if (width == 16) copy_words<uint4>(from + head, to + head, words);
    else if (width == 8) copy_words<uint64_t>(from + head, to + head, words);
    else if (width == 4) copy_words<uint32_t>(from + head, to + head, words);
    else copy_words<uint8_t>(from + head, to + head, words);
    copy_words<uint8_t>(from + tail, to + tail, bytes - tail);
}

// Places in which a block has its items ordered by part, stable; ``order[place]`` is the item.
struct Ordered {
    uint16_t order[kItems];
    uint8_t parts[kItems];
    uint16_t rows[kRows][kParts];  // items of a part before each row of a warp
    uint32_t starts[kParts + 1];   // places where parts begin
};

__device__ __forceinline__ void order_items(const uint8_t* owners, int64_t begin, int64_t count,
                                            int parts, Ordered* own) {
    const int lane = threadIdx.x & 31;
    for (int i = threadIdx.x; i < kRows * kParts; i += kThreads)
        own->rows[i / kParts][i % kParts] = 0;
    __syncthreads();
    for (int item = threadIdx.x; item < kItems; item += kThreads) {
        int part = begin + item < count ? owners[begin + item] : kParts;
        if (part >= parts) part = kParts;
        own->parts[item] = uint8_t(part);
        const uint32_t same = __match_any_sync(WARP, part);
        if (part < kParts && count_before(same, lane) == 0)
            own->rows[item / LANES][part] = uint16_t(__popc(same));
    }
    __syncthreads();
    for (int part = threadIdx.x; part < parts; part += kThreads) {
        uint32_t sum = 0;
        for (int row = 0; row < kRows; ++row) {
            const uint32_t here = own->rows[row][part];
            own->rows[row][part] = uint16_t(sum);
            sum += here;
        }
        own->starts[part + 1] = sum;
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        own->starts[0] = 0;
        for (int part = 0; part < parts; ++part) own->starts[part + 1] += own->starts[part];
    }
    __syncthreads();
    for (int item = threadIdx.x; item < kItems; item += kThreads) {
        const int part = own->parts[item];
        const uint32_t same = __match_any_sync(WARP, part);
        if (part == kParts) continue;
        const uint32_t place =
            own->starts[part] + own->rows[item / LANES][part] + count_before(same, lane);
        own->order[place] = uint16_t(item);
    }
    __syncthreads();
}

template <class Item>
__device__ __forceinline__ void place_items(const uint8_t* owners, const int64_t* up_to,
                                            const Item* items, int64_t count, int parts,
                                            Item* out) {
    __shared__ Ordered own;
    const int64_t begin = int64_t(blockIdx.x) * kItems;
    order_items(owners, begin, count, parts, &own);
    for (int place = threadIdx.x; place < int(own.starts[parts]); place += kThreads) {
        const int item = own.order[place], part = own.parts[item];
        const int64_t at = int64_t(part) * gridDim.x + blockIdx.x;
        const int64_t first = at == 0 ? 0 : up_to[at - 1];
        out[first + (place - int64_t(own.starts[part]))] = items[begin + item];
    }
}

template <class Key>
__device__ __forceinline__ void own_ranges(const Key* keys, int64_t count, const Key* splitters,
                                           int parts, uint8_t* owners) {
    __shared__ Key own[kParts];
    for (int i = threadIdx.x; i < parts - 1; i += kThreads) own[i] = splitters[i];
    __syncthreads();
    const int64_t step = int64_t(gridDim.x) * kThreads;
    for (int64_t i = int64_t(blockIdx.x) * kThreads + threadIdx.x; i < count; i += step) {
        const Key key = keys[i];
        const auto is_before = [&](int part) { return own[part] <= key; };
        owners[i] = uint8_t(first_not_before(0, parts - 1, is_before));
    }
}

}  // namespace

// Write data of up to kSources GPUs one after the other: part i is ``size_i`` bytes at ``from_i``.
//
// Grid: blocks and parts; block: kThreads. Bytes: all in, over the links, and out.
extern "C" __global__ void __launch_bounds__(kThreads)
    pull(uint8_t* out, const uint8_t* from_0, const uint8_t* from_1, const uint8_t* from_2,
         const uint8_t* from_3, const uint8_t* from_4, const uint8_t* from_5,
         const uint8_t* from_6, const uint8_t* from_7, int64_t size_0, int64_t size_1,
         int64_t size_2, int64_t size_3, int64_t size_4, int64_t size_5, int64_t size_6,
         int64_t size_7) {
    const uint8_t* from[kSources] = {from_0, from_1, from_2, from_3,
                                     from_4, from_5, from_6, from_7};
    const int64_t sizes[kSources] = {size_0, size_1, size_2, size_3,
                                     size_4, size_5, size_6, size_7};
    // Constant indices keep the parameters in registers.
    const uint8_t* source = nullptr;
    int64_t begin = 0, size = 0;
#pragma unroll
    for (int i = 0; i < kSources; ++i) {
        if (i < int(blockIdx.y)) begin += sizes[i];
        if (i == int(blockIdx.y)) {
            source = from[i];
            size = sizes[i];
        }
    }
    copy_bytes(source, out + begin, size);
}

// How many items of each block are of each part: ``found[part * blocks + block]``. Owners beyond
// ``parts`` set ``wrong``, and are counted nowhere.
//
// Grid: one block for kItems; block: kThreads. Bytes: 1 in for each item.
extern "C" __global__ void __launch_bounds__(kThreads)
    count_parts(const uint8_t* owners, int64_t count, int parts, int64_t* found, int* wrong) {
    __shared__ uint32_t sums[kParts];
    for (int part = threadIdx.x; part < kParts; part += kThreads) sums[part] = 0;
    __syncthreads();
    const int lane = threadIdx.x & 31;
    const int64_t begin = int64_t(blockIdx.x) * kItems;
    for (int item = threadIdx.x; item < kItems; item += kThreads) {
        const bool there = begin + item < count;
        int part = there ? owners[begin + item] : kParts;
        if (there && part >= parts) {
            *wrong = 1;
            part = kParts;
        }
        const uint32_t same = __match_any_sync(WARP, part);
        if (part < kParts && count_before(same, lane) == 0)
            atomicAdd(sums + part, uint32_t(__popc(same)));
    }
    __syncthreads();
    for (int part = threadIdx.x; part < parts; part += kThreads)
        found[int64_t(part) * gridDim.x + blockIdx.x] = sums[part];
}

// Order items by part, and those of a part as they are; ``up_to`` is the inclusive sum of what
// count_parts found.
//
// Grid and block as for count_parts. Bytes: 1 for each item in, and the item in and out.
#define PLACE(NAME, ITEM)                                                                  \
    extern "C" __global__ void __launch_bounds__(kThreads)                                 \
        place_items_##NAME(const uint8_t* owners, const int64_t* up_to, const ITEM* items, \
                           int64_t count, int parts, ITEM* out) {                          \
        place_items<ITEM>(owners, up_to, items, count, parts, out);                        \
    }

// The part of each key: how many splitters (parts - 1, ascending) are not above it.
//
// Grid: any; block: kThreads. Bytes: the key in, 1 out. Operations: 10 log2 parts.
#define OWN(NAME, KEY)                                                                        \
    extern "C" __global__ void __launch_bounds__(kThreads)                                    \
        own_ranges_##NAME(const KEY* keys, int64_t count, const KEY* splitters, int parts,    \
                          uint8_t* owners) {                                                  \
        own_ranges<KEY>(keys, count, splitters, parts, owners);                               \
    }

PLACE(1, uint8_t)
PLACE(2, uint16_t)
PLACE(4, uint32_t)
PLACE(8, uint64_t)
PLACE(16, uint4)
OWN(1, uint8_t)
OWN(2, uint16_t)
OWN(4, uint32_t)
OWN(8, uint64_t)
