// Unitigs on the GPU: neighbours of k-mers, chains by pointer jumping, links, letters. The reference
// is ngsgpu/assemble/graph.py and chains.py, whose words are used here: nodes, directions.
#include "ngsgpu/device/cuda/warp.cuh"
#include "ngsgpu/sequence/kmer.cuh"
#include "ngsgpu/sequence/search.cuh"

namespace {

constexpr int kThreads = 256;

// How far a direction has seen along its chain.
struct alignas(8) Reach {
    int to;    // the direction behind what it has seen, or ~ the last direction of the chain
    int size;  // nodes that it has seen, itself included; in circles, the smallest direction
};

// The k-mers of a graph, by their highest bits.
template <int W>
struct Index {
    const uint64_t* kmers;
    const int* starts;
    int bits, k;

    __device__ __forceinline__ void load(int node, uint64_t* kmer) const {
#pragma unroll
        for (int j = 0; j < W; ++j) kmer[j] = kmers[int64_t(node) * W + j];
    }

    // A node's k-mer as it is read in a direction.
    __device__ __forceinline__ void load_direction(int d, uint64_t* kmer) const {
        uint64_t own[W];
        load(d >> 1, own);
        if (d & 1) {
            turn<W>(own, k, kmer);
        } else {
#pragma unroll
            for (int j = 0; j < W; ++j) kmer[j] = own[j];
        }
    }

    // The place of a k-mer, or -1.
    __device__ __forceinline__ int place_of(const uint64_t* wanted) const {
        const uint64_t part = wanted[0] >> (64 - bits);
        const int end = starts[part + 1];
        uint64_t own[W];
        const int low = first_not_before(int(starts[part]), end, [&](int place) {
            load(place, own);
            return is_less<W>(own, wanted);
        });
        if (low == end) return -1;
        load(low, own);
        return is_less<W>(wanted, own) ? -1 : low;
    }
};

// What may follow a direction: its k-mer without the first base and with a free last one, in both
// directions.
template <int W>
struct Near {
    uint64_t words[2][W];
    int top;

    __device__ __forceinline__ Near(const Index<W>& index, int d) {
        uint64_t own[W], turned[W];
        index.load_direction(d, own);
        index.load_direction(d ^ 1, turned);
        top = unused_bits<W>(index.k);
#pragma unroll
        for (int j = 0; j < W; ++j) {
            words[0][j] = (own[j] << 2) | (j + 1 < W ? own[j + 1] >> 62 : 0);
            words[1][j] = (turned[j] >> 2) | (j > 0 ? turned[j - 1] << 62 : 0);
        }
        words[1][W - 1] &= ~uint64_t(0) << top;
    }

