// Where an anchor is shifted against its consensus; see ngsgpu/align/gap.py.
#pragma once
#include "ngsgpu/align/msa.cuh"

constexpr int MAX_SHIFT = 6, MIN_GAIN = 4, SURE_GAIN = 8, BESIDE = 8, MIN_COVERED = 2;

// The positions that are shifted against the consensus, and by how many columns; 0 if none are.
struct Gap {
    int first, end, shift;
    // Whether a position is shifted, or so near to where the shift begins or ends that it may be.
    __device__ bool has(int position) const {
        return shift && position >= first - BESIDE && position < end + BESIDE;
    }
};

__device__ __forceinline__ bool covered(const Msa& msa, int column) {
    const bool inside = column >= msa.margin && column < msa.margin + msa.length;
    return msa.begins[column] - int(inside) >= MIN_COVERED;
}

__device__ __forceinline__ int differs(const Msa& msa, int position, int shift) {
    const int column = position + shift + msa.margin;
    if (msa.anchor[position] != msa.consensus[column]) return 1;
    return shift != 0 && !covered(msa, column);
}

// Called by the block together, after summarise_msa; ``best`` is in shared memory.
__device__ Gap find_gap(const Rules& rules, const Msa& msa, unsigned long long* best, int thread,
                        int threads) {
    if (rules.variant_reads == 0) return Gap{0, 0, 0};
    int mismatches = 0;
    for (int first = 0; first < msa.length; first += threads) {
        const int position = first + thread;
        mismatches += __syncthreads_count(position < msa.length && differs(msa, position, 0));
    }
    if (mismatches < MIN_GAIN) return Gap{0, 0, 0};
    if (thread == 0) *best = 0;
    __syncthreads();
    if (thread < 2 * MAX_SHIFT) {
        const int shift = thread < MAX_SHIFT ? thread - MAX_SHIFT : thread - MAX_SHIFT + 1;
        int most = MIN_GAIN - 1, gain = 0, begin = 0;
        unsigned long long own = 0;
        const int length = abs(shift) <= msa.margin ? msa.length : 0;
#pragma unroll 1
        for (int position = 0; position < length; ++position) {
            gain += differs(msa, position, 0) - differs(msa, position, shift);
            if (gain > most) {
                most = gain;
                own = (uint64_t(gain) << 40) | (uint64_t(2 * MAX_SHIFT - thread) << 32) |
                      (uint64_t(begin) << 16) | uint64_t(position + 1);
            }
            if (gain < 0) {
                gain = 0;
                begin = position + 1;
            }
        }
        if (own) atomicMax(best, own);
    }
    __syncthreads();
    const unsigned long long found = *best;
    const int gain = int(found >> 40);
    if (!found || (gain < SURE_GAIN && 2 * gain < mismatches)) return Gap{0, 0, 0};
    const int order = 2 * MAX_SHIFT - int((found >> 32) & 0xFF);
    return Gap{int((found >> 16) & 0xFFFF), int(found & 0xFFFF),
               order < MAX_SHIFT ? order - MAX_SHIFT : order - MAX_SHIFT + 1};
}
