// The kernel of deflate_reads.cu on the host: the threads of a block are threads, the blocks follow
// on each other.
#include <algorithm>
#include <barrier>
#include <thread>
#include <vector>

#define __device__
#define __noinline__
#define __global__
#define __shared__ static
#define __launch_bounds__(threads)

struct Place {
    unsigned x;
};
static thread_local Place threadIdx;
static Place blockIdx, blockDim;
static std::barrier<>* all_threads;
using std::max;
using std::min;

static void __syncthreads() { all_threads->arrive_and_wait(); }
static unsigned __brev(unsigned bits) {
    unsigned turned = 0;
    for (int i = 0; i < 32; ++i) turned |= (bits >> i & 1) << (31 - i);
    return turned;
}
static void atomicAdd(unsigned* place, unsigned more) {
    __atomic_fetch_add(place, more, __ATOMIC_RELAXED);
}
static void atomicOr(unsigned* place, unsigned bits) {
    __atomic_fetch_or(place, bits, __ATOMIC_RELAXED);
}
static void atomicXor(unsigned* place, unsigned bits) {
    __atomic_fetch_xor(place, bits, __ATOMIC_RELAXED);
}
template <class Better>
static void replace(unsigned* place, unsigned value, Better better) {
    unsigned old = __atomic_load_n(place, __ATOMIC_RELAXED);
    while (better(value, old) && !__atomic_compare_exchange_n(place, &old, value, false,
                                                              __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
}
static void atomicMin(unsigned* place, unsigned value) { replace(place, value, std::less<>()); }
static void atomicMax(unsigned* place, unsigned value) { replace(place, value, std::greater<>()); }

#include "ngsgpu/io/gpu/deflate_reads.cu"

extern "C" void on_host_deflate_reads(u32 blocks, u32 threads, const u8* text,
                                      const u32* pieces, u32 most, const u32* moves, u8* out,
                                      u32* sizes) {
    blockDim.x = threads;
    for (blockIdx.x = 0; blockIdx.x < blocks; ++blockIdx.x) {
        std::barrier barrier(threads);
        all_threads = &barrier;
        std::vector<std::thread> team;
        for (u32 own = 0; own < threads; ++own)
            team.emplace_back([=] {
                threadIdx.x = own;
                deflate_reads(text, pieces, most, moves, out, sizes);
                all_threads->arrive_and_drop();
            });
        for (auto& thread : team) thread.join();
    }
}
