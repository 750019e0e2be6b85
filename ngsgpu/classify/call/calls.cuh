// From candidates to calls, by one thread a query; the references are cpu.py and acceptance.py.
#pragma once

#include "ngsgpu/classify/call/gpu.structs"
#include "ngsgpu/classify/query/batch.cuh"

namespace {

constexpr int kPerMillion = 1000000;
constexpr int kSpecies = 4, kGenus = 6;  // indexes of the ranks
constexpr int kGenusAccepted = 1, kAccepted = 2;  // as in acceptance.py
constexpr int kTimesLess = 3;

__device__ __forceinline__ int common_rank(const Rules& rules, int one, int two, int lowest) {
    if (one < 0 || two < 0) return -1;
    const int32_t* first = rules.lineages + int64_t(one) * rules.ranks;
    const int32_t* second = rules.lineages + int64_t(two) * rules.ranks;
    for (int rank = max(lowest, 1); rank < int(rules.ranks); ++rank)
        if (first[rank] >= 0 && first[rank] == second[rank]) return rank;
    return -1;
}

// ``SketchParameters.expected_hits`` of params.py.
__device__ __forceinline__ int64_t expected_hits(const Rules& rules, int length1, int length2) {
    const int64_t less = rules.kmer - 1;
    const int64_t kmers = max(length1 - less, int64_t(0)) + max(length2 - less, int64_t(0));
    return max(kmers * rules.per_kmer - rules.chance, rules.chance);
}

__device__ __forceinline__ int64_t above_chance(const Rules& rules, int64_t hits) {
    return hits * rules.unit - rules.chance;
}

// Whether hits above chance are at least a fraction, in millionths, of what is expected.
__device__ __forceinline__ bool reaches(int64_t hits, int64_t expected, const Rules& rules,
                                        int64_t least) {
    return above_chance(rules, hits) * kPerMillion >= expected * least;
}

// Whether a candidate is near one with ``hits``.
__device__ __forceinline__ bool is_near(const Candidate& own, int64_t hits, const Rules& rules) {
    const int64_t margin =
        rules.near_hits + (hits <= rules.few_hits) - (hits >= rules.many_hits);
    return int64_t(own.y) * kPerMillion > (hits - margin) * rules.difference;
}

// The highest acceptance among the candidates near the best one; as ``weigh`` of acceptance.py.
__device__ __forceinline__ int acceptance_of(const Candidate* row, int most, const Rules& rules) {
    if (row[0].x < 0) return kAccepted;
    int acceptance = 0;
    for (int i = 0; i < most && acceptance < kAccepted; ++i) {
        const Candidate own = row[i];
        if (own.x < 0 || (i > 0 && !is_near(own, row[0].y, rules))) break;
        acceptance = max(acceptance, int(rules.level[own.x]));
    }
    return acceptance;
}

// ``most_reads_near`` of acceptance.py.
__device__ __forceinline__ int64_t most_reads_near(const Candidate* row, int most,
                                                   const Rules& rules) {
    int64_t found = -1;
    int first = -1;
    for (int i = 0; i < most && row[i].x >= 0; ++i) {
        const Candidate own = row[i];
        if (rules.level[own.x] < kAccepted) continue;
        if (first < 0) first = own.y;
        else if (!is_near(own, first, rules)) break;
        found = max(found, rules.reads[own.x]);
    }
    return found;
}

// Whether a candidate is of an accepted species that is not much rarer than another.
__device__ __forceinline__ bool stays(int target, const Rules& rules, int64_t most_reads) {
    const int64_t reads = rules.reads[target];
    return rules.level[target] == kAccepted && (reads < 0 || reads * kTimesLess >= most_reads);
}

__device__ __forceinline__ int genus_of(int target, const Rules& rules) {
    const int node = rules.target_node[target];
    return node < 0 ? -1 : rules.lineages[int64_t(node) * rules.ranks + kGenus];
}

// Which candidates of a query count, as ``weigh`` leaves them.
struct Counting {
    const u8* kept;  // null: all are
    int first;       // place of the best one that stays; -1: rejected species count as well
    int64_t most_reads;
    int genus;       // of the first
    int64_t enough;  // hits of candidates that are its rivals, if their species passes
};

__device__ Counting counting_of(const Candidate* row, int most, const Rules& rules, const u8* kept,
                                bool near) {
    Counting found = {kept, -1, -1, -1, 0};
    if (!near) return found;
    found.most_reads = most_reads_near(row, most, rules);
    for (int i = 0; i < most && row[i].x >= 0 && found.first < 0; ++i)
        if (stays(row[i].x, rules, found.most_reads)) found.first = i;
    if (found.first < 0) return found;  // a query without candidates
    const Candidate best = row[found.first];
    found.genus = genus_of(best.x, rules);
    found.enough = best.y - (best.y <= rules.few_hits) + (best.y >= rules.many_hits);
    return found;
}

__device__ bool counts(const Candidate& own, const Counting& which, const Rules& rules) {
    if (which.kept && !which.kept[own.x]) return false;
    if (which.first < 0 || stays(own.x, rules, which.most_reads)) return true;
    return own.y >= which.enough && rules.passes[own.x] && genus_of(own.x, rules) != which.genus;
}

// Place of the candidate that a call starts at, or -1.
__device__ int start_of(const Candidate* row, int most, const Counting& which,
                        const Rules& rules) {
    if (which.first >= 0 && counts(row[which.first], which, rules)) return which.first;
    for (int i = 0; i < most && row[i].x >= 0; ++i)
        if (counts(row[i], which, rules)) return i;
    return -1;
}

// ``_call`` of cpu.py: the call of a query, which starts at its candidate ``start``.
__device__ int call_query(const Candidate* row, int most, int start, int64_t expected,
                          const Rules& rules, const Counting& which) {
    const Candidate best = row[start];
    const int64_t hits = best.y;
    if (hits < rules.min_hits || !reaches(hits, expected, rules, rules.confidence)) return -1;
    const int node = rules.target_node[best.x];
    int rank = 0, call = int(rules.nodes) + best.x;
    if (rules.target_taxon) {
        call = rules.target_taxon[best.x];
        rank = rules.node_rank[call];
    }
    const int last = rules.best_alone ? 0 : most;
    for (int i = 0; i < last; ++i) {
        const Candidate other = row[i];
        if (other.x < 0 || !is_near(other, hits, rules)) break;
        if (i == start || !counts(other, which, rules)) continue;
        rank = common_rank(rules, node, rules.target_node[other.x], rank);
        if (rank < 0 || rank > rules.highest) return -1;
        call = rules.lineages[int64_t(node) * rules.ranks + rank];
    }
    int64_t least = rules.species_confidence;
    if (rules.least) least = max(least, int64_t(rules.least[best.x]));
    if (rank <= kSpecies && !reaches(hits, expected, rules, least)) {
        rank = common_rank(rules, node, node, kSpecies + 1);
        if (rank < 0) return -1;
        call = rules.lineages[int64_t(node) * rules.ranks + rank];
    }
    return rank <= rules.highest ? call : -1;
}

// ``raise_rank`` of acceptance.py: a doubtful call above the species or genus, or none.
__device__ int raise_call_rank(int call, int acceptance, int64_t hits, int64_t expected,
                         const Rules& rules) {
    const int rejected = acceptance == kGenusAccepted ? kSpecies : kGenus;
    if (!reaches(hits, expected, rules, rules.doubtful_confidence)) return -1;
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
