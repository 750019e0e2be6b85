// All queries together, before the first is called; the reference is evidence.py.
#include "ngsgpu/classify/call/calls.cuh"

namespace {

constexpr int kShares = 201, kOwn = kShares, kShared = kShares + 1, kColumns = kShares + 2;

}  // namespace

// Count queries by species and fraction of shared k-mers; SpeciesEvidence of evidence.py.
//
// Grid: any; block: kThreads, one thread a query. Bytes: 16 for each candidate near the best, and
// 8.
extern "C" __global__ void __launch_bounds__(kThreads)
    count_evidence(const Candidate* candidates, const int32_t* sizes, uint32_t queries, int most,
                   const int32_t* species, const Rules* rules_in, unsigned long long* bins) {
    const Rules rules = *rules_in;
    const uint32_t step = gridDim.x * kThreads;
    for (uint32_t i = blockIdx.x * kThreads + threadIdx.x; i < queries; i += step) {
        const Candidate* row = candidates + int64_t(i) * most;
        const Candidate best = row[0];
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
        if (alone && mine >= 0) {
            const int64_t expected =
                expected_hits(rules, sizes[queries + i], sizes[2 * queries + i]);
            const int64_t share = above_chance(rules, best.y) * (kShares - 1) / expected;
            atomicAdd(bins + int64_t(mine) * kColumns + min(share, int64_t(kShares - 1)), 1ull);
        }
        if (best.y < rules.min_hits) continue;
        if (is_own) {
            if (mine >= 0) atomicAdd(bins + int64_t(mine) * kColumns + kOwn, 1ull);
            continue;
        }
        for (int j = 0; j < most; ++j) {
            const Candidate other = row[j];
            if (other.x < 0 || (j > 0 && !is_near(other, best.y, rules))) break;
            const int own = species[other.x];
            bool is_first = own >= 0;
            for (int before = 0; before < j && is_first; ++before)
                is_first = species[row[before].x] != own;
            if (is_first) atomicAdd(bins + int64_t(own) * kColumns + kShared, 1ull);
        }
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