    // The direction that follows by a base, or -1.
    __device__ __forceinline__ int follower(const Index<W>& index, int base) {
        words[0][W - 1] = (words[0][W - 1] & ~(uint64_t(3) << top)) | (uint64_t(base) << top);
        words[1][0] = (words[1][0] & ~(uint64_t(3) << 62)) | (uint64_t(3 - base) << 62);
        const int o = is_less<W>(words[1], words[0]);
        uint64_t wanted[W];
#pragma unroll
        for (int j = 0; j < W; ++j) wanted[j] = o ? words[1][j] : words[0][j];
        const int place = index.place_of(wanted);
        return place < 0 ? -1 : 2 * place + o;
    }
};

template <int W>
__device__ __forceinline__ void neighbours(const uint64_t* kmers, const int* starts, int bits,
                                           int k, int64_t nodes, uint8_t* masks, int* nexts) {
    const Index<W> index = {kmers, starts, bits, k};
    const int64_t step = int64_t(gridDim.x) * kThreads;
    const int lane = threadIdx.x & 31;
    for (int64_t d = int64_t(blockIdx.x) * kThreads + threadIdx.x; d - lane < 2 * nodes;
         d += step) {
        uint32_t mask = 0;
        if (d < 2 * nodes) {
            Near<W> near(index, int(d));
            int found = -1;
            for (int base = 0; base < 4; ++base) {
                const int e = near.follower(index, base);
                if (e < 0) continue;
                mask |= 1u << base;
                found = e;
            }
            nexts[d] = __popc(mask) == 1 ? found : -1;
        }
        // The other direction of the node is the lane beside.
        const uint32_t other = __shfl_xor_sync(WARP, mask, 1);
        if (d < 2 * nodes && (d & 1) == 0) masks[d >> 1] = uint8_t(mask | other << 4);
    }
}

template <int W>
__device__ __forceinline__ void choose(const uint64_t* kmers, int k, int64_t nodes,
                                       const Reach* reach, int* owner) {
    const Index<W> index = {kmers, nullptr, 0, k};
    const int64_t step = int64_t(gridDim.x) * kThreads;
    for (int64_t i = int64_t(blockIdx.x) * kThreads + threadIdx.x; i < 2 * nodes; i += step) {
        const int d = int(i);
        // Nothing is before the last one of the other direction.
        if (reach[d ^ 1].to != ~(d ^ 1)) continue;
        const int last = ~reach[d].to;
        uint64_t own[W], other[W];
        index.load_direction(d, own);
        index.load_direction(last ^ 1, other);
        if (is_less<W>(own, other)) owner[min(d, last) >> 1] = d;
    }
}

template <int W>
__device__ __forceinline__ void list_links(const uint64_t* kmers, const int* starts, int bits,
                                           int k, const uint8_t* masks, const int* first,
                                           const int* last, int64_t unitigs, const int* unitig_at,
                                           const int64_t* link_starts, int* links) {
    const Index<W> index = {kmers, starts, bits, k};
    const int64_t step = int64_t(gridDim.x) * kThreads;
    for (int64_t i = int64_t(blockIdx.x) * kThreads + threadIdx.x; i < 2 * unitigs; i += step) {
        int64_t at = link_starts[i];
        if (at == link_starts[i + 1]) continue;
        const int d = i & 1 ? first[i >> 1] ^ 1 : last[i >> 1];
        const uint32_t mask = masks[d >> 1] >> (4 * (d & 1));
        Near<W> near(index, d);
        for (int base = 0; base < 4; ++base) {
            if (!(mask >> base & 1)) continue;
            const int e = near.follower(index, base);
            const int unitig = unitig_at[e >> 1];
            links[at++] = 2 * unitig + (e != first[unitig]);
        }
    }
}

template <int W>
__device__ __forceinline__ void write_letters(const uint64_t* kmers, int k, int64_t nodes,
                                              const Reach* reach, const int* last,
                                              const int64_t* sizes, const int64_t* places,
                                              int64_t begin, int64_t end, const int* unitig_at,
                                              const uint8_t* letters, uint8_t* out) {
    const int64_t step = int64_t(gridDim.x) * kThreads;
    for (int64_t d = int64_t(blockIdx.x) * kThreads + threadIdx.x; d < 2 * nodes; d += step) {
        const int end_of = ~reach[d].to, unitig = unitig_at[end_of >> 1];
        // Half of the directions are those in which their unitigs are written.
        if (last[unitig] != end_of || unitig < begin || unitig >= end) continue;
        const int64_t before = sizes[unitig] - reach[d].size;
        uint8_t* to = out + (places[unitig] - places[begin]) + before;
        // All letters of the first k-mer, the last one of the others.
        for (int base = before == 0 ? 0 : k - 1; base < k; ++base) {
            const int at = d & 1 ? k - 1 - base : base;
            const uint64_t word = kmers[(d >> 1) * W + at / 32];
            const int code = int(word >> (62 - 2 * (at % 32))) & 3;
            to[base] = letters[d & 1 ? 3 - code : code];
        }
    }
}

}  // namespace

// Where the k-mers begin that have the same highest bits; see fill_starts in graph.py.
//
// Grid: any; block: kThreads, one thread per k-mer and the end. Bytes: 8 in per k-mer, 4 out per
// start.
extern "C" __global__ void __launch_bounds__(kThreads)
    fill_starts(const uint64_t* kmers, int words, int64_t nodes, int bits, int* starts) {
    const int64_t step = int64_t(gridDim.x) * kThreads;
    for (int64_t i = int64_t(blockIdx.x) * kThreads + threadIdx.x; i <= nodes; i += step) {
        const int64_t parts = int64_t(1) << bits;
        const int64_t before = i == 0 ? -1 : int64_t(kmers[(i - 1) * words] >> (64 - bits));
        const int64_t part = i == nodes ? parts : int64_t(kmers[i * words] >> (64 - bits));
        for (int64_t p = before + 1; p <= part; ++p) starts[p] = int(i);
    }
}

