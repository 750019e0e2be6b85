// The Euler tour on the GPU; the reference is ngsgpu/assemble/euler/graph.py and tour.py.
#include "ngsgpu/sequence/kmer.cuh"

namespace {

constexpr int kThreads = 256;

}  // namespace

// The reverse complement of each l-mer.
//
// Grid: any; block: kThreads, one thread per l-mer. Bytes: 8 in, 8 out.
extern "C" __global__ void __launch_bounds__(kThreads)
    turn_all(const uint64_t* kmers, int64_t size, int length, uint64_t* turned) {
    const int64_t step = int64_t(gridDim.x) * kThreads;
    for (int64_t i = int64_t(blockIdx.x) * kThreads + threadIdx.x; i < size; i += step)
        turn<1>(kmers + i, length, turned + i);
}

// Pairs the entering edges of each vertex with the leaving ones.
//
// Grid: any; block: kThreads, one thread per vertex. Bytes: 8 in, for each pair 4 in and 4 out.
extern "C" __global__ void __launch_bounds__(kThreads)
    pair_edges(const int* enter_starts, const int* entering, const int* leave_starts,
               int64_t vertices, int* successors) {
    const int64_t step = int64_t(gridDim.x) * kThreads;
    for (int64_t v = int64_t(blockIdx.x) * kThreads + threadIdx.x; v < vertices; v += step) {
        const int first = enter_starts[v], leave = leave_starts[v];
        const int entered = enter_starts[v + 1] - first, left = leave_starts[v + 1] - leave;
        for (int i = 0; i < entered && i < left; ++i) successors[entering[first + i]] = leave + i;
    }
}

// Hooks roots to smaller ones along the successors of edges. Which of several smaller roots a root
// gets is left to chance; a root that gets another one meanwhile is asked again in the next round.
//
// Grid: any; block: kThreads, one thread per edge. Bytes: 8 in, one label at random.
extern "C" __global__ void __launch_bounds__(kThreads)
    hook_roots(const int* successors, int64_t edges, int* labels, int* differ) {
    const int64_t step = int64_t(gridDim.x) * kThreads;
    for (int64_t e = int64_t(blockIdx.x) * kThreads + threadIdx.x; e < edges; e += step) {
        const int after = successors[e];
        if (after < 0) continue;
        const int own = labels[e], other = labels[after];
        if (own == other) continue;
        *differ = 1;
        const int low = own < other ? own : other, high = own < other ? other : own;
        if (labels[high] == high) labels[high] = low;
    }
}

// Replaces the labels of edges by those of their labels.
//
// Grid: any; block: kThreads, one thread per edge. Bytes: 4 in, 4 out, one label at random.
extern "C" __global__ void __launch_bounds__(kThreads)
    jump_up(int64_t edges, int* labels, int* moved) {
    const int64_t step = int64_t(gridDim.x) * kThreads;
    for (int64_t e = int64_t(blockIdx.x) * kThreads + threadIdx.x; e < edges; e += step) {
        const int label = labels[e], above = labels[label];
        if (above == label) continue;
        labels[e] = above;
        *moved = 1;
    }
}

// Exchanges the successors of entering edges at the marked places, those of a vertex in a row.
//
// Grid: any; block: kThreads, one thread per vertex. Bytes: 8 in, for each entering edge 1.
extern "C" __global__ void __launch_bounds__(kThreads)
    exchange(const int* enter_starts, const int* entering, const uint8_t* marks, int64_t vertices,
             int* successors) {
    const int64_t step = int64_t(gridDim.x) * kThreads;
    for (int64_t v = int64_t(blockIdx.x) * kThreads + threadIdx.x; v < vertices; v += step) {
        for (int place = enter_starts[v]; place < enter_starts[v + 1] - 1; ++place) {
            if (!marks[place]) continue;
            const int own = entering[place], other = entering[place + 1];
            const int after = successors[own];
            successors[own] = successors[other];
            successors[other] = after;
        }
    }
}
