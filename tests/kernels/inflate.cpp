// The kernels of inflate.cu on the host, by warps of one lane: blocks one after the other.
#include <algorithm>
#include <cstdint>
#include <cstring>

#define __device__
#define __global__
#define __forceinline__ inline
#define __shared__ static
#define __launch_bounds__(threads)

struct Place {
    unsigned x, y, z;
};
static Place threadIdx = {0, 0, 0}, blockIdx = {0, 0, 0}, blockDim = {1, 1, 1}, gridDim = {1, 1, 1};
using std::min;
static void __syncthreads() {}
static unsigned __popc(unsigned bits) { return __builtin_popcount(bits); }
static unsigned __brev(unsigned bits) {
    unsigned turned = 0;
    for (int i = 0; i < 32; ++i) turned |= (bits >> i & 1) << (31 - i);
    return turned;
}
static unsigned atomicAdd(unsigned* place, unsigned more) {
    const unsigned old = *place;
    *place += more;
    return old;
}
static void atomicMin(unsigned long long* place, unsigned long long value) {
    if (value < *place) *place = value;
}
static void atomicXor(unsigned* place, unsigned value) { *place ^= value; }

#include "ngsgpu/io/gpu/inflate.cu"

// Each takes the number of blocks, then the kernel's arguments.
#define BLOCKS(call)                                       \
    gridDim = {blocks, 1, 1};                              \
    for (blockIdx.x = 0; blockIdx.x < blocks; ++blockIdx.x) call

extern "C" {
void on_host_find_starts(u32 blocks, const u32* words, u64 bytes, u32 slice, u64* starts) {
    BLOCKS(find_starts(words, bytes, slice, starts));
}
void on_host_measure_chunks(u32 blocks, const u32* words, u64 bytes, const u64* starts, u32 chunks,
                            Chunk* measured, MemberEnd* ends, u32 room, u32* found) {
    BLOCKS(measure_chunks(words, bytes, starts, chunks, measured, ends, room, found));
}
void on_host_decode_chunks(u32 blocks, const u32* words, u64 bytes, const u64* starts,
                           const Chunk* measured, const u32* offsets, u16* symbols) {
    BLOCKS(decode_chunks(words, bytes, starts, measured, offsets, symbols));
}
void on_host_compose_windows(u32 blocks, const u16* symbols, const u32* offsets, u32 chunks,
                             u32 group, u16* windows) {
    BLOCKS(compose_windows(symbols, offsets, chunks, group, windows));
}
void on_host_chain_windows(u32 blocks, const u16* windows, u32 chunks, u32 group, u8* before) {
    BLOCKS(chain_windows(windows, chunks, group, before));
}
void on_host_resolve_symbols(u32 blocks, const u16* symbols, const u32* offsets, u32 group,
                             const u16* windows, const u8* before, u8* text) {
    BLOCKS(resolve_symbols(symbols, offsets, group, windows, before, text));
}
}
