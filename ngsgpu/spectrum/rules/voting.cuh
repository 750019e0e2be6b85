// The corrections of the papers; the reference is ngsgpu/spectrum/rules/voting.py.
#pragma once
#include "ngsgpu/spectrum/kmers/reads.cuh"

namespace {

// Counts the votes of a k-mer that is not solid; k-mers with unknown bases have none.
__device__ __noinline__ void vote(const Solid& solid_in, int k, const Space& space_in, int start,
                                  int mutations) {
    const Solid solid = solid_in;
    const Space space = space_in;
    int32_t* votes = space.votes();
    Kmer kmer(k);
    for (int i = start; i < start + k; ++i) {
        if (space.original(i) == kUnknown) return;
        kmer.add(space.original(i));
    }
    for (int i = 0; i < k; ++i) {
        for (int first = 1; first < 4; ++first) {
            const uint64_t one = kmer.forward ^ (uint64_t(first) << (kmer.top - 2 * i));
            const uint64_t back = kmer.backward ^ (uint64_t(first) << (2 * i));
            int32_t& own = votes[4 * (start + i) + (space.original(start + i) ^ first)];
            if (mutations == 1) {
                own += level_of(solid, one < back ? one : back) >= kSolid;
                continue;
            }
            for (int j = i + 1; j < k; ++j) {
                for (int second = 1; second < 4; ++second) {
                    const uint64_t a = one ^ (uint64_t(second) << (kmer.top - 2 * j));
                    const uint64_t b = back ^ (uint64_t(second) << (2 * j));
                    if (level_of(solid, a < b ? a : b) < kSolid) continue;
                    ++own;
                    ++votes[4 * (start + j) + (space.original(start + j) ^ second)];
                }
            }
        }
    }
}

// Corrects a loaded read whose levels are known; returns the number of solid k-mers then.
__device__ __noinline__ int vote_read(const Solid& solid, int k, int mutations, const Space& space,
                                      int length) {
    const int kmers = length - k + 1;
    int32_t* votes = space.votes();
    int found = 0;
    for (int most = 1; most <= mutations; ++most) {
        for (int i = 0; i < 4 * length; ++i) votes[i] = 0;
        for (int start = 0; start < kmers; ++start)
            if (space.before(start) < kSolid) vote(solid, k, space, start, most);
        for (int i = 0; i < length; ++i) space.set_code(i, space.original(i));
        for (int change = 0; change < most; ++change) {
            int place = 0;
            for (int i = 1; i < 4 * length; ++i)
                if (votes[i] > votes[place]) place = i;
            if (votes[place] == 0) break;
            space.set_code(place >> 2, place & 3);
            for (int base = 0; base < 4; ++base) votes[(place & ~3) + base] = 0;
        }
        found = find_levels(solid, k, space.codes(), 0, length, space.levels());
        if (found == kmers) break;
    }
    return found;
}

// The same by trying every change of one base, as often as ``mutations``; ``found`` is the number of
// solid k-mers in the read.
__device__ __noinline__ int try_all(const Solid& solid, int k, int mutations, const Space& space,
                                    int length, int found) {
    const int kmers = length - k + 1;
    const BaseView codes = space.codes();
    for (int change = 0; change < mutations; ++change) {
        int best = found, place = -1, best_base = 0;
        for (int i = 0; i < length; ++i) {
            const int own = codes[i];
            // Only the k-mers that hold the base change.
            const int first = max(0, i - k + 1), last = min(i + k, length);
            int outside = found;
            for (int j = first; j < last - k + 1; ++j) outside -= space.level(j) >= kSolid;
            for (int base = 0; base < 4; ++base) {
                if (base == own) continue;
                space.set_code(i, base);
                const int now = outside + find_levels(solid, k, codes, first, last, space.spare());
                if (now <= best) continue;
                best = now;
                place = i;
                best_base = base;
            }
            space.set_code(i, own);
        }
        if (place < 0) break;
        space.set_code(place, best_base);
        found = find_levels(solid, k, codes, 0, length, space.levels());
        if (found == kmers) break;
    }
    return found;
}

}  // namespace
