// The code of candidates.cuh on the host, one thread; see test_candidate_set.py.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#define __device__
#define __host__
#define __noinline__
#define __forceinline__ inline
template <class T>
T atomicCAS(T* at, T old, T now) {
    T seen = *at;
    if (seen == old) *at = now;
    return seen;
}
template <class T, class U>
T atomicAdd(T* at, U more) {
    T seen = *at;
    *at += more;
    return seen;
}
template <class T>
T atomicMin(T* at, T other) {
    T seen = *at;
    if (other < seen) *at = other;
    return seen;
}
struct uint4 {
    unsigned x, y, z, w;
};
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }
inline int min(int a, int b) { return a < b ? a : b; }
inline void __syncwarp() {}
inline unsigned __ballot_sync(unsigned, bool bit) { return bit; }
template <class T> T __shfl_sync(unsigned, T value, int) { return value; }
inline int __ffs(unsigned bits) { return __builtin_ffs(int(bits)); }
inline int __popcll(uint64_t bits) { return __builtin_popcountll(bits); }
inline uint64_t __brevll(uint64_t bits) {
    uint64_t turned = 0;
    for (int i = 0; i < 64; ++i) turned |= ((bits >> i) & 1) << (63 - i);
    return turned;
}
inline uint64_t __umul64hi(uint64_t a, uint64_t b) {
    return uint64_t((unsigned __int128)a * b >> 64);
}
#include "ngsgpu/align/candidates.cuh"

int main() {
    constexpr int CELLS = 512, LIMIT = 160;
    static uint64_t set[CELLS], entry[CELLS];
    static uint32_t set_reads[CELLS];
    int count = 0, kept_count = 0;
    Candidates c = {set,   set_reads, entry, nullptr, nullptr,
                    nullptr, nullptr, CELLS,   LIMIT, &count,  &kept_count};
    // As many threads as find the limit not yet passed may insert: all cells, in the worst case.
    for (int i = 0; i < CELLS; ++i) {
        set[i] = uint64_t(i + 1) << 17;
        set_reads[i] = uint32_t(i + 1);
    }
    count = LIMIT;
    insert_entry(c, uint64_t(1000) << 17);
    printf("%d ", count);
    printf("%d ", int(read_cell(c, 1000) < CELLS));
    // And one that is not full takes what it has room for, and counts what it has not.
    memset(set, 255, sizeof set);
    count = 0;
    for (int i = 0; i < 3 * LIMIT; ++i) insert_entry(c, uint64_t(1 + i % (2 * LIMIT)) << 17);
    printf("%d %d\n", count, int(entry_read(entry[LIMIT - 1])));
}
