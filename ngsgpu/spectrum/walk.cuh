// Ways through a read in which all k-mers are solid, and the cheapest of them; the reference is
// ngsgpu/spectrum/walk.py.
#pragma once
#include "ngsgpu/spectrum/reads.cuh"

namespace {

constexpr int kNone = 1 << 30;  // more than any cost
constexpr int kRead = 0, kEnd = 5;

enum Ended { COMPLETE, PARTIAL, AMBIGUOUS };

// How a search ended, the number of bases in ``best``, and on how many of them all good ways agree.
struct Way {
    int ended, reach, agreed;
};

// Changes among the last bases.
__device__ __forceinline__ int changes_in(uint64_t history, int window) {
    return __popcll(history & ((1ull << window) - 1));
}

// Finds the best way from the solid k-mer at ``start``; bases up to ``last_change`` may change,
// those whose k-mer is solid only if their quality is below ``kept``.
//
// The last node of the way is in registers; those in front of it are in ``space.nodes``.
__device__ __noinline__ Way find_way(const Solid& solid_in, const SearchRules& rules_in,
                                     const Space& space_in, int length, int start,
                                     int last_change, int kept) {
    const Solid solid = solid_in;
    const SearchRules rules = rules_in;
    const Space space = space_in;
    const int k = rules.kmer, first = start + k, stop = min(length, last_change + k);
    Kmer kmer(k);
    for (int i = start; i < first; ++i) kmer.add(space.code(i));
    Node now = {kmer.forward, kmer.backward, 0, 0, first, 0, 0, 0, 0};
    int depth = 0, reach = 0, nodes = 0, best = kNone, agreed = length;
    while (depth >= 0) {
        const int at = first + depth;
        const bool ends = at == stop;
        if (ends || now.option == kEnd) {
            bool better = best == kNone && depth > reach;
            if (ends) {
                int same = 0;
                while (same < depth && best != kNone &&
                       space.nodes[same].base == space.best(same))
                    ++same;
                better = now.cost < best;
                if (!better || best < now.cost + rules.margin) agreed = min(agreed, same);
                else agreed = length;
                if (better) best = now.cost;
            }
            if (better) {
                reach = depth;
                for (int i = 0; i < depth; ++i) {
                    space.best(i) = space.nodes[i].base;
                    space.best_level(i) = space.nodes[i].level;
                }
            }
            if (--depth >= 0) now = space.nodes[depth];
            continue;
        }
        const int option = now.option++;
        const int original = space.code(at);
        int base = original, cost = now.cost;
        uint64_t changed = 0;
        if (option == kRead) {
            if (original == kUnknown) continue;
        } else {
            base = option - 1;
            if (base == original) continue;
            cost += rules.change_cost + space.score(at);
            changed = original != kUnknown;
            if (at > last_change || (now.own >= kSolid && space.score(at) >= kept) ||
                (best != kNone && cost >= best + rules.margin) ||
                (changed && changes_in(now.history, rules.window - 1) >= rules.max_changes)) {
                now.option = kEnd;
                continue;
            }
        }
        if (++nodes > rules.max_nodes) return {AMBIGUOUS, 0, 0};
        kmer.forward = now.forward;
        kmer.backward = now.backward;
        kmer.add(base);
        // A k-mer without replaced bases is the read's own.
        const bool is_known = option == kRead && now.known <= at;
        const int level =
            is_known ? int(space.level(at - k + 1)) : level_of(solid, kmer.canonical());
        if (option == kRead) now.own = uint8_t(level);
        if (level < kSolid) continue;
        now.base = uint8_t(base);
        now.level = uint8_t(level);
        space.nodes[depth++] = now;
        now = {kmer.forward, kmer.backward, (now.history << 1) | changed, cost,
               option == kRead ? now.known : at + k, 0, 0, 0, 0};
    }
    if (best == kNone) return {PARTIAL, reach, reach};
    return {COMPLETE, reach, min(agreed, reach)};
}

}  // namespace
