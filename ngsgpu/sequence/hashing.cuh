// The hash functions of ngsgpu/sequence/hashing.py.
#pragma once

#ifdef __CUDACC_RTC__
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef unsigned long long uint64_t;
typedef short int16_t;
typedef int int32_t;
typedef long long int64_t;
#else
#include <cstdint>
#endif

__device__ __forceinline__ uint64_t mix64(uint64_t word) {
    word ^= word >> 33;
    word *= 0xFF51AFD7ED558CCDull;
    word ^= word >> 33;
    word *= 0xC4CEB9FE1A85EC53ull;
    return word ^ (word >> 33);
}

__device__ __forceinline__ uint64_t unmix64(uint64_t word) {
    word ^= word >> 33;
    word *= 0x9CB4B2F8129337DBull;
    word ^= word >> 33;
    word *= 0x4F74430C22A54005ull;
    return word ^ (word >> 33);
}

__device__ __forceinline__ uint32_t mix32(uint32_t word) {
    word = ((word >> 16) ^ word) * 0x45D9F3Bu;
    word = ((word >> 16) ^ word) * 0x45D9F3Bu;
    return (word >> 16) ^ word;
}
