// From candidates to calls, by one thread a query; the references are cpu.py and posterior.py.
#pragma once

#include "ngsgpu/classify/call/gpu.structs"
#include "ngsgpu/classify/query/batch.cuh"

namespace {

constexpr int kPerMillion = 1000000;
constexpr int kGenus = 6, kFamily = 10;  // indexes of the ranks

// As in likelihood.py, classes.py and posterior.py.
constexpr int kLevels = 100, kLeastHits = 2, kStrains = 7, kComponents = 14;
constexpr int kOctave = 256, kOneBits = 30, kSubstitutions = 4, kMostSources = 8, kKinds = 3;
constexpr int kMostCandidates = 64;  // of a query
constexpr int kNever = -(1 << 24);

__device__ __forceinline__ int common_rank(const Rules& rules, int one, int two, int lowest) {
    if (one < 0 || two < 0) return -1;
    const int32_t* first = rules.lineages + int64_t(one) * rules.ranks;
    const int32_t* second = rules.lineages + int64_t(two) * rules.ranks;
    for (int rank = max(lowest, 1); rank < int(rules.ranks); ++rank)
        if (first[rank] >= 0 && first[rank] == second[rank]) return rank;
    return -1;
}

// Place of the best candidate that counts, or -1. ``kept``: null if all do.
__device__ int start_of(const Candidate* row, int most, const u8* kept) {
    for (int i = 0; i < most && row[i].x >= 0; ++i)
        if (!kept || kept[row[i].x]) return i;
    return -1;
}

// ``_call`` of cpu.py: the call of a query by MetaCache's rule, from its candidate ``start`` on.
__device__ int call_query(const Candidate* row, int most, int start, const Rules& rules,
                          const u8* kept) {
    const Candidate best = row[start];
    const int64_t hits = best.y;
    if (hits < rules.min_hits) return -1;
    const int node = rules.target_node[best.x];
    int rank = 0, call = int(rules.nodes) + best.x;
    if (rules.lowest > 0) {
        call = rules.target_taxon[best.x];
        rank = rules.node_rank[call];
    }
    const int64_t threshold = (hits - rules.min_hits) * rules.difference;
    const int last = rules.best_alone ? 0 : most;
    for (int i = start + 1; i < last; ++i) {
        const Candidate other = row[i];
        if (other.x < 0 || int64_t(other.y) * kPerMillion <= threshold) break;
        if (kept && !kept[other.x]) continue;
        rank = common_rank(rules, node, rules.target_node[other.x], rank);
        if (rank < 0 || rank > rules.highest) return -1;
        call = rules.lineages[int64_t(node) * rules.ranks + rank];
    }
    return rank <= rules.highest ? call : -1;
}

// ``scaled`` of classes.py.
__device__ __forceinline__ int scaled(int64_t hits, int64_t features) {
    int64_t found = hits;
    if (features > kLevels) {
        found = max((hits * kLevels + features / 2) / features, min(hits, int64_t(kLeastHits)));
        features = kLevels;
    }
    return int(min(found, features));
}

__device__ __forceinline__ int64_t power_of(const Rules& rules, int64_t less) {
    const int64_t octaves = less / kOctave;
    return octaves < 31 ? rules.powers[less % kOctave] >> octaves : 0;
}

// ``_in_common`` of posterior.py.
__device__ int common_taxon(const Candidate* row, int most, int features, int least,
                            const Rules& rules) {
    const int node = rules.target_node[row[0].x];
    if (node < 0) return -1;
    const int32_t* own = rules.lineages + int64_t(node) * rules.ranks;
    int rank = max(1, int(rules.lowest));
    for (int j = 0; j < most && row[j].x >= 0 && scaled(row[j].y, features) >= least; ++j) {
        const int other = rules.target_node[row[j].x];
        const int32_t* lineage = rules.lineages + int64_t(max(other, 0)) * rules.ranks;
        while (rank < rules.ranks && (own[rank] < 0 || other < 0 || own[rank] != lineage[rank]))
            ++rank;
    }
    return rank < rules.ranks ? own[rank] : -1;
}

// ``call_by_model`` of posterior.py; ``start`` receives the candidate that the call starts at.
__device__ int call_by_model(const Candidate* row, int most, int features, const Rules& rules,
                             int* start) {
    *start = -1;
    if (row[0].x < 0) return -1;
    *start = 0;
    const int top = scaled(row[0].y, features);
    if (top < kLeastHits) return -1;
    const Candidate last = row[most - 1];
    const int near = max(kLeastHits, top - int(rules.step));
    if (last.x >= 0 && scaled(last.y, features) >= near)
        return common_taxon(row, most, features, near, rules);
    const int64_t level = min(features, kLevels);
    const int32_t* table = rules.log2 + level * (kLevels + 1) * (kComponents + 1);
    const int least = max(kLeastHits, top - kSubstitutions * int(rules.step));
    const int64_t none = rules.unknown + table[top * (kComponents + 1) + kComponents];
    int64_t highest = none;
    int count = 0;
    int32_t rows[kMostCandidates];
    for (; count < most && row[count].x >= 0; ++count) {
        const int hits = scaled(row[count].y, features);
        if (count > 0 && hits < least) break;
        rows[count] = rules.row[rules.source_of_target[row[count].x]];
        if (rows[count] < 0) continue;
        const int32_t* weights = rules.weights + int64_t(rows[count]) * kComponents;
        for (int k = 0; k < kComponents; ++k)
            highest = max(highest, int64_t(weights[k]) + table[hits * (kComponents + 1) + k]);
    }
    int64_t total = power_of(rules, highest - none), heaviest = 0;
    int64_t mass[kMostCandidates][kKinds];
    int kind = 0;
    for (int j = 0; j < count; ++j) {
        mass[j][0] = mass[j][1] = mass[j][2] = 0;
        if (rows[j] < 0) continue;
        const int hits = scaled(row[j].y, features);
        const int32_t* weights = rules.weights + int64_t(rows[j]) * kComponents;
        const int genus = kStrains + rules.genus[rows[j]];
        for (int k = 0; k < kComponents; ++k)
            if (weights[k] > kNever)
                mass[j][k < kStrains ? 0 : k < genus ? 1 : 2] += power_of(
                    rules, highest - weights[k] - table[hits * (kComponents + 1) + k]);
        for (int of = 0; of < kKinds; ++of) {
            total += mass[j][of];
            if (mass[j][of] > heaviest) {
                *start = j;
                kind = of;
                heaviest = mass[j][of];
            }
        }
    }
    const int64_t enough = total * rules.posterior;
    const int first = *start;
    const int64_t own = rules.target_taxon[row[first].x];
    if (kind == 0 && count > 0 && mass[first][0] * kPerMillion >= enough) return int(own);
    const int node = rules.target_node[row[first].x];
    if (node < 0) return -1;
    const int32_t* lineage = rules.lineages + int64_t(node) * rules.ranks;
    int rank = own < rules.nodes ? rules.node_rank[own] + 1 : 1;
    if (own < rules.nodes && rank > kGenus) --rank;
    for (; rank < rules.ranks; ++rank) {
        if (lineage[rank] < 0) continue;
        int64_t held = 0;
        for (int j = 0; j < count; ++j) {
            const int other = rules.target_node[row[j].x];
            if (other < 0 || rules.lineages[int64_t(other) * rules.ranks + rank] != lineage[rank])
                continue;
            held += mass[j][0];
            if (rank >= kGenus) held += mass[j][1];
            if (rank >= kFamily) held += mass[j][2];
        }
        if (held * kPerMillion >= enough) return lineage[rank];
    }
    return -1;
}

}  // namespace