// What is joined to each direction, or -1, and how far each one sees: itself.
//
// Grid: any; block: kThreads, one thread per direction. Bytes: 8 in (4 at random), 12 out.
extern "C" __global__ void __launch_bounds__(kThreads)
    join(const int* nexts, int64_t directions, int* joined) {
    const int64_t step = int64_t(gridDim.x) * kThreads;
    for (int64_t i = int64_t(blockIdx.x) * kThreads + threadIdx.x; i < directions; i += step) {
        const int d = int(i), e = nexts[d];
        joined[d] = e < 0 || e >> 1 == d >> 1 || nexts[e ^ 1] != (d ^ 1) ? -1 : e;
    }
}

// How far directions see: themselves. ``list``: which ones; null: all.
//
// Grid: any; block: kThreads, one thread per direction. Bytes: 4 in and 8 out.
extern "C" __global__ void __launch_bounds__(kThreads)
    begin_reach(const int* joined, const int64_t* list, int64_t count, Reach* reach) {
    const int64_t step = int64_t(gridDim.x) * kThreads;
    for (int64_t i = int64_t(blockIdx.x) * kThreads + threadIdx.x; i < count; i += step) {
        const int d = int(list == nullptr ? i : list[i]);
        const int e = joined[d];
        reach[d] = {e < 0 ? ~d : e, 1};
    }
}

// See twice as far. ``left``: how many directions do not see the end of their chain.
//
// Grid: any; block: kThreads, one thread per direction. Bytes: 16 in (8 at random), 8 out.
extern "C" __global__ void __launch_bounds__(kThreads)
    double_reach(const Reach* reach, int64_t directions, Reach* out, uint32_t* left) {
    const int64_t step = int64_t(gridDim.x) * kThreads;
    const int lane = threadIdx.x & 31;
    uint32_t own_left = 0;
    for (int64_t d = int64_t(blockIdx.x) * kThreads + threadIdx.x; d < directions; d += step) {
        Reach own = reach[d];
        if (own.to >= 0) {
            const Reach next = reach[own.to];
            own = {next.to, own.size + next.size};
            own_left += own.to >= 0;
        }
        out[d] = own;
    }
    own_left = __reduce_add_sync(WARP, own_left);
    if (lane == 0 && own_left) atomicAdd(left, own_left);
}

// Likewise for circles, to find their smallest directions; the first of ``rounds`` begins.
//
// Grid: any; block: kThreads, one thread per direction of the list. Bytes: 24 in, 8 out.
extern "C" __global__ void __launch_bounds__(kThreads)
    double_circle(const int* joined, const Reach* reach, const int64_t* list, int64_t count,
                  int first, Reach* out) {
    const int64_t step = int64_t(gridDim.x) * kThreads;
    for (int64_t i = int64_t(blockIdx.x) * kThreads + threadIdx.x; i < count; i += step) {
        const int d = int(list[i]);
        if (first) {
            out[d] = {joined[d], d};
            continue;
        }
        const Reach own = reach[d], next = reach[own.to];
        out[d] = {next.to, min(own.size, next.size)};
    }
}

// Cut circles in front of their smallest node as it stands, and so in both directions.
//
// Grid: any; block: kThreads, one thread per direction of the list. Bytes: 20 in.
extern "C" __global__ void __launch_bounds__(kThreads)
    cut_circles(const Reach* reach, const int64_t* list, int64_t count, int* joined) {
    const int64_t step = int64_t(gridDim.x) * kThreads;
    for (int64_t i = int64_t(blockIdx.x) * kThreads + threadIdx.x; i < count; i += step) {
        const int d = int(list[i]), smallest = reach[d].size;
        // One of the two directions has the node as it stands, and the other one ends there.
        if (smallest & 1 ? d == smallest : joined[d] == smallest) joined[d] = -1;
    }
}

