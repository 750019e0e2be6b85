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

// A search for the best way from the solid k-mer at ``start``; bases up to ``last_change`` may
// change, those whose k-mer is solid only if their quality is below ``kept``.
//
// The last node of the way is in registers; those in front of it are in the space.
struct Walk {
    Node now;
    int first, stop, last_change, kept, depth, reach, nodes, best, agreed;
    bool ambiguous;

    __device__ __forceinline__ void begin(const SearchRules& rules, const Space& space, int length,
                                          int start, int last_change_in, int kept_in) {
        first = start + rules.kmer;
        last_change = last_change_in;
        stop = min(length, last_change + rules.kmer);
        kept = kept_in;
        depth = reach = nodes = 0;
        best = kNone;
        agreed = stop;
        ambiguous = false;
        Kmer kmer(rules.kmer);
        for (int i = start; i < first; ++i) kmer.add(space.code(i));
        now = {kmer.forward, kmer.backward, 0, 0, first, kRead, 0};
    }

    // Tries one base, or goes back by one; whether there is more to do.
    __device__ __forceinline__ bool step(const Solid& solid, const SearchRules& rules,
                                         const Space& space) {
        const int at = first + depth;
        if (at == stop) return go_back(rules, space, true);
        const int original = space.code(at);
        int option = now.option;
        if (option == kRead ? original == kUnknown : option - 1 == original) ++option;
        int base = original, cost = now.cost;
        uint64_t changed = 0;
        if (option != kRead) {
            const int score = space.score(at);
            base = option - 1;
            cost += rules.change_cost + score;
            changed = original != kUnknown;
            if (option >= kEnd || at > last_change || (now.own >= kSolid && score >= kept) ||
                (best != kNone && cost >= best + rules.margin) ||
                (changed && changes_in(now.history, rules.window - 1) >= rules.max_changes))
                return go_back(rules, space, false);
        }
        now.option = option + 1;
        ambiguous = ++nodes > rules.max_nodes;
        if (ambiguous) return false;
        Kmer kmer(rules.kmer);
        kmer.forward = now.forward;
        kmer.backward = now.backward;
        kmer.add(base);
        // A k-mer without replaced bases is the read's own.
        const bool is_known = option == kRead && now.known <= at;
        const int level =
            is_known ? int(space.level(at - rules.kmer + 1)) : level_of(solid, kmer.canonical());
        if (option == kRead) now.own = level;
        if (level < kSolid) return true;
        space.taken(depth) = uint8_t(base);
        space.taken_level(depth) = uint8_t(level);
        space.put(depth++, now);
        now = {kmer.forward, kmer.backward, (now.history << 1) | changed, cost,
               option == kRead ? now.known : at + rules.kmer, kRead, 0};
        return true;
    }

    // Leaves the last node, at the end of a way or where it does not go on.
    __device__ __forceinline__ bool go_back(const SearchRules& rules, const Space& space,
                                            bool ends) {
        bool better = best == kNone && depth > reach;
        if (ends) {
            int same = 0;
            while (same < depth && best != kNone && space.taken(same) == space.best(same))
                ++same;
            better = now.cost < best;
            if (!better || best < now.cost + rules.margin) agreed = min(agreed, same);
            else agreed = stop;
            if (better) best = now.cost;
        }
        if (better) {
            reach = depth;
            for (int i = 0; i < depth; ++i) {
                space.best(i) = space.taken(i);
                space.best_level(i) = space.taken_level(i);
            }
        }
        if (--depth < 0) return false;
        now = space.node(depth);
        return true;
    }

    __device__ __forceinline__ Way found() const {
        if (ambiguous) return {AMBIGUOUS, 0, 0};
        if (best == kNone) return {PARTIAL, reach, reach};
        return {COMPLETE, reach, min(agreed, reach)};
    }
};

}  // namespace
