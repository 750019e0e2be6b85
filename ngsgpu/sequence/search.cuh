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

// The last of the places [low, high) for which ``holds(place)``, which it does for ``low`` and for
// none after one for which it does not.
template <class Place, class Holds>
__device__ __forceinline__ Place last_that(Place low, Place high, Holds holds) {
    while (high - low > 1) {
        const Place middle = (low + high) / 2;
        if (holds(middle)) low = middle;
        else high = middle;
    }
    return low;
}

}  // namespace
