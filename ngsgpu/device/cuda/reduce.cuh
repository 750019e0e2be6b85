// Warp reductions by CUDA's names for GPUs before compute capability 8.0, whose compiler has none.
// All 32 lanes call them, with the full mask.
#pragma once

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
#define NGSGPU_REDUCTION(NAME, TYPE, COMBINED)                          \
    __device__ __forceinline__ TYPE NAME(unsigned mask, TYPE a) {       \
        for (int step = 16; step > 0; step >>= 1) {                     \
            const TYPE b = __shfl_xor_sync(mask, a, step);              \
            a = COMBINED;                                               \
        }                                                               \
        return a;                                                       \
    }
NGSGPU_REDUCTION(__reduce_add_sync, unsigned, a + b)
NGSGPU_REDUCTION(__reduce_add_sync, int, a + b)
NGSGPU_REDUCTION(__reduce_min_sync, unsigned, a < b ? a : b)
NGSGPU_REDUCTION(__reduce_min_sync, int, a < b ? a : b)
NGSGPU_REDUCTION(__reduce_max_sync, unsigned, a < b ? b : a)
NGSGPU_REDUCTION(__reduce_max_sync, int, a < b ? b : a)
NGSGPU_REDUCTION(__reduce_or_sync, unsigned, a | b)
#undef NGSGPU_REDUCTION
#endif
