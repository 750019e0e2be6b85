// Binary search, for whatever is sorted.
#pragma once

namespace {

// The first of the places [low, high) that does not come before what is searched for, or high.
// All places that do, by ``is_before(place)``, precede those that do not.
template <class Place, class IsBefore>
__device__ __forceinline__ Place first_not_before(Place low, Place high, IsBefore is_before) {
    while (low < high) {
        const Place middle = (low + high) / 2;
        if (is_before(middle)) low = middle + 1;
        else high = middle;
    }
    return low;
}

}  // namespace