// Last directions and sizes of unitigs, where their ends are, and how many links those have.
//
// Grid: any; block: kThreads, one thread per unitig. Bytes: 14 in and 28 out.
extern "C" __global__ void __launch_bounds__(kThreads)
    describe(const int* first, int64_t unitigs, const Reach* reach, const uint8_t* masks,
             int* last, int64_t* sizes, int* unitig_at, uint32_t* degrees) {
    const int64_t step = int64_t(gridDim.x) * kThreads;
    for (int64_t u = int64_t(blockIdx.x) * kThreads + threadIdx.x; u < unitigs; u += step) {
        const int begin = first[u], end = ~reach[begin].to;
        last[u] = end;
        sizes[u] = reach[begin].size;
        unitig_at[begin >> 1] = int(u);
        unitig_at[end >> 1] = int(u);
        degrees[2 * u] = __popc(masks[end >> 1] >> (4 * (end & 1)) & 15);
        degrees[2 * u + 1] = __popc(masks[begin >> 1] >> (4 * (begin & 1 ^ 1)) & 15);
    }
}

// Sums of the counts of unitigs.
//
// Grid: any; block: kThreads, one thread per direction. Bytes: 10 in and, for half of the
// directions, an atomic sum.
extern "C" __global__ void __launch_bounds__(kThreads)
    add_counts(const uint16_t* counts, int64_t directions, const Reach* reach, const int* last,
               const int* unitig_at, unsigned long long* totals) {
    const int64_t step = int64_t(gridDim.x) * kThreads;
    for (int64_t d = int64_t(blockIdx.x) * kThreads + threadIdx.x; d < directions; d += step) {
        const int end = ~reach[d].to, unitig = unitig_at[end >> 1];
        if (last[unitig] == end) atomicAdd(totals + unitig, (unsigned long long)(counts[d >> 1]));
    }
}

// Which bases follow in either direction, and what follows if it is but one; see find_neighbours.
//
// Grid: any; block: kThreads, one thread per direction. Bytes: k-mer and 9 out; for each of four
// k-mers a start and about two k-mers at random.
#define NEIGHBOURS(W)                                                                         \
    extern "C" __global__ void __launch_bounds__(kThreads) find_neighbours_##W(               \
        const uint64_t* kmers, const int* starts, int bits, int k, int64_t nodes,             \
        uint8_t* masks, int* nexts) {                                                         \
        neighbours<W>(kmers, starts, bits, k, nodes, masks, nexts);                           \
    }

// For the smaller of the two end nodes of each unitig, the direction in which it begins.
//
// Grid: any; block: kThreads, one thread per direction. Bytes: 8 in, for each end two k-mers.
#define CHOOSE(W)                                                                             \
    extern "C" __global__ void __launch_bounds__(kThreads) choose_##W(                        \
        const uint64_t* kmers, int k, int64_t nodes, const Reach* reach, int* owner) {        \
        choose<W>(kmers, k, nodes, reach, owner);                                             \
    }

// The links of both ends of each unitig; see find_links.
//
// Grid: any; block: kThreads, one thread per end.
#define LIST_LINKS(W)                                                                         \
    extern "C" __global__ void __launch_bounds__(kThreads) list_links_##W(                    \
        const uint64_t* kmers, const int* starts, int bits, int k, const uint8_t* masks,      \
        const int* first, const int* last, int64_t unitigs, const int* unitig_at,             \
        const int64_t* link_starts, int* links) {                                             \
        list_links<W>(kmers, starts, bits, k, masks, first, last, unitigs, unitig_at,         \
                      link_starts, links);                                                    \
    }

// The letters of the unitigs from ``begin`` up to ``end``, each from its place on.
//
// Grid: any; block: kThreads, one thread per direction. Bytes: 8 in per direction; the k-mer and 24
// in and 1 out per node, at random.
#define WRITE_LETTERS(W)                                                                      \
    extern "C" __global__ void __launch_bounds__(kThreads) write_letters_##W(                 \
        const uint64_t* kmers, int k, int64_t nodes, const Reach* reach, const int* last,     \
        const int64_t* sizes, const int64_t* places, int64_t begin, int64_t end,              \
        const int* unitig_at, const uint8_t* letters, uint8_t* out) {                         \
        write_letters<W>(kmers, k, nodes, reach, last, sizes, places, begin, end, unitig_at,  \
                         letters, out);                                                       \
    }

#define ALL(W) NEIGHBOURS(W) CHOOSE(W) LIST_LINKS(W) WRITE_LETTERS(W)

ALL(1)
ALL(2)
ALL(3)
ALL(4)
