// Where things are that come one after the other.
#pragma once

#include "ngsgpu/classify/sketch/sketch.cuh"

namespace {

// Index of the last element of ``starts`` (ascending, count of them) that is at most ``value``.
template <class T>
__device__ __forceinline__ int64_t last_not_above(const T* starts, int64_t count, T value) {
    int64_t low = 0, high = count;
    while (high - low > 1) {
        const int64_t middle = (low + high) / 2;
        if (starts[middle] <= value) low = middle;
        else high = middle;
    }
    return low;
}

}  // namespace
