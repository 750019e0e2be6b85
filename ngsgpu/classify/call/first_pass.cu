// All queries together, before the first is called; the reference is evidence.py.
#include "ngsgpu/classify/query/batch.cuh"

namespace {

constexpr int kBins = 101;   // per cent of features that hit

}  // namespace

// Count queries whose best candidates are of one species, by it and by the per cent of their
// features that hit; SpeciesEvidence of evidence.py.
//
// Grid: any; block: kThreads, one thread a query. Bytes: 16 for each candidate that is as good as
// the best, and 4.
extern "C" __global__ void __launch_bounds__(kThreads)
    count_evidence(const Candidate* candidates, const int32_t* features, uint32_t queries, int most,
                   const int32_t* species, int min_hits, unsigned long long* bins) {
    const uint32_t step = gridDim.x * kThreads;
    for (uint32_t i = blockIdx.x * kThreads + threadIdx.x; i < queries; i += step) {
        const Candidate* row = candidates + int64_t(i) * most;
        const Candidate best = row[0];
        if (best.x < 0 || best.y < min_hits || species[best.x] < 0) continue;
        const int own = species[best.x];
        bool alone = true;
        for (int j = 1; j < most && alone; ++j) {
            const Candidate other = row[j];
            if (other.x < 0 || other.y < best.y) break;
            alone = species[other.x] == own;
        }
        if (!alone) continue;
        const int64_t share = int64_t(best.y) * 100 / max(features[i], 1);
        atomicAdd(bins + int64_t(own) * kBins + min(share, int64_t(100)), 1ull);
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
