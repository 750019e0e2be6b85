// All queries together, before the first is called; the reference is evidence.py.
#include "ngsgpu/classify/call/calls.cuh"

namespace {

constexpr int kShares = 201, kOwn = kShares, kShared = kShares + 1, kSharedWith = kShares + 2;
constexpr int kPartners = 32, kColumns = kSharedWith + kPartners;

// As in few_features.py.
constexpr int kLeastHits = 2, kExact = 16, kOfExact = kExact * (kExact - 1) / 2;
constexpr int64_t kNever = int64_t(1) << 40;  // as in params/calls.py
constexpr int kSteps = 20, kFirstGroup = 24, kGroups = 4;

__device__ __forceinline__ int class_of(int features, int hits) {
    if (features <= kExact) {
        const int most = max(features, kLeastHits);
        return (most - 2) * (most - 1) / 2 + min(hits, most) - kLeastHits;
    }
    int group = 0;
    while (group < kGroups - 1 && features > kFirstGroup << group) ++group;
    const int64_t step = min(int64_t(hits) * kSteps / features, int64_t(kSteps - 1));
    return kOfExact + kSteps * group + int(step);
}

// Whether no candidate before one is from its species, which it has.
__device__ __forceinline__ bool is_first(const Candidate* row, const int32_t* species, int place) {
    const int own = species[row[place].x];
    for (int before = 0; before < place; ++before)
        if (species[row[before].x] == own) return false;
    return own >= 0;
}

// Add the values of a warp's threads to ``sum``.
__device__ __forceinline__ void add_of_warp(unsigned long long* sum, int64_t value) {
    for (int step = 16; step > 0; step /= 2) value += __shfl_down_sync(WARP, value, step);
    if ((threadIdx.x & 31) == 0) atomicAdd(sum, static_cast<unsigned long long>(value));
}

}  // namespace

// Count queries by species and fraction of shared k-mers; SpeciesEvidence of evidence.py.
//
// ``looked_up``: features of all queries, and expected hits.
//
// Grid: any; block: kThreads, one thread a query. Bytes: 16 for each candidate near the best, and
// 20.
extern "C" __global__ void __launch_bounds__(kThreads)
    count_evidence(const Candidate* candidates, const int32_t* sizes, uint32_t queries, int most,
                   const int32_t* species, const Rules* rules_in, unsigned long long* bins,
                   unsigned long long* looked_up) {
    Rules rules = *rules_in;
    const bool is_thin = rules.chance < rules.unit;
    if (is_thin) {
        rules.near_hits = 1;
        rules.few_hits = 0;
        rules.many_hits = kNever;
    }
    const uint32_t step = gridDim.x * kThreads;
    int64_t features = 0, all_expected = 0;
    for (uint32_t i = blockIdx.x * kThreads + threadIdx.x; i < queries; i += step) {
        const Candidate* row = candidates + int64_t(i) * most;
        const Candidate best = row[0];
        const int64_t expected = expected_hits(rules, sizes[queries + i], sizes[2 * queries + i]);
        features += sizes[i];
        all_expected += expected + rules.chance;
        if (best.x < 0 || best.y < rules.near_hits) continue;
        const int mine = species[best.x];
        bool alone = true, is_own = true;
        for (int j = 1; j < most && is_own; ++j) {
            const Candidate other = row[j];
            if (other.x < 0 || !is_near(other, best.y, rules)) break;
            if (species[other.x] == mine) continue;
            alone = other.y < best.y;
            is_own = false;
        }
        if (alone && mine >= 0 && is_thin) {
            if (best.y >= kLeastHits)
                atomicAdd(bins + int64_t(mine) * kColumns + class_of(sizes[i], best.y), 1ull);
        } else if (alone && mine >= 0) {
            const int64_t share = above_chance(rules, best.y) * (kShares - 1) / expected;
            atomicAdd(bins + int64_t(mine) * kColumns + min(share, int64_t(kShares - 1)), 1ull);
        }
        if (best.y < rules.min_hits) continue;
        if (is_own) {
            if (mine >= 0) atomicAdd(bins + int64_t(mine) * kColumns + kOwn, 1ull);
            continue;
        }
        int near = 1;
        while (near < most && row[near].x >= 0 && is_near(row[near], best.y, rules)) ++near;
        for (int j = 0; j < near; ++j) {
            if (!is_first(row, species, j)) continue;
            unsigned long long* own = bins + int64_t(species[row[j].x]) * kColumns;
            atomicAdd(own + kShared, 1ull);
            for (int other = 0; other < near; ++other)
                if (other != j && is_first(row, species, other))
                    atomicAdd(own + kSharedWith + species[row[other].x] % kPartners, 1ull);
        }
    }
    add_of_warp(looked_up, features);
    add_of_warp(looked_up + 1, all_expected);
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
