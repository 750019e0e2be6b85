// All queries together, before the first is called; the references are classes.py and coverage.py.
#include "ngsgpu/classify/call/calls.cuh"

namespace {

constexpr int kWidth = 1 + kMostSources;  // words of a class
constexpr int kHitBits = 7;

}  // namespace

// Find the class of each query, count queries that one source explains, and mark their places.
//
// ``words``: as in classes.py, behind the last source -1; ``hashes``: of the words, 0 for queries
// that say nothing. ``ambiguous``: queries whose list is cut off amid equals.
//
// Grid: any; block: kThreads, one thread a query. Bytes: 16 a candidate, 84 a query.
extern "C" __global__ void __launch_bounds__(kThreads)
    find_classes(const Candidate* candidates, const int32_t* sizes, uint32_t queries, int most,
                 const int32_t* source_of_target, const int64_t* first_place, int per_place,
                 int model_step, const int32_t* least_of, int64_t* words,
                 unsigned long long* hashes, unsigned long long* own, u8* marks,
                 unsigned long long* ambiguous) {
    const uint32_t step = gridDim.x * kThreads;
    for (uint32_t i = blockIdx.x * kThreads + threadIdx.x; i < queries; i += step) {
        const Candidate* row = candidates + int64_t(i) * most;
        const Candidate best = row[0];
        const int features = sizes[i];
        int64_t own_words[kWidth];
        for (int j = 0; j < kWidth; ++j) own_words[j] = -1;
        unsigned long long hash = 0;
        const int top = scaled(best.y, features);
        const Candidate last = row[most - 1];
        const bool says = best.x >= 0 && best.y >= kLeastHits;
        if (says && last.x >= 0 &&
            scaled(last.y, features) >= max(kLeastHits, top - model_step)) {
            atomicAdd(ambiguous, 1ull);
        } else if (says) {
            const int least = max(kLeastHits, top - kSubstitutions * model_step);
            own_words[0] = min(features, kLevels);
            int count = 0;
            for (int j = 0; j < min(most, kMostSources) && row[j].x >= 0; ++j) {
                const int hits = scaled(row[j].y, features);
                if (j > 0 && hits < least) break;
                const int64_t word = int64_t(source_of_target[row[j].x]) << kHitBits | hits;
                int place = count;
                for (; place > 0; --place) {
                    const int64_t before = own_words[place];
                    const int had = int(before & 127);
                    if (had > hits || (had == hits && before <= word)) break;
                    own_words[place + 1] = before;
                }
                own_words[place + 1] = word;
                ++count;
            }
            for (int j = 0; j <= count; ++j) {
                hash = (hash ^ (unsigned long long)(own_words[j])) * 0x9E3779B97F4A7C15ull;
                hash ^= hash >> 29;
                hash *= 0xBF58476D1CE4E5B9ull;
                hash ^= hash >> 32;
            }
            if (hash == 0) hash = 1;
            const int64_t first = own_words[1], second = own_words[2];
            const int hits = int(first & 127);
            if (hits >= least_of[own_words[0]] &&
                !(second >= 0 && int(second & 127) > hits - model_step)) {
                atomicAdd(own + (first >> kHitBits), 1ull);
                marks[first_place[best.x] + best.z / per_place] = 1;
            }
        }
        hashes[i] = hash;
        for (int j = 0; j < kWidth; ++j) words[int64_t(i) * kWidth + j] = own_words[j];
    }
}

// Mark the windows in the ranges of candidates; CoverageCounter of coverage.py.
//
// Grid: any; block: kThreads, one thread per query. Bytes: 16 per candidate, 1 per window.
extern "C" __global__ void __launch_bounds__(kThreads)
    mark_covered(const Candidate* candidates, uint32_t queries, int most, int min_hits,
                 const int64_t* first_window, u8* covered) {
    const uint32_t step = gridDim.x * kThreads;
    for (uint32_t i = blockIdx.x * kThreads + threadIdx.x; i < queries; i += step) {
        for (int j = 0; j < most; ++j) {
            const Candidate own = candidates[int64_t(i) * most + j];
            if (own.x < 0) break;
            if (own.y < min_hits) continue;
            for (int window = own.z; window <= own.w; ++window)
                covered[first_window[own.x] + window] = 1;
        }
    }
}
