// From candidates to calls, by one thread a query; the references are cpu.py and evidence.py.
#pragma once

#include "ngsgpu/classify/call/gpu.structs"
#include "ngsgpu/classify/query/batch.cuh"

namespace {

constexpr int kPerMillion = 1000000;
constexpr int kSpecies = 4, kGenus = 6;  // indexes of the ranks
constexpr int kGenusAccepted = 1, kAccepted = 2;  // as in evidence.py

__device__ __forceinline__ int common_rank(const Rules& rules, int one, int two, int lowest) {
    if (one < 0 || two < 0) return -1;
    const int32_t* first = rules.lineages + int64_t(one) * rules.ranks;
    const int32_t* second = rules.lineages + int64_t(two) * rules.ranks;
    for (int rank = max(lowest, 1); rank < int(rules.ranks); ++rank)
        if (first[rank] >= 0 && first[rank] == second[rank]) return rank;
    return -1;
}

// Whether a candidate counts: not dropped, and of an accepted species if only those count.
__device__ __forceinline__ bool counts(int target, const u8* kept, const u8* accepted, bool near) {
    return (!kept || kept[target]) && (!near || accepted[target] == kAccepted);
}

// The highest acceptance among the candidates near the best one; as ``_weigh`` of evidence.py.
__device__ __forceinline__ int acceptance_of(const Candidate* row, int most, const u8* accepted,
                                         const Rules& rules) {
    if (row[0].x < 0) return kAccepted;
    const int64_t threshold = (row[0].y - rules.min_hits) * rules.difference;
    int acceptance = 0;
    for (int i = 0; i < most && acceptance < kAccepted; ++i) {
        const Candidate own = row[i];
        if (own.x < 0 || (i > 0 && int64_t(own.y) * kPerMillion <= threshold)) break;
        acceptance = max(acceptance, int(accepted[own.x]));
    }
    return acceptance;
}

// ``_call`` of cpu.py: the call of a query whose candidate ``first`` is the best that counts.
__device__ int call_query(const Candidate* row, int most, int first, int64_t features,
                          const Rules& rules, const u8* kept, const u8* accepted, bool near) {
    const Candidate best = row[first];
    const int64_t hits = best.y;
    if (hits < rules.min_hits || hits * kPerMillion < features * rules.confidence) return -1;
    const int node = rules.target_node[best.x];
    int rank = 0, call = int(rules.nodes) + best.x;
    if (rules.target_taxon) {
        call = rules.target_taxon[best.x];
        rank = rules.node_rank[call];
    }
    const int64_t threshold = (hits - rules.min_hits) * rules.difference;
    const int last = rules.best_alone ? first + 1 : most;
    for (int i = first + 1; i < last; ++i) {
        const Candidate other = row[i];
        if (other.x < 0 || int64_t(other.y) * kPerMillion <= threshold) break;
        if (!counts(other.x, kept, accepted, near)) continue;
        rank = common_rank(rules, node, rules.target_node[other.x], rank);
        if (rank < 0 || rank > rules.highest) return -1;
        call = rules.lineages[int64_t(node) * rules.ranks + rank];
    }
    if (rank <= kSpecies && hits * kPerMillion < features * rules.species_confidence) {
        rank = common_rank(rules, node, node, kSpecies + 1);
        if (rank < 0) return -1;
        call = rules.lineages[int64_t(node) * rules.ranks + rank];
    }
    return rank <= rules.highest ? call : -1;
}

// ``raise_rank`` of evidence.py: a doubtful call above the species or genus, or none.
__device__ int raise_call_rank(int call, int acceptance, int64_t hits, int64_t features,
                         const Rules& rules) {
    const int rejected = acceptance == kGenusAccepted ? kSpecies : kGenus;
    if (hits * kPerMillion < features * rules.doubtful_confidence) return -1;
    const bool is_sequence = call >= rules.nodes;
    const int node = is_sequence ? rules.target_node[call - rules.nodes] : call;
    if (node < 0) return -1;
    const int32_t* lineage = rules.lineages + int64_t(node) * rules.ranks;
    int lowest = 0;
    while (lowest < rules.ranks && lineage[lowest] < 0) ++lowest;
    if (lowest == rules.ranks) lowest = 0;
    if (!is_sequence && lowest > rejected) return call;
    for (int rank = rejected + 1; rank <= rules.highest; ++rank)
        if (lineage[rank] >= 0) return lineage[rank];
    return -1;
}

}  // namespace
